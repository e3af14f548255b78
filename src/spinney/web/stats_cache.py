"""A cache of statistics that take long to read: those of the whole store, or of a large batch.

On a large store one query takes a noticeable part of a processor. So a result that took long is kept for a multiple of
that time, and shared by all callers who may see the same; a cheap one is never kept. When the event feed reports a
change, its results are dropped: a page that reads because of a change gets nothing from before it.
"""

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from spinney.model.operators.stats import Stats
from spinney.model.values.times import now_us
from spinney.service.queries import Queries
from spinney.service.service import Service
from spinney.store.parts import Store

T = TypeVar("T")

DEAR_S = 0.06
"""The least processor time that a result took if it is kept, in seconds."""
SHARE = 20
"""A result is kept for this many times what it took, so that it takes at most a 20th of one processor."""
KEPT_S = 10.0
"""The longest time that a result is kept, in seconds."""
KEPT_MAX = 50
"""The most results that are kept."""
OVERVIEW = "overview"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """A result, and until when it is kept by the monotonic clock."""

    answer: Any
    until_s: float


Key = tuple[str, Hashable]
"""The topic of ``events.topics`` whose change drops the result, and what was read with which rights."""


class StatsCache:
    """Results by key. It may be used from any thread."""

    def __init__(
        self,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        spent: Callable[[], float] = time.thread_time,
    ) -> None:
        """``spent``: how much of a processor this thread has taken, in seconds."""
        self._monotonic, self._spent = monotonic, spent
        self._kept: dict[Key, _Kept] = {}
        self._turns: dict[Key, threading.Lock] = {}
        self._changes = 0
        self._lock = threading.Lock()

    def stats(self, service: Service, *, anew: bool = False) -> Stats:
        """Return what ``Queries.stats`` answers, or answered a moment ago. ``anew``: read it now in any case."""
        return self.get(OVERVIEW, service.rights.within, service.part(Queries).stats, anew=anew)

    def of_all(self, store: Store) -> Stats:
        """Return the statistics of the whole store, in nobody's name and without limits: who may see them is
        for the caller to decide."""
        return self.stats(Service(store=store, clock=now_us, wake_nodes=lambda: None, by=""))

    def get(self, topic: str, detail: Hashable, look: Callable[[], T], *, anew: bool = False) -> T:
        """Return the result of ``look``, or a recent one. ``detail`` must also say who may see it. ``anew``:
        run ``look`` in any case, and share its result. Threads that want the same at one time wait for one
        ``look``. What it raises is raised to its caller alone; the next one looks itself."""
        key = (topic, detail)
        if not anew and (entry := self._entry(key)) is not None:
            return cast(T, entry.answer)
        with self._turn(key):  # others who come meanwhile wait for this look, and take it
            if not anew and (entry := self._entry(key)) is not None:
                return cast(T, entry.answer)
            changes, begun_s = self._changes, self._spent()
            answer = look()
            self._keep(key, answer, self._spent() - begun_s, changes)
            return answer

    def changed(self, topic: str) -> None:
        """Drop the results of a topic that has changed."""
        with self._lock:
            self._changes += 1
            self._kept = {key: entry for key, entry in self._kept.items() if key[0] != topic}

    def _entry(self, key: Key) -> _Kept | None:
        """Return the result that is kept under this key; None: there is none, or it is too old."""
        entry = self._kept.get(key)
        return entry if entry is not None and self._monotonic() < entry.until_s else None

    def _keep(self, key: Key, answer: Any, took_s: float, changes: int) -> None:
        """Keep a result that took long. One that may be older than a reported change is not kept, except that
        of the overview, whose changes the feed reads by itself."""
        with self._lock:
            self._kept.pop(key, None)
            if took_s < DEAR_S or (changes != self._changes and key[0] != OVERVIEW):
                return  # what changed while it was looked at may be missing
            if len(self._kept) >= KEPT_MAX:
                self._kept.clear()
            self._kept[key] = _Kept(answer=answer, until_s=self._monotonic() + min(KEPT_S, SHARE * took_s))

    def _turn(self, key: Key) -> threading.Lock:
        """Return the lock of those who look for this key. Locks that nobody holds are dropped when there are
        many."""
        with self._lock:
            if len(self._turns) >= KEPT_MAX:
                self._turns = {other: turn for other, turn in self._turns.items() if turn.locked()}
            return self._turns.setdefault(key, threading.Lock())
