"""Holds: placing and releasing them, and the sweeps that give jobs the state ``held`` and take it away.

**The authority** is the rows of ``holds``. From the commit of ``lay`` on, no job that a hold covers is claimed: a
single job leaves ``ready`` in that transaction; lanes of a held queue or type are not served; for trees, collections
and submitters the claim checks each candidate until a sweep has finished.

**A sweep** works in steps of one short transaction each, which any process may call: it ends holds that have expired;
jobs in ``ready`` that a hold covers which is not ``swept`` yet become held; after a release, held jobs that no hold
covers any more go back to where they belong.

**After a crash** the database still says what there is to sweep: ``holds.swept``, and ``lift`` against ``lift_swept``
in ``counters``. No covered job can enter ``ready`` unseen, since every way into it checks the holds.
"""

import time
from collections.abc import Callable, Collection, Sequence
from itertools import islice

from spinney.features.holds import preview as hold_previews
from spinney.features.holds import sweep as hold_sweep
from spinney.model.errors import NoSuchJob, UnknownType, UsageError
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Hold, HoldPreview, Scope, no_such_hold
from spinney.model.states import State
from spinney.model.values import names
from spinney.model.values.hints import unknown
from spinney.model.values.unreadable import json_object
from spinney.store.sql.audit import note
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.registry import hold_coverage, job_rows
from spinney.store.sql.registry.hold_coverage import HOLDS
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.session import Session
from spinney.store.sql.transitions import hold_rows

STEP = 2_000
"""How many jobs one transaction of a sweep moves, which takes some 10 ms."""
YIELD_US = 2_000_000
"""Microseconds. A process that made a step less long ago is assumed to sweep still."""
LOOKED_BACK = 10_000
"""How many entries of the audit are searched for releases that were interrupted before their sweep."""


