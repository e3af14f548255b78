"""When something waited and when it ran: bars over time, as numbers for SVG. No I/O.

The store records when attempts began and ended. What lies between the end of one and the beginning of the
next is shown as waiting, whatever the job waited for."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spinney.model.jobs import Attempt, Job
from spinney.model.outcomes import PASSED
from spinney.model.states import LEASED, SETTLED
from spinney.web.pages.stages import numbered
from spinney.web.pages.text_formats import lasting

_NARROWEST = 0.3
"""The least width of a bar, in percent."""

_LEGEND = {
    "waiting": "waited, also for backoff, holds, subjobs and a retry",
    "completed": "passed",
    "failed": "failed",
    "running": "running",
    "orphaned": "lost with its node",
    "scheduled": "neither passed nor failed",
}
"""What a bar of each kind means: ``waiting``, and those that ``kind_of`` returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A bar: percent from the left and of width, and what it says when it is pointed at."""

    kind: str
    """The state whose colour it has."""
    x: float
    """Where it begins, in percent of the width."""
    width: float
    """How wide it is, in percent."""
    title: str
    """What is shown when it is pointed at."""
    job_id: int | None = None
    """The job that it leads to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineRow:
    """The bars of a stage, or of a slot."""

    label: str
    """The name of the stage or slot."""
    segments: Sequence[Segment]
    """Its bars, from the left."""
    waited_s: float = 0.0
    """How many seconds its attempts waited, in all."""
    ran_s: float = 0.0
    """How many seconds they ran, in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Rows of bars over a period, in microseconds since 1970 UTC."""

    from_us: int
    until_us: int
    rows: Sequence[TimelineRow]

    @property
    def legend(self) -> Mapping[str, str]:
        """Return what the colours of the bars mean, by kind."""
        drawn = {segment.kind for row in self.rows for segment in row.segments}
        return {kind: text for kind, text in _LEGEND.items() if kind in drawn}


def of_job(job: Job, attempts: Sequence[Attempt], now_us: int, *, most: int) -> Timeline | None:
    """Return when each stage of a job waited and ran, in the order in which stages began, and how long the current one
    has been waiting; None before the first attempt. ``attempts``: all of them, the oldest first, of which the latest
    ``most`` are drawn."""
    all_begun = [attempt for attempt in attempts if attempt.started_us]
    if not all_begun:
        return None
    earlier, begun = all_begun[:-most], all_begun[-most:]
    ends = [attempt.ended_us or now_us for attempt in begun]
    from_us = min(earlier[-1].ended_us or now_us if earlier else job.created_us, begun[0].started_us)
    until_us = max(*ends, job.settled_us or 0, from_us + 1)
    if job.state not in SETTLED:
        until_us = max(until_us, now_us)
    rows: defaultdict[str, list[Segment]] = defaultdict(list)
    waited_s_of: defaultdict[str, float] = defaultdict(float)
    ran_s_of: defaultdict[str, float] = defaultdict(float)
    since_us, numbers = from_us, numbered(attempts)
    for attempt, ended_us in zip(begun, ends, strict=True):
        row = rows[attempt.stage]
        waited_s = max(0, attempt.started_us - since_us) / 1e6
        ran_s = max(0, ended_us - attempt.started_us) / 1e6
        name = f"{attempt.stage}, attempt {numbers[attempt.fence]}"
        if waited_s:
            title = f"{name}: waited {lasting(waited_s)}"
            row.append(segment("waiting", since_us, attempt.started_us, from_us, until_us, title))
        verb = "ran" if attempt.ended_us else "runs for"
        title = f"{name} on {attempt.node}: {verb} {lasting(ran_s)}, {outcome(attempt)}"
        row.append(segment(kind_of(attempt.outcome), attempt.started_us, ended_us, from_us, until_us, title))
        waited_s_of[attempt.stage] += waited_s
        ran_s_of[attempt.stage] += ran_s
        since_us = max(since_us, ended_us)
    if job.stage and job.state not in (*SETTLED, *LEASED) and since_us < now_us:
        waited_s = (now_us - since_us) / 1e6
        title = f"{job.stage}: has waited {lasting(waited_s)} so far"
        rows[job.stage].append(segment("waiting", since_us, now_us, from_us, until_us, title))
        waited_s_of[job.stage] += waited_s
    return Timeline(
        from_us=from_us,
        until_us=until_us,
        rows=[
            TimelineRow(label=stage, segments=segments, waited_s=waited_s_of[stage], ran_s=ran_s_of[stage])
            for stage, segments in rows.items()
        ],
    )


def segment(
    kind: str, start_us: int, end_us: int, from_us: int, until_us: int, title: str, job_id: int | None = None
) -> Segment:
    """Return the bar of a period within another one, cut to it. A short period is at least ``_NARROWEST``
    wide. All times are in microseconds since 1970. ``job_id``: the job that the bar leads to."""
    span = max(1, until_us - from_us)
    x = (max(start_us, from_us) - from_us) / span * 100
    width = max(_NARROWEST, (min(end_us, until_us) - max(start_us, from_us)) / span * 100)
    return Segment(
        kind=kind, x=round(min(x, 100 - _NARROWEST), 3), width=round(width, 3), title=title, job_id=job_id
    )


def outcome(attempt: Attempt) -> str:
    """Return what became of an attempt, in a word or two."""
    return str(attempt.outcome).replace("_", " ") if attempt.outcome else "running"


def kind_of(outcome: str | None) -> str:
    """Return the state whose colour the bar of an attempt with this outcome has; None: it runs. An attempt that neither
    passed nor failed (deferred, held, interrupted) has that of ``scheduled``."""
    if outcome is None:
        return "running"
    if outcome in PASSED:
        return "completed"
    bad = {"error": "failed", "timeout": "failed", "died": "failed", "lost": "orphaned"}
    return bad.get(outcome, "scheduled")
