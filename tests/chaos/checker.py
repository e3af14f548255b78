"""Judges a recorded history: what was submitted, what user code really did, what the store has kept of it.

Pure: ``judge`` takes a History and returns what is wrong with it. It believes nobody. That two owners ran at once or
that a limit was exceeded is read from what user code noted (``chaos_notes``), and compared with what the store says.
Every rule has a history of its own in ``test_checker`` that breaks it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from chaos_notes import Stretch

from spinney.model.jobs import Attempt
from spinney.model.outcomes import PASSED, Outcome
from spinney.model.states import SETTLED, State

LATE_S = 1.0
"""So long may what had stood still past its lease go on until its guard, or its supervisor, has ended it."""

LOST, DOUBLE, LIMIT = "lost", "double", "over a limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What is to be expected of a job type."""

    stages: tuple[str, ...]
    ends: frozenset[State] = frozenset({State.COMPLETED})
    once: bool = False
    """It may not begin a second time, whatever happens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A job as the store has it in the end."""

    id: int
    type: str
    state: State
    parent_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """A cancel of one job that was accepted."""

    job_id: int
    stage: str | None
    """Where it stood before."""
    at_s: float
    """When the verb had returned."""
    settled: bool = False
    """By then it was cancelled, and not only wished to be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """A record that was refused because its lease was gone, as a node's log tells it."""

    job_id: int
    fence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    kinds: Mapping[str, Kind]
    capacities: Mapping[str, int]
    """Of the places that attempts note: ``queue:narrow``, ``lock:press``."""
    accepted: Sequence[int]
    """Jobs whose submission was answered."""
    doubtful: int = 0
    """Jobs whose submission was committed or not: its connection was lost before the answer."""
    children: Mapping[int, int] = field(default_factory=dict)
    """How many children each job must have borne by the time it has completed."""
    needs: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """The jobs that must complete before a job: it fails when one of them was cancelled."""
    jobs: Sequence[Kept] = ()
    attempts: Sequence[Attempt] = ()
    stretches: Sequence[Stretch] = ()
    refused: Sequence[Late] = ()
    cancels: Sequence[Cancel] = ()
    leases: int = 0
    """Leases that are left now that everything has settled."""
    thaws: Mapping[int, float] = field(default_factory=dict)
    """When processes that had stood still went on, by number. Nothing that goes by wall time says whether their leases
    were gone by then: an attempt of theirs whose end was recorded had its lease all along."""


def judge(history: History) -> list[Finding]:
    """What is wrong, in no order of weight; empty: every promise was kept."""
    history = _whole_where_recorded(history)
    return [finding for rule in RULES for finding in rule(history)]


def _whole_where_recorded(history: History) -> History:
    """What went on after a freeze, and was recorded, was the only owner from its begin to its end."""
    passed = {(a.job_id, a.fence) for a in history.attempts if a.outcome in PASSED}
    return replace(
        history,
        stretches=[
            replace(s, seen_s=s.late[-1], ended=s.late_ended, late=())
            if s.late and (s.job_id, s.fence) in passed
            else s
            for s in history.stretches
        ],
    )


# --- nothing is lost --------------------------------------------------------------------------


def _accepted_are_there(history: History) -> Iterator[Finding]:
    there = {job.id for job in history.jobs}
    for job_id in history.accepted:
        if job_id not in there:
            yield Finding(kind=LOST, text=f"job {job_id} was accepted and is not there")
    if history.leases:
        yield Finding(kind=LOST, text=f"{history.leases} leases are left of which nobody knows")
    borne = Counter(job.parent_id for job in history.jobs)
    completed = {job.id for job in history.jobs if job.state is State.COMPLETED}
    for job_id, expected in history.children.items():
        if job_id in completed and borne[job_id] < expected:
            yield Finding(kind=LOST, text=f"job {job_id} bore {expected} children, {borne[job_id]} are there")
        if borne[job_id] > expected:
            yield Finding(
                kind=DOUBLE, text=f"job {job_id} bore {expected} children, {borne[job_id]} are there"
            )


