"""Trees: lineages, and the lists of children by which parents know when they may go on."""

from spinney.features.doctor.sql.rule import (
    JOBS,
    Facts,
    Paged,
    RepairContext,
    Rule,
    Walk,
    in_place,
    only_accepted,
)
from spinney.model.lineage import lineage
from spinney.model.states import SETTLED, State
from spinney.store.sql.connection import rows
from spinney.store.sql.connection.rows import Row
from spinney.store.sql.transitions import placement
from spinney.store.sql.transitions.cascades import BAD

_SETTLED = ", ".join(f"'{state}'" for state in sorted(SETTLED))
_BAD = ", ".join(f"'{state}'" for state in sorted(BAD))
_PARENT_THERE = "exists (select 1 from jobs p where p.id = page.parent_id)"


def _not_listed(bad: str) -> str:
    return (
        "not exists (select 1 from children_left c where c.parent_id = page.parent_id "
        f"and c.bad = {bad} and c.child_id = page.id)"
    )


# --- lineages ---------------------------------------------------------------------------------


def _make_top(mend: RepairContext, facts: Facts) -> None:
    """A tree of its own. What stands below it follows, for a parent's number is always the smaller one."""
    mend.tx.run(
        "update jobs set parent_id = null, spawn_stage = null, superseded = null where id = ?", (facts["id"],)
    )
    mend.tx.run("update leases set parent_id = null where job_id = ?", (facts["id"],))
    _move(mend, rows.find(mend.tx, facts["id"]), None)


def _follow_parent(mend: RepairContext, facts: Facts) -> None:
    row = rows.find(mend.tx, facts["id"])
    _move(mend, row, None if row.parent_id is None else rows.find(mend.tx, row.parent_id))


def _move(mend: RepairContext, row: Row, parent: Row | None) -> None:
    """To its place below that parent, or at the top, and to the place in the order of work that goes with it."""
    tx = mend.tx
    stood = row.state is State.PENDING and row.stage is not None and rows.leased_fence(tx, row.id) is None
    if stood:
        placement.leave_ready(tx, mend.registry, row)
    tx.run("delete from serial_order where root_id = ? and lineage = ?", (row.root_id, row.lineage))
    in_line = tx.changed() > 0
    path = lineage(row.id, None if parent is None else parent.lineage)
    root_id = row.id if parent is None else parent.root_id
    tx.run("update jobs set root_id = ?, lineage = ? where id = ?", (root_id, path, row.id))
    tx.run("update cancel_requests set lineage = ? where job_id = ?", (path, row.id))
    if in_line:
        mend.cascade.line_moved(row.root_id)
    if stood or (in_line and row.state is State.WAITING):
        mend.cascade.place(rows.find(tx, row.id))


# --- children ---------------------------------------------------------------------------------


_LIST = "insert into children_left (parent_id, bad, child_id) values (?, ?, ?)"


def _list_open(mend: RepairContext, facts: Facts) -> None:
    mend.tx.run(_LIST, (facts["parent_id"], False, facts["id"]))


def _list_bad(mend: RepairContext, facts: Facts) -> None:
    mend.tx.run(_LIST, (facts["parent_id"], True, facts["id"]))
    mend.cascade.parent_changed(facts["parent_id"])


def _strike(mend: RepairContext, facts: Facts) -> None:
    tx = mend.tx
    tx.run(
        "delete from children_left where parent_id = ? and bad = ? and child_id = ?",
        (facts["parent_id"], facts["bad"], facts["child_id"]),
    )
    if tx.value("select 1 from jobs where id = ?", (facts["parent_id"],)):
        mend.cascade.parent_changed(facts["parent_id"])


def _listed_wrongly(facts: Facts) -> str:
    child, parent = facts["child_id"], facts["parent_id"]
    what = "settled badly" if facts["bad"] else "open"
    if facts["state"] is None:
        why = "there is no such job"
    elif facts["of"] != parent:
        why = f"it is a child of {'nobody' if facts['of'] is None else 'job ' + str(facts['of'])}"
    elif facts["superseded"] and facts["bad"]:
        why = "it is superseded"
    else:
        why = f"it is {facts['state']}"
    return f"job {parent} lists job {child} among its children as {what}, but {why}; job {parent} may wait for ever"


RULES: tuple[Rule, ...] = (
    Paged(
        name="child-without-parent",
        about="The parent of a job is there.",
        walk=JOBS,
        where=f"page.parent_id is not null and not {_PARENT_THERE}",
        columns=("page.parent_id",),
        row_filter=only_accepted,
        subject="job {id}",
        sentence="job {id} is a child of job {parent_id}, but there is no such job; nobody goes on when "
        "it settles, and verbs for the tree cannot reach it",
        offer="makes it the top of a tree of its own",
        mend=_make_top,
    ),
    Paged(
        name="lineage-wrong",
        about="A job's lineage and root are those of its parent, with its own number.",
        walk=JOBS,
        join="left join jobs p on p.id = page.parent_id",
        where="(page.parent_id is null and (page.root_id <> page.id or page.lineage <> printf('%012d', page.id))) "
        "or (page.parent_id is not null and (page.root_id <> p.root_id "
        "or page.lineage <> p.lineage || '.' || printf('%012d', page.id)))",
        columns=("page.lineage", "page.root_id", "page.parent_id"),
        subject="job {id}",
        sentence=lambda facts: (
            f"job {facts['id']} has the lineage {facts['lineage']} and the root {facts['root_id']}, which is not its "
            f"place {'at the top' if facts['parent_id'] is None else 'below job ' + str(facts['parent_id'])}; "
            f"verbs for its tree would miss it"
        ),
        offer="sets lineage and root by its parent",
        mend=_follow_parent,
    ),
    Paged(
        name="open-child-not-listed",
        about="A parent lists each of its children that is open.",
        walk=JOBS,
        where="page.parent_id is not null and page.superseded is null "
        f"and page.state not in ({_SETTLED}) and {_not_listed('0')} and {_PARENT_THERE}",
        columns=("page.parent_id", "page.state"),
        row_filter=in_place,
        subject="job {id}",
        sentence="job {id} is {state}, but its parent, job {parent_id}, does not know that it is open, and would go "
        "on without it",
        offer="lists it",
        mend=_list_open,
    ),
    Paged(
        name="bad-child-not-listed",
        about="A parent lists each of its children that settled otherwise than completed.",
        walk=JOBS,
        where=f"page.parent_id is not null and page.superseded is null and page.state in ({_BAD}) "
        f"and {_not_listed('1')} and {_PARENT_THERE}",
        columns=("page.parent_id", "page.state"),
        row_filter=in_place,
        subject="job {id}",
        sentence="job {id} is {state}, but its parent, job {parent_id}, does not know it, and would complete as if "
        "nothing had happened",
        offer="lists it",
        mend=_list_bad,
    ),
    Paged(
        name="child-listed-wrongly",
        about="Whoever is listed as an open or bad child is one.",
        walk=Walk("children_left", ("parent_id", "bad", "child_id")),
        join="left join jobs c on c.id = page.child_id",
        where="c.id is null or c.parent_id is null or c.parent_id <> page.parent_id "
        f"or (page.bad = 0 and c.state in ({_SETTLED})) "
        f"or (page.bad = 1 and (c.state not in ({_BAD}) or c.superseded is not null))",
        columns=("c.state", "c.parent_id as of", "c.superseded"),
        subject="job {parent_id}",
        sentence=_listed_wrongly,
        offer="strikes it from the list, and lets the parent go on if nothing else keeps it",
        mend=_strike,
    ),
)
