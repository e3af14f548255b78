"""The needs of a call: each names a job that exists or is made with it, and they form no circle."""

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from spinney.model.errors import Cycle, NoSuchJob, UsageError
from spinney.model.states import State
from spinney.model.values.hints import first_of
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.registry import job_rows
from spinney.store.sql.registry.job_rows import Row
from spinney.store.sql.submit.new_jobs import Parent, Plan, Run, size

_PAIRS_MAX = 10
"""How many needs of a circle a message names: thousands of jobs may wait for each other."""


def check(tx: Tx, plans: Sequence[Plan], parent: Parent | None, fence: int | None = None) -> None:
    """Check that every need exists (in the store, in this call, or among the jobs that the attempt of this fence
    spawns), and that there is no cycle. Raises NoSuchJob, Cycle, and UsageError for a need that points behind the jobs
    of the call."""
    if not any(p.submission.needs for p in plans):
        return
    total = size(plans)
    graph: dict[int, set[int]] = {}
    waits_for_parent = _who_waits_for(tx, parent.row) if parent else set()
    for number, needs in _numbered_needs(plans):
        for need in needs:
            if need < 0:
                if -need > total:
                    raise UsageError(
                        f"job {number} of this call has the need {need}, which points behind the last job of the call, "
                        f"number {total}; -k is the k-th job of the call"
                    )
                graph.setdefault(number, set()).add(-need)
            elif need in waits_for_parent:
                raise Cycle(
                    f"job {need} waits for the new job's parent, so that both would wait for ever; "
                    f"take {need} out of its needs"
                )
            else:
                _require_needable(tx, need, fence, number if total > 1 else None)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise Cycle(_circle(error.args[1])) from error


def _circle(numbers: Sequence[int]) -> str:
    """Return the sentence about jobs that wait for each other. ``numbers``: as CycleError has them, where each job is
    needed by the one behind it, and the last is the first again."""
    pairs = [f"job {needed_by} needs job {needed}" for needed, needed_by in pairwise(numbers)][::-1]
    named = first_of(pairs, _PAIRS_MAX)
    return f"jobs of this call, by their numbers in it, would wait for each other: {named}; take out one need"


def _require_needable(tx: Tx, need: int, fence: int | None, needed_by: int | None = None) -> None:
    """Raise NoSuchJob unless the job exists, or will be created by the same stage. ``needed_by``: the number of the
    job of a call of many."""
    if job_rows.is_hidden(tx, need):
        exists = fence is not None and tx.exists(
            "select 1 from staging where first_id <= ? and last_id >= ? and fence = ?", (need, need, fence)
        )
    else:
        state = tx.value("select state from jobs where id = ?", (need,))
        exists = state is not None and state != State.DELETED
    if not exists:
        raise NoSuchJob(need, needed_by=needed_by)


def _numbered_needs(plans: Sequence[Plan]) -> list[tuple[int, tuple[int, ...]]]:
    """Return (number within the call from 1, needs) of each job that has needs."""
    numbered, number = [], 0
    for p in plans:
        for _ in p.submission.params:
            number += 1
            if p.submission.needs:
                numbered.append((number, p.submission.needs))
    return numbered


def _who_waits_for(tx: Tx, row: Row) -> set[int]:
    """Return the job and all jobs that wait for it, through needs and parents."""
    waiting: set[int] = set()
    todo = [row.id]
    while todo:
        job_id = todo.pop()
        if job_id in waiting:
            continue
        waiting.add(job_id)
        todo += tx.column("select job_id from needs where need_id = ?", (job_id,))
        parent = tx.value("select parent_id from jobs where id = ?", (job_id,))
        if parent is not None:
            todo.append(parent)
    return waiting


def require(tx: Tx, run: Run, fence: int | None) -> None:
    """Raise NoSuchJob for a need that was deleted after the call was checked, in an earlier transaction: a deletion
    removes only those rows of ``needs`` that are there. ``fence``: that of the attempt that makes the call, if one
    does."""
    for need in run.plan.submission.needs:
        if need > 0:
            _require_needable(tx, need, fence)
