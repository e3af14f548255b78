"""The store of an application: opened when it is first needed, again in a forked child, and closed at the latest when
the process exits."""

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

from spinney.config import Settings, settings

if TYPE_CHECKING:
    from spinney.store.parts import Store
    from spinney.wakeup import Waker


class AppStore:
    """A store and the waker of its nodes, which one thread at a time uses."""

    def __init__(self, store: str | None, folders: str | Path | None) -> None:
        """``store``, ``folders``: as the code names them; None: the environment or ``spinney.toml`` does."""
        self._locations = (store, folders)
        self._lock = threading.Lock()
        self._opened: tuple[int, Store, Waker] | None = None
        self.known_types: set[str] = set()
        """Job types that the store has, as the application has noted since it was opened."""

    @property
    def settings(self) -> Settings:
        """Return where the store and the folders are."""
        store, folders = self._locations
        return settings(store, folders, environment=os.environ, directory=Path.cwd())

    @contextmanager
    def use(self) -> Iterator[tuple["Store", "Waker"]]:
        """Hold the store and the waker for this thread; open them if need be."""
        with self._lock:
            yield self._open()

    def close(self) -> None:
        """Close the store; the next use opens it again."""
        with self._lock:
            self._close()

    def close_if_free(self) -> None:
        """Close the store unless a thread holds it: a daemon thread that never ends may do so."""
        if self._lock.acquire(blocking=False):
            try:
                self._close()
            finally:
                self._lock.release()

    def _open(self) -> tuple["Store", "Waker"]:
        """Return the store and the waker. A forked child opens its own, because connections must not be shared."""
        if self._opened is None or self._opened[0] != os.getpid():
            # Imported here, because workers load the application and must start fast.
            from spinney.store.sql import open_store
            from spinney.wakeup import Waker

            where = self.settings
            store = open_store(where.store)
            self._opened = (os.getpid(), store, Waker(store, where.run_dir))
            self.known_types = set()
            _open_stores.add(self)
        return self._opened[1:]

    def _close(self) -> None:
        if self._opened is not None and self._opened[0] == os.getpid():
            for opened in self._opened[1:]:
                opened.close()
        self._opened = None


_open_stores: WeakSet[AppStore] = WeakSet()
"""The stores that applications have open."""


@atexit.register
def _close_open_stores() -> None:
    """Close the stores that nobody has closed: SQLite merges the write-ahead log into the database file when its last
    connection is closed."""
    for store in list(_open_stores):
        store.close_if_free()
