"""One job, as of one snapshot, and the causes that hold for pending and other jobs alike: holds and locks."""

from collections.abc import Sequence
from typing import Any

from spinney.features.explain.explanation import Cause
from spinney.model.fleet import SILENT_US, presumed_dead
from spinney.model.jobs import NodeInfo
from spinney.model.lineage import ancestors
from spinney.model.settings.holds import Hold
from spinney.model.states import SETTLED
from spinney.store.sql.connection.database import Tx, list_text
from spinney.store.sql.registry import hold_coverage, job_rows
from spinney.store.sql.registry.job_rows import Row
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.transitions import deadlocks, lock_waiters, locks


class Case:
    """One job as one snapshot shows it, from which the causes for its not running are derived.

    It reads the job's row in ``inactive_jobs`` at once: ``waits_for``, ``wake_us`` and ``reason`` are None
    for a job that has none, such as a pending one. ``home`` is where its folder is.
    """

    def __init__(self, tx: Tx, registry: Registry, row: Row, now_us: int) -> None:
        self.tx, self.registry, self.row, self.now_us = tx, registry, row, now_us
        inactive: tuple[str | None, int | None, str | None] | None = tx.one(
            "select waits_for, wake_us, reason from inactive_jobs where job_id = ?", (row.id,)
        )
        self.waits_for, self.wake_us, self.reason = inactive or (None, None, None)
        self.home = registry.homes.of(tx, row.node_id)

    def _cause(self, cause: str, *, start_us: int | None = None, **facts: Any) -> Cause:
        return Cause(job_id=self.row.id, cause=cause, start_us=start_us, facts=facts)

    def _state(self, job_id: int, state: str) -> str:
        """Return a job's state as people know it: a leased job says pending in its row."""
        return "running" if job_rows.leased_fence(self.tx, job_id) is not None else str(state)

    def _is_silent(self, node: NodeInfo) -> bool:
        """Return whether the node gives no sign of life, as lists of nodes show it; an external worker has its own
        limit."""
        limit_us = node.dead_after_s * 1e6 if node.is_external_worker else SILENT_US
        return self.now_us - node.seen_us > limit_us

    def _silence(self, node: NodeInfo, present: Sequence[NodeInfo]) -> dict[str, Any]:
        """Return the facts about a silent node: for how long, and (``back``) what becomes of its jobs: others take
        them back ``later``, ``soon``, or should have by now (``late``); None: no other node runs. ``present``: all
        nodes."""
        facts = {"node": node.name, "silent_s": (self.now_us - node.seen_us) // 1_000_000}
        if not any(n.state == "active" and not (n.is_external_worker or self._is_silent(n)) for n in present):
            return facts | {"back": None}
        if self.now_us <= node.seen_us + node.dead_after_s * 1e6:
            return facts | {"back": "later", "lease_s": node.dead_after_s}
        late = presumed_dead(node.seen_us, node.lease_s, self.now_us)
        return facts | {"back": "late" if late else "soon"}

    # --- holds ----------------------------------------------------------------------------------

    def _holds(self) -> Sequence[Hold]:
        return hold_coverage.holds_of(self.tx, self.registry.holds, self.row)

    def _under(self, holds: Sequence[Hold]) -> Cause:
        """Return the cause for a job under these holds. Holds whose time is over still mark the job until the
        next sweep, so with none that lasts the job counts as released."""
        lasting = [hold for hold in holds if hold.until_us is None or hold.until_us > self.now_us]
        if not lasting:
            return self._cause("released", hold=str(holds[0]), holds=[holds[0].id])
        return self._cause("hold", start_us=_end_of(lasting), **_named(lasting))

    def _until(self, cause: str, **facts: Any) -> Cause:
        """Return the cause for a job that waits for a time. Its facts name the holds that last longer and will keep it
        then."""
        longer = [
            hold for hold in self._holds() if hold.until_us is None or hold.until_us > (self.wake_us or 0)
        ]
        if not longer:
            return self._cause(cause, start_us=self.wake_us, **facts)
        return self._cause(cause, start_us=_end_of(longer), **_named(longer), **facts)

    # --- locks ----------------------------------------------------------------------------------

    def _for_lock(self, name: str) -> Cause:
        """Return the cause for a job that waits for this lock, or stands in a ring of jobs that wait for each
        other.

        The facts say whether the lock is ``free`` by now, and whether its owner is gone; for a lock with a capacity
        also the ``amount`` that the job wants, how much of the ``capacity`` is ``used`` and by how many ``owners``, and
        whether another job is ``queued`` before it.
        """
        above = ancestors(self.row.lineage)  # what they keep is no obstacle
        first_owner: tuple[int, int | None] | None = self.tx.one(
            "select job_id, fence from locks where name = ? "
            "order by case when job_id in (select j.value from json_each(?) j) then 1 else 0 end, job_id limit 1",
            (name, list_text(above)),
        )
        if first_owner is None:
            return self._cause("lock", lock=name, free=True)
        ring = deadlocks.find(self.tx, self.registry, self.row.id)
        if ring is not None:
            return self._cause(
                "deadlock", ring=sorted(link.job_id for link in ring), chain=deadlocks.sentence(ring)
            )
        owner, fence = first_owner
        amount, capacity = self.tx.one(
            "select coalesce(wants_amount, 1), wants_capacity from inactive_jobs where job_id = ?",
            (self.row.id,),
        ) or (1, None)
        request = locks.LockRequest(name, amount, capacity)
        room = locks.look(self.tx, self.registry, request, self.row.id, in_line=False)
        if (amount, room.capacity) == (1, 1):
            owned = {None: "kept", locks.RESERVED: "reserved"}.get(fence, "used")
            gone = self._is_gone(owner)
            return self._cause("lock", lock=name, free=False, owner=owner, owned=owned, owner_gone=gone)
        first = lock_waiters.first_waiting(self.tx, self.registry, name) if room.fits else None
        queued = first is not None and (first.priority, first.job_id) < (self.row.priority, self.row.id)
        return self._cause(
            "lock",
            lock=name,
            free=room.fits,
            owner=owner,
            owners=room.others,
            amount=amount,
            used=room.used,
            capacity=room.capacity,
            queued=queued,
            **({"before": first.job_id} if first is not None and queued else {}),
        )

    def _is_gone(self, owner_id: int) -> bool:
        """Return whether an operator may consider taking a lock away from this job: it has settled or is
        deleted, or the node or external worker that has it has left or is presumed dead. A job that keeps a
        lock without a lease is alive."""
        state = self.tx.value("select state from jobs where id = ?", (owner_id,))
        if state is None or state in SETTLED:
            return True
        lease = self.tx.one(
            "select n.state, n.seen_us, coalesce(p.lease_s, n.lease_s) from leases l "
            "join nodes n on n.id = l.node_id left join external_workers p on p.node_id = n.id where l.job_id = ?",
            (owner_id,),
        )
        if lease is None:
            return False
        node_state, seen_us, lease_s = lease
        return node_state == "left" or presumed_dead(seen_us, lease_s, self.now_us)


def _named(holds: Sequence[Hold]) -> dict[str, Any]:
    return {"hold": str(holds[0]), "holds": [hold.id for hold in holds]}


def _end_of(holds: Sequence[Hold]) -> int | None:
    """Return when the last of the holds ends; None: one of them lasts until it is released."""
    ends = [hold.until_us for hold in holds if hold.until_us is not None]
    return max(ends) if len(ends) == len(holds) else None
