"""Locks: rows of ``locks``, whose amounts are summed up against a capacity in the transaction that takes more.

What a job wants is granted when it fits beside what others have, and nobody waits for the lock who comes before the
job (``lock_waiters``); else it waits. A job that wants nothing new (less than it has, or nothing) is never refused.
"""

from collections.abc import Sequence
from typing import NamedTuple

import orjson

from spinney.model.errors import BadParameters
from spinney.model.lineage import ancestors
from spinney.model.values import lock_names
from spinney.model.values.unreadable import Unreadable, json_object, of_job
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.transitions.lock_waiters import Waiter, first_waiting, with_some

CLAIMING = -1
"""In place of a fence, within a claim that has not given one yet."""
RESERVED = -2
"""In place of a fence: the lock is kept for a job that has been woken for it and waits to be claimed."""


class LockRequest(NamedTuple):
    """Some of a lock."""

    name: str
    amount: int = 1
    capacity: int | None = None
    """What the one that takes it says of the lock; None: nothing."""


class LockState(NamedTuple):
    """How a lock stands towards a job that wants some of it."""

    fits: bool
    """Whether the job may have it now."""
    capacity: int
    """In force for this taking."""
    used: int
    """By others."""
    others: int
    """How many others have some of it, be it an amount of 0; with those left out whom it shares it with, where that
    was asked."""
    own: int | None
    """What the job has already; None: nothing."""

    def left(self, amount: int) -> int:
        """What would be left with this amount taken; below 0 where a capacity was lowered."""
        return self.capacity - self.used - amount


def look(tx: Tx, registry: Registry, wanted: LockRequest, job_id: int, *, in_line: bool = True) -> LockState:
    """How a lock stands. ``in_line=False``: the job is first of those that wait, and nobody need be asked.

    What an ancestor keeps until it settles is no obstacle, and neither is who waits: a child that had to wait for
    the lock under which its parent waits for it would wait for ever. The same goes for a job that has some already.
    """
    capacity = registry.capacities.in_force(wanted.name, wanted.capacity)
    owners = tx.all(_OWNERS, (wanted.name,))
    if not owners:
        return LockState(True, capacity, 0, 0, None)
    if len(owners) <= _FEW:
        own = next((amount for owner, amount in owners if owner == job_id), None)
        rows, used = len(owners), sum([amount for _, amount in owners])
    else:
        rows, high, low, own = tx.one(_USED, (job_id, wanted.name))
        used = (int(high) << _HALF) + int(low)
    others, used = rows - (own is not None), used - (own or 0)
    fits = True
    if others and wanted.amount > (own or 0):
        fits = used + wanted.amount <= capacity
        if not fits or (in_line and own is None and _somebody_before(tx, registry, wanted.name, job_id)):
            keepers, kept = _kept_above(tx, wanted.name, job_id)
            others, used = others - keepers, used - kept
            fits = not others or (keepers > 0 and used + wanted.amount <= capacity)
    return LockState(fits, capacity, used, others, own)


def take(
    tx: Tx, registry: Registry, job_id: int, wanted: Sequence[tuple[str, str]], now_us: int
) -> str | None:
    """All of these (template, until) locks for the job, or none: returns the name that was taken.

    In order of name, so that two jobs that want the same ones never each hold half. The claim fills in the fence when
    it has one (``fence_claimed``). Who has more of one already keeps that. Raises BadParameters where a name cannot be
    made of the job's parameters.
    """
    params = json_object(tx.value("select params from jobs where id = ?", (job_id,)), of_job(job_id))
    if isinstance(params, Unreadable):
        raise BadParameters(str(params))
    named = sorted({(lock_names.render(template, params), until) for template, until in wanted})
    for name, _ in named:
        if not look(tx, registry, LockRequest(name), job_id).fits:
            return name
    for name, until in named:
        owner_fence = None if until == "job" else CLAIMING
        tx.run(
            "insert into locks (name, job_id, fence, since_us) values (?, ?, ?, ?) on conflict (name, job_id) "
            "do update set fence = case when locks.fence is null then null else excluded.fence end, "
            "since_us = excluded.since_us, amount = case when locks.amount > 1 then locks.amount else 1 end",
            (name, job_id, owner_fence, now_us),
        )
    return None


def next_of(tx: Tx, registry: Registry, name: str) -> tuple[Waiter, LockState] | None:
    """Of those that wait for the lock: the one that may have it now. That is the first, or one that may not stand
    behind a stranger (``lock_waiters.with_some``). Where nobody has it, the first goes on though what it wants be more
    than there is: it has to be told."""
    first = first_waiting(tx, registry, name)
    if first is None:
        return None
    found = look(tx, registry, LockRequest(name, first.amount, first.capacity), first.job_id, in_line=False)
    if found.fits:
        return first, found
    for waiter in with_some(tx, registry, name):
        found = look(
            tx, registry, LockRequest(name, waiter.amount, waiter.capacity), waiter.job_id, in_line=False
        )
        if found.fits:
            return waiter, found
    return None


def reserve(tx: Tx, wanted: LockRequest, job_id: int, now_us: int) -> None:
    """Keep it for a job that has been woken for it, so that nobody who came later overtakes it. One that has some
    already and waits for more is given that at once: it may have asked for its last."""
    tx.run(
        "insert into locks (name, job_id, fence, since_us, amount) values (?, ?, ?, ?, ?) on conflict (name, job_id) "
        "do update set amount = case when locks.amount > excluded.amount then locks.amount else excluded.amount end",
        (wanted.name, job_id, RESERVED, now_us, wanted.amount),
    )


def fence_claimed(tx: Tx, job_id: int, fence: int) -> None:
    """The claim has its fence now."""
    tx.run("update locks set fence = ? where job_id = ? and fence = ?", (fence, job_id, CLAIMING))


# --- who else ---------------------------------------------------------------------------------

_FEW = 32
_OWNERS = f"select job_id, amount from locks where name = ? limit {_FEW + 1}"
"""Most locks have one owner or none: cheaper than to let the database sum up."""
_HALF = 20
_SUMS = f"coalesce(sum(amount >> {_HALF}), 0), coalesce(sum(amount & {(1 << _HALF) - 1}), 0)"
"""In two parts, high and low: the sum of amounts of 64 bits may need more, where one below shares what one above has
(and SQLite would raise)."""
_USED = f"select count(*), {_SUMS}, max(case when job_id = ? then amount end) from locks where name = ?"
_KEPT = (
    f"select count(*), {_SUMS} from locks where name = ? and fence is null "
    "and job_id in (select j.value from json_each(?) j)"
)


def _kept_above(tx: Tx, name: str, job_id: int) -> tuple[int, int]:
    """How many of the job's ancestors keep some of it until they settle, and how much in all."""
    above = ancestors(tx.value("select lineage from jobs where id = ?", (job_id,)))
    if not above:
        return 0, 0
    rows, high, low = tx.one(_KEPT, (name, orjson.dumps(above).decode()))
    return rows, (int(high) << _HALF) + int(low)


def _somebody_before(tx: Tx, registry: Registry, name: str, job_id: int) -> bool:
    """Whether somebody waits for it who gets it before this job."""
    first = first_waiting(tx, registry, name)
    if first is None:
        return False
    priority = tx.value("select priority from jobs where id = ?", (job_id,))
    return bool((first.priority, first.job_id) < (priority, job_id))
