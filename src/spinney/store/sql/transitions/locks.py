"""Locks: rows of ``locks``, whose amounts are summed and compared with the capacity in the transaction that takes more.

A request is granted when its amount fits beside those of others, and no job before it waits for the lock
(``lock_waiters``); else the job waits. A request for no more than the job has is never refused.

The row of a lock goes through these stages, which its ``fence`` shows: reserved for a job that was woken for
it (``RESERVED``), taken by the claim of that job (``CLAIMING``, within that transaction only), then of the
attempt (its fence) until it ends, or of the job (null) until it settles. A reservation that leads to no claim
is dropped by the sweep after a minute."""

from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

from spinney.model.errors import BadParameters
from spinney.model.lineage import ancestors
from spinney.model.values import lock_names
from spinney.model.values.unreadable import Unreadable, json_object, of_job
from spinney.store.sql.connection.database import RowChange, Tx, list_text
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.transitions.lock_waiters import Waiter, first_waiting, with_some

CLAIMING = -1
"""In place of a fence, within a claim that has not assigned one yet."""
RESERVED = -2
"""In place of a fence: the lock is reserved for a job that was woken for it and waits to be claimed."""
_FENCED = RowChange("locks", f"job_id = ? and fence = {CLAIMING}", set="fence = ?")


class LockRequest(NamedTuple):
    """A request for an amount of a lock."""

    name: str
    amount: int = 1
    capacity: int | None = None
    """The capacity that the stage names; None: none."""


class LockState(NamedTuple):
    """The state of a lock for a job that requests it."""

    fits: bool
    """Whether the job may take it now."""
    capacity: int
    """The capacity in force for this request."""
    used: int
    """The amount that others have."""
    others: int
    """How many others have some of it, also with an amount of 0; without ancestors, where those were checked."""
    own: int | None
    """The amount that the job has already; None: it has no row."""

    def left(self, amount: int) -> int:
        """Return how much of the capacity is left when the job has this amount; negative where a capacity was
        lowered."""
        return self.capacity - self.used - amount


def look(tx: Tx, registry: Registry, request: LockRequest, job_id: int, *, in_line: bool = True) -> LockState:
    """Return the state of a lock for a request. ``in_line=False``: the job is the first waiting one, and others need
    not be checked. Nothing is written; the answer holds until the transaction ends.

    Amounts that an ancestor keeps until it settles are no obstacle, and neither are waiting jobs: a child that had to
    wait for the lock of its parent, which waits for the child, would wait for ever. The same applies to a job that has
    some already."""
    capacity = registry.capacities.in_force(request.name, request.capacity)
    owners = tx.all(_OWNERS, (request.name,))
    if not owners:
        return LockState(True, capacity, 0, 0, None)
    if len(owners) <= _FEW:
        own = next((amount for owner, amount in owners if owner == job_id), None)
        rows, used = len(owners), sum([amount for _, amount in owners])
    else:
        rows, high, low, own = tx.one(_USED, (job_id, request.name))
        used = (int(high) << _HALF) + int(low)
    others, used = rows - (own is not None), used - (own or 0)
    fits = True
    if others and request.amount > (own or 0):
        fits = used + request.amount <= capacity
        if not fits or (in_line and own is None and _somebody_before(tx, registry, request.name, job_id)):
            keepers, kept = _kept_above(tx, request.name, job_id)
            others, used = others - keepers, used - kept
            fits = not others or (keepers > 0 and used + request.amount <= capacity)
    return LockState(fits, capacity, used, others, own)


def take(
    tx: Tx,
    registry: Registry,
    job_id: int,
    templates: Sequence[tuple[str, str]],
    now_us: int,
    *,
    freed: Container[str] = (),
) -> str | None:
    """Take all of these (template, until) locks for the job, or none; return the name of a lock that is not free, or
    None. ``freed``: locks that were released in this transaction, and were not offered to waiting jobs yet. For any
    other lock that nobody has no job waits.

    They are taken in order of name, so that two jobs that want the same ones never each have half. The claim sets the
    fence when it has one (``fence_claimed``). A job that has more of one already keeps that. Raises BadParameters where
    a name cannot be built from the job's parameters."""
    params = json_object(tx.value("select params from jobs where id = ?", (job_id,)), of_job(job_id))
    if isinstance(params, Unreadable):
        raise BadParameters(str(params))
    named = sorted({(lock_names.render(template, params), until) for template, until in templates})
    for name, _ in named:
        fits = look(tx, registry, LockRequest(name), job_id).fits
        if not fits or (name in freed and _somebody_before(tx, registry, name, job_id)):
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


def next_of(
    tx: Tx, registry: Registry, name: str, preferred: int | None = None
) -> tuple[Waiter, LockState] | None:
    """Return the waiting job that may take the lock now: the preferred one, the first, or one that must not wait behind
    others (``lock_waiters.with_some``). Where no job has the lock, it continues even if its amount exceeds the
    capacity, so that it gets the error."""
    for waiter in _in_order(tx, registry, name, preferred):
        request = LockRequest(name, waiter.amount, waiter.capacity)
        state = look(tx, registry, request, waiter.job_id, in_line=False)
        if state.fits:
            return waiter, state
    return None


def _in_order(tx: Tx, registry: Registry, name: str, preferred: int | None) -> Iterator[Waiter]:
    """Yield the waiting jobs that may be next, and read each only when those before it do not fit."""
    if preferred is not None and (waiter := first_waiting(tx, registry, name, preferred)) is not None:
        yield waiter
    first = first_waiting(tx, registry, name)
    if first is not None:
        yield first
        yield from with_some(tx, registry, name)


def reserve(tx: Tx, request: LockRequest, job_id: int, now_us: int) -> None:
    """Reserve the lock for a job that was woken for it, so that no later one overtakes it. A job that has some already
    and waits for more gets that at once."""
    tx.run(
        "insert into locks (name, job_id, fence, since_us, amount) values (?, ?, ?, ?, ?) on conflict (name, job_id) "
        "do update set amount = case when locks.amount > excluded.amount then locks.amount else excluded.amount end",
        (request.name, job_id, RESERVED, now_us, request.amount),
    )


def fence_claimed(tx: Tx, leases: Sequence[tuple[int, int]]) -> None:
    """Set the fences of locks that a claim has taken. ``leases``: (fence, job) of each."""
    tx.change(_FENCED, leases)


# --- other jobs ---------------------------------------------------------------------------------

_FEW = 32
_OWNERS = f"select job_id, amount from locks where name = ? limit {_FEW + 1}"
"""Most locks have one owner or none: this is cheaper than a sum in the database."""
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
    """Return how many of the job's ancestors keep some of it until they settle, and how much in all."""
    above = ancestors(tx.value("select lineage from jobs where id = ?", (job_id,)))
    if not above:
        return 0, 0
    rows, high, low = tx.one(_KEPT, (name, list_text(above)))
    return rows, (int(high) << _HALF) + int(low)


def _somebody_before(tx: Tx, registry: Registry, name: str, job_id: int) -> bool:
    """Return whether a waiting job gets it before this one."""
    first = first_waiting(tx, registry, name)
    if first is None:
        return False
    priority = tx.value("select priority from jobs where id = ?", (job_id,))
    return bool((first.priority, first.job_id) < (priority, job_id))
