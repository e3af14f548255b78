"""External workers: they run stages of isolation ``external`` over the API, and are no nodes.

An external worker joins for some lanes (a type's stage each), claims, sends heartbeats, settles. To all others it looks
like a node with slots, so that limits, holds, locks and shares apply to it as to all. **Its leases have fences that
only grow**, which suffices to detect leases in an answer that got lost: with every claim and every heartbeat an
external worker sends the highest fence that it has ever received. It has never received a lease with a higher fence; a
lease with a lower one that it does not name, it does not work on.

The external worker's own clock decides nothing. An external worker that sends no heartbeat for its lease
loses all its leases, and has to join again (``ExternalWorkerGone``); an attempt that exceeds its time limit,
or goes on long after a cancel request, is taken from it alone (``overdue``). What the worker reports of it
afterwards is refused by its fence."""

from dataclasses import dataclass
from typing import Any

from spinney.model.attempts.signals import CODE_MAX
from spinney.model.errors import BadParameters, NoSuch, Refused, UsageError
from spinney.model.fleet import SLOTS_MAX
from spinney.model.outcomes import PASSED, STAGE_WORDS, Outcome
from spinney.model.queue_selection import ALL, QueueSelection
from spinney.model.types import StageSpec
from spinney.model.values import durations, names
from spinney.model.values.texts import whole_number

LEASE_S = (2.0, 86_400.0)
"""The shortest and the longest lease of an external worker, in seconds, in which it may send no heartbeat."""
CLAIM_MAX = 100
"""The most leases of one claim: each comes with parameters, data and results."""
RESULT_BYTES = 64 * 2**10
"""The longest value of a stage, as JSON: as on nodes."""
WORDS = frozenset({*STAGE_WORDS, Outcome.CANCELLED, Outcome.RETURNED, Outcome.LOCKED})
"""How an external worker may settle an attempt: with the outcomes of a stage, cancelled, returned without having begun,
or locked (it did not get a lock)."""


class ExternalWorkerGone(Refused):
    """The external worker's leases have been taken back; let it join again."""


class NoSuchExternalWorker(NoSuch):
    """No such external worker has joined, or it belongs to another user; let it join first."""

    def __init__(self, key: str) -> None:
        super().__init__(f"there is no external worker {key!r} of yours; let it join first")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalWorker:
    """An external worker that has joined."""

    id: int
    """The id of its row among the nodes."""
    name: str
    owner: str
    """The user who let it join; nobody else may act for it."""
    join_count: int
    """How often it has joined; requests with the key of an earlier time are refused."""
    slots: int
    lease_s: float
    """How long it may send no heartbeat before its leases are taken back."""
    lanes: tuple[tuple[str, str], ...]
    """(job type, stage) pairs that it runs."""
    serves: QueueSelection = ALL
    """The queues from which it gets jobs."""
    state: str = "active"
    """The state, as in ``NodeInfo.state``: ``active`` until the worker leaves or its leases are taken back, then
    ``left``."""

    @property
    def key(self) -> str:
        """Return its key in the addresses of its requests; it is not secret."""
        return f"{self.id}-{self.join_count}"

    def require_joined(self) -> None:
        """Raise ExternalWorkerGone when it has left, or its leases have been taken back."""
        if self.state == "left":
            raise ExternalWorkerGone(
                f"external worker {self.name} has left, or was silent for longer than its {self.lease_s:g} "
                "s; its attempts run elsewhere, so stop them and let it join again"
            )


