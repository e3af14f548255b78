"""Waking nodes when something was committed that they should see: one idea of it for everybody who commits.

Nodes of this host that share the run-time directory get a datagram (``wakeup_socket``): it needs nobody and is there in
a quarter of a millisecond, and may go out before the commit where whoever heeds it has to wait for that
(``Store.submit``). All others hear it through the store, where a store can tell them (``Store.notify``),
with the sender's place beside, so that who has got the datagram does not look twice. Behind both, nodes poll, which
alone suffices.
"""

from pathlib import Path
from typing import Protocol

from spinney.wakeup_socket import LocalWaker, run_dir_id, wake_local_nodes


class Notifier(Protocol):
    """What is needed of a store."""

    def notify(self, sender: str = "") -> None: ...


def wake_all(store: Notifier, run_dir: Path | str | None, *, but: str | None = None) -> None:
    """Wake every node of the store, except the one whose socket is ``but``. Never fails and promises nothing."""
    if run_dir is not None:
        wake_local_nodes(run_dir, but=but)  # first: the store's answer takes as long again
    _notify(store, run_dir)


class Waker:
    """Wakes all nodes of a store again and again, in two steps around each commit. Belongs to who has the store."""

    def __init__(self, store: Notifier, run_dir: Path | str | None) -> None:
        self._store, self._run_dir = store, run_dir
        self._local_waker = None if run_dir is None else LocalWaker(run_dir)

    def soon(self) -> None:
        """Before a commit for which whoever heeds it has to wait: those that are known and near."""
        if self._local_waker is not None:
            self._local_waker.wake_known()

    def now(self) -> None:
        """After it: all others."""
        if self._local_waker is not None:
            self._local_waker.wake_rest()
        _notify(self._store, self._run_dir)

    def close(self) -> None:
        if self._local_waker is not None:
            self._local_waker.close()


def _notify(store: Notifier, run_dir: Path | str | None) -> None:
    store.notify("" if run_dir is None else run_dir_id(run_dir))
