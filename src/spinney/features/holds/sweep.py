"""The steps of a sweep, which brings the state of jobs in line with the holds.

A step is **planned** on a snapshot, which delays no writer, and **done** in a transaction, if nothing has changed in
between: the registry, and so the holds, is the same, and every job is where the plan found it. Otherwise it is planned
again in that transaction. So a step keeps other writers out for about half of its time.

First come holds that are not ``swept`` yet, the oldest first: covered jobs in ``ready`` become held. A queue or type is
swept lane by lane, a tree in the order of its lineages, a collection or submitter by walking through all of ``ready``.
Then, after holds have ended, all held jobs are visited once, and those that no hold covers any more go on.

The position of a sweep is only in memory; another process starts from the beginning.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spinney.model.lineage import subtree
from spinney.model.settings.holds import Hold, Scope
from spinney.model.states import State
from spinney.store.sql.connection.database import RowChange, Tx
from spinney.store.sql.registry import hold_coverage, job_rows
from spinney.store.sql.registry.hold_coverage import HELD_BY_HOLD, WideHold
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.transitions import ready_moves
from spinney.store.sql.transitions.cascades import Cascade
from spinney.store.sql.transitions.ready_moves import Key, Place

LOOKED_AT = 5
"""Where few jobs are covered, one step looks at this multiple of the jobs that it may move."""
SPECIAL_STEP = 50
"""How many jobs one transaction places one by one (those with needs, children or in serial trees)."""

_BEGINNING: tuple[Any, ...] = (0, 0, 0, "")
"""Less than every key of ``ready``, since lanes are numbered from 1."""

_RENAMED = RowChange(
    "inactive_jobs", "job_id = ? and state = 'held' and waits_for = 'hold'", set="reason = ?"
)
"""Writes the hold that now keeps a job into its row, which people are shown as the reason."""


class _At(NamedTuple):
    """How far a sweep has come: for which hold, and behind which key of ``ready``."""

    target: tuple[str, int]
    """("hold", its number), or ("lift", up to which it is swept when it is through)."""
    place: tuple[Any, ...]
    """The key of ``ready`` behind which it continues; for a tree a lineage, and for a release the number
    of a job."""


@dataclass(slots=True, kw_only=True)
class Plan:
    """What one step of a sweep will do: the jobs that a hold covers now, or those that none covers any
    more."""

    target: tuple[str, int]
    """What is swept: ("hold", its number), or ("lift", the number of the last release that this pass
    covers)."""
    version: int
    """The version of the registry that it was planned with."""
    hold: Hold | None = None
    """The hold whose jobs become held; None: this step lets jobs continue."""
    keys: list[Key] = field(default_factory=list)
    """The keys in ``ready`` of the jobs that the hold covers; the jobs are ``covered``, in the same order."""
    covered: list[int] = field(default_factory=list)
    free: dict[Place, list[int]] = field(default_factory=dict)
    """Jobs that no hold covers any more and nothing else keeps, by where they belong."""
    special: list[int] = field(default_factory=list)
    """Jobs that no hold covers any more, and that have to be placed one by one."""
    renamed: list[tuple[str, int]] = field(default_factory=list)
    """(reason, job): jobs that are kept by another hold than the one in their row."""
    place: tuple[Any, ...] | None = None
    """Where the next step continues; None: this is the last one."""


class PlanOutdated(Exception):
    """Something has changed since the step was planned; plan it again."""


class HoldSweep:
    """The sweep of one store object: call ``plan``, ``do``, and after the commit ``done``.

    ``plan`` and ``do`` change nothing in this object, so a step that is rolled back is simply planned
    again.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._at: _At | None = None

    def plan(self, tx: Tx, now_us: int, limit: int) -> Plan | None:
        """Return the next step, as ``tx`` sees the database; None when there is nothing to do.
        ``limit``: how many jobs it may move."""
        registry, holds = self._registry, self._registry.holds
        if holds.unswept:
            target = ("hold", holds.unswept[0].hold.id)
        elif holds.lift > holds.lift_swept:
            # Up to the last release before it began: later ones get a pass of their own.
            target = (
                self._at.target
                if self._at is not None and self._at.target[0] == "lift"
                else ("lift", holds.lift)
            )
        else:
            return None
        plan = Plan(target=target, version=registry.version)
        planner = _Planner(tx, registry, now_us, limit, plan)
        place = self._at.place if self._at is not None and self._at.target == target else None
        if target[0] == "hold":
            planner.cover(holds.unswept[0], place)
        else:
            planner.uncover(place)
        return plan

    def do(self, tx: Tx, plan: Plan, now_us: int) -> None:
        """Do a step, and mark the hold or release as swept if it is the last one.

        Raises PlanOutdated when the plan does not fit any more; the caller then undoes all of it.
        """
        registry = self._registry
        if plan.version != registry.version:
            raise PlanOutdated
        cascade = Cascade(tx, registry, now_us)
        if plan.hold is not None:
            # Fewer rows than planned: a node has claimed one of these jobs since the plan was made.
            if ready_moves.out_of_ready(tx, plan.keys) != len(plan.keys):
                raise PlanOutdated
            ready_moves.to_held(cascade, dict.fromkeys(plan.covered, plan.hold))
        else:
            self._let_go(tx, plan, cascade)
        cascade.drain()
        if plan.place is not None:
            return
        if plan.target[0] == "hold":
            tx.run("update holds set swept = ? where id = ?", (True, plan.target[1]))
        else:
            tx.run("update counters set value = ? where name = 'lift_swept'", (plan.target[1],))
        registry.touch(tx)

    def _let_go(self, tx: Tx, plan: Plan, cascade: Cascade) -> None:
        """Let the jobs of a step go on. Raises PlanOutdated when a hold on a single job was placed meanwhile, or a job
        has moved."""
        ids = [job_id for group in plan.free.values() for job_id in group]
        if self._registry.holds.jobs and hold_coverage.among_single(tx, [*ids, *plan.special]):
            raise PlanOutdated  # holds on single jobs do not change the registry
        if ready_moves.to_ready(tx, self._registry, plan.free) != len(ids):
            raise PlanOutdated
        tx.change(_RENAMED, plan.renamed)
        for job_id in plan.special:
            # Read again: the placement of another job may have settled this one.
            row = job_rows.existing(tx, job_id)
            if row is not None and row.state is State.HELD and hold_coverage.stands_held(tx, job_id):
                cascade.place(row)

    def done(self, plan: Plan) -> None:
        """Remember how far the sweep has come, after a step was committed."""
        self._at = None if plan.place is None else _At(plan.target, plan.place)


