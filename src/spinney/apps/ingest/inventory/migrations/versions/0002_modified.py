"""Add the date at which a file was last changed, as its depositor gives it.

The column may be NULL, so that programs of the previous version can write beside new ones.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column(
        "inv_files", sa.Column("modified", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"))
    )
