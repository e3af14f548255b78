"""Waking nodes when something was committed that they should see: one idea of it for everybody who commits.

Nodes of this host that share the run-time directory get a datagram (``nudge``): it needs nobody and is there in
a quarter of a millisecond. All others hear it through the store, where a store can tell them (``Store.announce``),
with the sender's place beside, so that who has got the datagram does not look twice. Behind both, nodes poll, which
alone suffices.
"""

from pathlib import Path
from typing import Protocol

from spinney.nudge import nudge_all, place


class Announcing(Protocol):
    """What is needed of a store."""

    def announce(self, sender: str = "") -> None: ...


def wake_all(store: Announcing, run_dir: Path | str | None, *, but: str | None = None) -> None:
    """Wake every node of the store, except the one whose socket is ``but``. Never fails and promises nothing."""
    if run_dir is None:
        store.announce()
        return
    nudge_all(run_dir, but=but)  # first: the store's answer takes as long again
    store.announce(place(run_dir))
