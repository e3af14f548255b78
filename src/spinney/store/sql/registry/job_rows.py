"""The row of a job in ``jobs``, and the few statements that every state transition needs.

The state of a single job is changed by ``set_state`` only, which checks the change against the table of allowed
transitions. Statements on many jobs (``ready_moves``, ``cancel_moves``, ``plain_completions``) write the state
themselves.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from spinney.model import states
from spinney.model.attempts import progress
from spinney.model.errors import DuplicateKey, NoSuchJob
from spinney.model.outcomes import PASSED, Outcome
from spinney.model.states import State
from spinney.model.types import TypeSpec
from spinney.store.sql.connection.database import Tx

log = logging.getLogger(__name__)


class Row(NamedTuple):
    """The columns of ``jobs`` on which transitions depend, as they were read: a function that changes the row
    returns a new one, or the caller reads it again. In ``state`` a leased job is pending. The three
    ``queue_…`` are explained with the table."""

    id: int
    type: str
    state: State
    stage: str | None
    queue: str
    priority: int
    share: int
    lineage: str
    root_id: int
    parent_id: int | None
    attempts: int
    interruptions: int
    key: str | None
    queue_moved: str | None
    queue_named: str | None
    queue_parent: str | None
    at_us: int | None
    node_id: int | None
    """The node of its last attempt that began. Where folders are local, the job's folder is there."""


_COLUMNS = ", ".join(Row._fields)
_SELECT = f"select {_COLUMNS} from jobs where id = ?"  # column names of this module
_BELOW = f"select {_COLUMNS} from jobs where parent_id is not null and root_id = ? and lineage > ? and lineage < ? order by lineage limit ?"  # noqa: E501


def find(tx: Tx, job_id: int) -> Row:
    """Return the row of a job. Raises NoSuchJob."""
    row = tx.one(_SELECT, (job_id,))
    if row is None:
        raise NoSuchJob(job_id)
    return _row(row)


def existing(tx: Tx, job_id: int) -> Row | None:
    """Return the row of a job that another row names. None where it is missing in a damaged database: it is skipped,
    because the changes of others must be recorded all the same."""
    row = tx.one(_SELECT, (job_id,))
    if row is None:
        log.warning("job %d is named by others, but is not there; 'spinney doctor' tells by which", job_id)
        return None
    return _row(row)


def find_visible(tx: Tx, job_id: int) -> Row:
    """Return the row of a job. Raises NoSuchJob, also for one whose submission is still being written."""
    if is_hidden(tx, job_id):
        raise NoSuchJob(job_id)
    return find(tx, job_id)


def is_open(tx: Tx, job_id: int | None) -> bool:
    """Return whether this job exists and has not settled; False for None."""
    state = None if job_id is None else tx.value("select state from jobs where id = ?", (job_id,))
    return state is not None and state not in states.SETTLED


def below(tx: Tx, root_id: int, after: str, until: str, limit: int) -> list[Row]:
    """Return the rows of a root's tree whose lineage is strictly between the two, in order."""
    below_rows = tx.all(_BELOW, (root_id, after, until, limit))
    return [_row(r) for r in below_rows]


def _row(values: Sequence[Any]) -> Row:
    row = Row._make(values)
    return row._replace(state=State(row.state))


def leased_fence(tx: Tx, job_id: int) -> int | None:
    """Return the fence of the job's lease, or None."""
    fence: int | None = tx.value("select fence from leases where job_id = ?", (job_id,))
    return fence


VISIBLE = (
    "not exists (select 1 from staging s where jobs.id between s.first_id and s.last_id and s.published <> 1)"
)
"""The condition that excludes jobs of submissions that are still being written."""


COUNTS_IN_TREE = (
    "jobs.superseded is null and (coalesce(jobs.parent_id, jobs.root_id) = jobs.root_id or not exists ("
    "with recursive line (parent_id, superseded) as ("
    "select p.parent_id, p.superseded from jobs p where p.id = jobs.parent_id union all "
    "select p.parent_id, p.superseded from line cross join jobs p where p.id = line.parent_id) "
    "select 1 from line where line.superseded is not null))"
)
"""The condition that neither a job nor one above it is superseded, by one seek for each job above it. Roots never are,
so those directly below a root need none."""


def is_hidden(tx: Tx, job_id: int) -> bool:
    """Return whether the job belongs to a submission that is still being written."""
    return tx.exists(
        "select 1 from staging where first_id <= ? and last_id >= ? and published <> 1", (job_id, job_id)
    )


def passed_stages(tx: Tx, job_id: int, spec: TypeSpec) -> set[str]:
    """Return the stages that need not run. After the outcome ``finish`` these are all, until some are to run
    again.

    They are computed from the attempts each time (the view ``history``, by the job's id), and stored nowhere:
    so no crash can leave a job between two stages. Stages that the type has no more may be among them."""
    return passed(
        spec,
        tx.all(
            "select stage, outcome, superseded from history where job_id = ? and superseded is distinct from 1",
            (job_id,),
        ),
    )