class SqlHolds:
    """The holds of a store, laid by operators.

    A hold takes effect with the next claim; the state ``held`` of the jobs follows by bounded sweeps.
    Under a hold no job starts, running jobs finish their stage, and new jobs are accepted and held. Only
    jobs that could be claimed become ``held``: a job that waits for something else waits for that first.
    A hold on a single job, or on the top of a tree, stays in force when the job settles, and ends with
    the deletion of the job. Laying and lifting are audited.
    """

    def __init__(self, session: Session) -> None:
        self._session, self._registry = session, session.registry
        self._clock: Callable[[], float] = time.perf_counter
        self.took_s = 0.0
        """How long the last step of this store object blocked other writers; its wait for the lock not counted."""
        self._sweep = hold_sweep.HoldSweep(session.registry)
        self._stamp = 0
        """When this object last made a step."""

    # --- laying and lifting ---------------------------------------------------------------

    def lay(
        self, scope: Scope, name: str, reason: str, actor: Actor, *, until_us: int | None = None, now_us: int
    ) -> Hold:
        """Lay a hold, and return it: nothing that it covers is claimed from now on.

        When the same person lays the same hold again (scope, name and reason), the first one gets the
        new end, and there is no second one. ``name``: empty for everything, the number of the job for
        a job or tree. ``until_us``: when it ends by itself.

        Raises NoSuchJob, UnknownType, UsageError (a queue that nobody has named, or an invalid name)
        and Refused (a single job that has settled).
        """
        with self._session.write() as tx:
            if scope is not Scope.JOB:
                name = _checked_name(tx, self._registry, scope, name)
                return hold_rows.lay(tx, self._registry, scope, name, reason, actor, until_us, False, now_us)
            # A single job is moved out of ready at once, which takes no sweep and does not change the
            # registry.
            job = job_rows.find_visible(tx, int(name))
            hold = hold_rows.hold_one(tx, self._registry, job, reason, actor, until_us, now_us)
            note(tx, now_us, actor, "hold", hold_rows.audit_entry(hold), 1)
            return hold

    def lift(self, hold_id: int, actor: Actor, *, now_us: int) -> Hold:
        """Release a hold, and return it; the sweep then lets continue those jobs that no other hold
        covers.

        A hold on a single job needs no sweep. A hold that was released before, and not swept since,
        is returned again (see ``lifted``). Raises NoSuch.
        """
        with self._session.write() as tx:
            hold = HOLDS.one(tx, "where id = ?", (hold_id,))
            if hold is None:
                unswept = next((hold for hold in _lifted(tx, self._registry) if hold.id == hold_id), None)
                if unswept is None:
                    raise no_such_hold(hold_id)
                return unswept  # a release that broke off before its sweep, which the caller makes now
            hold_rows.end(tx, self._registry, [hold], now_us)
            note(tx, now_us, actor, "release", hold_rows.audit_entry(hold), 1)
            return hold

    # --- reads ----------------------------------------------------------------------------

    def would_hold(self, scope: Scope, name: str) -> HoldPreview:
        """Return how many jobs a wide hold (``lay`` and the sweep after it) would hold. Raises what
        ``lay`` raises."""
        with self._session.look() as tx:
            name = _checked_name(tx, self._registry, scope, name)
            return hold_previews.of_laying(tx, scope, name)

    def would_go_on(self, hold_ids: Collection[int]) -> HoldPreview:
        """Return how many jobs would continue if these holds were lifted and swept; numbers that are
        no hold count for nothing."""
        with self._session.look() as tx:
            return hold_previews.of_lifting(tx, self._registry, hold_ids)

    def all(self) -> Sequence[Hold]:
        """Return the holds in force, oldest first, with those whose end has come and that no sweep
        has ended yet."""
        with self._session.look() as tx:
            return HOLDS.all(tx, "order by id")

    def lifted(self) -> Sequence[Hold]:
        """Return the wide holds that were released and whose jobs have not all been swept since,
        latest first.

        ``by`` and ``since_us`` are those of the release, not of the laying. Read from the audit,
        since the rows are gone.
        """
        with self._session.look() as tx:
            return _lifted(tx, self._registry)

    def covering(self, job_id: int) -> Sequence[Hold]:
        """Return the holds that cover a job, oldest first, whatever its state. Raises NoSuchJob."""
        with self._session.look() as tx:
            return hold_coverage.holds_of(tx, self._registry.holds, job_rows.find_visible(tx, job_id))

    def held(self, hold_id: int) -> int:
        """Return how many jobs are held by holds and covered by this one; 0 for a hold that is not in
        force."""
        with self._session.look() as tx:
            hold = HOLDS.one(tx, "where id = ?", (hold_id,))
            if hold is None:
                return 0
            if hold.scope is Scope.JOB:
                return int(hold_coverage.stands_held(tx, int(hold.name)))
            condition, binds = hold_coverage.clause(
                w for w in self._registry.holds.wide if w.hold.id == hold_id
            )
            sql = (
                "select count(*) from inactive_jobs p join jobs on jobs.id = p.job_id "
                f"where p.state = 'held' and p.waits_for = 'hold' and {condition}"
            )
            return int(tx.value(sql, binds))

    def leased_under(self, node_id: int, after: int) -> tuple[int, Sequence[int]]:
        """Return the leases that a node should hand back if their attempts have not begun.

        The result is the number of the last hold, which the node passes as ``after`` the next time; and the
        fences of this node's leases that a hold covers which was laid after the hold with the number
        ``after``. Mostly there is no new hold, and this is one look at a counter.
        """
        with self._session.look() as tx:
            last = tx.value("select value from counters where name = 'hold'")
            if last <= after:
                return last, []
            condition, binds = hold_coverage.clause(w for w in self._registry.holds.wide if w.hold.id > after)
            fences = tx.column(
                f"select l.fence from leases l join jobs on jobs.id = l.job_id where l.node_id = ? and ({condition} "
                "or exists (select 1 from holds h where h.scope = 'job' and h.name = cast(jobs.id as text) "
                "and h.id > ?))",
                (node_id, *binds, after),
            )
            return last, fences

    # --- sweeping -------------------------------------------------------------------------

    def sweep(self, *, now_us: int, limit: int = STEP, yielding: bool = False) -> bool:
        """Do one bounded step of the sweep, and return whether there is more to do.

        Pending jobs that a hold covers become ``held``, held ones that no hold covers any more are
        placed anew, and holds whose time is over end. ``limit``: how many jobs a step moves.
        ``yielding``: do nothing and return False if any other process took a step within the last two
        seconds. A power failure may undo the last steps; the next sweep repeats them.
        """
        with self._session.look() as tx:
            if not self._due(now_us) or (yielding and self._another_sweeps(tx, now_us)):
                return False
            plan = self._sweep.plan(tx, now_us, limit)
        # A step that a power failure undoes is repeated, since the record of it is undone, too.
        with self._session.write(durable=False) as tx:
            begun = self._clock()
            hold_rows.stamp_sweep(tx, now_us)
            # Ending a hold changes what is covered, so nothing else is done in this step.
            if hold_rows.end_what_is_over(tx, self._registry, now_us):
                plan = None
            elif plan is not None and not self._done(tx, plan, now_us):
                plan = self._sweep.plan(tx, now_us, limit)
                if plan is not None:
                    self._sweep.do(tx, plan, now_us)
            more = self._due(now_us)
        self._stamp, self.took_s = now_us, self._clock() - begun
        if plan is not None:
            self._sweep.done(plan)
        return more

    def _done(self, tx: Tx, plan: hold_sweep.Plan, now_us: int) -> bool:
        """Return whether the step could be done as planned; if not, nothing was changed."""
        try:
            with tx.savepoint():
                self._sweep.do(tx, plan, now_us)
        except hold_sweep.PlanOutdated:
            return False
        return True

    def _due(self, now_us: int) -> bool:
        """Return whether there is anything to sweep: a hold or release that is not swept, or a hold
        whose time is over."""
        holds = self._registry.holds
        return holds.due or (holds.ends_us is not None and holds.ends_us <= now_us)

    def _another_sweeps(self, tx: Tx, now_us: int) -> bool:
        """Return whether another process sweeps. Two at once would do no harm, but delay writers twice as long."""
        stamp: int = tx.value("select value from counters where name = 'hold_sweep'")
        return stamp != self._stamp and abs(now_us - stamp) < YIELD_US


