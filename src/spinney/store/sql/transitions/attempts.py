"""What a running attempt may ask of the store, under its own fence. The jobs that it makes: ``spawns``."""

import shlex

import orjson

from spinney.model.errors import BadParameters, Refused, StaleFence, UsageError
from spinney.model.jobs import DATA_MAX_BYTES
from spinney.model.settings.capacities import require_amount
from spinney.model.types import PRIORITIES
from spinney.model.values import names
from spinney.model.values.unreadable import Unreadable, json_value
from spinney.store.sql.connection import rows
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.transitions import locks
from spinney.store.sql.transitions.cascades import Cascade


def require_lease(tx: Tx, job_id: int, fence: int) -> None:
    """Raise StaleFence unless this attempt still owns the job."""
    if tx.value("select 1 from leases where job_id = ? and fence = ?", (job_id, fence)) is None:
        raise StaleFence(job_id, fence)


# --- data -------------------------------------------------------------------------------------


def put(tx: Tx, job_id: int, fence: int, name: str, value: str | None, target: int) -> None:
    require_lease(tx, job_id, fence)
    _require_target(tx, job_id, target)
    names.label("data entry", name)
    if value is None:
        tx.run("delete from data where job_id = ? and name = ?", (target, name))
        return
    _require_small(name, value)
    tx.run(
        "insert into data (job_id, name, value) values (?, ?, ?) "
        "on conflict (job_id, name) do update set value = excluded.value",
        (target, name, value),
    )


def append(tx: Tx, job_id: int, fence: int, name: str, value: str, target: int) -> int:
    require_lease(tx, job_id, fence)
    _require_target(tx, job_id, target)
    names.label("data entry", name)
    found = tx.value("select value from data where job_id = ? and name = ?", (target, name))
    items = [] if found is None else json_value(found, f"the data entry {name!r} of job {target}")
    if isinstance(items, Unreadable):
        raise Refused(f"{items}; put the entry anew, or append to another name")
    if not isinstance(items, list):
        raise Refused(f"data entry {name!r} of job {target} is no list; append to another name")
    items.append(orjson.loads(value))
    put(tx, job_id, fence, name, orjson.dumps(items).decode(), target)
    return len(items)


def _require_target(tx: Tx, job_id: int, target: int) -> None:
    if target == job_id:
        return
    row = rows.find(tx, job_id)
    if target not in (row.parent_id, row.root_id):
        raise Refused(
            f"job {job_id} may write its own data, its parent's and its root's, not those of job {target}"
        )


def _require_small(name: str, value: str) -> None:
    if len(value.encode()) > DATA_MAX_BYTES:
        raise BadParameters(
            f"data entry {name!r} is larger than {DATA_MAX_BYTES // 1024} kB; put it into a file in the job's folder"
        )


# --- locks ------------------------------------------------------------------------------------


def take_lock(
    tx: Tx, registry: Registry, job_id: int, fence: int, wanted: locks.LockRequest, until: str, now_us: int
) -> bool:
    require_lease(tx, job_id, fence)
    names.lock_name(wanted.name)
    require_amount(wanted.amount)
    if wanted.capacity is not None:
        require_amount(wanted.capacity)
    found = locks.look(tx, registry, wanted, job_id)
    if not found.others and wanted.amount > max(found.capacity, found.own or 0):
        raise UsageError(
            f"the lock {wanted.name!r} has a capacity of {found.capacity}, so that nobody can take {wanted.amount} of "
            f"it; take less, or raise the capacity with 'spinney lock {shlex.quote(wanted.name)} --capacity N'"
        )
    if not found.fits:
        return False
    tx.run(
        "insert into locks (name, job_id, fence, since_us, amount) values (?, ?, ?, ?, ?) "
        "on conflict (name, job_id) do update set amount = excluded.amount, "
        "fence = case when locks.fence is null or excluded.fence is null then null else excluded.fence end",
        (wanted.name, job_id, None if until == "job" else fence, now_us, wanted.amount),
    )
    # What it holds must be given back when it ends: no longer the plain way.
    tx.run("update leases set plain = 0 where job_id = ?", (job_id,))
    if wanted.amount < (found.own or 0):
        cascade = Cascade(tx, registry, now_us)
        cascade.lock_freed(wanted.name)
        cascade.drain()
    return True


# --- priority ---------------------------------------------------------------------------------


def prioritise(tx: Tx, job_id: int, fence: int, priority: int) -> None:
    """It runs, so it stands nowhere that goes by priority: its row is all there is to change."""
    require_lease(tx, job_id, fence)
    if priority not in PRIORITIES:
        raise UsageError(f"priority {priority} is out of range; use 0 (first) to 99 (last)")
    tx.run("update jobs set priority = ? where id = ?", (priority, job_id))


# --- progress ---------------------------------------------------------------------------------


def progress(tx: Tx, job_id: int, fence: int, fraction: float, message: str | None) -> None:
    require_lease(tx, job_id, fence)
    tx.run(
        "insert into progress (job_id, fraction, message) values (?, ?, ?) "
        "on conflict (job_id) do update set fraction = excluded.fraction, message = excluded.message",
        (job_id, min(1.0, max(0.0, fraction)), message),
    )
