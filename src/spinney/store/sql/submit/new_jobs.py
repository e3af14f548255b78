"""Creation of jobs: all jobs of one call become visible together, or none.

A short call is one transaction. A long one writes its rows in steps under a ``staging`` row, which
hides them; publishing is one small transaction, after which the jobs are accepted; their ``ready``
rows follow in steps. A ``plain`` job (no key, need, time; no serial tree) is written by set
statements; the others are placed one by one (``cascades.Cascade.place``).

The steps of a call are: ``plan`` resolves each submission and checks it without its rows, ``needs.check`` looks at
needs over the whole call, ids are taken in one block, ``write_run`` writes the rows, and ``put_in_place`` makes the
jobs claimable or waiting. The ids of a call are consecutive, in its order: a need ``-k`` is the k-th of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from spinney.model import lineage as lineages
from spinney.model.errors import Refused, UsageError
from spinney.model.jobs import Submission
from spinney.model.states import State
from spinney.model.submission import check_option
from spinney.model.types import DEFAULT_PRIORITY, TypeSpec
from spinney.model.values import lock_names
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.registry import hold_coverage, job_rows
from spinney.store.sql.registry.job_rows import Row
from spinney.store.sql.registry.ready_order import POSITIONS, position, ready_share, share_sql
from spinney.store.sql.registry.registry import Registry, effective_queue
from spinney.store.sql.submit import job_inserts
from spinney.store.sql.transitions import ready_moves
from spinney.store.sql.transitions.cascades import Cascade
from spinney.tracing import traceparents

STEP = 2_000
"""How many plain rows one transaction writes: about 15 ms on a machine with a fast disk."""
SPECIAL_STEP = 300
"""How many rows are placed one by one in one transaction: about as long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    """What children inherit from their parent."""

    row: Row
    collection: str | None
    submitter: str | None
    serial: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A resolved submission: everything that its rows have in common."""

    submission: Submission
    spec: TypeSpec
    stage: str
    """The first stage of the type."""
    queue: str
    """The queue of that stage, by all rules (``effective_queue``)."""
    priority: int
    """The submission's, else the parent's, else the type's, else the default."""
    collection: str | None
    submitter: str | None
    plain: bool
    """Whether its jobs are claimable as soon as they are visible, unless a hold covers them."""
    parent: Parent | None
    """The parent of the new jobs; None: they are roots."""
    beside: int | None = None
    """The share of earlier jobs of the same call, when it comes in several parts."""


def plan(registry: Registry, submission: Submission, parent: Parent | None = None) -> Plan:
    """Resolve and check one submission. ``parent``: the parent of the new jobs, from which they inherit what the
    submission leaves out.

    Names, priority, number of keys and the fields of locks are checked here; parameters were checked against
    the schema before. Raises UnknownType, UsageError, BadName, and BadParameters when a lock of a stage
    cannot be named."""
    spec = registry.type(submission.type)
    stage = spec.stages[0].name
    _check(spec, submission)
    up = parent.row if parent else None
    priority = submission.priority
    if priority is None:
        priority = up.priority if up else (DEFAULT_PRIORITY if spec.priority is None else spec.priority)
    return Plan(
        submission=submission,
        spec=spec,
        stage=stage,
        queue=effective_queue(
            spec, stage, up.queue_moved if up else None, submission.queue, up.queue if up else None
        ),
        priority=priority,
        collection=submission.collection or (parent.collection if parent else None),
        submitter=submission.submitter or (parent.submitter if parent else None),
        plain=not (submission.keys or submission.needs or submission.at_us or (parent and parent.serial)),
        parent=parent,
    )


def _check(spec: TypeSpec, submission: Submission) -> None:
    for option in ("priority", "queue", "collection", "share", "submitter"):
        value = getattr(submission, option)
        if value is not None:
            check_option(option, value)
    if submission.trace is not None and traceparents.valid(submission.trace) != submission.trace:
        raise UsageError(
            f"trace {submission.trace!r:.80} is no traceparent of W3C Trace Context; leave it out, or send one of "
            "version 00"
        )
    for key in submission.keys or ():
        check_option("key", key)
    if submission.keys is not None and len(submission.keys) != len(submission.params):
        raise UsageError("a submission with keys needs one key for every job")
    templates = [lock.template for stage in spec.stages for lock in stage.locks]
    if templates:
        for params in submission.params:
            values = orjson.loads(params)
            for template in templates:
                lock_names.render(template, values)