def _lifted(tx: Tx, registry: Registry) -> list[Hold]:
    """Return the wide holds that were released last, from the audit: as many as there were releases that
    have not been swept.

    Too many rather than too few: a release may be swept in part. Entries older than the last
    ``LOOKED_BACK`` are not found.
    """
    unswept = registry.holds.lift - registry.holds.lift_swept
    if unswept <= 0:
        return []
    entries = tx.all(
        "select at_us, by, what from audit where seq > (select max(seq) from audit) - ? and verb = 'release' "
        "order by seq desc",
        (LOOKED_BACK,),
    )
    released = ((at_us, by, json_object(details, "the entry")) for at_us, by, details in entries)
    wide = (entry for entry in released if entry[2].get("scope", Scope.JOB) != Scope.JOB)
    return [
        Hold(
            id=details["hold"],
            scope=Scope(details["scope"]),
            name=details["name"],
            reason=details["reason"],
            by=by,
            since_us=at_us,
            until_us=details.get("until_us"),
        )
        for at_us, by, details in islice(wide, unswept)
        if by != hold_rows.CLOCKWORK  # the time of the hold was over: no caller repeats that
    ]


def _checked_name(tx: Tx, registry: Registry, scope: Scope, name: str) -> str:
    """Return the name in the form in which claims look for it. Raises an error for one that a hold cannot have. A
    collection or submitter may be held before its first job is submitted."""
    if scope is Scope.EVERYTHING and name:
        raise UsageError(
            f"a hold on everything has no name; leave out {name[:100]!r}, or give the scope of what has this name"
        )
    if scope is Scope.TREE:
        row = job_rows.find_visible(tx, int(name))
        if row.state is State.DELETED:
            raise NoSuchJob(row.id)
        return str(row.id)
    if scope is Scope.TYPE and name not in registry.types:
        raise UnknownType(unknown("job type", name, registry.types))
    if scope is Scope.QUEUE and name not in (queues := registry.queue_names()):
        raise UsageError(unknown("queue", name, queues))
    if scope is Scope.COLLECTION:
        names.name("collection", name)
    elif scope is Scope.SUBMITTER:
        names.label("submitter", name)
    return name
