"""Inboxes, and what was dropped there."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Flag = sa.Boolean().with_variant(sa.SmallInteger(), "postgresql")


def upgrade() -> None:
    """Add tables that older code does not use: its nodes look into no inbox."""
    op.create_table(
        "inboxes",
        sa.Column("name", Text, nullable=False),
        sa.Column("spec", Text, nullable=False),
        sa.Column("paused", Flag, nullable=False),
        sa.Column("scan_us", Id, nullable=True),
        sa.Column("by", Text, nullable=False),
        sa.Column("node_id", Id, nullable=True),
        sa.Column("problem", Text, nullable=True),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "inbox_arrivals",
        sa.Column("id", Id, nullable=False),
        sa.Column("inbox", Text, nullable=False),
        sa.Column("name", Text, nullable=False),
        sa.Column("kind", Text, nullable=False),
        sa.Column("size", Id, nullable=False),
        sa.Column("sha256", Text, nullable=True),
        sa.Column("identity", Text, nullable=False),
        sa.Column("owner", Text, nullable=False),
        sa.Column("dropped_us", Id, nullable=False),
        sa.Column("at_us", Id, nullable=False),
        sa.Column("outcome", Text, nullable=False),
        sa.Column("job_id", Id, nullable=True),
        sa.Column("reason", Text, nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("inbox_arrivals_by_inbox", "inbox_arrivals", ["inbox", "id"])
    op.create_index("inbox_arrivals_by_digest", "inbox_arrivals", ["inbox", "sha256", "id"])
    condition = sa.text("outcome in ('taking', 'rejecting')")
    op.create_index(
        "inbox_arrivals_open",
        "inbox_arrivals",
        ["inbox", "name"],
        unique=True,
        sqlite_where=condition,
        postgresql_where=condition,
    )
    op.execute("insert into counters (name, value) values ('inbox_arrival', 0)")
