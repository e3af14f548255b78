"""Removal of trees whose retention time is over: they are marked, checked, then removed from the leaves up.

**What is removed.** All rows of the tree's jobs, for good; an operator's ``delete`` leaves a tombstone. Their
folders follow: ``deleted_folders`` lists them until a node has removed them. Other jobs may have needed a
removed job: a need that completed counts as met, and its rows in ``needs`` are deleted; one that did not
complete counts as deleted for a job that is opened again and needs it. A key that was taken for ever stays
taken.

**In which order.** A mark in ``removals`` comes first. Then the jobs of the tree are checked, some thousands
in a transaction, whether any is open. An operator's verb on a job of the tree removes the mark meanwhile
(``spare``), and the tree stays until it is marked again. When all jobs were found settled the tree is
``going``: from then on nothing in it is opened again, and each transaction removes the last of the jobs that
are left, in lineage order, the top at the very end. A job without subjobs is checked and removed in one transaction.

**What a crash leaves**: marks, with which the next process that applies retention continues.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from spinney.model.errors import Refused
from spinney.model.lineage import subtree, top_of
from spinney.model.settings.holds import Scope
from spinney.model.settings.retention import RetentionRules
from spinney.model.states import SETTLED
from spinney.store.sql.connection.database import Tx, list_text
from spinney.store.sql.registry.job_rows import Row
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.transitions import hold_rows

STEP = 200
"""How many jobs one transaction removes."""
LOOKED_AT = 4_000
"""How many jobs one transaction checks whether they are settled."""
HANGING_ROWS = 2_000
"""How many attempts and needs one transaction removes; where there are more, the jobs stay until the next."""
HANGING_DATA = 100
"""How many entries of data one transaction removes; they may have 64 kB each."""


# --- for operators' verbs ---------------------------------------------------------------------


def spare(tx: Tx, row: Row) -> bool:
    """Remove the mark of a tree, because a job of it is about to be used; return False when the tree is being
    removed already. True where it has no mark, which is usual."""
    going = tx.value("select going from removals where root_id = ?", (row.root_id,))
    if going:
        return False
    if going is not None:
        tx.run("delete from removals where root_id = ?", (row.root_id,))
    return True


def require_kept(tx: Tx, row: Row) -> None:
    """Remove the mark of a tree; raise Refused when it is being removed already."""
    if not spare(tx, row):
        raise Refused(
            f"job {row.id} is being removed, because its time is over ('spinney keep' shows the rules); "
            f"if its work is still wanted, submit it again"
        )


# --- marks ------------------------------------------------------------------------------------


def mark(tx: Tx, root_ids: Sequence[int]) -> None:
    """Mark roots whose time seems to be over; that, and whether all jobs below are settled, is checked later."""
    sql = "insert into removals (root_id, looked, going) values (?, '', ?) on conflict do nothing"
    tx.many(sql, [(root_id, False) for root_id in root_ids])


def any_marked(tx: Tx) -> bool:
    """Return whether trees are marked for removal, or being removed."""
    return tx.exists("select 1 from removals limit 1")


class _Root(NamedTuple):
    """The root of a marked tree, as far as it decides about the tree."""

    type: str
    state: str
    settled_us: int | None
    """When it settled or was deleted."""
    alone: bool
    """Whether it has no jobs below it."""


_ROOTS = (
    "select jobs.id, jobs.type, jobs.state, case when jobs.state = 'deleted' then "
    "(select p.since_us from inactive_jobs p where p.job_id = jobs.id) else jobs.settled_us end, "
    "(select c.id from jobs c where c.parent_id is not null and c.root_id = jobs.id limit 1) is null "
    "from jobs where jobs.id in (select j.value from json_each(?) j) and jobs.parent_id is null"
)
"""The roots of some trees, by one statement, since most jobs have no subjobs. With ``exists`` in place of the subquery
that has a limit, PostgreSQL would read all subjobs of the store."""


class Removal:
    """One step of the removal of marked trees, for one transaction: up to ``LOOKED_AT`` jobs are checked and
    up to ``STEP`` removed, over all marked trees, those with the lowest roots first."""

    def __init__(self, tx: Tx, registry: Registry, rules: RetentionRules, now_us: int) -> None:
        self.tx, self.registry, self.rules, self.now_us = tx, registry, rules, now_us
        self.removed: list[int] = []
        self._sight = LOOKED_AT
        self._batch: list[int] = []
        self._spared: list[int] = []
        self._has_cancel_requests = tx.exists("select 1 from cancel_requests limit 1")
        self._met_needs = tx.exists("select 1 from met_needs limit 1")

    def run(self) -> None:
        """Check and remove, as much as one transaction allows; ``removed`` has the removed jobs."""
        marked = self.tx.all("select root_id, looked, going from removals order by root_id limit ?", (STEP,))
        listed = list_text([root_id for root_id, _, _ in marked])
        roots = {root_id: _Root(*values) for root_id, *values in self.tx.all(_ROOTS, (listed,))}
        for root_id, looked, going in marked:
            if len(self._batch) >= STEP or self._sight <= 0:
                break
            root = roots.get(root_id)
            if going or self._look(root_id, root, looked):
                self._collect(root_id, alone=root is not None and root.alone)
        if self._spared:
            self.tx.delete_listed("removals", "root_id", list_text(self._spared))
        if not self._batch:
            return
        if clear(self.tx, self._batch):
            self._remove()
        else:  # nothing may open what has lost a part already
            self._set_going(self._batch)

    # --- the walk through a tree ----------------------------------------------------------

    def _look(self, root_id: int, root: _Root | None, looked: str) -> bool:
        """Return whether all jobs of the tree were checked and are settled. Otherwise a tree that is open, in use or no
        longer due loses its mark, and so does one whose root does not exist."""
        tx = self.tx
        self._sight -= 1
        # The root may have been opened since it was marked.
        is_due = root is not None and due(self.rules, root.type, root.state, root.settled_us, self.now_us)
        if root is None or not is_due or self._is_in_use(root_id):
            self._spared.append(root_id)
            return False
        if root.alone:
            return True
        room = max(1, self._sight)
        # Hidden children count, too: those of an attempt that did not pass stay open until the sweep has dropped them.
        rows = tx.all(
            "select lineage, state from jobs where parent_id is not null and root_id = ? and lineage > ? "
            "order by lineage limit ?",
            (root_id, looked, room),
        )
        self._sight -= len(rows)
        if any(state not in SETTLED for _, state in rows):
            self._spared.append(root_id)
            return False
        if len(rows) == room:
            tx.run("update removals set looked = ? where root_id = ?", (rows[-1][0], root_id))
            return False
        self._set_going([root_id])
        return True

    def _set_going(self, root_ids: Sequence[int]) -> None:
        """Note that removal of these trees has begun, so that nothing in them is opened again."""
        self.tx.run(
            "update removals set going = ? where root_id in (select j.value from json_each(?) j)",
            (True, list_text(root_ids)),
        )

    def _is_in_use(self, root_id: int) -> bool:
        """Return whether the tree is in use: by an unfinished cancel, a hold on it or on a part of it, or dependants
        that are not updated."""
        tx = self.tx
        if self._has_cancel_requests:
            top = tx.value("select lineage from jobs where id = ?", (root_id,))
            start, until = subtree(top)
            sql = "select 1 from cancel_requests where lineage = ? or (lineage > ? and lineage < ?) limit 1"
            if tx.exists(sql, (top, start, until)):
                return True
        if self._met_needs:
            sql = "select 1 from met_needs m join jobs j on j.id = m.need_id where j.root_id = ? limit 1"
            if tx.exists(sql, (root_id,)):
                return True
        return root_id in self._held_trees

    @cached_property
    def _held_trees(self) -> frozenset[int]:
        """Return the roots of trees that have a hold on the whole or on a part. (One on a job alone is left over from
        when it was open.)"""
        return frozenset(
            top_of(wide.lineage) for wide in self.registry.holds.wide if wide.lineage is not None
        )

    # --- removing -------------------------------------------------------------------------

    def _collect(self, root_id: int, *, alone: bool) -> None:
        """Add the last jobs of the tree to the batch, up to its size."""
        room = STEP - len(self._batch)
        job_ids = (
            []
            if alone
            else self.tx.column(
                "select id from jobs where parent_id is not null and root_id = ? order by lineage desc limit ?",
                (root_id, room),
            )
        )
        self._batch += job_ids
        if len(job_ids) < room:
            self._batch.append(root_id)

    def _remove(self) -> None:
        """Remove the jobs of the batch, whose attempts, data and needs ``clear`` has deleted.
        ``counters.removed`` keeps the highest removed id, by which the doctor tells a removed job from one
        that is missing."""
        tx, listed = self.tx, list_text(self._batch)
        if self.registry.holds.any:
            self._end_holds(listed)
        for table in ("inactive_jobs", "progress", "cancel_requests"):
            tx.delete_listed(table, "job_id", listed)
        # What was taken for ever stays taken; the keys of children go with their parent.
        tx.run(
            "delete from keys where job_id in (select j.value from json_each(?) j) "
            "and not (scope <= 0 and forever = 1)",
            (listed,),
        )
        for bad in (False, True):
            tx.run(
                "delete from children_left where (parent_id, bad, child_id) in (select parent_id, ?, id from jobs "
                "where id in (select j.value from json_each(?) j) and parent_id is not null)",
                (bad, listed),
            )
        tx.delete_listed("children_left", "parent_id", listed)
        tx.delete_listed("removals", "root_id", listed)
        tx.run(
            f"insert into deleted_folders (job_id, at_us, home) select jobs.id, ?, {self.registry.homes.sql} from jobs "
            "where jobs.id in (select j.value from json_each(?) j) on conflict do nothing",
            (self.now_us, listed),
        )
        tx.delete_listed("jobs", "id", listed)
        last = max(self._batch)
        tx.run("update counters set value = ? where name = 'removed' and value < ?", (last, last))
        self.removed = self._batch

    def _end_holds(self, listed: str) -> None:
        sql = (
            "select distinct h.name from json_each(?) j join holds h on h.name = cast(j.value as text) "
            "where h.scope in ('job', 'tree')"
        )
        for name in self.tx.column(sql, (listed,)):
            hold_rows.end_those_on(self.tx, self.registry, int(name), self.now_us, Scope.JOB, Scope.TREE)


def due(rules: RetentionRules, type_: str, state: str, settled_us: int | None, now_us: int) -> bool:
    """Return whether the retention time of a job that settled or was deleted at ``settled_us`` is over. False
    for open jobs, and for those that are kept for ever."""
    if state not in SETTLED or settled_us is None:
        return False
    keep_s = rules.keep_s(type_, state)
    return keep_s is not None and now_us - settled_us >= keep_s * 1e6


_HANGING = (
    ("attempts", "job_id, fence", HANGING_ROWS),
    ("data", "job_id, name", HANGING_DATA),
    ("needs", "job_id, need_id", HANGING_ROWS),
)
"""Tables with their keys, and how many of their rows one transaction deletes."""


def clear(tx: Tx, job_ids: Sequence[int]) -> bool:
    """Delete attempts, data and needs of these jobs; return False when there are more."""
    listed = list_text(job_ids)
    for table, key, most in _HANGING:
        if tx.delete_some(table, key, "job_id in (select j.value from json_each(?) j)", (listed,), most):
            return False
    return delete_met_needs(tx, job_ids)


def delete_met_needs(tx: Tx, job_ids: Sequence[int]) -> bool:
    """Delete the needs that the completed ones of these jobs have met; return False when there are more."""
    tx.run(
        "delete from needs where (job_id, need_id) in (select n.job_id, n.need_id from json_each(?) j "
        "cross join jobs d cross join needs n where d.id = j.value and d.state = 'completed' and n.need_id = d.id "
        "limit ?)",
        (list_text(job_ids), HANGING_ROWS),
    )
    return tx.changed() < HANGING_ROWS
