"""Locks: rows of ``locks``, counted against a capacity in the transaction that takes them."""

from collections.abc import Sequence

import orjson

from spinney.model import locking
from spinney.model.lineage import ancestors
from spinney.stores.sql.database import Tx

CLAIMING = -1
"""In place of a fence, within a claim that has not given one yet."""
RESERVED = -2
"""In place of a fence: the lock is kept for a job that has been woken for it and waits to be claimed."""


def take(tx: Tx, job_id: int, wanted: Sequence[tuple[str, str]], now_us: int) -> str | None:
    """All of these (template, until) locks for the job, or none: returns the name that was taken.

    In order of name, so that two jobs that want the same ones never each hold half. The claim fills
    in the fence when it has one (``fence_claimed``).
    """
    params = orjson.loads(tx.value("select params from jobs where id = ?", (job_id,)))
    named = sorted({(locking.render(template, params), until) for template, until in wanted})
    for name, _ in named:
        if not room(tx, name, job_id):
            return name
    for name, until in named:
        owner_fence = None if until == "job" else CLAIMING
        tx.run(
            "insert into locks (name, job_id, fence, since_us) values (?, ?, ?, ?) on conflict (name, job_id) "
            "do update set fence = case when locks.fence is null then null else excluded.fence end, "
            "since_us = excluded.since_us",
            (name, job_id, owner_fence, now_us),
        )
    return None


def room(tx: Tx, name: str, job_id: int | None = None) -> bool:
    """Whether somebody (or this job) could have the lock now.

    What the job has already, or an ancestor keeps until it settles, is no obstacle: a child that had to
    wait for the lock under which its parent waits for it would wait for ever.
    """
    owners = tx.all("select job_id, fence from locks where name = ?", (name,))
    if not owners:
        return True
    above: set[int] = set()
    if job_id is not None:
        if any(owner == job_id for owner, _ in owners):
            return True
        above.update(ancestors(tx.value("select lineage from jobs where id = ?", (job_id,))))
    capacity = tx.value("select capacity from lock_capacities where name = ?", (name,)) or 1
    return sum(1 for owner, fence in owners if fence is not None or owner not in above) < capacity


def keepers(tx: Tx, name: str) -> list[int]:
    """Jobs that keep the lock until they settle."""
    return [j for (j,) in tx.all("select job_id from locks where name = ? and fence is null", (name,))]


def fence_claimed(tx: Tx, job_id: int, fence: int) -> None:
    """The claim has its fence now."""
    tx.run("update locks set fence = ? where job_id = ? and fence = ?", (fence, job_id, CLAIMING))
