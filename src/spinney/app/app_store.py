"""The store of an application: opened when it is first needed, and closed at the latest when the process exits.

It is also closed before the process is forked, and opened again where it is needed. A child with a copy of an open
SQLite connection takes the locks of its parent for its own: it would write into a log that the parent has deleted, and
jobs that it submits would be lost."""

import atexit
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
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
        self._forking_thread: int | None = None
        self.known_types: set[str] = set()
        """Job types that the store has, as the application has noted since it was opened."""
        _stores.add(self)

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

    def before_fork(self) -> None:
        """Close the store when no thread uses it, and keep it closed until this thread has forked."""
        self._lock.acquire()
        self._forking_thread = threading.get_ident()
        self._close()

    def after_fork(self) -> None:
        """Let the threads of the parent use the store again."""
        if self._forking_thread == threading.get_ident():
            self._forking_thread = None
            self._lock.release()

    def after_fork_in_child(self) -> None:
        """Forget the threads of the parent, one of which may have held the lock if C code forked the process: that
        calls no ``before_fork``."""
        self._lock, self._forking_thread = threading.Lock(), None

    def _open(self) -> tuple["Store", "Waker"]:
        """Return the store and the waker. A child that was forked from C code opens its own, because connections must
        not be shared; ``SqliteDatabase`` refuses that for a file that was open."""
        if self._opened is None or self._opened[0] != os.getpid():
            # Imported here, because workers load the application and must start fast.
            from spinney.store.sql import open_store
            from spinney.wakeup import Waker

            where = self.settings
            store = open_store(where.store)
            self._opened = (os.getpid(), store, Waker(store, where.run_dir))
            self.known_types = set()
        return self._opened[1:]

    def _close(self) -> None:
        if self._opened is not None and self._opened[0] == os.getpid():
            for opened in self._opened[1:]:
                opened.close()
        self._opened = None


_stores: WeakSet[AppStore] = WeakSet()
"""The stores of all applications of this process."""


def _each_store(do: Callable[[AppStore], None]) -> None:
    """Do this with every store, in an order that is the same for all threads that fork."""
    for store in sorted(_stores, key=id):
        do(store)


os.register_at_fork(
    before=partial(_each_store, AppStore.before_fork),
    after_in_parent=partial(_each_store, AppStore.after_fork),
    after_in_child=partial(_each_store, AppStore.after_fork_in_child),
)
# SQLite merges the write-ahead log into the database file when its last connection is closed.
atexit.register(_each_store, AppStore.close_if_free)
