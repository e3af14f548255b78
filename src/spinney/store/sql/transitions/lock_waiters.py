"""Who waits for a lock, and in which order: the most urgent first, of these the one with the lowest number.

The first that waits gets the lock first, however much it wants: nobody behind it may pass, and neither may a newcomer
that would stand behind it, though what it wants be little (``locks.look``). So one that wants much waits only for
those that have the lock now, and for jobs that came into the store before it. By number and not by when the waiting
began, so that one that was woken, and sent back by another lock, keeps its place.
"""

from typing import NamedTuple

from spinney.model.lineage import subtree
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.registry import homes
from spinney.store.sql.registry.registry import Registry

KEEPERS_LOOKED_AT = 1_000
"""Of many jobs that keep some of a lock until they settle so many are asked whether they, or jobs below them, wait
for it."""
TREES_LOOKED_AT = 20
"""Of these so many trees are searched."""


class Waiter(NamedTuple):
    """One that waits."""

    job_id: int
    priority: int
    amount: int
    capacity: int | None
    """What it said of the lock when it asked for it; None: nothing."""


def first_waiting(tx: Tx, registry: Registry, name: str) -> Waiter | None:
    """The first of those that wait."""
    return _waiter(
        tx.one(
            f"select {_COLUMNS} from inactive_jobs p where p.waits_for = ? and p.waits_for like 'lock:%' "
            f"and exists (select 1 from jobs where jobs.id = p.job_id{_reachable(registry)}) "
            "order by p.priority, p.job_id limit 1",
            (f"lock:{name}",),
        )
    )


def with_some(tx: Tx, registry: Registry, name: str) -> list[Waiter]:
    """Those that may not stand behind a stranger, who perhaps waits for them in turn: that keep some of the lock
    until they settle and want more, or lie below one that does. Where very many keep some of it, not all."""
    waits_for = f"lock:{name}"
    own = tx.one(
        f"select {_COLUMNS} from {_KEEPERS} k join inactive_jobs p on p.job_id = k.job_id where p.waits_for = ? "
        f"and exists (select 1 from jobs where jobs.id = p.job_id{_reachable(registry)}) "
        "order by p.priority, p.job_id limit 1",
        (name, KEEPERS_LOOKED_AT, waits_for),
    )
    found = [_waiter(own)]
    for root_id, lineage in tx.all(
        f"select o.root_id, o.lineage from {_KEEPERS} k join jobs o on o.id = k.job_id where exists "
        "(select 1 from children_left c where c.parent_id = k.job_id and c.bad = 0) limit ?",
        (name, KEEPERS_LOOKED_AT, TREES_LOOKED_AT),
    ):
        start, until = subtree(lineage)
        below = tx.one(
            f"select {_COLUMNS} from jobs join inactive_jobs p on p.job_id = jobs.id where jobs.parent_id is not null "
            "and jobs.root_id = ? and jobs.lineage > ? and jobs.lineage < ? and p.waits_for = ?"
            f"{_reachable(registry)} limit 1",
            (root_id, start, until, waits_for),
        )
        found.append(_waiter(below))
    return [waiter for waiter in found if waiter is not None]


_COLUMNS = "p.job_id, p.priority, coalesce(p.wants_amount, 1), p.wants_capacity"
_KEEPERS = "(select job_id from locks where name = ? and fence is null order by job_id limit ?)"


def _waiter(row: tuple[int, int, int, int | None] | None) -> Waiter | None:
    return None if row is None else Waiter(*row)


def _reachable(registry: Registry) -> str:
    """A condition over ``jobs``: no lock is kept for a job whose folder is where no node runs."""
    found = registry.homes
    return f" and {homes.attended(found.sql)}" if found.local else ""
