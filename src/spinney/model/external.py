"""External workers: who runs stages of isolation ``external`` and is no node.

An external worker joins for some lanes (a type's stage each), claims, keeps alive, settles. To everybody else it
looks like a node with slots, so that limits, holds, locks and shares count for it as for all. **Its leases have
fences that only grow**, and that is all that is needed to tell what an answer that got lost had given: with every
claim and every sign of life an external worker says the highest fence of which it has ever heard. What has a higher
one it has never heard of; what has a lower one, and it does not name, it does not work on.
"""

from dataclasses import dataclass
from typing import Any

from spinney.model.attempts.signals import CODE_MAX
from spinney.model.errors import BadParameters, NoSuch, Refused, UsageError
from spinney.model.fleet import SLOTS_MAX
from spinney.model.outcomes import PASSED, STAGE_WORDS, Outcome
from spinney.model.queue_selection import ALL, QueueSelection
from spinney.model.types import StageSpec
from spinney.model.values import durations, names

LEASE_S = (2.0, 86_400.0)
"""How long an external worker may be silent, at least and at most."""
CLAIM_MAX = 100
"""Leases that one claim gives at most: with each come parameters, data and results."""
RESULT_BYTES = 64 * 2**10
"""The longest value of a stage, as JSON: as on nodes."""
WORDS = frozenset({*STAGE_WORDS, Outcome.CANCELLED, Outcome.RETURNED, Outcome.LOCKED})
"""What an external worker may say of an attempt: the words of a stage, that it was cancelled, that it hands it back
without having begun, that it could not get a lock."""


class ExternalWorkerGone(Refused):
    """The external worker's leases have been taken back; let it join again."""


class NoSuchExternalWorker(NoSuch):
    """No such external worker has joined, or it is somebody else's; let it join first."""

    def __init__(self, key: str) -> None:
        super().__init__(f"there is no external worker {key!r} of yours; let it join first")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalWorker:
    """Who runs external stages."""

    id: int
    """Of the node as which others see it."""
    name: str
    owner: str
    """Who let it join; nobody else may speak for it."""
    join_count: int
    """How often it has joined; whoever still speaks for an earlier joining is refused."""
    slots: int
    lease_s: float
    """So long it may be silent before its leases are taken back."""
    lanes: tuple[tuple[str, str], ...]
    """(job type, stage) pairs that it runs."""
    serves: QueueSelection = ALL
    """The queues from which it is given something."""
    state: str = "active"

    @property
    def key(self) -> str:
        """By which it is spoken for; not secret."""
        return f"{self.id}-{self.join_count}"

    def require_there(self) -> None:
        """Raise ExternalWorkerGone where its leases have been taken back."""
        if self.state == "left":
            raise ExternalWorkerGone(
                f"external worker {self.name} has left, or was silent for longer than its {self.lease_s:g} "
                "s; what it had goes "
                f"on elsewhere, so stop that and let it join again"
            )


def parse_key(key: str) -> tuple[int, int]:
    """(id, joins) of an external worker's key. Raises NoSuchExternalWorker for what is none."""
    id_, _, join_count = key.partition("-")
    if not all(part.isascii() and part.isdigit() and len(part) < 18 for part in (id_, join_count)):
        raise NoSuchExternalWorker(key)
    return int(id_), int(join_count)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalLease:
    """A lease that an external worker has, as the store knows it."""

    job_id: int
    fence: int
    slot: int
    type: str
    stage: str
    running_us: int
    """When it was given (µs since 1970 UTC)."""
    cancel_requested_us: int | None
    """When somebody wished it cancelled; None: nobody has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkItem:
    """An attempt to be run: what a claim gives."""

    job_id: int
    fence: int
    """To be sent with whatever is said of this attempt."""
    type: str
    stage: str
    attempt: int
    """1 for the first of this stage."""
    params: Any
    data: Any
    """The job's data as they are now, by name."""
    results: Any
    """The values of earlier stages, by stage."""
    parent_id: int | None
    root_id: int
    timeout_s: float | None
    """When the attempt lasts longer it is taken away; None: it may last for ever."""
    grace_s: float
    """So long it may go on after it has heard that it is to be cancelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedWork:
    """The answer to a claim."""

    work: tuple[WorkItem, ...]
    seen: int
    """The highest fence that the external worker has heard of by now; to be sent with the next claim or sign of
    life."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatReply:
    """The answer to a sign of life: where each attempt stands."""

    yours: tuple[int, ...]
    """Fences of attempts to go on with."""
    cancel: tuple[int, ...]
    """Of these, those that somebody wishes to end: end them, and settle them as cancelled."""
    lost: tuple[int, ...]
    """Fences that were named and are not the external worker's (any more): settled before, or taken away. Stop them."""
    unheard: int
    """Attempts that were given in an answer of which the external worker has not heard: the next claim hands them
    back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What became of an attempt, as an external worker says it."""

    outcome: Outcome
    result: Any = None
    """The stage's value, for outcomes that pass."""
    message: str | None = None
    error: dict[str, str] | None = None
    """For ``error``: ``type``, ``message`` and ``traceback``, each as far as known."""
    retryable: bool = True
    code: int | None = None
    """A positive status code of the external worker's own."""
    delay_s: float | None = None
    """For ``defer``."""
    lane: bool = False
    """For ``defer``: all jobs of this stage sleep, and one probes then."""
    lock: str | None = None
    """For ``locked``: the lock that was not to be had."""

    def __post_init__(self) -> None:
        if self.outcome not in WORDS:
            raise UsageError(
                f"an attempt cannot end as {self.outcome!r}; use one of: {', '.join(sorted(WORDS))}"
            )
        if self.result is not None and self.outcome not in PASSED:
            raise UsageError(f"an attempt that ends as {self.outcome} has no result; say it in the message")
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
    """The name under which others see an external worker. Raises BadName."""
    names.name("external worker", name)
    return names.name("external worker", names.EXTERNAL_PREFIX + name)


def require_sane(slots: int, lease_s: float, lanes: tuple[tuple[str, str], ...]) -> None:
    """Raise UsageError for what no external worker can be."""
    if not 1 <= slots <= SLOTS_MAX:
        raise UsageError(f"an external worker has 1 to {SLOTS_MAX:,} slots, not {slots}")
    least, most = LEASE_S
    if not least <= lease_s <= most:
        raise UsageError(f"an external worker may be silent for {least:g} to {most:g} s, not for {lease_s:g}")
    if not lanes:
        raise UsageError("an external worker runs one stage or more; name each with its job type")


def overdue(
    given: ExternalLease, stage: StageSpec | None, lease_s: float, now_us: int
) -> tuple[Outcome, str] | None:
    """How an attempt ends that has to be taken from its external worker; None: it may go on.

    By the clock of whoever asks the store. An external worker hears of a request to cancel with its next sign of
    life, so within its lease; only then its grace begins.
    """
    if given.cancel_requested_us is not None:
        grace_s = 0.0 if stage is None else stage.grace_s
        if now_us - given.cancel_requested_us >= (lease_s + grace_s) * 1e6:
            return Outcome.CANCELLED, "cancelled while it ran; its external worker did not end it in time"
    limit_s = None if stage is None else stage.timeout_s
    if limit_s is not None and now_us - given.running_us >= limit_s * 1e6:
        return Outcome.TIMEOUT, f"exceeded its time limit of {limit_s:g} s"
    return None
