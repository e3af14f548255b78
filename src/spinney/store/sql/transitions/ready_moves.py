"""Moves of many jobs between ``ready`` and ``held``, and from ``scheduled`` into ``ready``, by set statements.

A sweep of holds has to move a hundred thousand jobs in seconds, so it cannot use ``placement``, one job at a time. The
written rows are the same (``tests/contract/test_holds.py`` and ``tests/contract/test_sweep.py`` compare the two ways),
and the transition is checked here, too: once, because all jobs make the same one.

Jobs come as a JSON list of ids, of which ``cross join`` makes the outer loop: SQLite joins in the written
order then, and finds each row by its key. A lane and ``inactive_jobs`` may have millions of rows."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from spinney.model import states
from spinney.model.settings.holds import Hold
from spinney.model.states import State
from spinney.store.sql.connection.database import RowChange, Tx, grouped, list_text
from spinney.store.sql.connection.postgres_dialect import each_row
from spinney.store.sql.registry import hold_coverage
from spinney.store.sql.registry.ready_order import POSITIONS, position, ready_share, share_sql
from spinney.store.sql.registry.registry import Registry, effective_queue
from spinney.store.sql.transitions import locks
from spinney.store.sql.transitions.cascades import Cascade

WOKEN_STEP = 50
"""How many locks reserved for jobs of one step are offered to others at once; the sweep finds the rest."""

Key = tuple[int, int, int, str]
"""(lane, priority, share, position): the key of a job in ``ready``."""
Place = tuple[str, str, str, int]
"""(queue, type, stage, home) of its lane."""

_WITHOUT_CHILDREN = "(select 1 from children_left c where c.parent_id = jobs.id limit 1) is null"
"""No planner makes a join of a subquery with a limit. Where one batch has most of the children, PostgreSQL would read
all of them for each job."""
_OUT_OF_READY = RowChange("ready", "lane = ? and priority = ? and share = ? and position = ?")


class PlacedJob(NamedTuple):
    """The columns of a job's row that determine its key in ``ready``."""

    id: int
    queue: str
    type: str
    stage: str | None
    priority: int
    share: int
    lineage: str
    home: int


_COLUMNS = ", ".join(f"jobs.{column}" for column in PlacedJob._fields if column != "home")


# --- selecting jobs and places ----------------------------------------------------------------


def some(tx: Tx, registry: Registry, ids: Iterable[int]) -> list[PlacedJob]:
    """Return the columns of these jobs that moving them depends on; ids without a job are left out."""
    sql = f"select {_COLUMNS}, {registry.homes.sql} from json_each(?) j join jobs on jobs.id = j.value"
    return [PlacedJob._make(row) for row in tx.all(sql, (list_text(ids),))]


def standing_in_ready(tx: Tx, registry: Registry, ids: Sequence[int]) -> list[tuple[int, int, int, str, int]]:
    """Return the rows of ``ready`` that these jobs have, each as its key with the job id last. Jobs that are
    not there are left out."""
    rows: list[tuple[int, int, int, str, int]] = []
    for (queue_name, type_, stage, home), some_ids in _by_place(tx, registry, ids, "1 = 1", ()).items():
        lane, queue = registry.known_lane(queue_name, type_, stage, home), registry.queue(queue_name)
        if lane is not None:
            key = (
                f"ready.lane = ? and ready.priority = jobs.priority and ready.share = {share_sql(queue)} "
                f"and ready.position = {POSITIONS[queue.order]} and ready.job_id = jobs.id"
            )
            rows += tx.all(
                "select ready.lane, ready.priority, ready.share, ready.position, ready.job_id "
                f"from {_each(tx, ('jobs', 'jobs.id = j.value'), ('ready', key))}",
                (list_text(some_ids), lane),
            )
    return rows


