"""Nodes as operators see them: the orders for each, and its status.

The times below are for display and for work that may be done twice. A node's jobs are taken back by another
rule: when its heartbeat counter has not changed for its lease period by the monotonic clock of an observer
(``NodeInfo.dead_after_s``), so that no difference between two wall clocks can end a node that works."""

import json
from dataclasses import asdict, dataclass

from spinney.model.queue_selection import ALL, QueueSelection

POLL_S = 0.2
"""How often nodes poll the store, in seconds, independent of wake-ups."""
LEASE_MAX_S = 3600.0
"""The longest lease period of a node, in seconds. A node of a version that does not store its lease may have any up to
this, so it is judged by it."""
SLOTS_MAX = 10_000
"""The most attempts that a node, or an external worker over the API, runs at once. Each slot costs memory, and each
attempt in a process of its own costs a process."""
SILENT_US = 5_000_000
"""A node without a heartbeat for so long (by the clocks of both hosts) is shown as silent. This is for display only:
other nodes judge by their own clocks whether it is dead."""
UNHEARD_US = 60_000_000
"""A node without a heartbeat for so long is not relied on for work that may be done twice without harm, whether its
lease is over or not."""
DEAD_SLACK_US = 45_000_000
"""A node that has been silent for so long beyond its lease period is shown as dead: this gives the other nodes time to
notice, and allows for clocks that differ. With the usual lease of 15 s that is a minute."""
OVER = "was cut off"
"""A trouble that begins with this is over, and is shown for a while because nobody may have seen it."""


def lasts(trouble: str | None) -> bool:
    """Return whether a node with this trouble is degraded: there is one, and it is not over."""
    return trouble is not None and not trouble.startswith(OVER)


DIED = "died"
"""The trouble that the store records for a node that was declared dead. One that left by itself never has it."""
DIED_SHOWN_US = 86_400_000_000
"""A node that died is listed for a day, or until a node of its name joins: nobody else may have noticed."""


def presumed_dead(seen_us: int, lease_s: float | None, now_us: int) -> bool:
    """Return whether a node that was last seen at ``seen_us`` is dead by the wall clock, so that any other node would
    have noticed. This is for display only: wall clocks never take a lease away.

    ``lease_s``: the lease period of that node; None: a node of an older version, which may have the longest."""
    return now_us - seen_us > (LEASE_MAX_S if lease_s is None else lease_s) * 1e6 + DEAD_SLACK_US


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOrders:
    """Operators' orders for the nodes of a name, whichever incarnation joins."""

    drained: bool = False
    """It takes no new jobs; jobs that it has not begun go back, those that run finish."""
    slots: int | None = None
    """The number of slots; None: the number that it was started with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a node measures of its host."""

    one_minute: float
    """The load average over the last minute."""
    cpus: int
    """The number of processors that it may use."""
    memory_bytes: int
    memory_free_bytes: int
    """The memory that programs could get without swapping."""

    def to_json(self) -> str:
        """Return a JSON text that ``from_json`` turns back into an equal load."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | None) -> "Load | None":
        """Return the measured load; None when there is none, or when another version measures something else."""
        try:
            return None if text is None else cls(**json.loads(text))
        except (TypeError, ValueError):
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """A node that has not left, still owns leases, or died not long ago, as of one snapshot."""

    id: int
    node: str
    host: str
    pid: int
    version: str
    state: str
    """``active``, ``degraded`` (``trouble`` says why), ``drained`` (by an operator), ``draining`` (it is ending),
    ``silent``, ``dead`` (silent for longer than its lease, so that any other node would have noticed, or declared dead
    within the last day), ``left`` (its leases are being taken back)."""
    seen_us: int
    started_us: int
    slots: int
    """The number in force for its name."""
    slots_started: int
    """The number that it was started with."""
    used: int
    """Slots that hold leases."""
    leases: int
    types: tuple[str, ...]
    serves: QueueSelection = ALL
    load: Load | None = None
    is_leader: bool = False
    """It does the work that one node does for all: promotion of scheduled jobs, recovery, retention."""
    trouble: str | None = None
    """Why it is degraded, or (``OVER``) was not long ago."""
    lease_s: float | None = None
    """Its lease period: others wait this long for its next heartbeat before they take its jobs back. None: a node of an
    older version, for which they wait ``LEASE_MAX_S``."""
    drained_by: str | None = None
    drained_reason: str | None = None

    @property
    def is_running(self) -> bool:
        """Return whether the node has neither left nor died."""
        return self.state not in ("left", "dead")
