"""Waking nodes when something was committed that they should see: one idea of it for everybody who commits.

Nodes of this host that share the run-time directory get a datagram (``nudge``): it needs nobody and is there in
a quarter of a millisecond, and may go out before the commit where whoever heeds it has to wait for that
(``Store.submit``). All others hear it through the store, where a store can tell them (``Store.announce``),
with the sender's place beside, so that who has got the datagram does not look twice. Behind both, nodes poll, which
alone suffices.
"""

from pathlib import Path
from typing import Protocol

from spinney.nudge import Nudger, nudge_all, place


class Announcing(Protocol):
    """What is needed of a store."""

    def announce(self, sender: str = "") -> None: ...


def wake_all(store: Announcing, run_dir: Path | str | None, *, but: str | None = None) -> None:
    """Wake every node of the store, except the one whose socket is ``but``. Never fails and promises nothing."""
    if run_dir is not None:
        nudge_all(run_dir, but=but)  # first: the store's answer takes as long again
    _announce(store, run_dir)


class Waker:
    """Wakes all nodes of a store again and again, in two steps around each commit. Belongs to who has the store."""

    def __init__(self, store: Announcing, run_dir: Path | str | None) -> None:
        self._store, self._run_dir = store, run_dir
        self._nudger = None if run_dir is None else Nudger(run_dir)

    def soon(self) -> None:
        """Before a commit for which whoever heeds it has to wait: those that are known and near."""
        if self._nudger is not None:
            self._nudger.nudge_known()

    def now(self) -> None:
        """After it: all others."""
        if self._nudger is not None:
            self._nudger.nudge_rest()
        _announce(self._store, self._run_dir)

    def close(self) -> None:
        if self._nudger is not None:
            self._nudger.close()


def _announce(store: Announcing, run_dir: Path | str | None) -> None:
    store.announce("" if run_dir is None else place(run_dir))
