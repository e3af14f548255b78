"""Staging: submissions and spawns that are written in steps, and hidden until they are published.

``staging`` has a row for each: unpublished jobs are hidden from every query, and dropped when their writer is dead;
published ones are accepted, and any process places the rest. Jobs that a running attempt creates are hidden here until
the record of its success publishes them. A row belongs to the attempt (``fence``) only when all its jobs are written,
so that no part of a call is published, whatever ends the call or the attempt between two steps.

``published`` goes from 0 (or 2) to 1 when the jobs are accepted, or to -1 when they are to be dropped. Either
is one small update, which decides a race between a slow writer and a sweep that takes it for dead. The row is
deleted when the last of its jobs is placed, or deleted. (A few jobs that a stage has spawned are placed by
the record itself.)"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from spinney.model.errors import Refused
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.submit import needs, new_jobs
from spinney.store.sql.submit.new_jobs import Plan
from spinney.store.sql.transitions.attempts import require_lease

INLINE = 300
"""How many jobs of a call are placed by the very transaction that records the stage that created them."""
CHILDREN, OWN = 0, 2
"""The values of ``published`` for hidden runs: children that an attempt spawns, and independent jobs that it submits,
for which its job does not wait. (Submissions from outside are of the first kind, and belong to no attempt.)"""
ABANDONED_US = 60_000_000
"""A writer without progress for so long counts as dead. A mistake does no harm: the writer fails because its row is
gone, and nothing was visible."""

Write = Callable[[], AbstractContextManager[Tx]]


def write_steps(
    write: Write,
    registry: Registry,
    plans: list[Plan],
    first_id: int,
    now_us: int,
    lightly: Write | None = None,
    attempt: tuple[int, int] | None = None,
) -> int:
    """Write the rows of a staged call, one step in each transaction; drop them all when one fails. Return the beat of
    the last.

    ``attempt``: the job and fence of the attempt that makes the call, to which the last step gives the jobs.

    A monotonic clock shows that the writer of the call is alive. ``lightly``: transactions that are not synced, for a
    call that is finally published by one that is. If a server loses some of them, that is detected: each step must find
    the beat of the one before."""
    begun_s, beat_us = time.monotonic(), now_us
    last_id = first_id + new_jobs.size(plans) - 1
    try:
        with write() as tx:
            todo = new_jobs.runs(tx, registry, plans, first_id, new_jobs.STEP)
        for run in todo:
            with (lightly or write)() as tx:
                elapsed_us = round((time.monotonic() - begun_s) * 1e6)
                before, beat_us = beat_us, max(beat_us + 1, now_us + elapsed_us)
                _require(tx, first_id, beat_us, before if lightly else None)
                if attempt is not None:
                    require_lease(tx, *attempt)
                needs.require(tx, run, attempt and attempt[1])
                new_jobs.write_run(tx, run, now_us, first_id)
                if attempt is not None and run is todo[-1]:
                    tx.run("update staging set fence = ? where first_id = ?", (attempt[1], first_id))
        return beat_us
    except BaseException:
        with write() as tx:
            tx.run(
                "update staging set published = -1, fence = null where first_id = ? and published in (0, 2)",
                (first_id,),
            )
            dropped = not tx.changed()  # by others, or it is published, because the last step was committed
        while not dropped:
            with write() as tx:
                dropped = drop(tx, first_id, last_id)
        raise


def enter(
    tx: Tx,
    first_id: int,
    last_id: int,
    parent_id: int | None,
    fence: int | None,
    now_us: int,
    hidden: int = CHILDREN,
) -> None:
    """Hide this run of ids. Adjacent runs of one attempt become one, unless they are of two kinds.

    ``parent_id``, ``fence``: the attempt that must pass before they are published, if one creates them; its fence only
    when this transaction writes them all."""
    if fence is not None:
        tx.run(
            "update staging set last_id = ?, beat_us = ? where fence = ? and last_id = ? and published = ?",
            (last_id, now_us, fence, first_id - 1, hidden),
        )
        if tx.changed():
            return
    tx.run(
        "insert into staging (first_id, last_id, next_id, published, parent_id, fence, beat_us) "
        "values (?, ?, ?, ?, ?, ?, ?)",
        (first_id, last_id, first_id, hidden, parent_id, fence, now_us),
    )


def _require(tx: Tx, first_id: int, beat_us: int, before_us: int | None) -> None:
    """Update the beat of a hidden call. Raises Refused when it was dropped meanwhile, or when its beat is no
    longer ``before_us`` (None: any), because the server has lost the step that wrote it."""
    tx.run(
        "update staging set beat_us = ? where first_id <= ? and last_id >= ? and published in (0, 2) "
        "and beat_us = coalesce(?, beat_us)",
        (beat_us, first_id, first_id, before_us),
    )
    if not tx.changed():
        raise Refused(
            "the submission was dropped, because it took too long between its steps, or because the database "
            "lost some of them when it crashed; submit it again"
        )


def publish(tx: Tx, first_id: int, beat_us: int) -> None:
    """Publish the jobs, which are accepted from then on. ``beat_us``: that of the last step, as ``write_steps`` returns
    it."""
    _require(tx, first_id, beat_us, beat_us)
    tx.run("update staging set published = 1 where first_id = ?", (first_id,))


def publish_spawned(tx: Tx, registry: Registry, fence: int, now_us: int) -> None:
    """Publish the jobs of a stage that has passed: few are placed now, many in steps. The parent waits for children
    that are not all placed yet; no job waits for independent ones."""
    for first_id, last_id in tx.all("select first_id, last_id from staging where fence = ?", (fence,)):
        if last_id - first_id < INLINE:
            tx.run("delete from staging where first_id = ?", (first_id,))
            new_jobs.put_in_place(tx, registry, first_id, last_id, now_us)
        else:
            tx.run(
                "update staging set published = 1, fence = null, "
                "parent_id = case when published = ? then null else parent_id end where first_id = ?",
                (OWN, first_id),
            )


def spawns_children(tx: Tx, fence: int) -> bool:
    """Return whether children would be created if this attempt passed."""
    return tx.exists("select 1 from staging where fence = ? and published = ? limit 1", (fence, CHILDREN))


def disown(tx: Tx, fence: int) -> None:
    """Drop the jobs of this attempt, which has not passed: they stay hidden, and the sweep deletes them in
    steps. Jobs with keys are not concerned, because they were created at once."""
    tx.run("update staging set fence = null, parent_id = null, published = -1 where fence = ?", (fence,))


def step(tx: Tx, registry: Registry, now_us: int, limit: int) -> int | None:
    """Place up to ``limit`` jobs of the oldest published call; return the parent to update when done.

    Returns None when there is nothing to do, 0 when there may be more, else the parent's id (-1: none).
    """
    run = tx.one(
        "select first_id, last_id, next_id, parent_id from staging where published = 1 order by first_id limit 1"
    )
    if run is None:
        return None
    first_id, last_id, next_id, parent_id = run
    special = tx.value(
        "select 1 from jobs where id between ? and ? and state = 'waiting' limit 1",
        (next_id, next_id + limit - 1),
    )
    until = min(last_id, next_id + (new_jobs.SPECIAL_STEP if special else limit) - 1)
    new_jobs.put_in_place(tx, registry, next_id, until, now_us)
    if until < last_id:
        tx.run("update staging set next_id = ? where first_id = ?", (until + 1, first_id))
        return 0
    tx.run("delete from staging where first_id = ?", (first_id,))
    return parent_id or -1


def abandoned(tx: Tx, now_us: int) -> tuple[int, int] | None:
    """Return a hidden run that is to be dropped: it is marked so, its attempt has no lease, or its writer makes no
    progress. Its writer cannot publish it any more."""
    run = tx.one(
        "select first_id, last_id from staging s where published = -1 or (published in (0, 2) and ("
        "(fence is null and beat_us < ?) or (fence is not null and not exists "
        "(select 1 from leases l where l.job_id = s.parent_id and l.fence = s.fence)))) limit 1",
        (now_us - ABANDONED_US,),
    )
    if run is None:
        return None
    tx.run("update staging set published = -1, fence = null where first_id = ?", (run[0],))
    return run[0], run[1]


def drop(tx: Tx, first_id: int, last_id: int, limit: int = new_jobs.STEP) -> bool:
    """Delete the newest ``limit`` jobs of a hidden run; return True when all are deleted. From the end, so
    that what is left is a shorter run, and the next step finds its end by one seek. Nothing but these tables
    has rows of jobs that were never visible."""
    newest = tx.value("select max(id) from jobs where id between ? and ?", (first_id, last_id)) or first_id
    start = max(first_id, newest - limit + 1)
    for table, column in (("needs", "job_id"), ("data", "job_id"), ("keys", "job_id"), ("jobs", "id")):
        tx.run(f"delete from {table} where {column} between ? and ?", (start, last_id))
    if start > first_id:
        return False
    tx.run("delete from staging where first_id = ?", (first_id,))
    return True
