"""Requests for the stacks of running attempts."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add a table that nodes of older versions do not read: a request to one of them expires."""
    op.create_table(
        "stack_requests",
        sa.Column("fence", Id, nullable=False),
        sa.Column("job_id", Id, nullable=False),
        sa.Column("node_id", Id, nullable=False),
        sa.Column("asked_us", Id, nullable=False),
        sa.PrimaryKeyConstraint("fence"),
    )
