"""Users, tokens, sessions, limits of sign-ins, one-time links, secrets of servers, and idempotency keys."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Flag = sa.Boolean().with_variant(sa.SmallInteger(), "postgresql")


def upgrade() -> None:
    """Add tables that older code does not use."""
    op.create_table(
        "users",
        sa.Column("name", Text, nullable=False),
        sa.Column("rights", Text, nullable=False),
        sa.Column("password", Text, nullable=True),
        sa.Column("password_us", Id, nullable=True),
        sa.Column("created_us", Id, nullable=False),
        sa.Column("by", Text, nullable=False),
        sa.Column("disabled", Flag, nullable=False, server_default=sa.text("0")),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "tokens",
        sa.Column("id", Text, nullable=False),
        sa.Column("owner", Text, nullable=False),
        sa.Column("name", Text, nullable=False),
        sa.Column("rights", Text, nullable=False),
        sa.Column("digest", Text, nullable=False),
        sa.Column("created_us", Id, nullable=False),
        sa.Column("by", Text, nullable=False),
        sa.Column("expires_us", Id, nullable=True),
        sa.Column("revoked_us", Id, nullable=True),
        sa.Column("used_us", Id, nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "tokens_by_name", "tokens", ["owner", "name"], unique=True, **_where("revoked_us is null")
    )
    op.create_index("tokens_by_expiry", "tokens", ["expires_us"], **_where("expires_us is not null"))
    op.create_index("tokens_by_revocation", "tokens", ["revoked_us"], **_where("revoked_us is not null"))
    op.create_table(
        "sessions",
        sa.Column("digest", Text, nullable=False),
        sa.Column("user_name", Text, nullable=False),
        sa.Column("created_us", Id, nullable=False),
        sa.Column("seen_us", Id, nullable=False),
        sa.Column("idle_us", Id, nullable=False),
        sa.Column("ends_us", Id, nullable=False),
        sa.Column("address", Text, nullable=True),
        sa.Column("agent", Text, nullable=True),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_index("sessions_by_user", "sessions", ["user_name"])
    op.create_index("sessions_by_end", "sessions", ["ends_us"])
    op.create_table(
        "login_failures",
        sa.Column("whose", Text, nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("last_us", Id, nullable=False),
        sa.PrimaryKeyConstraint("whose"),
    )
    op.create_index("login_failures_by_time", "login_failures", ["last_us"])
    op.create_table(
        "invites",
        sa.Column("user_name", Text, nullable=False),
        sa.Column("digest", Text, nullable=False),
        sa.Column("ends_us", Id, nullable=False),
        sa.Column("by", Text, nullable=False),
        sa.PrimaryKeyConstraint("user_name"),
    )
    op.create_table(
        "server_secrets",
        sa.Column("name", Text, nullable=False),
        sa.Column("value", Text, nullable=False),
        sa.Column("made_us", Id, nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "idempotency",
        sa.Column("owner", Text, nullable=False),
        sa.Column("key", Text, nullable=False),
        sa.Column("digest", Text, nullable=False),
        sa.Column("first_id", Id, nullable=False),
        sa.Column("last_id", Id, nullable=False),
        sa.Column("held", Id, nullable=False, server_default=sa.text("0")),
        sa.Column("done", Flag, nullable=False),
        sa.Column("at_us", Id, nullable=False),
        sa.PrimaryKeyConstraint("owner", "key"),
    )
    op.create_index("idempotency_by_time", "idempotency", ["at_us"])


def _where(condition: str) -> dict[str, Any]:
    return {f"{dialect}_where": sa.text(condition) for dialect in ("sqlite", "postgresql")}
