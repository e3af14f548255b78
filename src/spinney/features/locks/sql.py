"""Locks seen from outside: who has them, how much there is of them, and taken away by somebody who has judged that
their owner is gone.

The rows of ``locks`` are the truth and there is nothing beside them, so to free a lock is to delete its rows;
who waits is then woken in the way in which an ended attempt wakes it. The old owner's lease stays as it is: when
that attempt ends, it gives back what it still has, which is no longer this lock.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile

import orjson

from spinney.model.access import AccessScope
from spinney.model.errors import Refused
from spinney.model.jobs import Filter
from spinney.model.rights.operators import Actor, CapacityInfo, LockInfo
from spinney.model.values import names
from spinney.model.values.hints import did_you_mean
from spinney.store.sql.audit import note
from spinney.store.sql.connection.database import RowChange, Tx
from spinney.store.sql.read import filter_queries
from spinney.store.sql.registry import capacities
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.session import Session
from spinney.store.sql.transitions import locks
from spinney.store.sql.transitions.cascades import Cascade

_NAMED = 20
"""So many jobs are named in a sentence or an entry of the audit."""
_WOKEN = 100
"""Of so many locks of a family those that wait are let go at once when there is more of each."""
_NEAR = 1_000
"""Names among which one is sought that somebody may have meant."""

_LOST = RowChange("locks", "name = ? and job_id = ?")


class SqlLocks:
    """Locks, as operators see and change them."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def all(
        self, *, after: str = "", limit: int = 1000, within: AccessScope | None = None
    ) -> Sequence[LockInfo]:
        """Return the locks that are held or waited for, by name: all rows of the first ``limit`` names after ``after``.
        ``within``: only locks that a job within these limits holds or waits for; of the waiting jobs only such are
        counted."""
        mine = _Mine(within)
        with self._session.look() as tx:
            held = mine.held(tx, after, limit) if mine else _held(tx, after, limit)
            waited_for = mine.waited_for(tx, after, limit) if mine else _waited_for(tx, after, limit)
            return _infos(tx, self._session.registry, sorted({*held, *waited_for})[:limit], mine)

    def get(self, name: str, *, within: AccessScope | None = None) -> Sequence[LockInfo]:
        """Return the rows of one lock; nothing where no job (``within`` the limits) holds it or waits for it."""
        mine = _Mine(within)
        with self._session.look() as tx:
            if mine and not mine.concerns(tx, name):
                return []
            found = _infos(tx, self._session.registry, [name], mine)
            return [info for info in found if info.owner_id is not None or info.waiting]

    def free(self, name: str, actor: Actor, *, job_id: int | None = None, now_us: int) -> int:
        """Take a lock away from its owners (or from one job), and return how many lost it. The next waiting job goes on
        even if the old owner still runs: the operator has judged that it does not. The old owner keeps its lease,
        without the lock. Raises Refused when nobody (or not this job) has it."""
        names.lock_name(name)
        with self._session.write() as tx:
            owners = [
                j for (j,) in tx.all("select job_id from locks where name = ? order by job_id", (name,))
            ]
            losers = [j for j in owners if job_id is None or j == job_id]
            if not losers:
                raise Refused(_not_had(tx, name, job_id, owners))
            tx.change(_LOST, [(name, j) for j in losers])
            note(tx, now_us, actor, "unlock", {"lock": name, "jobs": losers[:_NAMED]}, len(losers))
            _let_go_on(tx, self._session.registry, [name], now_us)
        return len(losers)

    def capacities(self) -> Sequence[CapacityInfo]:
        """Return the capacities that operators set and applications declare, by name."""
        with self._session.look() as tx:
            return capacities.all_(tx)

    def capacity(self, name: str, given: int | None = None) -> int:
        """Return the capacity of a lock: what an operator set, else what the job that takes it ``given``, else what an
        application declares, else 1. Of several entries of one origin the one with the longest matching name counts."""
        names.lock_name(name)
        with self._session.look():
            return self._session.registry.capacities.in_force(name, given)

    def set_capacity(self, name: str, capacity: int | None, actor: Actor, *, now_us: int) -> int:
        """Set the capacity of a lock, or of each lock of a family (``download:*``); None removes the setting. Returns
        the capacity then in force.

        A larger one lets waiting jobs go on. With a smaller one than is held nothing is taken away, and nothing more is
        granted. A call that changes nothing is not in the audit. Raises BadName, UsageError (an invalid capacity) and
        Refused (nothing was set).
        """
        names.lock_or_family(name)
        registry = self._session.registry
        with self._session.write() as tx:
            if capacities.put(tx, name, capacity, actor.by, now_us):
                registry.touch(tx)
                said = "as declared" if capacity is None else capacity
                note(tx, now_us, actor, "lock", {"lock": name, "capacity": said}, 1)
                _let_go_on(tx, registry, _concerned(tx, name), now_us)
            return registry.capacities.in_force(name)


# --- who waits --------------------------------------------------------------------------------


def _concerned(tx: Tx, name: str) -> list[str]:
    """The locks of a name, or of a family, that somebody waits for. Of a large family the first: the others are found
    by housekeeping."""
    if not name.endswith("*"):
        return [name]
    beginning = name[:-1]
    own = (
        [beginning]
        if tx.value("select 1 from inactive_jobs where waits_for = ? limit 1", (f"lock:{beginning}",))
        else []
    )
    behind = takewhile(lambda found: found.startswith(beginning), _waited_for(tx, beginning, _WOKEN))
    return [*own, *behind]