def share_of(tx: Tx, registry: Registry, p: Plan, first_id: int) -> int:
    """Return the share: the named one, else the parent's named one or the root, else one for this call, which
    has the id of its first job. A named share has a negative number, so that it never equals a job's id."""
    if p.submission.share is not None:
        return registry.share(tx, p.submission.share)
    if p.parent is None:
        return first_id if p.beside is None else p.beside
    return p.parent.row.share if p.parent.row.share < 0 else p.parent.row.root_id


def write_rows(
    tx: Tx, p: Plan, share: int, ids: range, params: Sequence[str], keys: Sequence[str] | None, now_us: int
) -> None:
    """Write the ``jobs`` rows of a run of ids. Plain ones are pending, the others are waiting until they are placed.
    Raises Refused for a tree that would be too deep."""
    path = None
    if p.parent is not None:
        path = p.parent.row.lineage
        if lineages.depth(path) + 1 > lineages.MAX_DEPTH:
            raise Refused(
                f"a tree may be {lineages.MAX_DEPTH} deep; does job {p.parent.row.id} spawn itself?"
            )
    common = _common(p, share, now_us)
    if keys is None:
        job_inserts.write(tx, common, ids[0], path, params)
        return
    root_id = common.pop("root_id", None)
    tx.insert(
        "jobs",
        ", ".join(["id", "root_id", "lineage", "params", "key", *common]),
        [
            (job_id, root_id or job_id, lineages.lineage(job_id, path), text, key, *common.values())
            for job_id, text, key in zip(ids, params, keys, strict=True)
        ],
    )


def _common(p: Plan, share: int | None, now_us: int) -> dict[str, Any]:
    """Return the columns that the rows of a plan have in common."""
    submission, parent = p.submission, p.parent
    columns = {
        "type": p.spec.name,
        "state": (State.PENDING if p.plain else State.WAITING).value,
        "stage": p.stage,
        "queue": p.queue,
        "priority": p.priority,
        "share": share,
        "created_us": now_us,
        "collection": p.collection,
        "submitter": p.submitter,
        "queue_named": submission.queue,
        "at_us": submission.at_us,
        "special": 1 if submission.keys or (parent and parent.serial) else None,
        "trace": submission.trace,
    }
    if parent is not None:
        columns |= {
            "root_id": parent.row.root_id,
            "parent_id": parent.row.id,
            "queue_moved": parent.row.queue_moved,
            "queue_parent": parent.row.queue,
            "spawn_stage": parent.row.stage,
        }
    return columns


def write_extras(
    tx: Tx, p: Plan, ids: range, keys: Sequence[str] | None, scope: int, id_of: Callable[[int], int]
) -> None:
    """Write keys, needs and initial data of a run of ids. ``scope``: that of the type's keys, or the parent among whose
    children the keys are unique, and then taken for ever. ``id_of(k)``: the k-th job of this call. Raises
    DuplicateKey."""
    for n, job_id in enumerate(ids):
        if keys:
            forever = p.submission.forever or scope > 0
            job_rows.take_key(tx, scope, keys[n], job_id, forever=forever)
        for need in p.submission.needs:
            need_id = need if need > 0 else id_of(-need)
            tx.run(
                "insert into needs (job_id, need_id) values (?, ?) on conflict do nothing", (job_id, need_id)
            )
        for name, value in p.submission.data.items():
            tx.run("insert into data (job_id, name, value) values (?, ?, ?)", (job_id, name, value))


