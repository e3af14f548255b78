"""Deadlocks: cycles of jobs that wait for each other through locks that they keep until they settle.

A job closes a cycle when it begins to wait, whether it keeps a lock itself or not. So code that lets a job wait for a
lock (a claim, the record of an attempt), for its subjobs, for jobs that it needs or for its turn calls
``Cascade.began_to_wait``, and the same transaction searches a cycle and breaks it, once for all jobs that began to wait
in it. Jobs that wait already are searched when the priority of one that waits for a lock changes, because the queue has
another order then, and when an operator sets the capacity of a lock that they keep. One statement recognizes the usual
case: no job keeps a lock until it settles. Only otherwise the waits are followed, with one statement for each kind of
wait and all jobs at the same distance. New jobs are not searched: nobody waits for them yet, except a parent, which is.

**Victim.** The youngest (highest id) of the jobs whose locks the others want, or where that one waits for subjobs, for
jobs that it needs or for its turn in a serial tree: the job at which this path reaches a lock. The older ones continue,
so that every broken cycle makes progress.

**Its outcome** depends on its type (``TypeSpec.on_deadlock``). It fails with the cycle as its reason; or it releases
all its locks and starts again with the stage that took the first of them. A restart is of no use for a job that keeps
no lock that the others want, so that one fails in any case.

**The lock** of the youngest goes to the job of the cycle that waits for it, although others may come before it in the
queue: these would take it, begin to wait for the others of the cycle and close the next one, and so on.

A cycle that closes otherwise (an application declares a lower capacity, or a job of a long submission is placed that
another already needs) remains until an operator acts; ``explain`` names it."""

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from operator import attrgetter
from typing import NamedTuple, Protocol

from spinney.model.attempts.failures import DEADLOCK
from spinney.model.errors import BadParameters
from spinney.model.lineage import ancestors
from spinney.model.rights.actor import Actor
from spinney.model.states import State
from spinney.model.types import TypeSpec
from spinney.model.values import lock_names
from spinney.model.values.unreadable import json_object, of_job
from spinney.store.sql.audit import note
from spinney.store.sql.connection.database import Tx, list_text
from spinney.store.sql.registry import job_rows
from spinney.store.sql.registry.job_rows import Row
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.transitions import failures

log = logging.getLogger(__name__)

ACTOR = "spinney"
VERB = "deadlock"
"""The verb of the audit entry."""
FOLLOWED = 1_000
"""The most waiting jobs that are followed; beyond that no cycle is searched."""
ALONE = 50
"""When the jobs that began to wait in a transaction reach more than that together, so many of them are searched one by
one: those that wait for a lock or keep one."""
BROKEN_AT_ONCE = 200
"""The most cycles that one transaction breaks."""
NAMED = 20
"""The most jobs of a cycle that a sentence names."""


class Edge(StrEnum):
    """Why a job waits for another: for a lock that the other keeps, or gets first, or for the other job
    itself."""

    KEEPER = "keeper"
    """The other job keeps the lock."""
    LINE = "line"
    """The other job comes before it in the queue for the lock."""
    CHILD = "child"
    NEED = "need"
    SERIAL = "serial"


class Link(NamedTuple):
    """One edge of a cycle of jobs: which job waits for which other one, and why."""

    job_id: int
    edge: Edge
    other_id: int
    lock: str = ""

    def __str__(self) -> str:
        why = {
            Edge.KEEPER: f"the lock {self.lock!r}, which job {self.other_id} keeps",
            Edge.LINE: f"the lock {self.lock!r} behind job {self.other_id}",
            Edge.CHILD: f"its subjob {self.other_id}",
            Edge.NEED: f"job {self.other_id}, which it needs",
            Edge.SERIAL: f"job {self.other_id}, which comes before it in their serial tree",
        }
        return f"job {self.job_id} waits for {why[self.edge]}"


Ring = Sequence[Link]


def sentence(ring: Ring) -> str:
    """Return a sentence that describes the cycle, starting with its lowest id; ``service.visibility`` recognizes the
    jobs that it names."""
    first = min(range(len(ring)), key=lambda i: ring[i].job_id)
    turned = [*ring[first:], *ring[:first]]
    more = [f"and {len(turned) - NAMED:,} more wait likewise"] if len(turned) > NAMED else []
    return "; ".join([*map(str, turned[:NAMED]), *more])


