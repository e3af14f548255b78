"""Wait and run times of stages, measured on a sample, because no index has the jobs that ended last.

For each pair of type and queue, jobs are read by id in descending order from several starting points: from the newest
of all, from the highest leased id, and from the lowest id that is still to be claimed (below it are jobs that were just
done, where the earliest come first). So the sample has recent attempts where a queue is processed in order, and the
newest jobs otherwise. The latest attempts of them count.

How long a stage waited is computed from the times that are stored anyway: from the job's submission (or its
time, or the end of the stage before) to the start of the attempt. Nothing is written for these figures."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from spinney.model.jobs import JOB_ID_MAX
from spinney.model.operators.stats import Percentiles
from spinney.model.outcomes import PASSED
from spinney.store.sql.connection.database import Tx, grouped, list_text
from spinney.store.sql.read.access_paths import kinds
from spinney.store.sql.registry.registry import Registry

LOOKED_AT = 8_000
"""How many rows of jobs are read, over all starting points."""
LEAST, MOST = 20, 1_000
"""The least and the most rows of one starting point."""
LATEST = 2_000
"""How many attempts of a stage count at most, the latest ones."""


class Sample(NamedTuple):
    """How long the latest attempts of one stage waited and ran, and how many they are."""

    size: int
    wait_s: Percentiles | None
    run_s: Percentiles | None


class _Attempt(NamedTuple):
    """One attempt of the sample."""

    ended_us: int
    run_us: int
    wait_us: int | None
    """None: it began after a failure."""


Kind = tuple[str, str]
"""(type, queue)"""
Stage = tuple[str, str]
"""(type, stage)"""
QueueStage = tuple[str, str, str]
"""(queue, type, stage)"""


def samples(
    tx: Tx, registry: Registry, fronts: Iterable[tuple[int, int]], queues: Collection[str] | None = None
) -> Mapping[Stage, Sample]:
    """Return the samples by stage, over all queues. ``fronts``: (lane, job id) of jobs in progress, from
    which rows are read, too. ``queues``: only these; None: all. A stage without a recent attempt has none."""
    attempts_by_queue = _attempts_by_queue(tx, registry, fronts, queues)
    attempts_by_stage = grouped(
        ((type_, stage), attempt)
        for (_, type_, stage), attempts in attempts_by_queue.items()
        for attempt in attempts
    )
    return {stage: _sample(attempts) for stage, attempts in attempts_by_stage.items()}


def samples_by_queue(
    tx: Tx, registry: Registry, fronts: Iterable[tuple[int, int]]
) -> Mapping[QueueStage, Sample]:
    """Return the samples by queue and stage, for readers who may not see the times of each queue."""
    attempts_by_queue = _attempts_by_queue(tx, registry, fronts, None)
    return {place: _sample(attempts) for place, attempts in attempts_by_queue.items()}


def _attempts_by_queue(
    tx: Tx, registry: Registry, fronts: Iterable[tuple[int, int]], queues: Collection[str] | None
) -> Mapping[QueueStage, list[_Attempt]]:
    places = [place for place in _places(tx, registry, fronts) if queues is None or place[0][1] in queues]
    limit = min(MOST, max(LEAST, LOOKED_AT // max(1, len(places))))
    jobs: dict[int, tuple[str, list[Any]]] = {}
    for (type_, queue), before in places:
        rows_of = grouped((row[0], row) for row in tx.all(_LOOK, (type_, queue, before, limit)))
        jobs |= {job_id: (queue, rows) for job_id, rows in rows_of.items()}
    return grouped(
        ((queue, rows[0][1], stage), attempt)
        for queue, rows in jobs.values()
        for stage, attempt in _attempts(rows)
    )


class Wait(NamedTuple):
    """How long a stage of a job waited until an attempt began."""

    job_id: int
    type: str
    stage: str
    started_us: int
    wait_us: int


def waits(tx: Tx, job_ids: Sequence[int]) -> list[Wait]:
    """Return the waits of all attempts of these jobs, except those that began after a failure."""
    rows_of = grouped((row[0], row) for row in tx.all(_LOOK_AT, (list_text(job_ids),)))
    return [
        Wait(job_id, rows[0][1], stage, attempt.ended_us - attempt.run_us, attempt.wait_us)
        for job_id, rows in rows_of.items()
        for stage, attempt in _attempts(rows)
        if attempt.wait_us is not None
    ]


def _look(of: str) -> str:
    """Return the query for the attempts of the jobs that ``of`` selects."""
    return (
        "select s.id, s.type, s.since_us, s.stage, s.final_began_us, s.final_ended_us, a.stage, a.outcome, "
        "a.started_us, a.ended_us from (select id, type, case when at_us > created_us then at_us else created_us end "
        "as since_us, started_us, stage, case when final_fence is not null then final_began_us end as final_began_us, "
        f"final_ended_us from jobs where {of}) s "
        "left join attempts a on a.job_id = s.id where s.started_us is not null order by s.id, a.fence"
    )


_LOOK = _look("type = ? and queue = ? and id < ? order by id desc limit ?")
_LOOK_AT = _look("id in (select j.value from json_each(?) j)")


def _places(tx: Tx, registry: Registry, fronts: Iterable[tuple[int, int]]) -> list[tuple[Kind, int]]:
    """Return the points from which rows of jobs are read downwards: the newest of each type and queue, and these
    fronts."""
    places = {(kind, JOB_ID_MAX + 1) for kind in kinds(tx.all, None, None)}
    for lane_id, job_id in fronts:
        lane = registry.lanes[lane_id]
        places.add(((lane.type, lane.queue), job_id))
    return sorted(places)


def _attempts(rows: Sequence[Any]) -> Iterable[tuple[str, _Attempt]]:
    """Yield the attempts of one job, in order; its row comes once for each attempt in ``attempts``."""
    since_us: int | None
    _, _, since_us, last_stage, began_us, ended_us, *_ = rows[0]
    for *_, stage, outcome, started_us, until_us in rows:
        if not stage or not started_us:
            continue
        yield stage, _attempt(since_us, started_us, until_us)
        # An attempt after a failure has waited for a backoff or for a person, and not for its turn.
        since_us = until_us if outcome in PASSED else None
    if began_us:
        yield last_stage, _attempt(since_us, began_us, ended_us)


def _attempt(since_us: int | None, started_us: int, ended_us: int) -> _Attempt:
    # Clocks of two hosts may differ.
    waited_us = None if since_us is None else max(0, started_us - since_us)
    return _Attempt(ended_us, max(0, ended_us - started_us), waited_us)


def _sample(attempts: list[_Attempt]) -> Sample:
    # By that alone: an attempt after a failure has no wait that compares with that of another.
    latest = sorted(attempts, key=lambda attempt: attempt.ended_us, reverse=True)[:LATEST]
    waits = [a.wait_us for a in latest if a.wait_us is not None]
    return Sample(len(latest), percentiles(waits), percentiles([a.run_us for a in latest]))


def percentiles(times_us: Sequence[int]) -> Percentiles | None:
    """Return median, 90 % and 99 % in seconds: the least time that so many did not exceed. None: there are no times."""
    if not times_us:
        return None
    ordered = sorted(times_us)
    last = len(ordered)
    half, most, nearly = (ordered[-(-last * share // 100) - 1] / 1e6 for share in (50, 90, 99))
    return half, most, nearly