def _settled_as_they_should(history: History) -> Iterator[Finding]:
    cancelled = {cancel.job_id for cancel in history.cancels}
    passed = defaultdict(list)
    for attempt in history.attempts:
        if attempt.outcome in PASSED and not attempt.superseded:
            passed[attempt.job_id].append(attempt.stage)
    for job in history.jobs:
        kind = history.kinds[job.type]
        lawful = kind.ends | ({State.CANCELLED} if cancelled & {job.id, job.parent_id} else frozenset())
        if cancelled & set(history.needs.get(job.id, ())):
            lawful |= {State.FAILED}
        if job.state not in SETTLED:
            yield Finding(kind=LOST, text=f"job {job.id} has not settled: it is {job.state}")
        elif job.state not in lawful:
            yield Finding(kind=LOST, text=f"job {job.id} of type {job.type} ended as {job.state}")
        missing = [stage for stage in kind.stages if stage not in passed[job.id]]
        if job.state is State.COMPLETED and missing:
            yield Finding(kind=LOST, text=f"job {job.id} completed without {', '.join(missing)}")


def _what_passed_ran(history: History) -> Iterator[Finding]:
    ended = {(s.job_id, s.fence) for s in history.stretches if s.ended == "end"}
    for attempt in history.attempts:
        if attempt.outcome in PASSED and (attempt.job_id, attempt.fence) not in ended:
            yield Finding(
                kind=LOST,
                text=f"job {attempt.job_id} passed {attempt.stage} with fence {attempt.fence}, which never ended",
            )


# --- nothing is done twice --------------------------------------------------------------------


def _nobody_asked_for(history: History) -> Iterator[Finding]:
    counted = Counter(history.accepted)
    for job_id, times in counted.items():
        if times > 1:
            yield Finding(kind=DOUBLE, text=f"the number {job_id} was given to {times} submissions")
    strangers = [job.id for job in history.jobs if job.parent_id is None and job.id not in counted]
    if len(strangers) > history.doubtful:
        yield Finding(kind=DOUBLE, text=f"nobody was told of {len(strangers)} jobs: {strangers[:10]}")


def _stages_passed_once(history: History) -> Iterator[Finding]:
    passed: dict[tuple[int, str], list[int]] = defaultdict(list)
    for attempt in history.attempts:
        if attempt.outcome in PASSED and not attempt.superseded:
            passed[attempt.job_id, attempt.stage].append(attempt.fence)
    began: dict[tuple[int, str], list[int]] = defaultdict(list)
    for stretch in history.stretches:
        began[stretch.job_id, stretch.stage].append(stretch.fence)
    for (job_id, stage), fences in passed.items():
        if len(fences) > 1:
            yield Finding(kind=DOUBLE, text=f"job {job_id} passed {stage} with the fences {sorted(fences)}")
        again = [fence for fence in began[job_id, stage] if fence > max(fences)]
        if again:
            yield Finding(
                kind=DOUBLE,
                text=f"job {job_id} ran {stage} again with {again}, after {max(fences)} had passed",
            )


def _attempts_kept_once(history: History) -> Iterator[Finding]:
    for fence, times in Counter(attempt.fence for attempt in history.attempts).items():
        if times > 1:
            yield Finding(kind=DOUBLE, text=f"fence {fence} was recorded {times} times")


def _one_owner(history: History) -> Iterator[Finding]:
    by_job = defaultdict(list)
    for stretch in _on_time(history):
        by_job[stretch.job_id].append(stretch)
    for job_id, stretches in by_job.items():
        stretches.sort(key=lambda s: s.begun_s)
        latest = stretches[0]
        for stretch in stretches[1:]:
            if stretch.begun_s < latest.seen_s:
                yield Finding(
                    kind=DOUBLE,
                    text=f"job {job_id} had two owners for {latest.seen_s - stretch.begun_s:.3f} s: "
                    f"fence {latest.fence} in process {latest.pid}, fence {stretch.fence} in {stretch.pid}",
                )
            latest = max(latest, stretch, key=lambda s: s.seen_s)
    for job_id, times in Counter(s.job_id for s in history.stretches if history.kinds[s.type].once).items():
        if times > 1:
            yield Finding(kind=DOUBLE, text=f"job {job_id}, which may run once only, began {times} times")


def _fences_grow(history: History) -> Iterator[Finding]:
    latest: dict[int, int] = {}
    for stretch in sorted(_on_time(history), key=lambda s: s.begun_s):
        before = latest.get(stretch.job_id, 0)
        if stretch.fence <= before:
            yield Finding(
                kind=DOUBLE, text=f"job {stretch.job_id} began with fence {stretch.fence} after {before}"
            )
        latest[stretch.job_id] = max(before, stretch.fence)


