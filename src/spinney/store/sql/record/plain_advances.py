"""Advance of plain jobs: their stage has passed, another one follows, and nothing else concerns them.

They advance by set statements. One by one, each would take more statements than all of them take now: on a server a
statement is an exchange of messages, and hundreds of quick stages would keep other writers waiting for a tenth of a
second. The jobs go through ``ready``, except that those of a small flush may keep their slots (``next_stages``).
Recording them one by one would leave the same rows, except where a failure of the same flush makes a hold: the sweep
holds jobs that went into ``ready`` before it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spinney.model.attempts.progress import again_stages, next_stage
from spinney.model.outcomes import Outcome
from spinney.model.states import State
from spinney.store.sql.connection.database import RowChange, Tx, grouped, list_text
from spinney.store.sql.record.plain_completions import Ended, LeaseRow
from spinney.store.sql.registry import hold_coverage, job_rows
from spinney.store.sql.registry.job_rows import Row
from spinney.store.sql.registry.registry import Lane, Registry, effective_queue
from spinney.store.sql.transitions import placement
from spinney.store.sql.transitions.cascades import Cascade

Kept = tuple[Row, str, LeaseRow]
"""A job that may keep its slot, at the stage that it has passed, its next stage, and its former lease."""
KEPT_MOST = 9
"""In a flush of more jobs none keeps its slot, which takes some statements for each. A claim in the same transaction
fills the slots at once."""

_JOB = (
    "id",
    "state",
    "stage",
    "queue",
    "queue_moved",
    "queue_named",
    "queue_parent",
    "at_us",
    "final_fence",
)
_KEPT_JOB = (*_JOB, *(name for name in Row._fields if name not in _JOB))
"""The columns of a job that may keep its slot: everything that later rules depend on."""
_JOBS = "from jobs where id in (select j.value from json_each(?) j)"
_ATTEMPTS = "from attempts where job_id in (select j.value from json_each(?) j)"
_ADVANCED = RowChange(
    "jobs",
    "id = ?",
    set="stage = ?, attempts = 0, interruptions = 0, code = null, started_us = coalesce(started_us, ?), node_id = ?",
)


def is_inner(registry: Registry, lane: Lane) -> bool:
    """Return whether an attempt that passes in this lane only takes its job to the next stage. After a probe the lane
    has to be woken, too, and of a type with stages marked ``again`` earlier reports may be outdated."""
    spec = registry.types.get(lane.type)
    return (
        spec is not None
        and not lane.probing
        and spec.stage(lane.stage) is not None
        and spec.stages[-1].name != lane.stage
        and not again_stages(spec)
    )


def advance(
    cascade: Cascade, passed: Sequence[Ended], *, keep: bool, any_needs: bool
) -> tuple[list[Ended], list[Kept]]:
    """Record attempts that have passed, in inner lanes, and make their jobs claimable for their next stages.

    Return two lists: those of which nothing was written, because more concerns their jobs (needs, a hold, another
    queue, a serial order); and those that are neither claimable nor leased, because the node would continue them in
    their slots (``Record.keep``). ``keep``: whether a job may, as far as the flush is concerned. ``any_needs``: whether
    any job needs another (``special_jobs``).

    The caller knows that the jobs are plain: they have no locks, no place in a serial order, no children that are open
    or have failed, and no spawned jobs to publish; no job needs them, and nobody has cancelled them or a tree above."""
    tx, registry = cascade.tx, cascade.registry
    ids = [record[0] for record, _ in passed]
    listed = list_text(ids)
    keep = keep and len(passed) <= KEPT_MOST and any(record.keep for record, _ in passed)
    columns = tx.columns(_KEPT_JOB if keep else _JOB, _JOBS, (listed,))
    jobs = {values[0]: values for values in zip(*columns, strict=True)}
    outcomes = _outcomes(tx, listed)
    concerned = {
        *(_needing(tx, listed) if any_needs else ()),
        *hold_coverage.covered(tx, registry.holds, ids),
        *_in_serial_trees(tx, registry, passed),
    }
    advancing: dict[tuple[int, str], list[Ended]] = {}
    others = []
    for entry in passed:
        record, lease = entry
        job = jobs.get(record[0])
        stage = None
        if job is not None and record[0] not in concerned and record[3] > 0:
            stage = _next(registry, lease[4], job, outcomes.get(record[0], ()), cascade.now_us)
        if stage is None:
            others.append(entry)
        else:
            advancing.setdefault((lease[4], stage), []).append(entry)
    kept: list[Kept] = []
    for (lane_id, stage), entries in advancing.items():
        lane = registry.lanes[lane_id]
        _write(tx, lane, stage, entries)
        if keep:
            kept += [
                (_passed(jobs[record[0]], lane, lease), stage, lease)
                for record, lease in entries
                if record.keep
            ]
            entries = [entry for entry in entries if not entry[0].keep]
        _enter(tx, registry, lane, stage, entries)
    return others, kept


def _needing(tx: Tx, listed: str) -> list[int]:
    """Return the jobs that need others, which may have been opened again since the claim."""
    return tx.column(
        "select job_id from needs where job_id in (select j.value from json_each(?) j)", (listed,)
    )


def _in_serial_trees(tx: Tx, registry: Registry, passed: Sequence[Ended]) -> list[int]:
    """Return the jobs whose trees are serial by now, so that they get their places in the order. They were created
    before: those of a tree that was serial then are not plain."""
    serial = {name for name, spec in registry.types.items() if spec.serial}
    children = [record[0] for record, lease in passed if lease[6] is not None]
    if not serial or not children:
        return []
    typed = tx.all(
        "select id, (select r.type from jobs r where r.id = jobs.root_id) from jobs "
        "where id in (select j.value from json_each(?) j)",
        (list_text(children),),
    )
    return [job_id for job_id, root_type in typed if root_type in serial]


def _outcomes(tx: Tx, listed: str) -> Mapping[int, Sequence[tuple[str, str, Any]]]:
    """Return (stage, outcome, superseded) of the earlier attempts of these jobs."""
    columns = tx.columns(("job_id", "stage", "outcome", "superseded"), _ATTEMPTS, (listed,))
    return grouped((row[0], row[1:]) for row in zip(*columns, strict=True))


def _next(
    registry: Registry,
    lane_id: int,
    job: Sequence[Any],
    outcomes: Iterable[tuple[str, str, Any]],
    now_us: int,
) -> str | None:
    """Return the next stage of a job (``_JOB`` or ``_KEPT_JOB``) that has passed that of the lane, if the job simply
    goes on there."""
    _, state, stage, queue, moved, named, parent, at_us, final_fence = job[: len(_JOB)]
    lane = registry.lanes[lane_id]
    as_claimed = (state, stage, queue) == (State.PENDING, lane.stage, lane.queue) and final_fence is None
    if not as_claimed or (at_us is not None and at_us > now_us):
        return None
    spec = registry.types[lane.type]
    after = next_stage(spec, job_rows.passed(spec, [*outcomes, (lane.stage, Outcome.OK, None)]))
    if after is None or effective_queue(spec, after, moved, named, parent) != queue:
        return None
    return after


def _write(tx: Tx, lane: Lane, stage: str, entries: Sequence[Ended]) -> None:
    """Record attempts in one lane, whose jobs all have ``stage`` as their next one, and take their leases away."""
    tx.insert(
        "attempts",
        "job_id, fence, stage, attempt, outcome, node_id, started_us, ended_us, result",
        [(r[0], r[1], lane.stage, h[5], Outcome.OK, h[2], r[3], r[4], r[5]) for r, h in entries],
    )
    tx.change(_ADVANCED, [(stage, r[3], h[2], r[0]) for r, h in entries])
    tx.delete_listed("leases", "job_id", list_text([r[0] for r, _ in entries]))


def _passed(job: Sequence[Any], lane: Lane, lease: LeaseRow) -> Row:
    """Return the row of a job (``_KEPT_JOB``) as ``_write`` leaves it, but at the stage that it has passed."""
    fields = dict(zip(_KEPT_JOB, job, strict=True))
    del fields["final_fence"]
    row = Row(**fields)
    return row._replace(state=State.PENDING, stage=lane.stage, attempts=0, interruptions=0, node_id=lease[2])


def _enter(tx: Tx, registry: Registry, lane: Lane, stage: str, entries: Sequence[Ended]) -> None:
    """Make jobs that were in this lane claimable for ``stage``."""
    by_home = grouped((registry.homes.of(tx, lease[2]), record[0]) for record, lease in entries)
    for home, ids in by_home.items():
        placement.enter(tx, registry, registry.lane_to_fill(tx, lane.queue, lane.type, stage, home), ids)
