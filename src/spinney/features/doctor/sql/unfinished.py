"""Rules about work in steps that was cut off between two of them, and that no node continues: large submissions,
sweeps of holds, cancellations of trees."""

from typing import Any
from weakref import WeakKeyDictionary

from spinney.features.doctor.sql.rule import (
    GRACE_US,
    IN_JOBS,
    SETTLED_STATES,
    CheckContext,
    Facts,
    Join,
    Paged,
    Repair,
    RepairContext,
    Rule,
    Walk,
    Whole,
    deletion,
)
from spinney.features.holds import sql as holds
from spinney.features.holds import sweep as hold_sweep
from spinney.model.lineage import subtree
from spinney.store.sql.registry import job_rows
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.submit import new_jobs, staging

ALONE_US = 1_000_000
"""Where no node is at work, work whose last step is longer ago is abandoned: a command that sweeps takes a step several
times a second."""
LONG_US = 5 * GRACE_US
"""Five minutes, in microseconds. The writer of a large submission shows at least this often that it lives."""
_WORKING = (
    "select 1 from nodes where state = 'active' and seen_us >= ? "
    "and id not in (select node_id from external_workers)"
)
"""Selects nodes at work (external workers do not continue anything) that have sent a heartbeat since the
bind."""
_sweeps: WeakKeyDictionary[Registry, hold_sweep.HoldSweep] = WeakKeyDictionary()
"""For each store, the sweep that a repair has begun: a sweep keeps its place in memory, from one step to the
next."""


def _patience_us(check: CheckContext) -> int:
    """Return how long after its last step work counts as abandoned, in microseconds. A node continues it
    after some seconds, so with a node at work that is a minute; without one nobody will, and a second is
    enough."""
    working = check.tx.exists(f"{_WORKING} limit 1", (check.now_us - GRACE_US,))
    return GRACE_US if working else ALONE_US


# --- large submissions --------------------------------------------------------------------------


def _continue_submission(repair: RepairContext, facts: Facts) -> None:
    """Continue an interrupted submission by one step, as maintenance would."""
    first_id, last_id = facts["first_id"], facts["last_id"]
    if facts["published"] == 1:
        parent_id = staging.step(repair.tx, repair.registry, repair.now_us, new_jobs.STEP)
        if parent_id is not None and parent_id > 0:
            repair.cascade.parent_changed(parent_id)
        return
    repair.tx.run("update staging set published = -1, fence = null where first_id = ?", (first_id,))
    staging.drop(repair.tx, first_id, last_id)


# --- holds --------------------------------------------------------------------------------------


def _unswept(check: CheckContext) -> list[Facts]:
    """Find holds whose sweep nobody continues. The time of its last step is compared as a distance, since the
    clock of another host may run ahead."""
    active = check.registry.holds
    stepped_us = check.tx.value("select value from counters where name = 'hold_sweep'") or 0
    if not active.due or abs(check.now_us - stepped_us) < _patience_us(check):
        return []
    consequences = [f"jobs under hold {wide.hold.id} are not shown as held" for wide in active.unswept]
    if active.lift > active.lift_swept:
        consequences.insert(0, "jobs stay held by a hold that was released")
    return [{"consequences": "; ".join(consequences)}]


def _sweep(repair: RepairContext, _: Facts) -> None:
    """Continue the interrupted sweep of holds by one step. Where it fails, the next repair begins anew."""
    sweep = _sweeps.pop(repair.registry, None) or hold_sweep.HoldSweep(repair.registry)
    plan = sweep.plan(repair.tx, repair.now_us, holds.STEP)
    if plan is not None:
        sweep.do(repair.tx, plan, repair.now_us)
        sweep.done(plan)
        _sweeps[repair.registry] = sweep


# --- cancellations ------------------------------------------------------------------------------