# --- finding ----------------------------------------------------------------------------------


def find(tx: Tx, registry: Registry, job_id: int) -> Ring | None:
    """Return a cycle that keeps this job from ever continuing; None: there is none."""
    return next(_Search(tx, registry).rings([job_id]), None)


def waiting_keepers(tx: Tx, lock_names: Sequence[str]) -> list[int]:
    """Return waiting jobs that keep some of these locks until they settle: a cycle that closes because less of a lock
    is left for others has one of them. Where very many keep some, not all are returned."""
    return list(dict.fromkeys(job_id for _, job_id, _ in tx.all(_KEEPERS, (list_text(lock_names), FOLLOWED))))


class _Wait(NamedTuple):
    """The waiting jobs for which a job waits. Jobs that do not wait are no lasting obstacle."""

    job_id: int
    links: list[Link]
    amounts: dict[int, int]
    """The amount of the lock that each keeper has, by keeper."""
    room: int
    """How much of the lock others may keep so that this job still gets its amount."""
    lock: str = ""
    behind: int = 0
    """How many jobs come before it in the queue for the lock."""


class _Search:
    """The waits of some jobs, of the jobs that they wait for, and so on.

    First all waits that can be reached are read, breadth first (``_follow``). Then jobs that can continue are
    removed, round by round, where a job can continue when none of those that are left keeps it waiting
    (``_stuck``). What remains waits for nothing but itself, so that a walk from any of it ends in a cycle
    (``_walk``). With amounts a mere search for a cycle would not do: a job that wants 2 of 5 may continue
    although one of three keepers is stuck."""

    def __init__(self, tx: Tx, registry: Registry) -> None:
        self.tx, self.registry = tx, registry
        self.waits: dict[int, _Wait] = {}
        self.lines: dict[str, list[int]] = {}
        """The jobs that wait for a lock with a capacity above 1, in order, by lock."""
        self._places: dict[int, int] = {}
        """The index of each job in the queue of its lock; a job waits for one lock."""
        self._begins: dict[str, int] = {}
        """How many jobs at the beginning of each queue can continue."""

    def rings(self, job_ids: Sequence[int]) -> Iterator[Ring]:
        """Yield for each of these jobs that can never continue the cycle that keeps it. Nothing is yielded
        where more than ``FOLLOWED`` jobs are reached: such a deadlock stays, and ``explain`` names it."""
        todo, reached = set(job_ids), set(job_ids)
        while todo:
            self._follow(todo)
            new = {
                other_id
                for job_id in todo & self.waits.keys()
                for other_id in self._others(self.waits[job_id])
            }
            todo = new - reached
            reached |= new
            if len(reached) > FOLLOWED + len(job_ids):
                if len(job_ids) > 1:
                    yield from self._rings_of_each(job_ids)
                else:
                    log.debug(
                        "job %d waits for more than %d jobs; no ring was looked for", *job_ids, FOLLOWED
                    )
                return
        stuck = self._stuck()
        for job_id in job_ids:
            if job_id in stuck:
                yield self._walk(job_id, stuck)

    def _rings_of_each(self, job_ids: Sequence[int]) -> Iterator[Ring]:
        """Search each job that waits for a lock or keeps one alone, because what all wait for is too much to follow."""
        listed = list_text(job_ids)
        waiters = [_Waiter(*row) for row in self.tx.all(_WAITERS, (listed,))]
        concerned = {waiter.job_id for waiter in waiters if waiter.lock}
        concerned.update(self.tx.column(_KEEPING, (listed,)))
        for job_id in [job_id for job_id in job_ids if job_id in concerned][:ALONE]:
            yield from _Search(self.tx, self.registry).rings([job_id])

    def _others(self, wait: _Wait) -> Iterator[int]:
        yield from (link.other_id for link in wait.links)
        if wait.behind:
            yield from self.lines[wait.lock][: wait.behind]

    def _stuck(self) -> set[int]:
        """Return the jobs that can never continue: the rest after all that can were removed, one by one."""
        stuck = set(self.waits)
        in_order = sorted(self.waits.values(), key=attrgetter("behind"))  # so that a queue takes one round
        moved = True
        while moved:
            before = len(stuck)
            for wait in in_order:
                if wait.job_id in stuck and not self._kept_from(wait, stuck):
                    stuck.discard(wait.job_id)
            moved = len(stuck) < before
            in_order = [wait for wait in in_order if wait.job_id in stuck]
        return stuck

    def _kept_from(self, wait: _Wait, stuck: set[int]) -> list[Link]:
        """Return the links by which the stuck jobs keep it waiting."""
        links = [link for link in wait.links if link.other_id in stuck]
        if wait.amounts and sum(wait.amounts[link.other_id] for link in links) <= wait.room:
            links = []
        if wait.behind and (first := self._first(wait.lock, stuck)) < wait.behind:
            links.append(Link(wait.job_id, Edge.LINE, self.lines[wait.lock][first], wait.lock))
        return links

    def _first(self, lock: str, stuck: set[int]) -> int:
        """Return the index of the first stuck job in the queue; stuck jobs only become fewer."""
        line, at = self.lines[lock], self._begins.get(lock, 0)
        while at < len(line) and line[at] not in stuck:
            at += 1
        self._begins[lock] = at
        return at

    def _walk(self, job_id: int, stuck: set[int]) -> Ring:
        """Follow stuck jobs until one comes again; return the cycle."""
        path: dict[int, Link] = {}
        while job_id not in path:
            path[job_id] = self._kept_from(self.waits[job_id], stuck)[0]
            job_id = path[job_id].other_id
        links = list(path.values())
        return links[list(path).index(job_id) :]

    # --- one step further -------------------------------------------------------------------

    def _follow(self, job_ids: Iterable[int]) -> None:
        waiting: dict[str, list[_Waiter]] = defaultdict(list)
        for row in self.tx.all(_WAITERS, (list_text(job_ids),)):
            waiter = _Waiter(*row)
            waiting[waiter.waits_for.partition(":")[0]].append(waiter)
        self._for_locks(waiting["lock"])
        self._for_jobs(Edge.CHILD, _CHILDREN, waiting["children"])
        self._for_jobs(Edge.NEED, _NEEDS, waiting["needs"])
        self._for_jobs(Edge.SERIAL, _FIRST_IN_LINE, waiting["serial"])

    def _for_jobs(self, edge: Edge, sql: str, waiters: Sequence["_Waiter"]) -> None:
        if not waiters:
            return
        links: dict[int, list[Link]] = defaultdict(list)
        for job_id, other_id in self.tx.all(sql, (list_text(w.job_id for w in waiters), FOLLOWED + 1)):
            links[job_id].append(Link(job_id, edge, other_id))
        for job_id, targets in links.items():
            self.waits[job_id] = _Wait(job_id, targets, {}, 0)

    def _for_locks(self, waiters: Sequence["_Waiter"]) -> None:
        if not waiters:
            return
        keepers: dict[str, dict[int, int]] = defaultdict(dict)
        names = list_text(sorted({w.lock for w in waiters}))
        for name, job_id, amount in self.tx.all(_KEEPERS, (names, FOLLOWED + 1)):
            keepers[name][job_id] = amount
        for waiter in waiters:
            if not keepers[waiter.lock]:
                continue  # its owners release it, and the queue advances
            # The amounts of the job itself, and of its ancestors, are no obstacle (``locks.look``).
            own = {waiter.job_id, *ancestors(waiter.lineage)}
            amounts = {job_id: n for job_id, n in keepers[waiter.lock].items() if job_id not in own}
            capacity = self.registry.capacities.in_force(waiter.lock, waiter.capacity)
            links = [Link(waiter.job_id, Edge.KEEPER, job_id, waiter.lock) for job_id in amounts]
            behind = 0 if (waiter.amount, capacity) == (1, 1) else self._behind(waiter, own)
            if links or behind:
                room = max(0, capacity - waiter.amount)
                self.waits[waiter.job_id] = _Wait(waiter.job_id, links, amounts, room, waiter.lock, behind)

    def _behind(self, waiter: "_Waiter", own: set[int]) -> int:
        """Return how many jobs get a lock with a larger capacity before it. A lock of 1 needs no such check: jobs
        before it in the queue wait for the same owner."""
        if self.tx.exists(_SHARED, (waiter.lock, list_text(own), waiter.job_id)):
            return 0
        if waiter.lock not in self.lines:
            line = self.lines[waiter.lock] = self.tx.column(_LINE, (waiter.waits_for, FOLLOWED + 1))
            self._places.update((job_id, place) for place, job_id in enumerate(line))
        return self._places.get(waiter.job_id, FOLLOWED + 1)


