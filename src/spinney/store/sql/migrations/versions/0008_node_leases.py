"""The lease period of each node, by which everybody judges it."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """A column that code of before leaves empty. Whoever reads it then takes the longest lease that a node may have."""
    op.add_column("nodes", sa.Column("lease_s", sa.Float(), nullable=True))
