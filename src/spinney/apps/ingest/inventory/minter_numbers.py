"""The numbers of a minter: each key gets one, and keeps it for ever."""

from sqlalchemy import select

from spinney.apps.ingest.inventory.entry_rules import KEY_MAX_BYTES, name
from spinney.apps.ingest.inventory.sql.schema import minters, numbers
from spinney.tables.database import Database


def number(database: Database, minter: str, key: str) -> int:
    """Return the number of this key, from 1; a new one when it has none. No number is given twice by one minter; there
    may be gaps. Raises NotAdmitted."""
    name("minter", minter)
    name("key", key, KEY_MAX_BYTES)
    query = select(numbers.c.number).where(numbers.c.minter == minter, numbers.c.key == key)
    with database.write() as connection:
        existing = connection.execute(query).scalar()
        if existing is not None:
            return int(existing)
        increment = (
            database.insert(minters)
            .values(minter=minter, last=1)
            .on_conflict_do_update(index_elements=["minter"], set_={"last": minters.c.last + 1})
            .returning(minters.c.last)
        )
        # From here on this minter's row is locked until the commit. A transaction that has waited looks again.
        new_number = int(connection.execute(increment).scalar_one())
        existing = connection.execute(query).scalar()
        if existing is not None:
            return int(existing)
        connection.execute(numbers.insert().values(minter=minter, key=key, number=new_number))
        return new_number
