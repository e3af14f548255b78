"""What a running attempt may ask of the store, under its own fence."""

from collections.abc import Sequence

import orjson

from spinney.model import names
from spinney.model.errors import BadParameters, Refused, StaleFence
from spinney.model.jobs import DATA_MAX_BYTES, Submission
from spinney.model.states import SETTLED
from spinney.stores.sql import locks, placing, rows, staging, submitting
from spinney.stores.sql.database import Tx
from spinney.stores.sql.registry import Registry
from spinney.stores.sql.rows import Row
from spinney.stores.sql.settling import BAD
from spinney.stores.sql.submitting import Parent, Plan


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
    items = [] if found is None else orjson.loads(found)
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


def take_lock(tx: Tx, job_id: int, fence: int, name: str, until: str, now_us: int) -> bool:
    require_lease(tx, job_id, fence)
    names.lock_name(name)
    if not locks.room(tx, name, job_id):
        return False
    tx.run(
        "insert into locks (name, job_id, fence, since_us) values (?, ?, ?, ?) on conflict (name, job_id) do update "
        "set fence = case when locks.fence is null or excluded.fence is null then null else excluded.fence end",
        (name, job_id, None if until == "job" else fence, now_us),
    )
    # What it holds must be given back when it ends: no longer the plain way.
    tx.run("update leases set plain = 0 where job_id = ?", (job_id,))
    return True


# --- children ---------------------------------------------------------------------------------


def parent_of_new(tx: Tx, registry: Registry, job_id: int, fence: int) -> Parent:
    """The running job, as one that may bear children now."""
    require_lease(tx, job_id, fence)
    row = rows.find(tx, job_id)
    wish = placing.wished(tx, row)
    if wish is not None:
        raise Refused(f"job {job_id} is to be {wish}; it may spawn nothing more, so stop")
    collection, submitter = tx.one("select collection, submitter from jobs where id = ?", (job_id,))
    root_type = tx.value("select type from jobs where id = ?", (row.root_id,))
    root = registry.types.get(root_type)
    return Parent(
        row=row,
        collection=collection,
        submitter=submitter,
        birth_fence=fence,
        serial=root is not None and root.serial,
    )


def require_all_keyed(submissions: Sequence[Submission]) -> None:
    """Children with keys are born at once, the others with their stage: one call is one or the other."""
    if not all(s.keys for s in submissions):
        raise Refused("children with keys and children without are spawned in separate calls; split this one")


def keyed(plans: Sequence[Plan]) -> list[tuple[Plan, int]]:
    """Each child of a call, as its plan and its place within that."""
    return [(plan, n) for plan in plans for n in range(len(plan.submission.params))]


def spawn_keyed(
    tx: Tx, registry: Registry, children: Sequence[tuple[Plan, int]], parent: Parent, ids: list[int], now_us: int
) -> None:
    """Children with keys are born at once; a key that has a child below this parent names that child.

    ``ids``: of those of the same call born before; these are added.
    """
    for plan, n in children:
        keys = plan.submission.keys
        known = keys and tx.value("select job_id from keys where scope = ? and key = ?", (parent.row.id, keys[n]))
        params = plan.submission.params[n]
        ids.append(known or _bear(tx, registry, plan, n, params, parent, ids, now_us))
        if known:
            _count_again(tx, parent.row, known)


def _bear(
    tx: Tx, registry: Registry, plan: Plan, n: int, params: str, parent: Parent, ids: list[int], now_us: int
) -> int:
    job_id = tx.take("job")
    key = [plan.submission.keys[n]] if plan.submission.keys else None
    share = submitting.share_of(tx, registry, plan, job_id)
    span = range(job_id, job_id + 1)
    submitting.write_rows(tx, plan, share, span, [params], key, now_us)
    submitting.write_extras(tx, plan, span, key, parent.row.id, lambda k: _earlier(ids, k))
    submitting.put_in_place(tx, registry, job_id, job_id, now_us)
    return job_id


def _earlier(ids: list[int], k: int) -> int:
    if k > len(ids):
        raise Refused(
            "among children with keys a need must point to an earlier one of the same call; reorder them"
        )
    return ids[k - 1]


def _count_again(tx: Tx, parent: Row, child_id: int) -> None:
    """A superseded child that is spawned again by its key counts again, as it stands."""
    tx.run("update jobs set superseded = null where id = ? and superseded = 1", (child_id,))
    if not tx.changed():
        return
    state = rows.find(tx, child_id).state
    if state in BAD or state not in SETTLED:
        tx.run(
            "insert into children_left (parent_id, bad, child_id) values (?, ?, ?) on conflict do nothing",
            (parent.id, state in BAD, child_id),
        )


def spawn_staged(tx: Tx, plans: Sequence[Plan], parent: Parent, fence: int, now_us: int) -> tuple[int, int]:
    """Reserve ids for children that are born when the stage passes; (first, count)."""
    total = submitting.size(plans)
    first_id = tx.take("job", total)
    staging.enter(tx, first_id, first_id + total - 1, parent.row.id, fence, now_us)
    return first_id, total


# --- progress ---------------------------------------------------------------------------------


def progress(tx: Tx, job_id: int, fence: int, fraction: float, message: str | None) -> None:
    require_lease(tx, job_id, fence)
    tx.run(
        "insert into progress (job_id, fraction, message) values (?, ?, ?) "
        "on conflict (job_id) do update set fraction = excluded.fraction, message = excluded.message",
        (job_id, min(1.0, max(0.0, fraction)), message),
    )
