"""The queue of jobs that wait for a lock: the most urgent first, of these the one with the lowest id.

The first waiting job gets the lock first, whatever its amount: no job behind it may pass, and neither may a new one
that would come behind it, even with a small amount (``locks.look``). So a job with a large amount only waits for the
current owners, and for jobs that were created before it. The order is by id and not by the start of waiting, so that a
job that was woken, and sent back by another lock, keeps its place."""

from typing import NamedTuple

from spinney.model.lineage import subtree
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.registry import homes
from spinney.store.sql.registry.registry import Registry

KEEPERS_LOOKED_AT = 1_000
"""How many of the jobs that keep some of a lock until they settle are checked whether they, or jobs below them, wait
for it."""
TREES_LOOKED_AT = 20
"""How many of their trees are searched."""


class Waiter(NamedTuple):
    """A job that waits for a lock."""

    job_id: int
    priority: int
    amount: int
    capacity: int | None
    """The capacity that it named; None: none."""


def first_waiting(tx: Tx, registry: Registry, name: str, only: int | None = None) -> Waiter | None:
    """Return the first job in the queue for this lock, by priority and id, of those that can be reached; None: nobody
    waits. ``only``: consider this job alone.

    ``like 'lock:%'`` repeats the condition of the partial index ``inactive_jobs_by_lock``, which has the
    order of the queue: without it neither planner would use the index."""
    condition, binds = ("", ()) if only is None else ("and p.job_id = ? ", (only,))
    first = tx.one(
        f"select {_COLUMNS} from inactive_jobs p where p.waits_for = ? and p.waits_for like 'lock:%' {condition}"
        f"and exists (select 1 from jobs where jobs.id = p.job_id{_reachable(registry)}) "
        "order by p.priority, p.job_id limit 1",
        (f"lock:{name}", *binds),
    )
    return None if first is None else Waiter(*first)


def with_some(tx: Tx, registry: Registry, name: str) -> list[Waiter]:
    """Return waiting jobs that must not wait behind others, which perhaps wait for them in turn: those that keep some
    of the lock until they settle and want more, or are below one that does. Where very many keep some of it, not all
    are returned."""
    waits_for = f"lock:{name}"
    rows = tx.all(
        f"select {_COLUMNS} from {_KEEPERS} k join inactive_jobs p on p.job_id = k.job_id where p.waits_for = ? "
        f"and exists (select 1 from jobs where jobs.id = p.job_id{_reachable(registry)}) "
        "order by p.priority, p.job_id limit 1",
        (name, KEEPERS_LOOKED_AT, waits_for),
    )
    for root_id, lineage in tx.all(
        f"select o.root_id, o.lineage from {_KEEPERS} k join jobs o on o.id = k.job_id where exists "
        "(select 1 from children_left c where c.parent_id = k.job_id and c.bad = 0) limit ?",
        (name, KEEPERS_LOOKED_AT, TREES_LOOKED_AT),
    ):
        start, until = subtree(lineage)
        rows += tx.all(
            f"select {_COLUMNS} from jobs join inactive_jobs p on p.job_id = jobs.id where jobs.parent_id is not null "
            "and jobs.root_id = ? and jobs.lineage > ? and jobs.lineage < ? and p.waits_for = ?"
            f"{_reachable(registry)} limit 1",
            (root_id, start, until, waits_for),
        )
    return [Waiter(*row) for row in rows]


_COLUMNS = "p.job_id, p.priority, coalesce(p.wants_amount, 1), p.wants_capacity"
_KEEPERS = "(select job_id from locks where name = ? and fence is null order by job_id limit ?)"


def _reachable(registry: Registry) -> str:
    """Return a condition on ``jobs``: no lock is reserved for a job whose folder is where no node runs."""
    places = registry.homes
    return f" and {homes.attended(places.sql)}" if places.local else ""
