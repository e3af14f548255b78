"""The lease period of each node, by which the others declare it dead."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add a column that older code leaves empty; readers then assume the longest lease period that a node may have."""
    op.add_column("nodes", sa.Column("lease_s", sa.Float(), nullable=True))
