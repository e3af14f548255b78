"""One job, as of one snapshot, and what may be said of it from any place."""

import shlex
from collections.abc import Sequence
from typing import Any

from spinney.model.rights.operators import Explanation
from spinney.model.settings.holds import Hold
from spinney.model.values import durations
from spinney.store.sql.connection import rows
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.connection.rows import Row
from spinney.store.sql.read.unserved_queues import Obstacle
from spinney.store.sql.registry import hold_coverage
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.transitions import deadlocks, lock_waiters, locks

COUNTED = 10_000
"""Jobs that stand before one are counted no further."""
NAMED = 3
"""So many of several are named."""


class Case:
    """One job, one snapshot."""

    def __init__(self, tx: Tx, registry: Registry, row: Row, now_us: int) -> None:
        self.tx, self.registry, self.row, self.now_us = tx, registry, row, now_us
        self.inactive_row = tx.one(
            "select waits_for, wake_us, reason from inactive_jobs where job_id = ?", (row.id,)
        )
        self.home = registry.homes.of(tx, row.node_id)

    def _say(
        self,
        cause: str,
        sentence: str,
        *,
        start_us: int | None = None,
        command: str | None = None,
        **facts: Any,
    ) -> Explanation:
        return Explanation(
            job_id=self.row.id,
            cause=cause,
            sentence=sentence,
            start_us=start_us,
            command=command,
            facts=facts,
        )

    def _holds(self) -> Sequence[Hold]:
        return hold_coverage.holds_of(self.tx, self.registry, self.row)

    def _under(self, holds: Sequence[Hold]) -> Explanation:
        lasting = [hold for hold in holds if hold.until_us is None or hold.until_us > self.now_us]
        if not lasting:
            return self._say(
                "released",
                f"{holds[0]} has come to its end; it goes on with the next sweep",
                command=f"spinney release --hold {holds[0].id}",
            )
        holds = lasting
        more = f", and {len(holds) - 1} more" if len(holds) > 1 else ""
        return self._say(
            "hold",
            f"{holds[0]}{more}",
            start_us=_end_of(holds),
            command=_release(holds),
            holds=[hold.id for hold in holds],
        )

    def _until(self, cause: str, sentence: str, wake_us: int | None) -> Explanation:
        """It waits for a time; a hold that lasts longer keeps it then."""
        longer = [hold for hold in self._holds() if hold.until_us is None or hold.until_us > (wake_us or 0)]
        if not longer:
            return self._say(cause, sentence, start_us=wake_us)
        more = f" and {len(longer) - 1} more" if len(longer) > 1 else ""
        return self._say(
            cause,
            f"{sentence}; {longer[0]}{more} will keep it then",
            start_us=_end_of(longer),
            command=_release(longer),
            holds=[hold.id for hold in longer],
        )

    def _since(self, at_us: int) -> str:
        return durations.shown((self.now_us - at_us) // 1_000_000)

    def _shown(self, job_id: int, state: str) -> str:
        """As people know it: a leased job says pending in its row."""
        return "running" if rows.leased_fence(self.tx, job_id) is not None else str(state)

    def _hindered(self, found: Obstacle) -> Explanation:
        return self._say(found.cause, found.sentence, command=found.command, **found.facts)

    def _for_lock(self, name: str) -> Explanation:
        owners = self.tx.all(
            "select job_id, fence from locks where name = ? order by job_id limit 2", (name,)
        )
        if not owners:
            return self._say("lock", f"the lock {name!r} came free and it is about to go on", lock=name)
        ring = deadlocks.find(self.tx, self.registry, self.row.id)
        if ring is not None:
            return self._in_ring(ring)
        owner, fence = owners[0]
        amount, given = self.tx.one(
            "select coalesce(wants_amount, 1), wants_capacity from inactive_jobs where job_id = ?",
            (self.row.id,),
        ) or (1, None)
        room = locks.look(
            self.tx, self.registry, locks.LockRequest(name, amount, given), self.row.id, in_line=False
        )
        if (amount, room.capacity) != (1, 1):
            return self._for_some(name, amount, room, owner)
        how = {None: "keeps until it settles", locks.RESERVED: "has been woken for"}.get(fence, "has")
        return self._say(
            "lock",
            f"job {owner} {how} the lock {name!r}",
            command=f"spinney unlock {shlex.quote(name)}",
            lock=name,
            owner=owner,
        )

    def _in_ring(self, ring: deadlocks.Ring) -> Explanation:
        youngest = max(link.job_id for link in ring)
        return self._say(
            "deadlock",
            f"jobs wait for each other, and none of them can go on: {deadlocks.sentence(ring)}",
            command=f"spinney cancel {youngest}",
            ring=sorted(link.job_id for link in ring),
        )

    def _for_some(self, name: str, amount: int, room: locks.LockState, owner: int) -> Explanation:
        """A lock of which several have some."""
        facts: dict[str, Any] = {
            "lock": name,
            "owner": owner,
            "amount": amount,
            "used": room.used,
            "capacity": room.capacity,
        }
        wants = f"it wants {amount:,} of the lock {name!r}"
        first = lock_waiters.first_waiting(self.tx, self.registry, name)
        if (
            room.fits
            and first is not None
            and (first.priority, first.job_id) < (self.row.priority, self.row.id)
        ):
            return self._say(
                "lock",
                f"{wants}, and job {first.job_id} comes before it",
                command=f"spinney explain {first.job_id}",
                **facts,
                before=first.job_id,
            )
        if room.fits:
            return self._say("lock", f"{wants}, which has room for it by now; it is about to go on", **facts)
        holders = f"job {owner}" if room.others == 1 else f"{room.others:,} jobs, the first of them {owner},"
        has = "has" if room.others == 1 else "have"
        return self._say(
            "lock",
            f"{wants}, and of its capacity of {room.capacity:,} {holders} {has} {room.used:,}",
            command=f"spinney lock {shlex.quote(name)}",
            **facts,
        )


def _end_of(holds: Sequence[Hold]) -> int | None:
    """When the last of them ends; None: one of them lasts until it is released."""
    known = [hold.until_us for hold in holds if hold.until_us is not None]
    return max(known) if len(known) == len(holds) else None


def _release(holds: Sequence[Hold]) -> str:
    return "spinney release" + "".join(f" --hold {hold.id}" for hold in holds)


def jobs_of(count: int) -> str:
    return "1 job" if count == 1 else f"{count:,} jobs"
