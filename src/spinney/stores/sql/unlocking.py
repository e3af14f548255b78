"""Locks seen from outside, and taken away by somebody who has judged that their owner is gone.

The rows of ``locks`` are the truth and there is nothing beside them, so to free a lock is to delete its rows;
who waits is then woken in the way in which an ended attempt wakes it. The old owner's lease stays as it is: when
that attempt ends, it gives back what it still has, which is no longer this lock.
"""

from collections.abc import Iterable, Sequence

import orjson

from spinney.model import names
from spinney.model.errors import Refused
from spinney.model.operators import Author, LockInfo
from spinney.params.hints import did_you_mean
from spinney.stores.sql import locks
from spinney.stores.sql.auditing import note
from spinney.stores.sql.database import Tx
from spinney.stores.sql.session import Session
from spinney.stores.sql.settling import Consequences

_NAMED = 20
"""So many jobs are named in a sentence or an entry of the audit."""
_NEAR = 1_000
"""Names among which one is sought that somebody may have meant."""


class SqlLocks:
    """``spinney.stores.operators.Locks`` on SQL."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def all(self, *, after: str = "", limit: int = 1000) -> Sequence[LockInfo]:
        with self._session.look() as tx:
            found = {*_held(tx, after, limit), *_waited_for(tx, after, limit)}
            return _infos(tx, sorted(found)[:limit])

    def of(self, name: str) -> Sequence[LockInfo]:
        with self._session.look() as tx:
            return [info for info in _infos(tx, [name]) if info.owner_id is not None or info.waiting]

    def free(self, name: str, author: Author, *, job_id: int | None = None, now_us: int) -> int:
        names.lock_name(name)
        with self._session.write() as tx:
            owners = [j for (j,) in tx.all("select job_id from locks where name = ? order by job_id", (name,))]
            losers = [j for j in owners if job_id is None or j == job_id]
            if not losers:
                raise Refused(_not_had(tx, name, job_id, owners))
            tx.many("delete from locks where name = ? and job_id = ?", [(name, j) for j in losers])
            note(tx, now_us, author, "unlock", {"lock": name, "jobs": losers[:_NAMED]}, len(losers))
            consequences = Consequences(tx, self._session.registry, now_us)
            for _ in losers:  # each makes room for one
                consequences.lock_freed(name)
                consequences.drain()
        return len(losers)


# --- looking ----------------------------------------------------------------------------------


def _held(tx: Tx, after: str, limit: int) -> Iterable[str]:
    found = tx.all("select distinct name from locks where name > ? order by name limit ?", (after, limit))
    return [name for (name,) in found]


def _waited_for(tx: Tx, after: str, limit: int) -> Iterable[str]:
    """One index seek a name, however many wait for each."""
    at = f"lock:{after}"
    for _ in range(limit):
        at = tx.value("select min(waits_for) from parked where waits_for > ? and waits_for like 'lock:%'", (at,))
        if at is None:
            return
        yield at[5:]


def _infos(tx: Tx, wanted: Sequence[str]) -> list[LockInfo]:
    """A line for each owner of these locks, in their order; for a lock that nobody has, one without."""
    listed = orjson.dumps(wanted).decode()
    waiting = {
        name: tx.value(
            "select count(*) from parked where waits_for = ? and waits_for like 'lock:%'", (f"lock:{name}",)
        )
        for name in wanted
    }
    owned: dict[str, list[LockInfo]] = {}
    for name, job_id, fence, since_us, node in tx.all(
        "select l.name, l.job_id, l.fence, l.since_us, n.name from json_each(?) /* text */ j "
        "join locks l on l.name = j.value "
        "left join leases e on e.job_id = l.job_id left join nodes n on n.id = e.node_id order by l.name, l.job_id",
        (listed,),
    ):
        info = LockInfo(
            name=name, owner_id=job_id, until=_until(fence), node=node, since_us=since_us, waiting=waiting[name]
        )
        owned.setdefault(name, []).append(info)
    nobody = [
        LockInfo(name=name, owner_id=None, until="", node=None, since_us=None, waiting=waiting[name])
        for name in wanted
        if name not in owned
    ]
    return sorted([*nobody, *(info for infos in owned.values() for info in infos)], key=lambda info: info.name)


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