def put_in_place(tx: Tx, registry: Registry, first: int, last: int, now_us: int) -> None:
    """Make the jobs of this run of written ids claimable, or write their inactive rows, with all effects on
    others.

    Jobs of a published call that were cancelled, retried or even run meanwhile are not changed. Parents count
    their new children first; then jobs that a wide hold covers become held; then plain ones go into
    ``ready``, by one statement for each lane; and last the others are placed one by one.
    """
    tx.run(
        "insert into children_left (parent_id, bad, child_id) select parent_id, 0, id from jobs "
        "where id between ? and ? and parent_id is not null "
        "and state in ('pending', 'scheduled', 'waiting', 'held') on conflict do nothing",
        (first, last),
    )
    cascade = Cascade(tx, registry, now_us)
    _hold_covered(cascade, first, last)
    for group in _pending_groups(tx, registry, first, last):
        _into_ready(tx, registry, *group)
    specials = tx.column(
        # A job that has an inactive row was placed before: it may wait for its subjobs, for example.
        "select id from jobs where id between ? and ? and state = 'waiting' "
        "and not exists (select 1 from inactive_jobs p where p.job_id = jobs.id) order by id",
        (first, last),
    )
    for job_id in specials:
        cascade.place(job_rows.find(tx, job_id))
        # When a parent waits for this job already, the call that places the last of the parent's children checks that
        # parent.
        cascade.closes_no_ring(job_id)
    cascade.drain()


def _pending_groups(
    tx: Tx, registry: Registry, first: int, last: int
) -> Sequence[tuple[int, int, str, str, str, int]]:
    """Return the queues, types, stages and homes of the pending jobs among these, each with ids between which its jobs
    are. When a call is placed in steps, some jobs may have run by now, and have a folder."""
    pending = f"{registry.homes.sql} as home from jobs where id between ? and ? and state = 'pending'"
    places = tx.all(f"select distinct queue, type, stage, {pending}", (first, last))
    if len(places) <= 1:  # the usual case, for which no row is sorted
        return [(first, last, *place) for place in places]
    # The first and last id of each keep jobs of other queues from being read once for each of very many queues.
    return tx.all(
        f"select min(id), max(id), queue, type, stage, home from (select id, queue, type, stage, {pending}) p "
        "group by queue, type, stage, home",
        (first, last),
    )


def _into_ready(
    tx: Tx, registry: Registry, first: int, last: int, queue_name: str, type_: str, stage: str, home: int
) -> None:
    """Put the pending jobs of this run of ids that belong to one lane into ``ready``, except those that are
    leased or in ``ready`` already."""
    queue = registry.queue(queue_name)
    lane = registry.lane_to_fill(tx, queue_name, type_, stage, home)
    # Read by ids only: the index on types and queues, which a planner without statistics might choose without the "||",
    # has all jobs that ever existed.
    tx.run(
        f"insert into ready (lane, priority, share, position, job_id) select ?, priority, {share_sql(queue)}, "
        f"{POSITIONS[queue.order]}, id from jobs where id between ? and ? and state = 'pending' "
        f"and queue || '' = ? and type || '' = ? and stage = ? and {registry.homes.sql} = ? "
        "and not exists (select 1 from leases l where l.job_id = jobs.id) on conflict do nothing",
        (lane, first, last, queue_name, type_, stage, home),
    )
    registry.watermarks.entered_among(tx, lane, queue, "jobs where id between ? and ?", (first, last))


def _hold_covered(cascade: Cascade, first: int, last: int) -> None:
    """Hold new jobs that a wide hold covers. (A hold on a single job can only be created after the job.)"""
    tx, registry = cascade.tx, cascade.registry
    wide = registry.holds.wide
    if not wide:
        return
    pending = tx.column(
        "select id from jobs where id between ? and ? and state = 'pending' "
        "and not exists (select 1 from leases l where l.job_id = jobs.id)",
        (first, last),
    )
    covered = hold_coverage.among(tx, registry.holds, wide, pending)
    if covered:
        # A published job may have been opened again before it was placed, and may be in ``ready`` already.
        ready_moves.out_of_ready(tx, ready_moves.keys(registry, ready_moves.some(tx, registry, covered)))
        ready_moves.to_held(cascade, covered)


def held_of(tx: Tx, first: int, last: int) -> int:
    """Return how many jobs of a call are held by a hold."""
    return int(
        tx.value(
            "select count(*) from inactive_jobs where state = 'held' and job_id between ? and ? and waits_for = ?",
            (first, last, hold_coverage.HELD_BY_HOLD),
        )
    )


