"""The first schema: the tables that ``spinney.store.sql.schema`` declares, and what no declaration of a table says.

Until 0.1.0 is released, a change of the schema changes those declarations, and ``new_store`` writes its script anew.
The release replaces this revision by the statements that it has led to, and every later change is a new revision.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import CreateIndex, CreateTable

from spinney.store.sql.schema import metadata
from spinney.store.sql.schema.statements import COUNTERS, GUARDS, HISTORY, POSTGRES_STORAGE

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create tables, indexes, the view over all attempts and the guards of the audit; set the counters to zero."""
    dialect = op.get_context().dialect.name
    for table in metadata.sorted_tables:
        op.execute(CreateTable(table))
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            op.execute(CreateIndex(index))
    for statement in (
        HISTORY,
        *GUARDS[dialect].values(),
        *(POSTGRES_STORAGE if dialect == "postgresql" else ()),
    ):
        op.execute(statement)
    for name in COUNTERS:
        op.execute(sa.text("insert into counters (name, value) values (:name, 0)").bindparams(name=name))
