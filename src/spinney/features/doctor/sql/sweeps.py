"""What is done in steps, and was cut off between two of them where nobody goes on with it."""

from typing import Any
from weakref import WeakKeyDictionary

from spinney.features.doctor.sql.rule import (
    GRACE_US,
    CheckContext,
    Facts,
    Paged,
    RepairContext,
    Rule,
    Walk,
    Whole,
)
from spinney.features.holds import sql as holds
from spinney.features.holds import sweep as hold_sweep
from spinney.store.sql.registry.registry import Registry

ALONE_US = 1_000_000
"""Where no node is at work, nobody goes on with a sweep whose last step is longer ago: whoever sweeps takes a step
several times a second."""
_WORKING = (
    "select 1 from nodes where state = 'active' and seen_us >= ? and id not in (select node_id "
    "from external_workers) limit 1"
)
_sweeps: WeakKeyDictionary[Registry, hold_sweep.HoldSweep] = WeakKeyDictionary()
"""How far the repair of a store has come: a sweep keeps its place in memory."""


def _patience_us(look: CheckContext) -> int:
    """How long after its last step a piece of work counts as abandoned: a node goes on with it after some seconds."""
    working = look.tx.value(_WORKING, (look.now_us - GRACE_US,)) is not None
    return GRACE_US if working else ALONE_US


# --- holds ------------------------------------------------------------------------------------


def _unswept(look: CheckContext) -> list[Facts]:
    active = look.registry.holds
    stepped_us = look.tx.value("select value from counters where name = 'hold_sweep'") or 0
    if not active.due or abs(look.now_us - stepped_us) < _patience_us(look):
        return []
    return [{"laid": [wide.hold.id for wide in active.unswept], "released": active.lift > active.lift_swept}]


def _unswept_told(facts: Facts) -> str:
    released = ["jobs stay held by a hold that was released"] if facts["released"] else []
    laid = [f"jobs under hold {hold_id} are not shown as held" for hold_id in facts["laid"]]
    return (
        f"a sweep of holds was cut off, and nobody goes on with it: {'; '.join(released + laid)}; start a node, or "
        f"give the command again"
    )


def _sweep(mend: RepairContext, _: Facts) -> None:
    """One step. Where it fails, the next repair begins anew."""
    sweep = _sweeps.pop(mend.registry, None) or hold_sweep.HoldSweep(mend.registry)
    plan = sweep.plan(mend.tx, mend.now_us, holds.STEP)
    if plan is not None:
        sweep.do(mend.tx, plan, mend.now_us)
        sweep.done(plan)
        _sweeps[mend.registry] = sweep


# --- trees that are to be cancelled -----------------------------------------------------------


def _abandoned(look: CheckContext, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    patience_us = _patience_us(look)
    return [facts for facts in found if look.now_us - facts["at_us"] >= patience_us]


RULES: tuple[Rule, ...] = (
    Whole(
        name="sweep-unfinished",
        about="Jobs stand as the holds say, or somebody sees to it.",
        find=_unswept,
        subject="holds",
        sentence=_unswept_told,
        offer="goes on with the sweep until every job stands as the holds say",
        mend=_sweep,
        stepwise=True,
    ),
    Paged(
        name="cancel-unfinished",
        about="A tree that is to be cancelled has nothing left that stands still, or somebody sees to it.",
        walk=Walk("cancel_requests", ("job_id",)),
        join="cross join jobs as top",
        on="top.id = page.job_id",
        where="page.tree = 1 and exists (select 1 from jobs j where (j.id = top.id or (j.parent_id is not null "
        "and j.root_id = top.root_id and j.lineage > top.lineage || '.' and j.lineage < top.lineage || '/')) "
        "and j.state in ('pending', 'scheduled', 'held') "
        "and not exists (select 1 from leases l where l.job_id = j.id))",
        columns=("page.at_us",),
        row_filter=_abandoned,
        sentence="job {job_id} is to be cancelled with all below it, but not all of that is, and nobody goes on with "
        "it; start a node, or give the command again: spinney cancel --tree {job_id}",
    ),
)
