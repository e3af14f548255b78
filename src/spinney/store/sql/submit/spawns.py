"""Jobs that a running attempt makes: children of its job, or jobs of their own.

Without a key they are written hidden (``staging``), and born in the transaction that records the stage as passed;
an attempt that does not pass leaves none. With a key they are born at once, and the same key names the same job: below
one parent for children, among all at the top for others.

A job of its own is nobody's child: it stands at the top, nobody waits for it, fails with it or regrows with it, and a
cancel or a deletion of the tree that submitted it does not reach it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spinney.model.errors import DuplicateKey, Refused
from spinney.model.jobs import Submission
from spinney.model.states import SETTLED
from spinney.store.sql.connection import rows
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.connection.rows import Row
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.submit import new_jobs, staging
from spinney.store.sql.submit.new_jobs import Parent, Plan
from spinney.store.sql.transitions import placement
from spinney.store.sql.transitions.attempts import require_lease
from spinney.store.sql.transitions.cascades import BAD


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawner:
    """An attempt that makes jobs."""

    job_id: int
    fence: int
    parent: Parent | None
    """Its job, for children; None: they are jobs of their own."""
    collection: str | None
    submitter: str | None
    beside: int | None = None
    """For jobs of their own: the share of those that earlier parts of the same call made."""


def of_children(tx: Tx, registry: Registry, job_id: int, fence: int) -> Spawner:
    """The attempt as one that spawns. Raises StaleFence; Refused when its job is to be cancelled."""
    require_lease(tx, job_id, fence)
    row = rows.find(tx, job_id)
    cancel_reason = placement.cancel_reason(tx, row)
    if cancel_reason is not None:
        raise Refused(f"job {job_id} is to be {cancel_reason}; it may spawn nothing more, so stop")
    collection, submitter = _origin(tx, job_id)
    root = registry.types.get(tx.value("select type from jobs where id = ?", (row.root_id,)))
    parent = Parent(
        row=row, collection=collection, submitter=submitter, serial=root is not None and root.serial
    )
    return Spawner(job_id=job_id, fence=fence, parent=parent, collection=collection, submitter=submitter)


def of_own_jobs(tx: Tx, job_id: int, fence: int, beside: int | None) -> Spawner:
    """The attempt as one that submits. A request to cancel its job does not concern them: they are born if the stage
    passes all the same. ``beside``: a job that an earlier part of the same call made. Raises StaleFence."""
    require_lease(tx, job_id, fence)
    collection, submitter = _origin(tx, job_id)
    share = None if beside is None else tx.value("select share from jobs where id = ?", (beside,))
    return Spawner(
        job_id=job_id, fence=fence, parent=None, collection=collection, submitter=submitter, beside=share
    )


def _origin(tx: Tx, job_id: int) -> tuple[str | None, str | None]:
    collection, submitter = tx.one("select collection, submitter from jobs where id = ?", (job_id,))
    return collection, submitter


def plans(tx: Tx, registry: Registry, submissions: Sequence[Submission], spawner: Spawner) -> list[Plan]:
    """Resolve and check the submissions. Raises what ``Store.submit`` raises."""
    if len({bool(s.keys) for s in submissions}) > 1:
        raise Refused("a stage makes jobs with keys and jobs without in separate calls; split this one")
    made = [_plan(tx, registry, s, spawner) for s in submissions]
    new_jobs.check_needs(tx, made, spawner.parent, spawner.fence)
    for need in {need for plan in made if plan.submission.keys for need in plan.submission.needs}:
        if need > 0 and rows.hidden(tx, need):
            raise Refused(
                f"a job with a key is made at once, and job {need}, which it needs, only when the stage has passed; "
                f"make that with a key, too, or this one without"
            )
    return made


def _plan(tx: Tx, registry: Registry, submission: Submission, spawner: Spawner) -> Plan:
    if spawner.parent is not None:
        return new_jobs.plan(tx, registry, submission, spawner.parent)
    signed = replace(
        submission,
        collection=submission.collection or spawner.collection,
        submitter=submission.submitter or spawner.submitter,
    )
    return replace(new_jobs.plan(tx, registry, signed, None), beside=spawner.beside)


# --- born with the stage ----------------------------------------------------------------------


def stage(tx: Tx, plans: Sequence[Plan], spawner: Spawner, now_us: int) -> tuple[int, int]:
    """Reserve ids for jobs that are born when the stage passes; (first, count)."""
    total = new_jobs.size(plans)
    first_id = tx.take("job", total)
    kind = staging.OWN if spawner.parent is None else staging.CHILDREN
    staging.enter(tx, first_id, first_id + total - 1, spawner.job_id, spawner.fence, now_us, kind)
    return first_id, total


# --- born at once -----------------------------------------------------------------------------


def keyed(plans: Sequence[Plan]) -> list[tuple[Plan, int]]:
    """Each job of a call with keys, as its plan and its place within that; none for a call without."""
    return [(plan, n) for plan in plans if plan.submission.keys for n in range(len(plan.submission.params))]


def spawn_keyed(
    tx: Tx,
    registry: Registry,
    jobs: Sequence[tuple[Plan, int]],
    spawner: Spawner,
    ids: list[int],
    now_us: int,
) -> None:
    """Jobs with keys are born at once; a key that is taken names the job that has it.

    ``ids``: of those of the same call born before; these are added.
    """
    for plan, n in jobs:
        known = _known(tx, plan, n, spawner)
        ids.append(_spawn(tx, registry, plan, n, spawner, ids, now_us) if known is None else known)
        if known is not None and spawner.parent is not None:
            _count_again(tx, spawner.parent.row, known)


def _known(tx: Tx, plan: Plan, n: int, spawner: Spawner) -> int | None:
    """Who has the key. At the top others may have taken it for something else, or not be accepted yet: those are
    not what is asked for."""
    key = (plan.submission.keys or ())[n]
    taken = tx.one(
        "select k.job_id, k.forever, jobs.type from keys k join jobs on jobs.id = k.job_id "
        "where k.scope = ? and k.key = ?",
        (_scope(spawner), key),
    )
    if taken is None:
        return None
    job_id, forever, type_ = taken
    if spawner.parent is None and (type_ != plan.spec.name or rows.hidden(tx, job_id)):
        raise DuplicateKey(key, job_id, forever=bool(forever))
    return int(job_id)


def _scope(spawner: Spawner) -> int:
    return 0 if spawner.parent is None else spawner.parent.row.id


def _spawn(
    tx: Tx, registry: Registry, plan: Plan, n: int, spawner: Spawner, ids: list[int], now_us: int
) -> int:
    job_id = tx.take("job")
    params = [plan.submission.params[n]]
    key = [plan.submission.keys[n]] if plan.submission.keys else None
    share = new_jobs.share_of(tx, registry, plan, ids[0] if ids else job_id)
    span = range(job_id, job_id + 1)
    new_jobs.write_rows(tx, plan, share, span, params, key, now_us)
    new_jobs.write_extras(tx, plan, span, key, _scope(spawner), lambda k: _earlier(ids, k))
    new_jobs.put_in_place(tx, registry, job_id, job_id, now_us)
    return job_id


def _earlier(ids: list[int], k: int) -> int:
    if k > len(ids):
        raise Refused(
            "among jobs with keys a need must point to an earlier one of the same call; reorder them"
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
