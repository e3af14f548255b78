"""What many nodes need: what operators set on queues and nodes, who keeps house, how a node fares."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Flag = sa.Boolean().with_variant(sa.SmallInteger(), "postgresql")


def upgrade() -> None:
    """New tables, and columns of nodes that may be empty."""
    op.create_table(
        "queue_settings",
        sa.Column("name", Text, nullable=False),
        sa.Column("settings", Text, nullable=False),
        sa.Column("by", Text, nullable=False),
        sa.Column("at_us", Id, nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "node_settings",
        sa.Column("name", Text, nullable=False),
        sa.Column("drained", Flag, nullable=False),
        sa.Column("slots", sa.Integer(), nullable=True),
        sa.Column("by", Text, nullable=False),
        sa.Column("reason", Text, nullable=True),
        sa.Column("at_us", Id, nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "chores",
        sa.Column("name", Text, nullable=False),
        sa.Column("node_id", Id, nullable=True),
        sa.PrimaryKeyConstraint("name"),
    )
    op.add_column("nodes", sa.Column("load", Text, nullable=True))
    op.add_column("nodes", sa.Column("serves", Text, nullable=True))
    op.add_column("nodes", sa.Column("trouble", Text, nullable=True))