class _Waiter(NamedTuple):
    """A waiting job, as its row of ``inactive_jobs`` shows it."""

    job_id: int
    waits_for: str
    """``children``, ``needs``, ``serial`` or ``lock:NAME``."""
    amount: int
    """How much of the lock it wants."""
    capacity: int | None
    """The capacity that its stage names for the lock; None: none."""
    priority: int
    lineage: str

    @property
    def lock(self) -> str:
        """Return the name of the lock; empty when it waits for something else."""
        return self.waits_for.partition(":")[2]


# Each statement takes a list of jobs (or names of locks), and returns only edges to jobs that wait
# themselves: one that runs or can be claimed is no lasting obstacle. The list comes first: SQLite joins a
# "cross join" in the order in which it is written, and from the list every other table is entered by its key.
_WAITS = "p.job_id = {} and p.state = 'waiting'"
# Which of these jobs wait, and for what.
_WAITERS = (
    "select p.job_id, p.waits_for, coalesce(p.wants_amount, 1), p.wants_capacity, p.priority, jobs.lineage "
    "from json_each(?) j cross join inactive_jobs p cross join jobs "
    f"where {_WAITS.format('j.value')} and p.waits_for is not null and jobs.id = p.job_id"
)
# Which of these jobs keep a lock until they settle (and not only while an attempt runs).
_KEEPING = (
    "select distinct l.job_id from json_each(?) j cross join locks l "
    "where l.job_id = j.value and l.fence is null"
)
_ANY_KEPT = "select 1 from locks where fence is null limit 1"
# The waiting jobs that keep some of these locks until they settle.
_KEEPERS = (
    "select l.name, l.job_id, l.amount from json_each(?) /* text */ j cross join locks l cross join inactive_jobs p "
    f"where l.name = j.value and l.fence is null and {_WAITS.format('l.job_id')} limit ?"
)
# Whether a job has some of a lock already, or an ancestor keeps some: then it need not stand in the queue.
_SHARED = (
    "select 1 from locks where name = ? and job_id in (select j.value from json_each(?) j) "
    "and (job_id = ? or fence is null) limit 1"
)
# The queue for a lock, in its order. The second condition is that of the partial index
# ``inactive_jobs_by_lock``.
_LINE = (
    "select p.job_id from inactive_jobs p where p.waits_for = ? and p.waits_for like 'lock:%' "
    "order by p.priority, p.job_id limit ?"
)
# Open children.
_CHILDREN = (
    "select c.parent_id, c.child_id from json_each(?) j cross join children_left c cross join inactive_jobs p "
    f"where c.parent_id = j.value and c.bad = 0 and {_WAITS.format('c.child_id')} limit ?"
)
_NEEDS = (
    "select n.job_id, n.need_id from json_each(?) j cross join needs n cross join inactive_jobs p "
    f"where n.job_id = j.value and {_WAITS.format('n.need_id')} limit ?"
)
# The first job of a serial tree, for jobs of it that come later: all of them wait for that one.
_FIRST_IN_LINE = (
    "select jobs.id, s.job_id from json_each(?) j cross join jobs cross join serial_order s cross join inactive_jobs p "
    "where jobs.id = j.value and s.root_id = jobs.root_id and s.lineage < jobs.lineage "
    f"and {_WAITS.format('s.job_id')} and not exists (select 1 from serial_order e where e.root_id = s.root_id "
    "and e.lineage < s.lineage) limit ?"
)


