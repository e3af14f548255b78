"""Requests of a running attempt, checked by its fence. The jobs that it creates are in ``spawns``.

A worker has no connection to the database: its node, or the API for an external worker, calls these functions
for it. Each first requires the lease, in the same transaction, so that a late attempt whose lease was
recovered or taken back changes nothing.

Data and priority stay as they were written, whatever becomes of the attempt. A lock is released when the
attempt ends, unless it was taken until the job settles."""

import shlex

import orjson

from spinney.define.job.data import require_small
from spinney.model.errors import Refused, StaleFence, UsageError
from spinney.model.settings.capacities import require_amount
from spinney.model.types import PRIORITIES
from spinney.model.values import names
from spinney.model.values.unreadable import Unreadable, json_value
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.registry import job_rows
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.transitions import locks
from spinney.store.sql.transitions.cascades import Cascade


def require_lease(tx: Tx, job_id: int, fence: int) -> None:
    """Raise StaleFence unless this attempt still owns the job.

    There is one writer at a time, so the lease cannot be taken away before the caller's transaction ends.
    """
    if not tx.exists("select 1 from leases where job_id = ? and fence = ?", (job_id, fence)):
        raise StaleFence(job_id, fence)


# --- data -------------------------------------------------------------------------------------


def put(tx: Tx, job_id: int, fence: int, name: str, value: str | None, target: int) -> None:
    """Write an entry of the data of ``target``, which is the attempt's own job, its parent or its root. ``value``: JSON
    text; None removes the entry. Raises StaleFence, BadName, BadParameters (it is too large) and Refused (another job).
    """
    require_lease(tx, job_id, fence)
    _require_target(tx, job_id, target)
    names.label("data entry", name)
    if value is None:
        tx.run("delete from data where job_id = ? and name = ?", (target, name))
        return
    require_small(name, value)
    tx.run(
        "insert into data (job_id, name, value) values (?, ?, ?) "
        "on conflict (job_id, name) do update set value = excluded.value",
        (target, name, value),
    )


def append(tx: Tx, job_id: int, fence: int, name: str, value: str, target: int) -> int:
    """Append to a list in the data of ``target``, and return its length. ``value``: JSON text; a missing
    entry counts as an empty list.

    The list is read and written in one transaction, so jobs that append to the data of their root at the same
    time lose nothing. Raises what ``put`` raises (the limit of size is that of the whole list), and Refused
    when the entry is no list or cannot be read."""
    require_lease(tx, job_id, fence)
    _require_target(tx, job_id, target)
    names.label("data entry", name)
    stored = tx.value("select value from data where job_id = ? and name = ?", (target, name))
    items = [] if stored is None else json_value(stored, f"the data entry {name!r} of job {target}")
    if isinstance(items, Unreadable):
        raise Refused(f"{items}; put the entry again, or append to another name")
    if not isinstance(items, list):
        raise Refused(f"data entry {name!r} of job {target} is no list; append to another name")
    items.append(orjson.loads(value))
    put(tx, job_id, fence, name, orjson.dumps(items).decode(), target)
    return len(items)


def _require_target(tx: Tx, job_id: int, target: int) -> None:
    if target == job_id:
        return
    row = job_rows.find(tx, job_id)
    if target not in (row.parent_id, row.root_id):
        raise Refused(
            f"job {job_id} may write its own data, its parent's and its root's, not those of job {target}"
        )


# --- locks ------------------------------------------------------------------------------------


def take_lock(
    tx: Tx, registry: Registry, job_id: int, fence: int, request: locks.LockRequest, until: str, now_us: int
) -> bool:
    """Take an amount of a lock for a running attempt, and return whether it was granted; nothing waits here.

    ``until``: ``attempt``, or ``job`` to keep the lock until the job settles. The job's amount becomes the
    one of the request. A smaller one is always granted, and the rest is offered to jobs that wait.

    Raises StaleFence, BadName, and UsageError for an amount that can never be granted: it exceeds the
    capacity, and no other job has any of the lock, so that waiting for one would not help."""
    require_lease(tx, job_id, fence)
    names.lock_name(request.name)
    require_amount(request.amount)
    if request.capacity is not None:
        require_amount(request.capacity)
    state = locks.look(tx, registry, request, job_id)
    if not state.others and request.amount > max(state.capacity, state.own or 0):
        raise UsageError(
            f"the lock {request.name!r} has a capacity of {state.capacity}, so that nobody can take "
            f"{request.amount} of it; take less, "
            f"or raise the capacity with 'spinney lock {shlex.quote(request.name)} --capacity N'"
        )
    if not state.fits:
        return False
    # A lock that is kept until the job settles (fence null) stays so when an attempt takes it once more.
    tx.run(
        "insert into locks (name, job_id, fence, since_us, amount) values (?, ?, ?, ?, ?) "
        "on conflict (name, job_id) do update set amount = excluded.amount, "
        "fence = case when locks.fence is null or excluded.fence is null then null else excluded.fence end",
        (request.name, job_id, None if until == "job" else fence, now_us, request.amount),
    )
    # Its locks must be released when it ends, so its lease is no longer plain.
    tx.run("update leases set plain = 0 where job_id = ?", (job_id,))
    if request.amount < (state.own or 0):
        cascade = Cascade(tx, registry, now_us)
        cascade.lock_freed(request.name)
        cascade.drain()
    return True


# --- priority ---------------------------------------------------------------------------------


def prioritise(tx: Tx, job_id: int, fence: int, priority: int) -> None:
    """Set the priority of a running job. It counts from the job's next claim on.

    Only the job's row has to change, because a leased job has no row in ``ready``. Raises StaleFence, and
    UsageError for a number outside of 0 to 99."""
    require_lease(tx, job_id, fence)
    if priority not in PRIORITIES:
        raise UsageError(f"priority {priority} is out of range; use 0 (first) to 99 (last)")
    tx.run("update jobs set priority = ? where id = ?", (priority, job_id))


# --- progress ---------------------------------------------------------------------------------


def progress(tx: Tx, job_id: int, fence: int, fraction: float, message: str | None) -> None:
    """Store the latest progress of an attempt; the fraction is kept within 0 and 1. Raises StaleFence."""
    require_lease(tx, job_id, fence)
    tx.run(
        "insert into progress (job_id, fraction, message) values (?, ?, ?) "
        "on conflict (job_id) do update set fraction = excluded.fraction, message = excluded.message",
        (job_id, min(1.0, max(0.0, fraction)), message),
    )
