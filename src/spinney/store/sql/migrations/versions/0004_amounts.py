"""Amounts of locks, and capacities that are declared or set."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add columns that are null or have the meaning of older code, in which every owner takes 1 of a lock.

    Older code counts owners instead of amounts: while it runs, it may start jobs that have no room by amounts, and let
    others wait that have. It reads ``capacity``, by exact names.
    """
    op.add_column("locks", sa.Column("amount", Id, nullable=False, server_default=sa.text("1")))
    op.add_column("inactive_jobs", sa.Column("wants_amount", Id, nullable=True))
    op.add_column("inactive_jobs", sa.Column("wants_capacity", Id, nullable=True))
    # ``capacity`` keeps its type: a server refuses statements that were prepared before a column of theirs had another.
    op.add_column("lock_capacities", sa.Column("declared", Id, nullable=True))
    op.add_column("lock_capacities", sa.Column("set_to", Id, nullable=True))
    op.add_column("lock_capacities", sa.Column("by", Text, nullable=True))
    op.add_column("lock_capacities", sa.Column("at_us", Id, nullable=True))