class _Planner:
    """Reads the database, and fills in a plan. Every query is limited, so a step takes bounded time in a
    store of any size."""

    def __init__(self, tx: Tx, registry: Registry, now_us: int, limit: int, plan: Plan) -> None:
        self.tx, self.registry, self.now_us, self.limit, self.plan = tx, registry, now_us, limit, plan

    # --- from ready to held ---------------------------------------------------------------

    def cover(self, wide: WideHold, place: tuple[Any, ...] | None) -> None:
        """Plan which pending jobs a hold covers, after ``place``; None: from the beginning."""
        self.plan.hold = wide.hold
        if wide.hold.scope in hold_coverage.LANE_SCOPES:
            self._cover_lanes(wide.hold)
        elif wide.hold.scope is Scope.TREE:
            self._cover_tree(wide, place)
        else:
            self._cover_labelled(wide.hold, place or _BEGINNING)

    def _cover_lanes(self, hold: Hold) -> None:
        """Plan the jobs in the lanes of a queue or type. No job is added to them, so each step starts at the front."""
        rows: list[Any] = []
        alone = hold_coverage.ActiveHolds([WideHold(hold, False, None)])
        for lane in self.registry.lanes.values():
            if len(rows) < self.limit and alone.stops(lane.queue, lane.type):
                rows += self.tx.all(
                    "select lane, priority, share, position, job_id from ready where lane = ? "
                    "order by priority, share, position limit ?",
                    (lane.id, self.limit - len(rows)),
                )
        self._add(rows)
        self.plan.place = _BEGINNING if len(rows) == self.limit else None

    def _cover_labelled(self, hold: Hold, place: tuple[Any, ...]) -> None:
        """Plan the jobs of a collection or submitter in a stretch of ``ready``.

        No index has pending jobs by these, so ``ready`` is walked through in the order of its key.
        ``until`` is the end of a stretch of ``limit * LOOKED_AT`` rows; the step ends there, or at
        the last of ``limit`` matches.
        """
        key = "(r.lane, r.priority, r.share, r.position)"
        order = "order by r.lane, r.priority, r.share, r.position"
        until = self.tx.one(
            f"select r.lane, r.priority, r.share, r.position from ready r where {key} > (?, ?, ?, ?) {order} "
            "limit 1 offset ?",
            (*place, self.limit * LOOKED_AT - 1),
        )
        last = f"and {key} <= (?, ?, ?, ?)" if until else ""
        rows = self.tx.all(
            f"select r.lane, r.priority, r.share, r.position, r.job_id from ready r join jobs on jobs.id = r.job_id "
            f"where {key} > (?, ?, ?, ?) {last} and jobs.{hold.scope} = ? {order} limit ?",
            (*place, *(until or ()), hold.name, self.limit),
        )
        self._add(rows)
        self.plan.place = tuple(rows[-1][:4]) if len(rows) == self.limit else until

    def _cover_tree(self, wide: WideHold, place: tuple[Any, ...] | None) -> None:
        """Plan the jobs in ``ready`` in a stretch of a tree; the first stretch includes its top.

        ``ready`` has no lineage, so the stretch is read from the index of lineages of ``jobs``. A
        leased job is ``pending`` there, too, and drops out when its key in ``ready`` is looked up.
        """
        if wide.lineage is None:
            return  # the job at its top was removed
        start, end = subtree(wide.lineage)
        root_id = int(wide.lineage.split(".")[0])
        if place is None:
            self._add(ready_moves.standing_in_ready(self.tx, self.registry, [int(wide.hold.name)]))
        after = start if place is None else place[0]
        until = self.tx.value(
            "select lineage from jobs where parent_id is not null and root_id = ? and lineage > ? and lineage < ? "
            "order by lineage limit 1 offset ?",
            (root_id, after, end, self.limit * LOOKED_AT - 1),
        )
        below = self.tx.all(
            "select id, lineage from jobs where parent_id is not null and root_id = ? and lineage > ? "
            "and lineage <= ? and state = 'pending' order by lineage limit ?",
            (root_id, after, until or end, self.limit),
        )
        self._add(ready_moves.standing_in_ready(self.tx, self.registry, [job_id for job_id, _ in below]))
        if len(below) == self.limit:
            self.plan.place = (below[-1][1],)
        elif until is not None:
            self.plan.place = (until,)

    def _add(self, rows: Sequence[Any]) -> None:
        """Add jobs at these keys; the last column is the job."""
        self.plan.keys += [tuple(row[:4]) for row in rows]
        self.plan.covered += [row[4] for row in rows]

    # --- from held to where it belongs ----------------------------------------------------

    def uncover(self, place: tuple[Any, ...] | None) -> None:
        """Plan which held jobs are not covered any more, after ``place``.

        The stretch counts all held jobs, also those that their own stages hold and that are left
        alone. Plain jobs go back to ``ready`` in groups; those with needs, children or in serial
        trees are placed one by one, so fewer of them fit into a step.
        """
        plan, tx = self.plan, self.tx
        window = tx.all(
            "select job_id, waits_for, reason from inactive_jobs where state = 'held' and job_id > ? "
            "order by job_id limit ?",
            (*(place or (0,)), self.limit),
        )
        reasons = {job_id: reason for job_id, waits_for, reason in window if waits_for == HELD_BY_HOLD}
        covered = hold_coverage.covered(tx, self.registry.holds, list(reasons))
        plan.renamed = [
            (str(hold), job_id) for job_id, hold in covered.items() if reasons[job_id] != str(hold)
        ]
        free = [job_id for job_id in reasons if job_id not in covered]
        plan.free = ready_moves.plain(tx, self.registry, free, self.now_us)
        plain = {job_id for group in plan.free.values() for job_id in group}
        plan.special = [job_id for job_id in free if job_id not in plain]
        last = window[-1][0] if len(window) == self.limit else None
        if len(plan.special) > SPECIAL_STEP:
            del plan.special[SPECIAL_STEP:]
            last = plan.special[-1]
        plan.place = None if last is None else (last,)