# --- breaking ---------------------------------------------------------------------------------


class Breaking(Protocol):
    """The transaction in which a cycle is broken, and what it does with the victim (``cascades.Cascade``)."""

    tx: Tx
    registry: Registry
    now_us: int

    def settle(
        self, row: Row, state: State, *, reason: str | None = None, fingerprint: str | None = None
    ) -> None: ...
    def free_locks(self, job_id: int, fence: int | None) -> None: ...
    def wait_for_no_lock(self, row: Row) -> None: ...
    def prefer(self, job_id: int, lock: str) -> None: ...


def break_ring(cascade: Breaking, job_ids: Sequence[int]) -> bool:
    """Break a cycle that these jobs have closed by beginning to wait; return whether there was one, so that there may
    be more. The caller drains."""
    if not cascade.tx.exists(_ANY_KEPT):
        return False
    return any(_break(cascade, ring) for ring in _Search(cascade.tx, cascade.registry).rings(job_ids))


def _break(cascade: Breaking, ring: Ring) -> bool:
    """Break the cycle if it has locks, else it cannot be broken; return whether it was.

    The victim is the job at which the path from the youngest keeper reaches a lock (see the module). The
    audit gets an entry in the same transaction, because a job that fails through no fault of its own has to
    be explained."""
    keepers = {link.other_id for link in ring if link.edge is Edge.KEEPER}
    if not keepers:
        return False
    youngest = max(keepers)
    start = next(i for i, link in enumerate(ring) if link.job_id == youngest)
    victim = next(
        link.job_id for link in (*ring[start:], *ring[:start]) if link.edge in (Edge.KEEPER, Edge.LINE)
    )
    waiter = ring[start - 1]
    cascade.prefer(waiter.job_id, waiter.lock)
    tx, registry, now_us = cascade.tx, cascade.registry, cascade.now_us
    row, why = job_rows.find(tx, victim), f"a deadlock: {sentence(ring)}"
    spec = registry.types.get(row.type)
    restarts = spec is not None and spec.on_deadlock == "restart" and victim == youngest
    details = {
        "job": victim,
        "ring": sorted(link.job_id for link in ring),
        "then": "restart" if restarts else "fail",
    }
    note(tx, now_us, Actor(by=ACTOR, reason=why), VERB, details, 1)
    if restarts and spec is not None:
        log.warning("job %d lets go of its locks and starts again, because of %s", victim, why)
        _restart(cascade, row, spec)
    else:
        log.warning("job %d fails because of %s", victim, why)
        mark = failures.of_engine(tx, row.type, row.stage, DEADLOCK, why, now_us)
        cascade.settle(row, State.FAILED, reason=why, fingerprint=mark)
    return True


