"""Nodes as operators see them: what is wanted of each, and how it fares."""

import json
from dataclasses import asdict, dataclass

from spinney.model.queue_selection import ALL, QueueSelection

LEASE_MAX_S = 3600.0
"""The longest lease period of a node, in seconds. A node of a version that does not say its lease may have any up to
this, so it is judged by it. (Those versions knew no bound; docs/upgrading.md says what to do about a longer one.)"""
SLOTS_MAX = 10_000
"""The most attempts that a node, or an external worker over the API, runs at once. Each slot costs memory, and each
attempt in a process of its own costs a process."""
SILENT_US = 5_000_000
"""A node that has not beaten for so long (by the clocks of both hosts) is shown as silent. For show alone: that it
is dead, other nodes say by their own clocks."""
UNHEARD_US = 60_000_000
"""A node of which nothing has been heard for so long is not counted on, whether its lease is over or not: for show, and
for what may be done twice without harm."""
DEAD_SLACK_US = 45_000_000
"""A node that has been silent for so long beyond its lease period is shown as dead: time for the other nodes to look,
and for clocks of hosts that differ. With the usual lease of 15 s that is a minute."""
OVER = "was cut off"
"""Trouble that begins so is over, and told for a while because nobody may have seen it."""


def presumed_dead(seen_us: int, lease_s: float | None, now_us: int) -> bool:
    """Whether a node that was last seen then is dead by the wall clock, so that any other node would have said so.
    For show alone: wall clocks never take a lease away.

    ``lease_s``: the lease period of that node; None: a node of an older version, which may have the longest."""
    return now_us - seen_us > (LEASE_MAX_S if lease_s is None else lease_s) * 1e6 + DEAD_SLACK_US


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOrders:
    """What operators want of the nodes of a name, whichever incarnation comes."""

    drained: bool = False
    """It takes nothing new; what it was given and has not begun goes back, what runs finishes."""
    slots: int | None = None
    """So many slots; None: as it was started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a node measures of its host."""

    one_minute: float
    """Processes that ran or wanted to, on average over the last minute."""
    cpus: int
    """That it may use."""
    memory_bytes: int
    memory_free_bytes: int
    """What programs could be given without anything being paged out."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | None) -> "Load | None":
        """What was measured; None when nothing was, or by a version that measures something else."""
        try:
            return None if text is None else cls(**json.loads(text))
        except (TypeError, ValueError):
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """A node that has not left, or still owns leases, as of one snapshot."""

    id: int
    node: str
    host: str
    pid: int
    version: str
    state: str
    """``active``, ``degraded`` (``trouble`` says why), ``drained`` (by an operator), ``draining`` (it was told to
    end), ``silent``, ``dead`` (silent for longer than its lease, so that any other node would have said so),
    ``left`` (its leases are being taken back)."""
    seen_us: int
    started_us: int
    slots: int
    """In force for its name."""
    slots_started: int
    """Those it was started with."""
    used: int
    """Slots that hold leases."""
    leases: int
    types: tuple[str, ...]
    serves: QueueSelection = ALL
    load: Load | None = None
    is_leader: bool = False
    """It does what one does for all: promotion of scheduled jobs, recovery, retention."""
    trouble: str | None = None
    """Why it works worse than it should, or (``OVER``) did not long ago."""
    lease_s: float | None = None
    """Its lease period: all others wait so long for its next beat before they take its work back. None: a node of an
    older version, for which they wait ``LEASE_MAX_S``."""
    drained_by: str | None = None
    drained_reason: str | None = None
