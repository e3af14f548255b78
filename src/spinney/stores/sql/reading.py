"""Jobs as people see them, each answer from one snapshot that is let go at once."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from sqlalchemy import Connection

from spinney.model.errors import NoSuchJob
from spinney.model.jobs import Attempt, Filter, Job
from spinney.model.lineage import ancestors, subtree
from spinney.model.outcomes import Outcome
from spinney.model.states import State
from spinney.stores.sql.rows import VISIBLE

_SELECT = (
    "select jobs.id, jobs.type, jobs.stage, jobs.state, jobs.queue, jobs.priority, jobs.share, "
    "(select name from shares where shares.id = -jobs.share), jobs.collection, jobs.submitter, jobs.key, "
    "jobs.parent_id, jobs.root_id, jobs.lineage, jobs.params, jobs.created_us, jobs.started_us, jobs.settled_us, "
    "jobs.attempts, jobs.interruptions, jobs.warnings, jobs.code, l.fence, l.running_us, "
    "(select name from nodes where nodes.id = coalesce(l.node_id, jobs.node_id)), "
    "p.waits_for, p.wake_us, p.reason, g.fraction, g.message, "
    "(select h.message from history h where h.job_id = jobs.id order by h.fence desc limit 1) "
    "from jobs left join leases l on l.job_id = jobs.id left join parked p on p.job_id = jobs.id "
    "left join progress g on g.job_id = jobs.id "
)


def rows_of(connection: Connection, sql: str, args: Sequence[Any] = ()) -> list[Any]:
    return list(connection.exec_driver_sql(sql, tuple(args)).fetchall())


def job(connection: Connection, job_id: int) -> Job:
    found = rows_of(connection, f"{_SELECT} where jobs.id = ? and {VISIBLE}", (job_id,))
    if not found:
        raise NoSuchJob(job_id)
    return _jobs(connection, found)[0]


def jobs(connection: Connection, which: Filter, after: int, limit: int, newest: bool) -> list[Job]:
    where, args = _where(which)
    if newest:
        where, order = [*where, "(? = 0 or jobs.id < ?)"], "desc"
        args += [after, after]
    else:
        where, order = [*where, "jobs.id > ?"], "asc"
        args.append(after)
    sql = f"{_SELECT} where {' and '.join(where)} order by jobs.id {order} limit ?"
    return _jobs(connection, rows_of(connection, sql, [*args, limit]))


def tree(connection: Connection, job_id: int, limit: int) -> list[Job]:
    top = job(connection, job_id)
    start, until = subtree(top.lineage)
    sql = (
        f"{_SELECT} where jobs.parent_id is not null and jobs.root_id = ? and jobs.lineage > ? and jobs.lineage < ? "
        f"and {VISIBLE} order by jobs.lineage limit ?"
    )
    below = rows_of(connection, sql, (top.root_id, start, until, limit - 1))
    return [top, *_jobs(connection, below)]


def children(connection: Connection, job_id: int, after: int, limit: int) -> list[Job]:
    sql = (
        f"{_SELECT} where jobs.parent_id = ? and jobs.parent_id is not null and jobs.id > ? "
        f"and jobs.state <> 'deleted' and jobs.superseded is null and {VISIBLE} order by jobs.id limit ?"
    )
    return _jobs(connection, rows_of(connection, sql, (job_id, after, limit)))


def counts(connection: Connection, which: Filter) -> Mapping[str, int]:
    where, args = _where(which)
    sql = (
        "select case when l.job_id is null then jobs.state when l.running_us is null then 'claimed' "
        "else 'running' end as shown, count(*) from jobs left join leases l on l.job_id = jobs.id "
        f"where {' and '.join(where)} group by shown"  # fragments of this module, values bound
    )
    return dict(tuple(row) for row in rows_of(connection, sql, args))


def attempts(connection: Connection, job_id: int) -> list[Attempt]:
    job(connection, job_id)
    past = rows_of(
        connection,
        "select job_id, fence, stage, attempt, outcome, (select name from nodes n where n.id = a.node_id), started_us, "
        "ended_us, code, message, error, result, superseded from history a where job_id = ? order by fence",
        (job_id,),
    )
    now = rows_of(
        connection,
        "select l.job_id, l.fence, lanes.stage, l.attempt, null, (select name from nodes n where n.id = l.node_id), "
        "coalesce(l.running_us, l.claimed_us), null, null, null, null, null, null "
        "from leases l join lanes on lanes.id = l.lane where l.job_id = ?",
        (job_id,),
    )
    return [_attempt(row) for row in [*past, *now]]


def results(connection: Connection, job_id: int) -> Mapping[str, Any]:
    found = rows_of(
        connection,
        "select stage, result from history where job_id = ? and superseded is null and result is not null "
        "and outcome in ('ok', 'warning', 'finish') order by fence",
        (job_id,),
    )
    return {stage: orjson.loads(result) for stage, result in found}


def data(connection: Connection, job_id: int) -> Mapping[str, Any]:
    found = rows_of(connection, "select name, value from data where job_id = ? order by name", (job_id,))
    return {name: orjson.loads(value) for name, value in found}


# --- building ---------------------------------------------------------------------------------


def _where(which: Filter) -> tuple[list[str], list[Any]]:
    where, args = [VISIBLE], []
    for column, value in (
        ("type", which.type),
        ("queue", which.queue),
        ("stage", which.stage),
        ("collection", which.collection),
        ("submitter", which.submitter),
        ("root_id", which.root_id),
        ("parent_id", which.parent_id),
    ):
        if value is not None:
            where.append(f"jobs.{column} = ?")
            args.append(value)
    if which.parent_id is not None or which.below is not None:
        where.append("jobs.parent_id is not null")
    if which.roots_only:
        where.append("jobs.parent_id is null")
    if which.below is not None:
        where.append("jobs.root_id = ? and jobs.lineage > ? and jobs.lineage < ?")
        args += [int(which.below.split(".")[0]), *subtree(which.below)]
    if which.states is not None:
        where.append(f"({' or '.join(_state_is(s) for s in which.states) or '0'})")
    return where, args


def _state_is(state: State) -> str:
    """How a state is told from the narrow tables, so that finished work is not read for the others."""
    if state is State.COMPLETED:
        return "jobs.state = 'completed'"
    if state is State.PENDING:
        return "(jobs.state = 'pending' and jobs.id not in (select job_id from leases))"
    if state is State.CLAIMED:
        return "jobs.id in (select job_id from leases where running_us is null)"
    if state is State.RUNNING:
        return "jobs.id in (select job_id from leases where running_us is not null)"
    return f"jobs.id in (select job_id from parked where state = '{state.value}')"


def _jobs(connection: Connection, found: Sequence[Any]) -> list[Job]:
    wishes = {job_id: tree for job_id, tree in rows_of(connection, "select job_id, tree from wishes")}  # noqa: C416
    return [_job(row, wishes) for row in found]


def _job(row: Any, wishes: Mapping[int, bool]) -> Job:
    (
        job_id, type_, stage, state, queue, priority, share, share_name, collection, submitter, key, parent_id,
        root_id, lineage, params, created_us, started_us, settled_us, attempts_, interruptions, warnings, code,
        fence, running_us, node, waits_for, wake_us, reason, fraction, progress_message, last_message,
    ) = row  # fmt: skip
    shown = State(state)
    if fence is not None:
        shown = State.CLAIMED if running_us is None else State.RUNNING
    wished = job_id in wishes or any(wishes.get(a) for a in ancestors(lineage))
    message = reason or (last_message if shown is State.COMPLETED else None)
    return Job(
        id=job_id, type=type_, stage=None if shown is State.COMPLETED else stage, state=shown,
        queue=queue, priority=priority,
        share=share_name or str(share), collection=collection, submitter=submitter, key=key, parent_id=parent_id,
        root_id=root_id, lineage=lineage, params=orjson.loads(params), created_us=created_us,
        started_us=started_us or running_us, settled_us=settled_us, wake_us=wake_us, attempts=attempts_,
        interruptions=interruptions, warnings=warnings, code=code, message=message,
        waits_for=waits_for if shown is State.WAITING else None,
        cancelling=wished and settled_us is None, node=node, fence=fence,
        progress=fraction, progress_message=progress_message,
    )  # fmt: skip


def _attempt(row: Any) -> Attempt:
    (
        job_id, fence, stage, attempt, outcome, node, started_us, ended_us,
        code, message, error, result, superseded,
    ) = row  # fmt: skip
    return Attempt(
        job_id=job_id, fence=fence, stage=stage, attempt=attempt, outcome=Outcome(outcome) if outcome else None,
        node=node or "", started_us=started_us, ended_us=ended_us, code=code, message=message,
        error=orjson.loads(error) if error else None, result=orjson.loads(result) if result else None,
        superseded=bool(superseded),
    )  # fmt: skip
