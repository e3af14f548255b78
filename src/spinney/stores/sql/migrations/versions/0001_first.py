"""The first schema."""

from alembic import op

from spinney.stores.sql.schema import HISTORY, metadata

revision = "0001"
down_revision = None


def upgrade() -> None:
    metadata.create_all(op.get_bind())
    op.execute(HISTORY)
    for name in ("job", "fence", "lane", "share", "node", "registry"):
        op.execute(f"insert into counters (name, value) values ('{name}', 0)")