def _abandoned(check: CheckContext, facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the requests that are older than the patience with abandoned work."""
    patience_us = _patience_us(check)
    return [row for row in facts if check.now_us - row["at_us"] >= patience_us]


def _at_rest(check: CheckContext, facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return requests that should be gone. One for a tree stays until nothing in the tree is open, and then until
    maintenance has passed."""
    lately_us = check.now_us - GRACE_US
    resting = []
    for row in facts:
        if row["tree"]:
            start, until = subtree(row["lineage"])
            moved = check.tx.value(
                "select 1 from jobs where parent_id is not null and root_id = ? and lineage > ? and lineage < ? "
                f"and (state not in ({SETTLED_STATES}) or settled_us > ?) limit 1",
                (row["root_id"], start, until, lately_us),
            )
            if moved or max(row["at_us"], row["settled_us"] or 0) > lately_us:
                continue
        resting.append(row)
    return resting


_REQUESTS = Walk("cancel_requests", ("job_id",))

RULES: tuple[Rule, ...] = (
    Paged(
        name="call-abandoned",
        about="A submission in steps has a living writer; accepted jobs are put in place.",
        walk=Walk("staging", ("first_id",), subject="jobs {first_id} to {last_id}"),
        # Still being written: from outside, by a writer that gives no sign of life; by an attempt, which must
        # have its lease. All else is maintenance's to finish, so it counts only while no node is at work.
        where="(page.published in (0, 2) and page.fence is null and page.beat_us < ?) "
        "or (page.published in (0, 2) and page.fence is not null and not exists "
        "(select 1 from leases l where l.job_id = page.parent_id and l.fence = page.fence)) "
        f"or (page.published not in (0, 2) and page.beat_us < ? and not exists ({_WORKING}))",
        binds=lambda check: (check.now_us - LONG_US, check.now_us - LONG_US, check.now_us - GRACE_US),
        columns=(
            "page.last_id",
            "page.published",
            "case when page.published = 1 then 'are accepted, but nothing puts them in place; is no node at work?' "
            f"when page.published in ({staging.CHILDREN}, {staging.OWN}) and page.fence is not null "
            "then 'were submitted by attempt ' || page.fence || ' of job ' || page.parent_id || ', which has ended' "
            "else 'were written by a call that never finished, and are still there' end as why",
        ),
        sentence="the jobs {first_id} to {last_id} {why}",
        repair=Repair(
            "goes on as maintenance would: puts accepted jobs in place, removes what never was accepted",
            _continue_submission,
            stepwise=True,
        ),
    ),
    Whole(
        name="sweep-unfinished",
        about="Jobs are held or free as the holds require, or a sweep is still at work.",
        subject="holds",
        find=_unswept,
        sentence="a sweep of holds was cut off, and nothing continues it: {consequences}; start a node, or "
        "give the command again",
        repair=Repair("continues the sweep until every job matches the holds", _sweep, stepwise=True),
    ),
    Paged(
        name="cancel-unfinished",
        about="A tree that is to be cancelled has no job left that could be cancelled at once, or a sweep is at work.",
        walk=_REQUESTS,
        join=Join("cross join jobs as top", "top.id = page.job_id"),
        # The lineages below a job lie between its own with "." and with "/" appended. Leased jobs are left
        # out: their node cancels the attempt.
        where="page.tree = 1 and exists (select 1 from jobs where (jobs.id = top.id or (jobs.parent_id is not null "
        "and jobs.root_id = top.root_id and jobs.lineage > top.lineage || '.' and jobs.lineage < top.lineage || '/')) "
        f"and jobs.state in ('pending', 'scheduled', 'held') and {job_rows.VISIBLE} "
        "and not exists (select 1 from leases l where l.job_id = jobs.id))",
        columns=("page.at_us",),
        row_filter=_abandoned,
        sentence="job {job_id} is to be cancelled with all below it, but part of that is still open, and nothing "
        "continues; start a node, or give the command again: spinney cancel --tree {job_id}",
    ),
    Paged(
        name="cancel-request-of-settled-job",
        about="A job that is to be cancelled is open, or has open jobs below it.",
        walk=_REQUESTS,
        join=IN_JOBS,
        where=f"jobs.state in ({SETTLED_STATES})",
        columns=("jobs.state", "jobs.root_id", "jobs.settled_us", "page.lineage", "page.tree", "page.at_us"),
        row_filter=_at_rest,
        sentence="job {job_id} is to be cancelled, but is {state} and at rest; it cannot be opened again before the "
        "request is removed",
        repair=deletion(_REQUESTS, "removes the request"),
    ),
)
