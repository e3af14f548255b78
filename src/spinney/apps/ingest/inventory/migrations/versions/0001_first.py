"""Numbers, local ids, objects, versions, files, audits: the tables that ``inventory.schema`` declares.

Until 0.1.0 is released, a change of the tables changes those declarations. The release replaces this revision by the
statements that it has led to, and every later change is a new revision (``docs/decisions/0028``).
"""

from alembic import op

from spinney.apps.ingest.inventory.schema import metadata

revision = "0001"
down_revision = None


def upgrade() -> None:
    metadata.create_all(op.get_bind(), checkfirst=False)
