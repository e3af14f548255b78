"""Finds nodes on hosts whose clock differs from this host's.

Nothing that safety needs depends on wall clocks, but people read them: by the time of its last heartbeat a node whose
clock is behind seems to be silent or dead, and what it records seems to be older than it is. The counter of heartbeats
shows whether a node beats: one whose counter has just moved has just read its clock.
"""

from collections.abc import Iterable

from spinney.model.fleet import SILENT_US
from spinney.model.jobs import NodeInfo

ALLOWED_S = SILENT_US / 1e6
"""By how many seconds two clocks may differ: up to here no list shows a node that beats as silent."""


class ClockWatch:
    """Remembers the counters of nodes from one look to the next. It is pure: the times are passed in."""

    def __init__(self) -> None:
        self._beats: dict[int, int] = {}
        self._queried_s = 0.0
        self._reported: set[int] = set()

    def look(
        self, nodes: Iterable[NodeInfo], queried_s: float, now_us: int, answered_s: float
    ) -> list[tuple[NodeInfo, float]]:
        """Take in the nodes that the store returned; return those whose clock was found to be wrong since it was last
        right, each with the seconds by which it is at least ahead of this host's clock (negative: behind).

        ``queried_s``, ``answered_s``: this host's monotonic clock before the store was queried, and after ``now_us``
        was read (seconds)."""
        # A heartbeat counter that differs from the last look was incremented after the last query, so at most this
        # long ago.
        passed_s, self._queried_s = answered_s - self._queried_s, queried_s
        newly_wrong, beats = [], {}
        for node in nodes:
            beats[node.id] = node.beat
            if node.is_external_worker or self._beats.get(node.id, node.beat) == node.beat:
                continue
            least_s = (node.seen_us - now_us) / 1e6
            ahead_s = max(0.0, least_s) or min(0.0, least_s + passed_s)
            if abs(ahead_s) <= ALLOWED_S:
                self._reported.discard(node.id)
            elif node.id not in self._reported:
                self._reported.add(node.id)
                newly_wrong.append((node, ahead_s))
        self._beats = beats
        self._reported &= beats.keys()
        return newly_wrong
