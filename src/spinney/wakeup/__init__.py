"""Nodes are woken here after a commit that they should see, so that work begins at once and not at the next poll.

Nodes of this host that share the run-time directory get a datagram (``local``). It needs no other process,
arrives within a quarter of a millisecond, and may be sent before the commit where the receiver has to wait for that
(``Store.submit``). All other nodes are notified through the store, if the store can (``Store.notify``). That
notification names the sender's run-time directory, so that nodes that got the datagram do not look twice. In any case
nodes poll, which alone suffices.

Specified by ``tests/test_wakeup.py`` (who is woken how), ``tests/test_wakeup_local.py`` (datagrams) and
``tests/node/test_node_wakeup.py`` (through the store).
"""

from pathlib import Path
from typing import Protocol

from spinney.wakeup.local import LocalWaker, run_dir_id, wake_local_nodes


class Notifier(Protocol):
    """The part of a store that wake-ups need."""

    def notify(self, sender: str = "") -> None: ...


def wake_all(store: Notifier, run_dir: Path | str | None, *, but: str | None = None) -> None:
    """Wake every node of the store, except the one whose socket is ``but``. It never raises, and guarantees nothing.
    ``run_dir``: the run-time directory of nodes on this host; None: only the store is notified."""
    if run_dir is not None:
        wake_local_nodes(run_dir, but=but)  # first, because the store's notification takes as long again
    _notify(store, run_dir)


class Waker:
    """Wakes all nodes of a store, in two steps around each commit. It belongs to the owner of the store object."""

    def __init__(self, store: Notifier, run_dir: Path | str | None) -> None:
        self._store, self._run_dir = store, run_dir
        self._local_waker = None if run_dir is None else LocalWaker(run_dir)

    def soon(self) -> None:
        """Wake the known nodes of this host, before a commit that they have to wait for."""
        if self._local_waker is not None:
            self._local_waker.wake_known()

    def now(self) -> None:
        """Wake all other nodes, after the commit."""
        if self._local_waker is not None:
            self._local_waker.wake_rest()
        _notify(self._store, self._run_dir)

    def close(self) -> None:
        if self._local_waker is not None:
            self._local_waker.close()


def _notify(store: Notifier, run_dir: Path | str | None) -> None:
    store.notify("" if run_dir is None else run_dir_id(run_dir))
