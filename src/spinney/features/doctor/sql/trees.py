"""Rules about trees: lineages, and the lists of children by which a parent knows when it may go on.

``children_left`` has a row for each child that is open (``bad`` 0), or that settled otherwise than completed
(``bad`` 1). A parent goes on when no row with 0 is left, and looks at those with 1 to decide whether it
fails. So a missing row lets a parent go on too early, and one too many keeps it waiting.
"""

from spinney.features.doctor.sql.rule import (
    JOBS,
    OPEN_STATES,
    SETTLED_STATES,
    Facts,
    Join,
    Paged,
    Repair,
    RepairContext,
    Rule,
    Walk,
    in_place,
    only_accepted,
    states,
)
from spinney.model.lineage import lineage
from spinney.model.states import UNSUCCESSFUL, State
from spinney.store.sql.registry import job_rows
from spinney.store.sql.registry.job_rows import Row
from spinney.store.sql.registry.ready_order import padded

_BAD = states(UNSUCCESSFUL)
_HAS_PARENT = "exists (select 1 from jobs p where p.id = page.parent_id)"

# --- lineages ---------------------------------------------------------------------------------


def _make_top(repair: RepairContext, facts: Facts) -> None:
    """Make a job the top of a tree of its own. The jobs below it follow: a parent always has the smaller number."""
    repair.tx.run(
        "update jobs set parent_id = null, spawn_stage = null, superseded = null where id = ?", (facts["id"],)
    )
    repair.tx.run("update leases set parent_id = null where job_id = ?", (facts["id"],))
    _move(repair, job_rows.find(repair.tx, facts["id"]), None)


def _follow_parent(repair: RepairContext, facts: Facts) -> None:
    """Give a job the lineage that its parent's asks for. Jobs below it are found wrong then, and follow in
    the same way."""
    row = job_rows.find(repair.tx, facts["id"])
    _move(repair, row, None if row.parent_id is None else job_rows.find(repair.tx, row.parent_id))


def _move(repair: RepairContext, row: Row, parent: Row | None) -> None:
    """Move a job below that parent, or to the top (None), and to the place in the order of work that goes with it."""
    tx = repair.tx
    was_ready = (
        row.state is State.PENDING and row.stage is not None and job_rows.leased_fence(tx, row.id) is None
    )
    if was_ready:
        repair.cascade.leave_ready(row)
    tx.run("delete from serial_order where root_id = ? and lineage = ?", (row.root_id, row.lineage))
    was_in_line = tx.changed() > 0
    job_lineage = lineage(row.id, None if parent is None else parent.lineage)
    root_id = row.id if parent is None else parent.root_id
    tx.run("update jobs set root_id = ?, lineage = ? where id = ?", (root_id, job_lineage, row.id))
    tx.run("update cancel_requests set lineage = ? where job_id = ?", (job_lineage, row.id))
    if was_in_line:
        repair.cascade.line_moved(row.root_id)
    if was_ready or (was_in_line and row.state is State.WAITING):
        repair.cascade.place(job_rows.find(tx, row.id))


# --- children ---------------------------------------------------------------------------------


def _list_child(repair: RepairContext, facts: Facts) -> None:
    """Add a child to the list of its parent. An open child needs no more: when it settles, its parent is
    looked at."""
    bad = State(facts["state"]) in UNSUCCESSFUL
    repair.tx.run(
        "insert into children_left (parent_id, bad, child_id) values (?, ?, ?)",
        (facts["parent_id"], bad, facts["id"]),
    )
    if bad:
        repair.cascade.parent_changed(facts["parent_id"])


def _unlist_child(repair: RepairContext, facts: Facts) -> None:
    """Delete a row from the list of a parent, and look whether the parent may go on."""
    tx = repair.tx
    tx.run(
        "delete from children_left where parent_id = ? and bad = ? and child_id = ?",
        (facts["parent_id"], facts["bad"], facts["child_id"]),
    )
    if tx.exists("select 1 from jobs where id = ?", (facts["parent_id"],)):
        repair.cascade.parent_changed(facts["parent_id"])


RULES: tuple[Rule, ...] = (
    Paged(
        name="child-without-parent",
        about="The parent of a job exists.",
        walk=JOBS,
        where=f"page.parent_id is not null and not {_HAS_PARENT}",
        columns=("page.parent_id",),
        row_filter=only_accepted,
        sentence="job {id} is a child of job {parent_id}, but there is no such job; no job continues "
        "when it settles, and commands for the tree cannot reach it",
        repair=Repair("makes it the top of a tree of its own", _make_top),
    ),
    Paged(
        name="lineage-wrong",
        about="A job's lineage and root are those of its parent, with its own number.",
        walk=JOBS,
        join=Join("left join jobs p on p.id = page.parent_id"),
        where=f"(page.parent_id is null and (page.root_id <> page.id or page.lineage <> {padded('page.id')})) "
        "or (page.parent_id is not null and (page.root_id <> p.root_id "
        f"or page.lineage <> p.lineage || '.' || {padded('page.id')}))",
        columns=(
            "page.lineage",
            "page.root_id",
            "case when page.parent_id is null then 'at the top' else 'below job ' || page.parent_id end as place",
        ),
        sentence="job {id} has the lineage {lineage} and the root {root_id}, which is not its place {place}; commands "
        "for its tree would miss it",
        repair=Repair("sets lineage and root by its parent", _follow_parent),
    ),
    Paged(
        name="child-not-listed",
        about="A parent lists each of its children that is open, or settled otherwise than completed.",
        walk=JOBS,
        # Superseded children do not count for their parent, and completed ones need not be listed.
        where=f"page.parent_id is not null and page.superseded is null and page.state in ({OPEN_STATES}, {_BAD}) "
        "and not exists (select 1 from children_left c where c.parent_id = page.parent_id "
        f"and c.bad = case when page.state in ({_BAD}) then 1 else 0 end and c.child_id = page.id) "
        f"and {_HAS_PARENT}",
        columns=("page.parent_id", "page.state"),
        row_filter=in_place,
        sentence="job {id} is {state}, but is not listed with its parent, job {parent_id}, which would go on or "
        "complete regardless of it",
        repair=Repair("lists it", _list_child),
    ),
    Paged(
        name="child-listed-wrongly",
        about="A job that is listed as an open or bad child is one.",
        walk=Walk("children_left", ("parent_id", "bad", "child_id"), subject="job {parent_id}"),
        join=Join("left join jobs c on c.id = page.child_id"),
        where="c.id is null or c.parent_id is null or c.parent_id <> page.parent_id "
        f"or (page.bad = 0 and c.state in ({SETTLED_STATES})) "
        f"or (page.bad = 1 and (c.state not in ({_BAD}) or c.superseded is not null))",
        columns=(
            "case page.bad when 1 then 'settled badly' else 'open' end as listed_as",
            "case when c.id is null then 'there is no such job' when c.parent_id is null then 'it has no parent' "
            "when c.parent_id <> page.parent_id then 'it is a child of job ' || c.parent_id "
            "when page.bad = 1 and c.superseded is not null then 'it is superseded' "
            "else 'it is ' || c.state end as why",
        ),
        sentence="job {parent_id} lists job {child_id} among its children as {listed_as}, but {why}; job {parent_id} "
        "may wait for ever",
        repair=Repair(
            "strikes it from the list, and lets the parent go on if nothing else keeps it", _unlist_child
        ),
    ),
)
