"""Numbers for a minter: a key gets one, and keeps it for ever."""

from sqlalchemy import select

from spinney.apps.ingest.inventory.entry_rules import KEY_MAX_BYTES, name
from spinney.apps.ingest.inventory.sql.database import Database
from spinney.apps.ingest.inventory.sql.schema import minters, numbers


def number(database: Database, minter: str, key: str) -> int:
    """The number of this key, from 1; a new one when it has none. No number is given twice by one minter; there may be
    gaps. Raises NotAdmitted."""
    name("minter", minter)
    name("key", key, KEY_MAX_BYTES)
    given = select(numbers.c.number).where(numbers.c.minter == minter, numbers.c.key == key)
    with database.write() as connection:
        found = connection.execute(given).scalar()
        if found is not None:
            return int(found)
        counted = (
            database.insert(minters)
            .values(minter=minter, last=1)
            .on_conflict_do_update(index_elements=["minter"], set_={"last": minters.c.last + 1})
            .returning(minters.c.last)
        )
        # From here on this minter is ours until the commit. Who has waited for it looks again.
        fresh = int(connection.execute(counted).scalar_one())
        found = connection.execute(given).scalar()
        if found is not None:
            return int(found)
        connection.execute(numbers.insert().values(minter=minter, key=key, number=fresh))
        return fresh