def inline(tx: Tx, registry: Registry, plans: Sequence[Plan], now_us: int) -> list[int]:
    """Create all jobs of a short call in the current transaction; return their ids, in the order of the call."""
    total = size(plans)
    if total == 0:
        return []
    if len(plans) == 1 and _is_plain_root(registry, plans[0]):
        first_id = _accept(tx, registry, plans[0], now_us)
        return list(range(first_id, first_id + total))
    first_id = tx.take("job", total)
    for run in runs(tx, registry, plans, first_id, total):
        write_run(tx, run, now_us, first_id)
    last_id = first_id + total - 1
    if registry.holds.wide or any(p.parent is not None or not p.plain for p in plans):
        put_in_place(tx, registry, first_id, last_id, now_us)
    else:
        # The usual call: new roots without holds, in known lanes and without a home.
        for place, (first, last) in _ends(plans, first_id).items():
            _into_ready(tx, registry, first, last, *place, 0)
    return list(range(first_id, first_id + total))


def _ends(plans: Sequence[Plan], first_id: int) -> dict[tuple[str, str, str], tuple[int, int]]:
    """Return the first and the last id of the jobs of each queue, type and stage."""
    ends: dict[tuple[str, str, str], tuple[int, int]] = {}
    for p in plans:
        next_id = first_id + len(p.submission.params)
        place = (p.queue, p.spec.name, p.stage)
        if next_id > first_id:
            ends[place] = (ends.get(place, (first_id,))[0], next_id - 1)
        first_id = next_id
    return ends


def _is_plain_root(registry: Registry, p: Plan) -> bool:
    """Return whether a submission is for plain roots without data, and there are no wide holds."""
    return p.parent is None and p.plain and not p.submission.data and not registry.holds.wide


def _accept(tx: Tx, registry: Registry, p: Plan, now_us: int) -> int:
    """Create plain roots, and make them claimable; return the first id. It is the usual submission, so with a
    server it is one statement."""
    queue, params = registry.queue(p.queue), p.submission.params
    lane = registry.lane_to_fill(tx, p.queue, p.spec.name, p.stage, 0)
    named = None if p.submission.share is None and p.beside is None else share_of(tx, registry, p, 0)
    first_id = job_inserts.accept(tx, queue, lane, _common(p, named, now_us), params)
    if tx.postgresql:  # a file has no marks
        share = ready_share(queue, first_id if named is None else named)
        ends = (position(queue, i, f"{i:012d}") for i in (first_id, first_id + len(params) - 1))
        registry.watermarks.entered(tx, lane, (p.priority, share, min(ends)))
    return first_id


def size(plans: Sequence[Plan]) -> int:
    """Return how many jobs these plans make."""
    return sum(len(p.submission.params) for p in plans)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run of ids of one submission, at most a step long."""

    plan: Plan
    share: int
    ids: range
    offset: int
    """The index of its first job among the submission's parameters."""


def runs(tx: Tx, registry: Registry, plans: Sequence[Plan], first_id: int, step: int) -> list[Run]:
    """Return the whole call, split into runs of at most ``step`` jobs of one submission each, in the order of
    ids. Named shares that are new are created by the way, so the caller's transaction has to write."""
    parts, start = [], first_id
    for p in plans:
        share = share_of(tx, registry, p, first_id)
        count = len(p.submission.params)
        for offset in range(0, count, step):
            ids = range(start + offset, start + min(offset + step, count))
            parts.append(Run(plan=p, share=share, ids=ids, offset=offset))
        start += count
    return parts


def write_run(tx: Tx, run: Run, now_us: int, first_id: int) -> None:
    """Write all rows of a run except those in ``ready``."""
    p, part = run.plan, slice(run.offset, run.offset + len(run.ids))
    keys = p.submission.keys[part] if p.submission.keys else None
    write_rows(tx, p, run.share, run.ids, p.submission.params[part], keys, now_us)
    if not p.plain or p.submission.data:
        write_extras(tx, p, run.ids, keys, p.spec.key_scope, lambda k: first_id + k - 1)
