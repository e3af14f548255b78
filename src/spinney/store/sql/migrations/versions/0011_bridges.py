"""Bridges to other systems, and their links."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Flag = sa.Boolean().with_variant(sa.SmallInteger(), "postgresql")


def upgrade() -> None:
    """Add tables that older code does not use."""
    op.create_table(
        "bridges",
        sa.Column("name", Text, nullable=False),
        sa.Column("system", Text, nullable=False),
        sa.Column("owner", Text, nullable=False),
        sa.Column("mark", Text, nullable=False),
        sa.Column("seen_us", Id, nullable=False),
        sa.Column("behind", sa.Integer(), nullable=False),
        sa.Column("behind_since_us", Id, nullable=True),
        sa.Column("trouble", Text, nullable=True),
        sa.Column("trouble_us", Id, nullable=True),
        sa.Column("in_trouble", Flag, nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "bridge_links",
        sa.Column("bridge", Text, nullable=False),
        sa.Column("entry", Text, nullable=False),
        sa.Column("claim", Text, nullable=False),
        sa.Column("job_id", Id, nullable=True),
        sa.Column("position", Text, nullable=False),
        sa.PrimaryKeyConstraint("bridge", "entry"),
    )