def plain(
    tx: Tx, registry: Registry, ids: Sequence[int], now_us: int, state: State = State.HELD
) -> dict[Place, list[int]]:
    """Return the held jobs of this list that only a hold can have kept, or the scheduled ones that only a time can, by
    lane: they have no cancel request, time to come, need, child or serial order, and their lane exists. Whether a hold
    covers them is for the caller to know.

    The conditions are stricter than they need be: a job that has a need, met or not, is left out. What is
    left out is placed one by one (``cascades.Cascade.place``), which is slower and always right."""
    condition = (
        "jobs.state = ? and jobs.special is null and (jobs.at_us is null or jobs.at_us <= ?) "
        "and not exists (select 1 from cancel_requests w where w.job_id = jobs.id "
        "or (w.tree = 1 and jobs.lineage > w.lineage || '.' and jobs.lineage < w.lineage || '/')) "
        "and not exists (select 1 from needs n where n.job_id = jobs.id) "
        f"and {_WITHOUT_CHILDREN} "
        "and not exists (select 1 from staging s where s.parent_id = jobs.id) "
        "and (select 1 from serial_order s where s.root_id = jobs.root_id limit 1) is null "
        "and (jobs.parent_id is null or (select r.type from jobs r where r.id = jobs.root_id) "
        "not in (select k.value from json_each(?) /* text */ k))"
    )
    more = "jobs.queue_moved, jobs.queue_named, jobs.queue_parent"
    # The tree of a job may have become serial after the job was created.
    serial = list_text([name for name, spec in registry.types.items() if spec.serial])
    by_place = _by_place(tx, registry, ids, condition, (state, now_us, serial), more)
    groups: dict[Place, list[int]] = {}
    for (queue, type_, stage, home, *named), some_ids in by_place.items():
        spec = registry.types.get(type_)
        stays = spec is None or queue == effective_queue(spec, stage, *named)
        if stays and registry.known_lane(queue, type_, stage, home) is not None:
            groups.setdefault((queue, type_, stage, home), []).extend(some_ids)
    return groups


def _by_place(
    tx: Tx, registry: Registry, ids: Sequence[int], condition: str, args: Sequence[Any], more: str = ""
) -> dict[tuple[Any, ...], list[int]]:
    """Return the jobs of this list that match, by queue, type, stage, home and ``more`` columns. Jobs without
    a stage are left out."""
    rows = tx.all(
        f"select jobs.id, jobs.queue, jobs.type, jobs.stage, {registry.homes.sql}{', ' if more else ''}{more} "
        f"from {_each(tx, ('jobs', 'jobs.id = j.value'))} and jobs.stage is not null and {condition}",
        (list_text(ids), *args),
    )
    return grouped((row[1:], row[0]) for row in rows)


def _each(tx: Tx, *tables: tuple[str, str]) -> str:
    """Return the joins of a list with these tables, each by its condition, as the beginning of a ``from`` clause with
    its ``where``. Each row is looked up by its key: a server's planner that knows of no held jobs would begin with
    those, and search the whole list for each."""
    names = [each_row(*table) if tx.postgresql else table[0] for table in tables]
    conditions = ["1 = 1"] if tx.postgresql else [condition for _, condition in tables]
    return f"{' cross join '.join(['json_each(?) j', *names])} where {' and '.join(conditions)}"


def keys(registry: Registry, rows: Sequence[PlacedJob]) -> list[Key]:
    """Return the keys that these jobs have in ``ready`` if they are there."""
    ready_keys: list[Key] = []
    for row in rows:
        lane = registry.known_lane(row.queue, row.type, row.stage or "", row.home)
        if lane is not None:
            queue = registry.queue(row.queue)
            key = (ready_share(queue, row.share), position(queue, row.id, row.lineage))
            ready_keys.append((lane, row.priority, *key))
    return ready_keys


# --- moves ---------------------------------------------------------------------------


def out_of_ready(tx: Tx, keys: Sequence[Key]) -> int:
    """Delete these rows of ``ready``; return how many there were."""
    if not keys:
        return 0
    tx.change(_OUT_OF_READY, keys)
    return tx.changed()