def parse_key(key: str) -> tuple[int, int]:
    """Return (id, join count) of an external worker's key. Raises NoSuchExternalWorker for a malformed key."""
    first, _, second = key.partition("-")
    id_, join_count = whole_number(first), whole_number(second)
    if id_ is None or join_count is None:
        raise NoSuchExternalWorker(key)
    return id_, join_count


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalLease:
    """A lease that an external worker has, as the store knows it."""

    job_id: int
    fence: int
    slot: int
    type: str
    stage: str
    running_us: int
    """When it was claimed (µs since 1970 UTC)."""
    cancel_requested_us: int | None
    """When its cancellation was requested; None: it was not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkItem:
    """An attempt to run, as a claim returns it."""

    job_id: int
    fence: int
    """To be sent with every request about this attempt."""
    type: str
    stage: str
    attempt: int
    """1 for the first of this stage."""
    params: Any
    data: Any
    """The job's current data, by name."""
    results: Any
    """The values of earlier stages, by stage."""
    parent_id: int | None
    root_id: int
    timeout_s: float | None
    """An attempt that lasts longer is taken away; None: there is no time limit."""
    grace_s: float
    """How long it may continue after it has received the cancel request."""
    trace: str | None = None
    """The ``traceparent`` of the job's submission, for a span of the external worker's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedWork:
    """The answer to a claim of an external worker: attempts that are its own from now on, with what it needs to run
    them."""

    work: tuple[WorkItem, ...]
    seen: int
    """The highest fence that the external worker has received so far; to be sent with the next claim or heartbeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatReply:
    """The answer to a heartbeat: the status of each attempt."""

    yours: tuple[int, ...]
    """The fences of the attempts to continue."""
    cancel: tuple[int, ...]
    """Those of them for which cancellation was requested: end them, and settle them as cancelled."""
    lost: tuple[int, ...]
    """Fences that were sent and do not belong to the external worker (any more): settled before, or taken away. Stop
    them."""
    unheard: int
    """Attempts of a claim whose answer the external worker has not received: the next claim hands them back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """The outcome of an attempt, as an external worker reports it."""

    outcome: Outcome
    result: Any = None
    """The stage's value, for outcomes that pass."""
    message: str | None = None
    error: dict[str, str] | None = None
    """For ``error``: its ``type``, ``message`` and ``traceback``, each as far as known."""
    retryable: bool = True
    code: int | None = None
    """A positive status code of the external worker's own."""
    delay_s: float | None = None
    """For ``defer``: the seconds until the stage is tried again."""
    lane: bool = False
    """For ``defer``: whether all jobs of this stage sleep, after which one of them probes."""
    lock: str | None = None
    """For ``locked``: the lock that was not free."""

    def __post_init__(self) -> None:
        if self.outcome not in WORDS:
            raise UsageError(
                f"an attempt cannot end as {self.outcome!r}; use one of: {', '.join(sorted(WORDS))}"
            )
        if self.result is not None and self.outcome not in PASSED:
            raise UsageError(f"an attempt that ends as {self.outcome} has no result; put it into the message")
        if self.code is not None and not 1 <= self.code <= CODE_MAX:
            raise UsageError(
                f"a status code of your own must be a whole number from 1 to {CODE_MAX}, not {self.code}"
            )
        durations.in_seconds(self, "delay_s")
        if self.delay_s is not None and (self.outcome is not Outcome.DEFER or self.delay_s < 0):
            raise UsageError("delay_s is 0 or more seconds, and for the outcome defer")
        if self.lane and self.outcome is not Outcome.DEFER:
            raise UsageError("lane is for the outcome defer")
        if (self.lock is not None) != (self.outcome is Outcome.LOCKED):
            raise UsageError("the outcome locked names its lock, and no other does")
        if self.lock is not None:
            names.lock_name(self.lock)
        for part, text in (self.error or {}).items():
            if part not in ("type", "message", "traceback") or not isinstance(text, str):
                raise BadParameters("an error has type, message and traceback, each a text")


def node_name(name: str) -> str:
    """Return the name of an external worker's row among the nodes: with a prefix that no node's name may
    have. Raises BadName, also when it is too long with the prefix."""
    names.name("external worker", name)
    return names.name("external worker", names.EXTERNAL_PREFIX + name)


def bare_name(node_name: str) -> str:
    """Return the name of an external worker from that of its row among the nodes."""
    return node_name.removeprefix(names.EXTERNAL_PREFIX)


def require_sane(slots: int, lease_s: float, lanes: tuple[tuple[str, str], ...]) -> None:
    """Raise UsageError for settings that no external worker may have: no stage, or slots or a lease (in
    seconds) outside of the bounds."""
    if not 1 <= slots <= SLOTS_MAX:
        raise UsageError(f"an external worker has 1 to {SLOTS_MAX:,} slots, not {slots}")
    least, most = LEASE_S
    if not least <= lease_s <= most:
        raise UsageError(f"an external worker may be silent for {least:g} to {most:g} s, not for {lease_s:g}")
    if not lanes:
        raise UsageError("an external worker runs one stage or more; name each with its job type")


def overdue(
    lease: ExternalLease, stage: StageSpec | None, lease_s: float, now_us: int
) -> tuple[Outcome, str] | None:
    """Return how an attempt ends that has to be taken from its external worker; None: it may continue.

    Times are by the caller's clock. An external worker learns of a cancel request with its next heartbeat, so within
    its lease; only then its grace period begins."""
    if lease.cancel_requested_us is not None:
        grace_s = 0.0 if stage is None else stage.grace_s
        if now_us - lease.cancel_requested_us >= (lease_s + grace_s) * 1e6:
            return Outcome.CANCELLED, "cancelled while it ran; its external worker did not end it in time"
    limit_s = None if stage is None else stage.timeout_s
    if limit_s is not None and now_us - lease.running_us >= limit_s * 1e6:
        return Outcome.TIMEOUT, f"exceeded its time limit of {limit_s:g} s"
    return None
