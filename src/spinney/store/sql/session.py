"""The session of a store's parts: its database, and the registry that each transaction refreshes.

Every transaction of a store begins here. It sees the settings and declarations that were committed before it,
because the registry compares a counter first, and reads them again when that has changed. A ``trial`` runs
any operation to see what it would do: everything that follows goes into one transaction that is rolled back
in the end."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from spinney.store.sql.connection.database import Database, Tx
from spinney.store.sql.registry.registry import Registry


class _Undone(Exception):
    """Raised at the end of a trial, so that its transaction is rolled back."""


class Session:
    """The session of one store; it belongs to one thread at a time, and so do the parts that share it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._begin = database.write
        self.registry = Registry()
        self._connected = 0
        self._trial: Tx | None = None

    @property
    def trying(self) -> bool:
        """Return whether a ``trial`` is running, so that all changes are rolled back in the end."""
        return self._trial is not None

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Run all that follows in one transaction, which is rolled back in the end. ``write`` takes part in
        it by a savepoint, and ``look`` and ``read`` see what was changed so far. Other writers wait
        meanwhile, so a trial must be short. What the block raises is raised."""
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
        """Run one transaction that writes, with the registry as of its beginning; see ``Database.write``.

        When it fails the registry is dropped, because it may have read rows that were never committed."""
        try:
            if self._trial is not None:
                with self._trial.savepoint():
                    self._refresh(self._trial)
                    yield self._trial
                return
            with self._begin(durable=durable, awaited=awaited) as tx:
                self._refresh(tx)
                yield tx
        except BaseException:
            self.registry.forget()
            raise

    def measure_writes(self, add: Callable[[float, float, float], None]) -> None:
        """From now on call ``add`` after each commit, with the seconds until it was this writer's turn, of the
        statements, and of the commit."""
        write = self.database.write

        @contextmanager
        def measured(*, durable: bool = True, awaited: bool = False, urgent: bool = False) -> Iterator[Tx]:
            begun_s = time.perf_counter()
            with write(durable=durable, awaited=awaited, urgent=urgent) as tx:
                turn_s = time.perf_counter()
                yield tx
                last_s = time.perf_counter()
            add(turn_s - begun_s, last_s - turn_s, time.perf_counter() - last_s)

        self._begin = measured

    def read(self) -> AbstractContextManager[Tx]:
        """Read one snapshot, for queries that need no registry; it saves the look at the counter."""
        return nullcontext(self._trial) if self._trial is not None else self.database.look()

    @contextmanager
    def look(self) -> Iterator[Tx]:
        """Read one snapshot, with the registry as of it."""
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


class SqlPart:
    """What the parts of a store have in common (``spinney.store.parts``): the session in which they read and write."""

    def __init__(self, session: Session) -> None:
        self._session = session