def to_held(cascade: Cascade, covered: Mapping[int, Hold], *, leased: bool = False) -> None:
    """Make pending jobs held, each by the hold named for it. The caller has removed them from ``ready``; ``leased``:
    their leases have just been taken away."""
    if not covered:
        return
    tx, now_us = cascade.tx, cascade.now_us
    states.require(next(iter(covered)), State.RUNNING if leased else State.PENDING, State.HELD)
    by_hold: dict[int, tuple[Hold, list[int]]] = {}
    for job_id, hold in covered.items():
        by_hold.setdefault(hold.id, (hold, []))[1].append(job_id)
    for hold, ids in by_hold.values():
        listed = list_text(ids)
        # "where true" is for SQLite, whose parser would take the "on" of "on conflict" for that of a join
        # (https://sqlite.org/lang_upsert.html, "Parsing Ambiguity").
        tx.run(
            "insert into inactive_jobs (job_id, state, since_us, waits_for, priority, reason) "
            "select jobs.id, 'held', ?, ?, jobs.priority, ? from json_each(?) j join jobs on jobs.id = j.value "
            "where true on conflict (job_id) do update set state = excluded.state, since_us = excluded.since_us, "
            "wake_us = null, waits_for = excluded.waits_for, priority = excluded.priority, reason = excluded.reason, "
            "fingerprint = null",
            (now_us, hold_coverage.HELD_BY_HOLD, str(hold), listed),
        )
        tx.run("update jobs set state = 'held' where id in (select j.value from json_each(?) j)", (listed,))
    _free_reserved(cascade, list(covered))


def to_ready(
    tx: Tx, registry: Registry, groups: Mapping[Place, Sequence[int]], state: State = State.HELD
) -> int:
    """Make jobs claimable that are held, or scheduled, and that nothing else keeps (``plain``); return how many still
    were in that state.

    When that is not all, some have changed since ``plain`` has looked at them in an earlier snapshot, and the
    caller has to roll back: rows were written for jobs that are not in that state any more."""
    ids = [job_id for group in groups.values() for job_id in group]
    if not ids:
        return 0
    states.require(ids[0], state, State.PENDING)
    placed = 0
    for (queue_name, type_, stage, home), some_ids in groups.items():
        queue, lane = registry.queue(queue_name), registry.lane_to_fill(tx, queue_name, type_, stage, home)
        group = list_text(some_ids)
        tx.run(
            "insert into ready (lane, priority, share, position, job_id) "
            f"select ?, jobs.priority, {share_sql(queue)}, {POSITIONS[queue.order]}, jobs.id "
            f"from {_each(tx, ('jobs', 'jobs.id = j.value'))} and jobs.state = ? and jobs.queue = ? "
            f"and jobs.type = ? and jobs.stage = ? and {registry.homes.sql} = ? "
            f"and {_WITHOUT_CHILDREN}",
            (lane, group, state, queue_name, type_, stage, home),
        )
        placed += tx.changed()
        registry.watermarks.entered_among(
            tx, lane, queue, "json_each(?) j cross join jobs where jobs.id = j.value", (group,)
        )
    listed = list_text(ids)
    # The rows are found by their jobs: a planner that knows of no held jobs would search the list for each row of these
    # by the index on states, but for the "||".
    waits_for = (
        "waits_for is null" if state is State.SCHEDULED else f"waits_for = '{hold_coverage.HELD_BY_HOLD}'"
    )
    tx.run(
        "delete from inactive_jobs where job_id in (select j.value from json_each(?) j) "
        f"and state || '' = ? and {waits_for}",
        (listed, state),
    )
    placed = min(placed, tx.changed())
    tx.run("update jobs set state = 'pending' where id in (select j.value from json_each(?) j)", (listed,))
    return placed


def _free_reserved(cascade: Cascade, ids: Sequence[int]) -> None:
    """Release locks that were reserved for these jobs, because a hold may last long."""
    freed = cascade.tx.column(
        "delete from locks where fence = ? and job_id in (select j.value from json_each(?) j) returning name",
        (locks.RESERVED, list_text(ids)),
    )
    for name in freed[:WOKEN_STEP]:
        cascade.lock_freed(name)