def passed(spec: TypeSpec, attempts: Iterable[tuple[str, str, int | None]]) -> set[str]:
    """Return the stages that need not run after these (stage, outcome, superseded) of a job's attempts; see
    ``passed_stages``."""
    stages = set()
    for stage, outcome, superseded in attempts:
        if superseded == 1:
            continue
        if outcome == Outcome.FINISH and superseded is None:
            return {s.name for s in spec.stages}
        if outcome in PASSED:
            stages.add(stage)
    return stages


def former_stages(tx: Tx, job_id: int, spec: TypeSpec) -> list[str]:
    """Return the stages that the job has run and its type has no more."""
    ran = tx.column("select distinct stage from attempts where job_id = ? order by stage", (job_id,))
    return [stage for stage in ran if spec.stage(stage) is None]


def next_stage(tx: Tx, job_id: int, spec: TypeSpec) -> str | None:
    """Return the stage that a job of this type runs next; None: all have passed."""
    return progress.next_stage(spec, passed_stages(tx, job_id, spec))


def waits_for(tx: Tx, job_id: int) -> str | None:
    """Return what a waiting job waits for, as ``Job.waits_for``; for a failed job ``children`` or ``needs``, or None
    when it failed by a stage of its own."""
    what: str | None = tx.value("select waits_for from inactive_jobs where job_id = ?", (job_id,))
    return what


def lock_waited_for(tx: Tx, job_id: int) -> str | None:
    """Return the name of the lock that a waiting job waits for; None: it waits for something else."""
    what = waits_for(tx, job_id) or ""
    return what.removeprefix("lock:") if what.startswith("lock:") else None


def key_holder(tx: Tx, scope: int, key: str) -> tuple[int, bool, str | None] | None:
    """Return the job that has a key, whether it has it for ever, and the job's type, which is None where retention has
    removed the job; None: the key is free."""
    holder = tx.one(
        "select k.job_id, k.forever, jobs.type from keys k left join jobs on jobs.id = k.job_id "
        "where k.scope = ? and k.key = ?",
        (scope, key),
    )
    return None if holder is None else (holder[0], bool(holder[1]), holder[2])


def take_key(tx: Tx, scope: int, key: str, job_id: int, *, forever: bool) -> None:
    """Take a key for a job. Raises DuplicateKey when a job has it, also one that retention has removed since."""
    if (holder := key_holder(tx, scope, key)) is not None:
        raise DuplicateKey(key, holder[0], forever=holder[1], gone=holder[2] is None)
    tx.run(
        "insert into keys (scope, key, job_id, forever) values (?, ?, ?, ?)", (scope, key, job_id, forever)
    )


def move_final(tx: Tx, job_id: int) -> None:
    """Move the attempt that completed a job from its row to ``attempts``, because the job is opened again,
    and another one may complete it. Nothing happens where the row has none."""
    tx.run(
        "insert into attempts (job_id, fence, stage, attempt, outcome, node_id, started_us, ended_us, result) "
        "select id, final_fence, stage, final_attempt, 'ok', node_id, final_began_us, final_ended_us, final_result "
        "from jobs where id = ? and final_fence is not null",
        (job_id,),
    )
    tx.run("update jobs set final_fence = null, final_result = null where id = ?", (job_id,))


def supersede(tx: Tx, job_id: int, stages: Iterable[str]) -> None:
    """Supersede these stages. The children that they spawned do not count any more, unless they are spawned again by
    their key."""
    for stage in stages:
        tx.run("update attempts set superseded = 1 where job_id = ? and stage = ?", (job_id, stage))
        tx.run(
            "update jobs set superseded = 1 where parent_id = ? and spawn_stage = ? and superseded is null",
            (job_id, stage),
        )
    # A `finish` of an earlier stage had passed these stages, too. What stays of that outcome is that its own stage has
    # passed.
    tx.run(
        "update attempts set superseded = 0 where job_id = ? and outcome = 'finish' and superseded is null",
        (job_id,),
    )
    tx.run(
        "delete from children_left where parent_id = ?1 and bad = 1 and child_id in "
        "(select id from jobs where parent_id = ?1 and superseded = 1)",
        (job_id,),
    )


def set_state(
    tx: Tx, row: Row, state: State, *, leased: bool = False, also: Mapping[str, Any] | None = None
) -> Row:
    """Write the new state, and return the row with it. Raises UnlawfulTransition.

    ``leased``: the job was running (and pending in the table); its lease has just been taken away. ``also``: the values
    of further columns, which the same statement writes.
    """
    before = State.RUNNING if leased else row.state
    if before != state or not leased:
        states.require(row.id, before, state)
    columns = dict(also or {}) if state == row.state else {"state": state, **(also or {})}
    if columns:
        assignments = ", ".join(f"{column} = ?" for column in columns)
        tx.run(f"update jobs set {assignments} where id = ?", (*columns.values(), row.id))
    return row._replace(state=state)
