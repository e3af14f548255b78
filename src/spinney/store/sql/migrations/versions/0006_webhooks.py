"""Webhooks and their deliveries."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Flag = sa.Boolean().with_variant(sa.SmallInteger(), "postgresql")


def upgrade() -> None:
    """Add tables that older code does not use: a job that settles through it causes no deliveries."""
    op.create_table(
        "webhooks",
        sa.Column("id", Id, nullable=False),
        sa.Column("name", Text, nullable=False),
        sa.Column("spec", Text, nullable=False),
        sa.Column("secret", Text, nullable=False),
        sa.Column("mark", Text, nullable=False),
        sa.Column("paused", Text, nullable=True),
        sa.Column("resumed_us", Id, nullable=True),
        sa.Column("by", Text, nullable=False),
        sa.Column("at_us", Id, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "webhook_events",
        sa.Column("seq", Id, nullable=False),
        sa.Column("webhook_id", Id, nullable=False),
        sa.Column("job_id", Id, nullable=True),
        sa.Column("event", Text, nullable=False),
        sa.Column("batch", Flag, nullable=False),
        sa.Column("at_us", Id, nullable=False),
        sa.Column("next_us", Id, nullable=True),
        sa.Column("outcome", Text, nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("first_us", Id, nullable=True),
        sa.Column("tried_us", Id, nullable=True),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("answer", Text, nullable=True),
        sa.PrimaryKeyConstraint("seq"),
    )
    op.create_index("webhook_events_by_webhook", "webhook_events", ["webhook_id", "seq"])
    condition = sa.text("next_us is not null")
    due: dict[str, Any] = {"sqlite_where": condition, "postgresql_where": condition}
    op.create_index("webhook_events_due", "webhook_events", ["webhook_id", "next_us"], **due)
    op.execute("insert into counters (name, value) values ('webhook', 0), ('webhook_event', 0)")
