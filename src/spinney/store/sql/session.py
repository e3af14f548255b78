"""What every part of the store works with: its database, and the registry that each transaction refreshes."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from spinney.store.sql.connection.database import Database, Tx
from spinney.store.sql.registry.registry import Registry


class _Undone(Exception):
    """A trial has come to its end: its transaction is rolled back."""


class Session:
    """One for a store; belongs to one thread at a time."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.registry = Registry()
        self._connected = 0
        self._trial: Tx | None = None

    @property
    def trying(self) -> bool:
        """Whether all that is done now is taken back."""
        return self._trial is not None

    @contextmanager
    def trial(self) -> Iterator[None]:
        """One transaction in which all that follows is done and read, and which is taken back in the end."""
        try:
            with self.database.write(durable=False) as tx:
                self._refresh(tx)
                self._trial = tx
                yield
                raise _Undone
        except _Undone:
            pass
        finally:
            self._trial = None
            self.registry.forget()

    @contextmanager
    def write(self, *, durable: bool = True, awaited: bool = False) -> Iterator[Tx]:
        """One transaction that changes something; see ``Database.write``."""
        try:
            if self._trial is not None:
                with self._trial.savepoint():
                    self._refresh(self._trial)
                    yield self._trial
                return
            with self.database.write(durable=durable, awaited=awaited) as tx:
                self._refresh(tx)
                yield tx
        except BaseException:
            self.registry.forget()
            raise

    def read(self) -> AbstractContextManager[Tx]:
        """One snapshot, for what needs no registry."""
        return nullcontext(self._trial) if self._trial is not None else self.database.look()

    @contextmanager
    def look(self) -> Iterator[Tx]:
        """One snapshot, with the registry as of it."""
        if self._trial is not None:
            self._refresh(self._trial)
            yield self._trial
            return
        with self.database.look() as tx:
            self._refresh(tx)
            yield tx

    def _refresh(self, tx: Tx) -> None:
        if self._connected != self.database.connected:
            self._connected = self.database.connected
            self.registry.forget()
        self.registry.refresh(tx)