def _refused_do_not_count(history: History) -> Iterator[Finding]:
    counted = {
        (a.job_id, a.fence): a.outcome
        for a in history.attempts
        if a.outcome not in (Outcome.LOST, Outcome.RETURNED)
    }
    for late in history.refused:
        outcome = counted.get((late.job_id, late.fence))
        if outcome is not None:
            yield Finding(
                kind=DOUBLE,
                text=f"job {late.job_id}: fence {late.fence} was refused, and is recorded as {outcome}",
            )


def _cancelled_go_no_further(history: History) -> Iterator[Finding]:
    at = {cancel.job_id: cancel for cancel in history.cancels}
    for stretch in history.stretches:
        cancel = at.get(stretch.job_id)
        if cancel is None or stretch.begun_s <= cancel.at_s:
            continue
        if cancel.settled or stretch.stage != cancel.stage:
            yield Finding(
                kind=DOUBLE,
                text=f"job {stretch.job_id} began {stretch.stage} after its cancel in {cancel.stage}",
            )


def _frozen_end_soon(history: History) -> Iterator[Finding]:
    for stretch in history.stretches:
        if stretch.late and (over_s := stretch.late[-1] - history.thaws[stretch.pid]) > LATE_S:
            yield Finding(
                kind=DOUBLE,
                text=f"job {stretch.job_id}: fence {stretch.fence} went on for {over_s:.1f} s after a thaw",
            )


def _on_time(history: History) -> Iterator[Stretch]:
    """What began while its owner had the right to: not what a thawed process took up late."""
    return (s for s in history.stretches if not s.late or s.begun_s < s.late[0])


# --- limits -----------------------------------------------------------------------------------


def _within_capacities(history: History) -> Iterator[Finding]:
    by_place: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for stretch in _on_time(history):
        for place in stretch.places:
            # At one instant what ends goes first; what gave no second sign of life was there for a moment.
            by_place[place] += [(stretch.begun_s, 1), (max(stretch.seen_s, stretch.begun_s + 1e-9), -1)]
    for place, steps in by_place.items():
        capacity = history.capacities[place]
        most = _most(steps)
        if most > capacity:
            yield Finding(kind=LIMIT, text=f"{most} at once at {place}, which takes {capacity}")


def _most(steps: Iterable[tuple[float, int]]) -> int:
    now = most = 0
    for _, step in sorted(steps):
        now += step
        most = max(most, now)
    return most


RULES = (
    _accepted_are_there,
    _nobody_asked_for,
    _settled_as_they_should,
    _stages_passed_once,
    _what_passed_ran,
    _attempts_kept_once,
    _one_owner,
    _fences_grow,
    _within_capacities,
    _refused_do_not_count,
    _cancelled_go_no_further,
    _frozen_end_soon,
)


# --- how long it took -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Blow:
    """A fault: when it began, and when it was over (the same for a kill)."""

    at_s: float
    over_s: float


def recovery_s(stretches: Sequence[Stretch], blows: Sequence[Blow]) -> float | None:
    """The longest of ``recoveries``. None: nothing was cut off and nothing lasted."""
    return max((took_s for took_s, _ in recoveries(stretches, blows)), default=None)


def recoveries(stretches: Sequence[Stretch], blows: Sequence[Blow]) -> Iterator[tuple[float, str]]:
    """How long after the end of a fault each attempt that it had cut off began anew and, after a fault that lasted,
    anything began."""
    begins: dict[int, list[float]] = defaultdict(list)
    for stretch in stretches:
        begins[stretch.job_id].append(stretch.begun_s)
    for stretch in stretches:
        cut_off_by = [blow for blow in blows if stretch.ended is None and blow.at_s >= stretch.seen_s]
        again = [at_s for at_s in begins[stretch.job_id] if at_s > stretch.seen_s]
        if cut_off_by and again:
            first = min(cut_off_by, key=lambda blow: blow.at_s)
            yield (
                max(0.0, min(again) - first.over_s),
                f"job {stretch.job_id} {stretch.stage} fence {stretch.fence}",
            )
    for blow in blows:
        after = [s.begun_s for s in stretches if s.begun_s >= blow.over_s]
        if blow.over_s > blow.at_s and after:
            yield min(after) - blow.over_s, "anything"