def _let_go_on(tx: Tx, registry: Registry, freed: Iterable[str], now_us: int) -> None:
    cascade = Cascade(tx, registry, now_us)
    for name in freed:
        cascade.lock_freed(name)
    cascade.drain()


# --- looking ----------------------------------------------------------------------------------


def _held(tx: Tx, after: str, limit: int) -> Iterable[str]:
    found = tx.all("select distinct name from locks where name > ? order by name limit ?", (after, limit))
    return [name for (name,) in found]


def _waited_for(tx: Tx, after: str, limit: int) -> Iterable[str]:
    """One index seek a name, however many wait for each."""
    at = f"lock:{after}"
    for _ in range(limit):
        at = tx.value(
            "select min(waits_for) from inactive_jobs where waits_for > ? and waits_for like 'lock:%'", (at,)
        )
        if at is None:
            return
        yield at[5:]


class _Mine:
    """Locks that jobs within somebody's limits have or wait for. Empty (false): there are no limits."""

    def __init__(self, within: AccessScope | None) -> None:
        where, self._args = filter_queries.conditions(Filter(within=within))
        self._where = " and ".join(where)

    def __bool__(self) -> bool:
        return bool(self._where)

    def held(self, tx: Tx, after: str, limit: int) -> Iterable[str]:
        found = tx.all(
            "select distinct l.name from locks l cross join jobs where l.name > ? and jobs.id = l.job_id "
            f"and {self._where} order by l.name limit ?",
            (after, *self._args, limit),
        )
        return [name for (name,) in found]

    def waited_for(self, tx: Tx, after: str, limit: int) -> Iterable[str]:
        found = tx.all(
            "select distinct p.waits_for from inactive_jobs p cross join jobs where p.waits_for > ? "
            f"and p.waits_for like 'lock:%' and jobs.id = p.job_id and {self._where} order by p.waits_for limit ?",
            (f"lock:{after}", *self._args, limit),
        )
        return [name[5:] for (name,) in found]

    def waiting(self, tx: Tx, name: str) -> int:
        found: int = tx.value(
            "select count(*) from inactive_jobs p cross join jobs where p.waits_for = ? and p.waits_for like 'lock:%' "
            f"and jobs.id = p.job_id and {self._where}",
            (f"lock:{name}", *self._args),
        )
        return found

    def concerns(self, tx: Tx, name: str) -> bool:
        owner = tx.value(
            f"select 1 from locks l cross join jobs where l.name = ? and jobs.id = l.job_id and {self._where} limit 1",
            (name, *self._args),
        )
        return owner is not None or self.waiting(tx, name) > 0


def _waiting(tx: Tx, name: str) -> int:
    found: int = tx.value(
        "select count(*) from inactive_jobs where waits_for = ? and waits_for like 'lock:%'",
        (f"lock:{name}",),
    )
    return found


def _infos(tx: Tx, registry: Registry, wanted: Sequence[str], mine: "_Mine") -> list[LockInfo]:
    """A line for each owner of these locks, in their order; for a lock that nobody has, one without."""
    listed = orjson.dumps(wanted).decode()
    waiting = {name: mine.waiting(tx, name) if mine else _waiting(tx, name) for name in wanted}
    there = {name: registry.capacities.in_force(name) for name in wanted}
    found = tx.all(
        "select l.name, l.job_id, l.fence, l.since_us, l.amount, n.name from json_each(?) /* text */ j "
        "join locks l on l.name = j.value "
        "left join leases e on e.job_id = l.job_id left join nodes n on n.id = e.node_id order by l.name, l.job_id",
        (listed,),
    )
    used = Counter[str]()
    for name, _, _, _, amount, _ in found:
        used[name] += amount
    owned = [
        LockInfo(
            name=name,
            owner_id=job_id,
            until=_until(fence),
            node=node,
            since_us=since_us,
            waiting=waiting[name],
            amount=amount,
            used=used[name],
            capacity=there[name],
        )
        for name, job_id, fence, since_us, amount, node in found
    ]
    nobody = [
        LockInfo(
            name=name,
            owner_id=None,
            until="",
            node=None,
            since_us=None,
            waiting=waiting[name],
            amount=0,
            used=0,
            capacity=there[name],
        )
        for name in wanted
        if name not in used
    ]
    return sorted([*nobody, *owned], key=lambda info: info.name)


def _until(fence: int | None) -> str:
    if fence is None:
        return "job"
    return "reserved" if fence == locks.RESERVED else "attempt"


# --- refusing ---------------------------------------------------------------------------------


def _not_had(tx: Tx, name: str, job_id: int | None, owners: Sequence[int]) -> str:
    if owners:
        have = f"{', '.join(map(str, owners[:_NAMED]))} {'has' if len(owners) == 1 else 'have'}"
        return f"job {job_id} does not have the lock {name!r}: job {have} it; leave out the job, or name that one"
    return (
        f"nobody has the lock {name!r}{did_you_mean(name, _held(tx, '', _NEAR))}; "
        f"'spinney locks' lists those there are"
    )