def _restart(cascade: Breaking, row: Row, spec: TypeSpec) -> None:
    """Release all locks, and start again with the stage that took the first of them."""
    tx, stages = cascade.tx, [stage.name for stage in spec.stages]
    now = stages.index(row.stage) if row.stage in stages else len(stages)
    job_rows.supersede(tx, row.id, stages[min(_first_taken(tx, row, spec), now) : now])
    stage = job_rows.next_stage(tx, row.id, spec)
    tx.run("update jobs set stage = ?, attempts = 0, interruptions = 0 where id = ?", (stage, row.id))
    cascade.free_locks(row.id, None)
    cascade.wait_for_no_lock(job_rows.find(tx, row.id))


def _first_taken(tx: Tx, row: Row, spec: TypeSpec) -> int:
    """Return the index of the stage that took the first of its locks. A lock that no stage declares may have been taken
    by the first stage."""
    params = json_object(tx.value("select params from jobs where id = ?", (row.id,)), of_job(row.id))
    declared: dict[str, int] = {}
    for number, stage in enumerate(spec.stages):
        for lock in stage.locks:
            try:
                declared.setdefault(lock_names.render(lock.template, params), number)
            except BadParameters:
                continue  # the claim of that stage reports it
    names = tx.column("select name from locks where job_id = ? and fence is null", (row.id,))
    return min((declared.get(name, 0) for name in names), default=len(spec.stages))
