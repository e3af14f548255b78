"""Locks for operators: their owners, their capacities, and freeing a lock whose owner is gone.

The rows of ``locks`` are the only record of who has a lock, so freeing one means deleting its rows; waiting jobs are
then woken as they are when an attempt ends. The old owner keeps its lease: when that attempt ends, it gives back the
locks that it still has.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import takewhile

from spinney.model.access import AccessScope
from spinney.model.errors import Refused
from spinney.model.jobs import Filter
from spinney.model.operators.locks import LockInfo
from spinney.model.rights.actor import Actor
from spinney.model.settings.capacities import CapacityInfo
from spinney.model.values import names
from spinney.model.values.hints import did_you_mean, first_of
from spinney.store.sql.audit import note
from spinney.store.sql.connection.database import RowChange, Tx, list_text
from spinney.store.sql.read import filter_queries
from spinney.store.sql.registry import capacities
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.session import SqlPart
from spinney.store.sql.transitions import deadlocks, locks
from spinney.store.sql.transitions.cascades import Cascade

_NAMED = 20
"""How many jobs a message or an entry of the audit names."""
_WOKEN = 100
"""The most locks of a family whose waiting jobs are woken at once when its capacity grows."""
_SIMILAR = 1_000
"""How many names are searched for one that is similar to a mistyped one."""

_LOST = RowChange("locks", "name = ? and job_id = ?")
"""Takes a lock away from one job."""


class SqlLocks(SqlPart):
    """Locks, as operators see and change them. Changes are audited in their own transaction, and wake
    waiting jobs in it."""

    def all(
        self, *, after: str = "", limit: int = 1000, within: AccessScope | None = None
    ) -> Sequence[LockInfo]:
        """Return the locks that are held or waited for, by name: all rows of the first ``limit``
        names after ``after``.

        ``within``: only locks that a job within these limits holds or waits for; only such jobs are counted among those
        that wait. A lock with several owners has a row for each; one that is only waited for has a row without owner.
        """
        visible = _VisibleLocks(within)
        with self._session.look() as tx:
            all_names = {*visible.held(tx, after, limit), *visible.waited_for(tx, after, limit)}
            return _infos(tx, self._session.registry, sorted(all_names)[:limit], visible)

    def get(self, name: str, *, within: AccessScope | None = None) -> Sequence[LockInfo]:
        """Return the rows of one lock; nothing where no job (``within`` the limits) holds it or waits
        for it."""
        visible = _VisibleLocks(within)
        with self._session.look() as tx:
            if visible.limited and not visible.includes(tx, name):
                return []
            infos = _infos(tx, self._session.registry, [name], visible)
            return [info for info in infos if info.owner_id is not None or info.waiting]

    def free(
        self,
        name: str,
        actor: Actor,
        *,
        job_id: int | None = None,
        only_from: Collection[int] | None = None,
        now_us: int,
    ) -> int:
        """Take a lock away from its owners (or from one job), and return how many lost it.

        The next waiting job continues even if the old owner still runs: the operator has judged that
        it does not. The old owner keeps its lease, without the lock. ``only_from``: the owners that
        the actor may take it from, as read a moment ago. Raises BadName, and Refused when nobody (or
        not this job) has it, or when a job that is not of ``only_from`` would lose it.
        """
        names.lock_name(name)
        with self._session.write() as tx:
            owners = tx.column("select job_id from locks where name = ? order by job_id", (name,))
            losers = [j for j in owners if job_id is None or j == job_id]
            if not losers:
                raise Refused(_no_owner(tx, name, job_id, owners))
            if only_from is not None and not set(losers) <= set(only_from):
                raise Refused(f"another job has taken the lock {name!r} meanwhile; look at its owners again")
            tx.change(_LOST, [(name, j) for j in losers])
            note(tx, now_us, actor, "unlock", {"lock": name, "jobs": losers[:_NAMED]}, len(losers))
            _wake_waiting(Cascade(tx, self._session.registry, now_us), [name])
        return len(losers)

    def capacities(self) -> Sequence[CapacityInfo]:
        """Return the capacities that operators set and applications declare, by name."""
        with self._session.look() as tx:
            return capacities.all_(tx)

    def set_capacity(self, name: str, capacity: int | None, actor: Actor, *, now_us: int) -> int:
        """Set the capacity of a lock, or of each lock of a family (``download:*``), and return the
        capacity then in force.

        None removes the setting. A larger one lets waiting jobs continue. With a smaller one than is
        held nothing is taken away, and nothing more is granted. A call that changes nothing is not in
        the audit. Raises BadName, UsageError (an invalid capacity) and Refused (nothing was set).
        """
        names.lock_or_family(name)
        registry = self._session.registry
        with self._session.write() as tx:
            if capacities.put(tx, name, capacity, actor.by, now_us):
                registry.touch(tx)
                setting = "as declared" if capacity is None else capacity
                note(tx, now_us, actor, "lock", {"lock": name, "capacity": setting}, 1)
                cascade, waited = Cascade(tx, registry, now_us), _waited_locks(tx, name)
                for keeper_id in deadlocks.waiting_keepers(tx, waited):
                    cascade.began_to_wait(keeper_id)  # a smaller capacity may close a cycle
                _wake_waiting(cascade, waited)
            return registry.capacities.in_force(name)


# --- waking waiting jobs ----------------------------------------------------------------------


def _waited_locks(tx: Tx, name: str) -> list[str]:
    """Return the locks of a name, or of a family, that jobs wait for.

    In a large family these are only the first ``_WOKEN``, since housekeeping finds the others. The prefix itself
    belongs to the family, and is not greater than itself, so it is looked up apart.
    """
    if not name.endswith("*"):
        return [name]
    prefix = name[:-1]
    own = tx.exists("select 1 from inactive_jobs where waits_for = ? limit 1", (f"lock:{prefix}",))
    longer = takewhile(lambda other: other.startswith(prefix), _waited_for(tx, prefix, _WOKEN))
    return [*([prefix] if own else []), *longer]


def _wake_waiting(cascade: Cascade, freed: Iterable[str]) -> None:
    """Give each of these locks to the jobs that wait for it, as far as there is capacity, and do what
    follows from that."""
    for name in freed:
        cascade.lock_freed(name)
    cascade.drain()


# --- reads ------------------------------------------------------------------------------------


def _waited_for(tx: Tx, after: str, limit: int) -> Iterable[str]:
    """Yield the names that jobs wait for, at most ``limit``, with one index seek a name, however many
    jobs wait for each."""
    at = f"lock:{after}"
    for _ in range(limit):
        at = tx.value(
            "select min(waits_for) from inactive_jobs where waits_for > ? and waits_for like 'lock:%'", (at,)
        )
        if at is None:
            return
        yield at[5:]


class _VisibleLocks:
    """Reads the locks that jobs within somebody's limits have or wait for; without limits those of all
    jobs.

    With limits, each row is joined with its job; ``cross join`` makes SQLite begin with the rows, which
    are few.
    """

    def __init__(self, within: AccessScope | None) -> None:
        where, self._args = filter_queries.conditions(Filter(within=within))
        self.limited = bool(where)
        jobs = "cross join jobs" if where else ""
        self._owned = f"locks l {jobs}"
        self._owner = " and ".join(["", "jobs.id = l.job_id", *where]) if where else ""
        self._waited = f"inactive_jobs p {jobs}"
        self._waiter = " and ".join(["", "jobs.id = p.job_id", *where]) if where else ""

    def held(self, tx: Tx, after: str, limit: int) -> Iterable[str]:
        """Return the names of locks that visible jobs have, by name, after ``after``."""
        return tx.column(
            f"select distinct l.name from {self._owned} where l.name > ?{self._owner} order by l.name limit ?",
            (after, *self._args, limit),
        )

    def waited_for(self, tx: Tx, after: str, limit: int) -> Iterable[str]:
        """Return the names of locks that visible jobs wait for, by name, after ``after``."""
        if not self.limited:
            return _waited_for(tx, after, limit)
        waits_for = tx.column(
            f"select distinct p.waits_for from {self._waited} where p.waits_for > ? and p.waits_for like 'lock:%'"
            f"{self._waiter} order by p.waits_for limit ?",
            (f"lock:{after}", *self._args, limit),
        )
        return [lock.removeprefix("lock:") for lock in waits_for]

    def waiting(self, tx: Tx, name: str) -> int:
        """Return how many visible jobs wait for a lock."""
        count: int = tx.value(
            # The second condition is always true, and lets the partial index of waiting jobs be used.
            f"select count(*) from {self._waited} where p.waits_for = ? and p.waits_for like 'lock:%'{self._waiter}",
            (f"lock:{name}", *self._args),
        )
        return count

    def includes(self, tx: Tx, name: str) -> bool:
        """Return whether a visible job has the lock or waits for it."""
        owned = f"select 1 from {self._owned} where l.name = ?{self._owner} limit 1"
        return tx.exists(owned, (name, *self._args)) or self.waiting(tx, name) > 0


def _infos(tx: Tx, registry: Registry, names: Sequence[str], visible: _VisibleLocks) -> list[LockInfo]:
    """Return an item for each owner of these locks, by name; for a lock without owners one without a job.

    Owners are listed whether they are visible or not, since they use up the capacity; callers above this
    one leave out what must not be seen.
    """
    rows = tx.all(
        "select l.name, l.job_id, l.fence, l.since_us, l.amount, n.name from json_each(?) /* text */ j "
        "join locks l on l.name = j.value "
        "left join leases e on e.job_id = l.job_id left join nodes n on n.id = e.node_id order by l.name, l.job_id",
        (list_text(names),),
    )
    used = Counter[str]()
    for name, _, _, _, amount, _ in rows:
        used[name] += amount
    waiting = {name: visible.waiting(tx, name) for name in names}
    capacity = {name: registry.capacities.in_force(name) for name in names}
    unowned = [(name, None, None, None, 0, None) for name in names if name not in used]
    infos = [
        LockInfo(
            name=name,
            owner_id=job_id,
            until="" if job_id is None else _until(fence),
            node=node,
            since_us=since_us,
            waiting=waiting[name],
            amount=amount,
            used=used[name],
            capacity=capacity[name],
        )
        for name, job_id, fence, since_us, amount, node in [*unowned, *rows]
    ]
    return sorted(infos, key=lambda info: info.name)


def _until(fence: int | None) -> str:
    """Return until when a lock is held, by the fence in its row: that of an attempt, none for a job, or the one that
    reserves it for the next start."""
    if fence is None:
        return "job"
    return "reserved" if fence == locks.RESERVED else "attempt"


# --- refusals ---------------------------------------------------------------------------------


def _no_owner(tx: Tx, name: str, job_id: int | None, owners: Sequence[int]) -> str:
    """Return why a lock cannot be freed: which other jobs have it, or names that are similar."""
    if owners:
        have = f"{first_of(map(str, owners), _NAMED)} {'has' if len(owners) == 1 else 'have'}"
        return f"job {job_id} does not have the lock {name!r}: job {have} it; leave out the job, or name that one"
    names = _VisibleLocks(None).held(tx, "", _SIMILAR)
    return f"no job has the lock {name!r}{did_you_mean(name, names)}; 'spinney locks' lists the locks"
