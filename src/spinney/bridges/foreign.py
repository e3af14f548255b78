"""The other side of a bridge: what a class for another system's database provides.

A new bridge is one such class and its commands; ``bridge`` knows nothing of the system. It calls ``begin`` once, then
``report``, ``tend``, ``wishes``, ``claimed`` and ``claim`` again and again, always from one thread.

Every write must be safe to repeat, and say what holds now; ``docs/bridges.md`` has the rules."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from spinney.jobs import SETTLED, Attempt, Job


class ForeignAway(Exception):
    """The foreign store cannot be reached now; the message is a sentence for operators. The bridge tries again."""


class ClaimLost(Exception):
    """The entry is no longer claimed by this bridge: it was reset, deleted or taken away in the other system. The
    message says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """An entry that this bridge has taken in the foreign store."""

    entry: str
    """The entry's name or number there, at most 200 printable characters."""
    claim: str
    """Names this taking: the entry, reset and taken again, has another one. At most 100 printable characters."""
    type: str
    """The job type."""
    params: Mapping[str, Any]
    """The parameters of the job. Where the type refuses them the entry is rejected."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the submission: ``queue``, ``priority``, ``collection``, ``data`` …; no key and no submitter."""


class Order(StrEnum):
    """What an operator of the other system may wish for a job."""

    CANCEL = "cancel"
    HOLD = "hold"
    RELEASE = "release"
    PRIORITY = "priority"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A wish for the job of an entry. ``reason`` stands in the audit and on the job."""

    entry: str
    order: Order
    reason: str
    priority: int | None = None
    """The new one of a wish for it, 0 (first) to 99 (last)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What holds for a job now, and nothing of how it came to that: reports may be repeated, and states
    between two reports are left out."""

    entry: str
    claim: str
    job: Job | None
    """The job; None: it was deleted in Spinney."""
    attempts: Sequence[Attempt]
    """Those that have ended, the oldest first."""
    results: Callable[[], Mapping[str, Any]]
    """Reads the results of the stages that have passed, in their order."""
    output: Callable[[Attempt, str], Iterator[bytes]]
    """Reads what an attempt wrote to ``stdout`` or ``stderr``, in pieces. Raises Refused where it cannot be
    read."""


class Foreign(Protocol):
    """Another system's database. All methods are called by one thread; each may raise ForeignAway."""

    system: str
    """The kind of system, as ``disbatch``."""
    database: str
    """Which of its databases, for keys; it must never change."""
    name: str
    """The bridge's name in lists, unique in a store: system, database and the name under which it claims."""

    @property
    def parked(self) -> int:
        """How many claimed entries wait in the other system for its own services, so that their jobs need no slots."""

    def begin(self, mark: str, *, linked: bool) -> None:
        """Prepare the database: at the start, and again after each error of a round. ``mark``: tells this store's
        bridge from another store's of the same name. ``linked``: whether there are jobs of its entries. Raise
        ForeignAway where another store works under this name, or where the database is not the one in which the entries
        were claimed, so that nothing is cancelled."""

    def tend(self) -> None:
        """Do what the other system expects of its nodes, each second: beat, read limits, tidy up."""

    def claimed(self, linked: Container[tuple[str, str]] = ()) -> Iterable[Claim]:
        """Return all entries that are claimed under the bridge's name and not finished. ``linked``: those that have
        jobs, each with its claim; no job is made of them, so that their params may be left out."""

    def claim(self, room: int) -> Sequence[Claim]:
        """Take up to ``room`` entries, within the other system's own limits; each is taken by an atomic write."""

    def reject(self, claim: Claim, reason: str) -> None:
        """End an entry of which no job can be made, as one that has failed; the reason is a sentence."""

    def report(self, reports: Sequence[Report]) -> Mapping[str, ClaimLost]:
        """Write the present state of each of these jobs into its entry. Return the entries that are no longer claimed
        by this bridge, each with the reason."""

    def wishes(self) -> Iterable[Wish]:
        """Return what operators of the other system wish for entries that are claimed under the bridge's name. A wish
        is returned until its outcome was reported."""

    def differences(self, jobs: Mapping[str, Job | None]) -> Iterable[tuple[str, str]]:
        """Compare the entries that are claimed under the bridge's name with their jobs, by entry; yield entry and
        sentence for each that does not agree. Nothing is changed."""


def compared(ours: Set[str], jobs: Mapping[str, Job | None]) -> Iterator[tuple[str, str]]:
    """Compare the entries that this bridge has claimed (``ours``) with their jobs, by what holds for every
    system; yield entry and sentence for each difference. ``jobs``: by entry, those of the open links; None:
    the job is gone."""
    for entry in sorted(ours - jobs.keys()):
        yield entry, "it is taken by this node, and has no job here: the bridge makes one when it runs"
    for entry, job in sorted(jobs.items()):
        if entry not in ours:
            yield (
                entry,
                "its link is open, but it is finished, deleted or claimed by others in the other system",
            )
        elif job is None or job.state in SETTLED:
            yield entry, "its job has ended here, but the other system does not show that yet"
