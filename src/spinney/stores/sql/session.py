"""What every part of the store works with: its database, and the registry that each transaction refreshes."""

from collections.abc import Iterator
from contextlib import contextmanager

from spinney.stores.sql.database import Database, Tx
from spinney.stores.sql.registry import Registry


class Session:
    """One for a store; belongs to one thread at a time."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.registry = Registry()
        self._connected = 0

    @contextmanager
    def write(self, *, durable: bool = True, awaited: bool = False) -> Iterator[Tx]:
        """One transaction that changes something; see ``Database.write``."""
        try:
            with self.database.write(durable=durable, awaited=awaited) as tx:
                self._refresh(tx)
                yield tx
        except BaseException:
            self.registry.forget()
            raise

    @contextmanager
    def look(self) -> Iterator[Tx]:
        """One snapshot, with the registry as of it."""
        with self.database.look() as tx:
            self._refresh(tx)
            yield tx

    def _refresh(self, tx: Tx) -> None:
        if self._connected != self.database.connected:
            self._connected = self.database.connected
            self.registry.forget()
        self.registry.refresh(tx)
