"""What a server watches: parties that fell silent, and what would stand still where no node is.

A node that keeps house looks after parties as after other nodes. A server looks after them, too, for it may be the only
one there: parties need a server, and no node. Each goes by a clock of his own, and whoever says first that a party has
been silent for longer than its lease takes back what it had; two who say so do it once (``spinney.stores.minding``).
Where no node is, nobody promotes what was deferred or scheduled; then the server does that as well.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from typing import Self

from spinney.model.errors import SpinneyError, StoreUnusable
from spinney.model.fleet import UNHEARD_US
from spinney.model.jobs import NodeInfo
from spinney.model.names import PARTY_PREFIX
from spinney.node.recovery import Watch
from spinney.server.stores import Stores
from spinney.stores.contract import Store
from spinney.stores.minding import lapsed, take_overdue

log = logging.getLogger(__name__)

EVERY_S = 1.0
_SWEEPS = 50
"""Steps of housekeeping between two looks, where there is much to catch up with."""


class Watching:
    """``async with`` looks until left."""

    def __init__(
        self,
        stores: Stores,
        *,
        now_us: Callable[[], int],
        nudge: Callable[[Store], None],
        monotonic: Callable[[], float] = time.monotonic,
        every_s: float = EVERY_S,
    ) -> None:
        """``nudge`` wakes nodes when something has become claimable."""
        self._stores, self._now_us, self._nudge = stores, now_us, nudge
        self._monotonic, self._every_s = monotonic, every_s
        self._watch = Watch()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run(), name="watching")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        while True:
            try:
                await self._stores.run(self.look)
            except StoreUnusable as error:
                log.debug("cannot look after parties: %s", error)
            except SpinneyError as error:
                log.error("%s", error)
            except Exception:
                log.exception("looking after parties failed, and goes on")
            await asyncio.sleep(self._every_s)

    def look(self, store: Store) -> None:
        """One look, in a thread with this store."""
        asked_s = self._monotonic()
        there = store.nodes()
        changed = self._parties(store, [node for node in there if node.is_party], asked_s)
        if not any(self._keeps_house(node) for node in there):
            changed = _housekeeping(store, self._now_us()) or changed
        if changed:
            self._nudge(store)

    def _keeps_house(self, node: NodeInfo) -> bool:
        """Whether a node is there that might. By wall clocks: when that is wrong, things are done twice, or late."""
        return node.state == "active" and not node.is_party and self._now_us() - node.seen_us <= UNHEARD_US

    def _parties(self, store: Store, parties: Sequence[NodeInfo], asked_s: float) -> bool:
        silent = self._watch.look(parties, asked_s, self._monotonic())
        for party in silent:
            back = lapsed(store, party, now_us=self._now_us())
            log.warning(
                "party %s was silent for longer than its lease: %d jobs taken back",
                party.name.removeprefix(PARTY_PREFIX),
                len(back),
            )
        if len(silent) == len(parties):
            return bool(silent)
        return take_overdue(store, now_us=self._now_us()) > 0 or bool(silent)


def _housekeeping(store: Store, now_us: int) -> bool:
    """What a node that keeps house does about time; whether something has become claimable."""
    changed = False
    for _ in range(_SWEEPS):
        if not store.schedules.tick(now_us=now_us):
            break
        changed = True
    for _ in range(_SWEEPS):
        swept = store.sweep(now_us=now_us)
        changed = changed or swept.due > 0
        if not swept.more:
            break
    for _ in range(_SWEEPS):
        if not store.holds.sweep(now_us=now_us, yielding=True):
            break
        changed = True
    return changed
