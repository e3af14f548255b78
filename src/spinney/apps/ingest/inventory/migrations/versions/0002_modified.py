"""Add the date at which a file was last changed, as its depositor gives it, to an inventory that was made before it was
declared.

The column may be NULL, so that programs of the previous version can write beside new ones.
"""

import sqlalchemy as sa
from alembic import op

from spinney.apps.ingest.inventory.schema import files

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    existing = {column["name"] for column in sa.inspect(op.get_bind()).get_columns(files.name)}
    if "modified" not in existing:
        op.add_column(files.name, sa.Column("modified", files.c.modified.type))
