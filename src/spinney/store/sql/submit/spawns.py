"""Jobs that a running attempt creates: children of its job, or independent jobs.

Without a key they are hidden (``staging``), and published in the transaction that records the stage as passed; an
attempt that does not pass leaves none. With a key they are created at once, and the same key means the same job: below
one parent for children, among all roots for others.

An independent job is a root: no job waits for it, fails with it or regrows with it, and cancelling or deleting the tree
that submitted it does not affect it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spinney.model.errors import DuplicateKey, Refused
from spinney.model.jobs import Submission
from spinney.model.states import SETTLED, UNSUCCESSFUL
from spinney.model.types import INTERNAL_KEYS
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.registry import job_rows
from spinney.store.sql.registry.job_rows import Row
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.submit import needs, new_jobs, staging
from spinney.store.sql.submit.new_jobs import Parent, Plan
from spinney.store.sql.transitions import placement
from spinney.store.sql.transitions.attempts import require_lease


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawner:
    """The attempt that creates jobs, and what they inherit from its job."""

    job_id: int
    fence: int
    parent: Parent | None = None
    """Its job, for children; None: the jobs are independent."""
    collection: str | None = None
    submitter: str | None = None
    """What independent jobs inherit; children have it from ``parent``."""
    beside: int | None = None
    """The share of the independent jobs that earlier parts of the same call created."""


def of_children(tx: Tx, registry: Registry, job_id: int, fence: int) -> Spawner:
    """Return the spawner of children. Raises StaleFence; Refused when cancellation of its job was requested."""
    require_lease(tx, job_id, fence)
    row = job_rows.find(tx, job_id)
    cancel_reason = placement.cancel_reason(tx, row)
    if cancel_reason is not None:
        raise Refused(f"job {job_id} is to be {cancel_reason}; it may spawn nothing more, so stop")
    collection, submitter = _origin(tx, job_id)
    root = registry.types.get(tx.value("select type from jobs where id = ?", (row.root_id,)))
    parent = Parent(
        row=row, collection=collection, submitter=submitter, serial=root is not None and root.serial
    )
    return Spawner(job_id=job_id, fence=fence, parent=parent)


def of_own_jobs(tx: Tx, job_id: int, fence: int, beside: int | None) -> Spawner:
    """Return the spawner of independent jobs. A cancel request for its job does not affect them: they are created if
    the stage passes in spite of it. ``beside``: a job that an earlier part of the same call created. Raises
    StaleFence."""
    require_lease(tx, job_id, fence)
    collection, submitter = _origin(tx, job_id)
    share = None if beside is None else tx.value("select share from jobs where id = ?", (beside,))
    return Spawner(job_id=job_id, fence=fence, collection=collection, submitter=submitter, beside=share)


def _origin(tx: Tx, job_id: int) -> tuple[str | None, str | None]:
    collection, submitter = tx.one("select collection, submitter from jobs where id = ?", (job_id,))
    return collection, submitter


def plans(tx: Tx, registry: Registry, submissions: Sequence[Submission], spawner: Spawner) -> list[Plan]:
    """Resolve and check the submissions. Raises what ``Store.submit`` raises. Raises Refused, too, when one call has
    jobs with keys and without, or a job with a key needs one that is made only later."""
    if len({bool(s.keys) for s in submissions}) > 1:
        raise Refused("a stage makes jobs with keys and jobs without in separate calls; split this one")
    resolved = [_plan(registry, s, spawner) for s in submissions]
    needs.check(tx, resolved, spawner.parent, spawner.fence)
    for need in {need for plan in resolved if plan.submission.keys for need in plan.submission.needs}:
        if need > 0 and job_rows.is_hidden(tx, need):
            raise Refused(
                f"a job with a key is made at once, and job {need}, which it needs, only when the stage has passed; "
                f"make that with a key, too, or this one without"
            )
    return resolved


def _plan(registry: Registry, submission: Submission, spawner: Spawner) -> Plan:
    if spawner.parent is not None:
        return new_jobs.plan(registry, submission, spawner.parent)
    signed = replace(
        submission,
        collection=submission.collection or spawner.collection,
        submitter=submission.submitter or spawner.submitter,
    )
    return replace(new_jobs.plan(registry, signed), beside=spawner.beside)


# --- created when the stage passes ----------------------------------------------------------------------


def stage(tx: Tx, plans: Sequence[Plan], spawner: Spawner, now_us: int) -> tuple[int, int]:
    """Reserve ids for jobs that are created when the stage passes, and hide them; return (first, count). The
    caller writes their rows. When they are more than one transaction writes, they belong to the attempt only
    from the last step on (``staging.write_steps``), so that a part of them is never published."""
    total = new_jobs.size(plans)
    first_id = tx.take("job", total)
    kind = staging.OWN if spawner.parent is None else staging.CHILDREN
    fence = spawner.fence if total <= new_jobs.STEP else None
    staging.enter(tx, first_id, first_id + total - 1, spawner.job_id, fence, now_us, kind)
    return first_id, total


# --- created at once -----------------------------------------------------------------------------


def keyed(plans: Sequence[Plan]) -> list[tuple[Plan, int]]:
    """Return each job of a call with keys, as its plan and its index within that; none for a call without keys."""
    return [(plan, n) for plan in plans if plan.submission.keys for n in range(len(plan.submission.params))]


def spawn_keyed(
    tx: Tx,
    registry: Registry,
    jobs: Sequence[tuple[Plan, int]],
    spawner: Spawner,
    ids: list[int],
    now_us: int,
) -> None:
    """Create jobs with keys at once; for a key that is taken, use the job that has it. So a call that was
    interrupted, or an attempt that runs again, can repeat it.

    ``ids``: the earlier jobs of the same call, to which these are added. Raises DuplicateKey, and Refused for
    a need that points to a later job of the call or to one that is gone.
    """
    for plan, n in jobs:
        existing = _existing(tx, plan, n, spawner)
        if existing is None and spawner.parent is None:  # the key of a child does not outlive it
            for need in plan.submission.needs:
                _require_there(tx, need, ids)
        ids.append(_spawn(tx, registry, plan, n, spawner, ids, now_us) if existing is None else existing)
        if existing is not None and spawner.parent is not None:
            _count_again(tx, spawner.parent.row, existing)


def _existing(tx: Tx, plan: Plan, n: int, spawner: Spawner) -> int | None:
    """Return the job that has the key, also one that retention has removed since, whose key is taken for ever. Raises
    DuplicateKey when a job of another type has it, which would leave the job of this type undone, or a root that is not
    accepted yet."""
    key, scope = (plan.submission.keys or ())[n], _scope(spawner, plan)
    holder = job_rows.key_holder(tx, scope, key)
    if holder is None and spawner.parent is None:
        # An earlier attempt may have made the job before its type became internal, or ceased to be.
        former = job_rows.key_holder(tx, 0 if scope == INTERNAL_KEYS else INTERNAL_KEYS, key)
        holder = former if former is not None and former[2] == plan.spec.name else None
    if holder is None:
        return None
    job_id, forever, type_ = holder
    if type_ is None:
        return job_id if forever and spawner.parent is None else None
    if type_ != plan.spec.name or (spawner.parent is None and job_rows.is_hidden(tx, job_id)):
        raise DuplicateKey(key, job_id, forever=forever)
    return job_id


def _scope(spawner: Spawner, plan: Plan) -> int:
    return plan.spec.key_scope if spawner.parent is None else spawner.parent.row.id


def _spawn(
    tx: Tx, registry: Registry, plan: Plan, n: int, spawner: Spawner, ids: list[int], now_us: int
) -> int:
    """Create the ``n``-th job of a plan, visible and placed, and return its id."""
    job_id = tx.take("job")
    params = [plan.submission.params[n]]
    key = [plan.submission.keys[n]] if plan.submission.keys else None
    share = new_jobs.share_of(tx, registry, plan, ids[0] if ids else job_id)
    span = range(job_id, job_id + 1)
    new_jobs.write_rows(tx, plan, share, span, params, key, now_us)
    new_jobs.write_extras(tx, plan, span, key, _scope(spawner, plan), lambda k: _earlier(ids, k))
    new_jobs.put_in_place(tx, registry, job_id, job_id, now_us)
    return job_id


def _earlier(ids: list[int], k: int) -> int:
    if k > len(ids):
        raise Refused(
            "among jobs with keys a need must point to an earlier one of the same call; reorder them"
        )
    return ids[k - 1]


def _require_there(tx: Tx, need: int, ids: list[int]) -> None:
    """Raise Refused for a need that points to an earlier job of the call whose key a removed job has for ever."""
    if (
        need < 0
        and (job_id := _earlier(ids, -need))
        and not tx.exists("select 1 from jobs where id = ?", (job_id,))
    ):
        raise Refused(
            f"retention has removed job {job_id}, which has its key for ever, so that no job can need it; "
            f"submit this job without that need, or choose another key"
        )


def _count_again(tx: Tx, parent: Row, child_id: int) -> None:
    """Count a superseded child again that is spawned again by its key, in its current state."""
    tx.run("update jobs set superseded = null where id = ? and superseded = 1", (child_id,))
    if not tx.changed():
        return
    state = job_rows.find(tx, child_id).state
    if state in UNSUCCESSFUL or state not in SETTLED:
        tx.run(
            "insert into children_left (parent_id, bad, child_id) values (?, ?, ?) on conflict do nothing",
            (parent.id, state in UNSUCCESSFUL, child_id),
        )
