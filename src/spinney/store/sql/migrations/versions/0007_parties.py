"""External workers, which claim external stages."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add a table. Older code takes an external worker for a node, and applies its own lease period to it."""
    op.create_table(
        "external_workers",
        sa.Column("node_id", Id, nullable=False),
        sa.Column("owner", Text, nullable=False),
        sa.Column("join_count", sa.Integer(), nullable=False),
        sa.Column("lease_s", sa.Float(), nullable=False),
        sa.Column("lanes", Text, nullable=False),
        sa.PrimaryKeyConstraint("node_id"),
    )
