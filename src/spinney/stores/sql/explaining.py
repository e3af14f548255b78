"""Why a job is not running now: one exact sentence, as of one snapshot.

The questions are asked in the order in which the engine asks them; the first that stops the job is the
answer. What a claim would do on the same snapshot must agree (``tests/contract/test_explaining.py``): a job
that is ``next`` is claimed, one with any other cause but ``turn`` is not.
"""

import shlex
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from spinney.model import durations, locking
from spinney.model.errors import BadParameters
from spinney.model.holds import Hold
from spinney.model.jobs import NodeInfo
from spinney.model.operators import Explanation
from spinney.model.outcomes import Outcome
from spinney.model.serving import may_serve
from spinney.model.states import SETTLED, State
from spinney.scheduling.quota import quota
from spinney.stores.sql import covering, lock_line, locks, nodes, outside, placing, resting, rows, serving
from spinney.stores.sql.database import Tx
from spinney.stores.sql.ordering import position, ready_share
from spinney.stores.sql.registry import Lane, Registry
from spinney.stores.sql.rows import Row
from spinney.stores.sql.serving import Hindrance
from spinney.stores.sql.session import Session

COUNTED = 10_000
"""Jobs that stand before one are counted no further."""
_NAMED = 3
SILENT_US = 60_000_000
"""A node that has not given a sign of life for four times the usual lease period is said to be silent."""


class SqlExplaining:
    """``spinney.stores.operators.Explaining`` on SQL."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def explain(self, job_id: int, *, now_us: int) -> Explanation:
        with self._session.look() as tx:
            row = rows.find(tx, -1 if rows.hidden(tx, job_id) else job_id)
            return _Case(tx, self._session.registry, row, now_us).answer()


class _Case:
    """One job, one snapshot."""

    def __init__(self, tx: Tx, registry: Registry, row: Row, now_us: int) -> None:
        self.tx, self.registry, self.row, self.now_us = tx, registry, row, now_us
        self.parked = tx.one("select waits_for, wake_us, reason from parked where job_id = ?", (row.id,))
        self.home = registry.homes.of(tx, row.node_id)

    def answer(self) -> Explanation:
        for question in (self._settled, self._leased, self._cancelling):
            if (found := question()) is not None:
                return found
        standing: dict[State, Callable[[], Explanation]] = {
            State.HELD: self._held,
            State.SCHEDULED: self._scheduled,
            State.WAITING: self._waiting,
        }
        return standing.get(self.row.state, self._pending)()

    def _say(
        self, cause: str, sentence: str, *, start_us: int | None = None, command: str | None = None, **facts: Any
    ) -> Explanation:
        return Explanation(
            job_id=self.row.id, cause=cause, sentence=sentence, start_us=start_us, command=command, facts=facts
        )

    # --- not waiting for anything ---------------------------------------------------------

    def _settled(self) -> Explanation | None:
        row = self.row
        if row.state not in SETTLED:
            return None
        if row.state is State.COMPLETED:
            return self._say("settled", "it has completed", command=f"spinney rerun {row.id}")
        if row.state is State.DELETED:
            return self._say("settled", "it is deleted")
        waits_for, _, reason = self.parked or (None, None, None)
        sentence = f"it is {row.state}" + (f": {reason}" if reason else "")
        command: str | None = f"spinney retry {row.id}"
        if row.state is State.FAILED and waits_for == "needs":
            command = self._mend_need()
        return self._say("settled", sentence, command=command)

    def _mend_need(self) -> str | None:
        """It would fail again at once while the job that it needs stands failed; opened, that takes it along."""
        _, broken = placing.needs_left(self.tx, self.row.id)
        if broken is None:
            return f"spinney retry {self.row.id}"
        need_id, state = broken
        if state == State.DELETED:
            return None
        because = self.tx.value("select waits_for from parked where job_id = ?", (need_id,))
        return f"spinney {'explain' if because else 'retry'} {need_id}"

    def _leased(self) -> Explanation | None:
        found = self.tx.one(
            "select l.slot, l.running_us, l.fence, n.name, n.seen_us, n.state, p.lease_s from leases l "
            "join nodes n on n.id = l.node_id left join parties p on p.node_id = n.id where l.job_id = ?",
            (self.row.id,),
        )
        if found is None:
            return None
        slot, running_us, fence, node, seen_us, state, lease_s = found
        if lease_s is not None:
            silent = self._since(seen_us) if self.now_us - seen_us > lease_s * 1e6 else None
            wished = placing.wished(self.tx, self.row) is not None
            return self._hindered(outside.at_work(node, left=state == "left", silent=silent, wished=wished))
        if state == "left":
            return self._say("recovering", f"node {node}, which had it, is gone; it is being taken back", node=node)
        if self.now_us - seen_us > SILENT_US:
            return self._say(
                "silent", f"node {node} has it in slot {slot}, but has given no sign of life for "
                f"{self._since(seen_us)}; if it is dead, start it again", command="spinney node", node=node, slot=slot,
            )  # fmt: skip
        if placing.wished(self.tx, self.row) is not None:
            return self._say("cancelling", f"it runs on node {node} and is being cancelled", node=node)
        if running_us is not None:
            return self._say("running", f"it runs on node {node}, slot {slot}", node=node, slot=slot)
        before = self.tx.value(
            "select count(*) from leases where node_id = (select node_id from leases where job_id = ?1) "
            "and slot = ?2 and fence < ?3",
            (self.row.id, slot, fence),
        )
        # Short attempts are never marked as running, so claimed says: it runs, or it is about to.
        if not before:
            return self._say("running", f"node {node} has it in slot {slot}", node=node, slot=slot)
        return self._say(
            "claimed", f"node {node} has it in slot {slot}, behind {_jobs(before)} that it runs first",
            node=node, slot=slot, before=before,
        )  # fmt: skip

    def _cancelling(self) -> Explanation | None:
        wish = placing.wished(self.tx, self.row)
        if wish is None:
            return None
        return self._say("cancelling", f"it is being {wish}", command=f"spinney tree {self.row.root_id}")

    # --- standing aside -------------------------------------------------------------------

    def _held(self) -> Explanation:
        waits_for, _, reason = self.parked or (None, None, None)
        if waits_for == "hold":
            holds = self._holds()
            if not holds:
                return self._say(
                    "released", "no hold covers it any more; it goes on with the next sweep",
                    command=f"spinney release {self.row.id}",
                )  # fmt: skip
            return self._under(holds)
        spec = self.registry.types.get(self.row.type)
        vanished = spec is not None and spec.stage(self.row.stage or "") is None
        return self._say(
            "vanished stage" if vanished else "own hold",
            f"it is held: {reason or 'by its own stage'}",
            command=f"spinney release {self.row.id}",
        )

    def _holds(self) -> Sequence[Hold]:
        return covering.holds_of(self.tx, self.registry, self.row)

    def _under(self, holds: Sequence[Hold]) -> Explanation:
        lasting = [hold for hold in holds if hold.until_us is None or hold.until_us > self.now_us]
        if not lasting:
            return self._say(
                "released", f"{holds[0]} has come to its end; it goes on with the next sweep",
                command=f"spinney release --hold {holds[0].id}",
            )  # fmt: skip
        holds = lasting
        more = f", and {len(holds) - 1} more" if len(holds) > 1 else ""
        return self._say(
            "hold", f"{holds[0]}{more}", start_us=_end_of(holds),
            command=_release(holds),
            holds=[hold.id for hold in holds],
        )  # fmt: skip

    def _scheduled(self) -> Explanation:
        _, wake_us, reason = self.parked or (None, None, None)
        if self.row.at_us is not None and self.row.at_us == wake_us:
            return self._until("scheduled", "it is scheduled for a time still to come", wake_us)
        told = f": {reason}" if reason else ""
        if self.row.attempts and not self._deferred():
            return self._until(
                "retry", f"attempt {self.row.attempts} of stage {self.row.stage!r} failed and it waits before the "
                f"next{told}", wake_us,
            )  # fmt: skip
        return self._until("scheduled", f"its stage {self.row.stage!r} put it off{told}", wake_us)

    def _deferred(self) -> bool:
        """Whether its last attempt put it off; an earlier one may have failed."""
        last = self.tx.value("select outcome from history where job_id = ? order by fence desc limit 1", (self.row.id,))
        return bool(last == Outcome.DEFER)

    def _until(self, cause: str, sentence: str, wake_us: int | None) -> Explanation:
        """It waits for a time; a hold that lasts longer keeps it then."""
        longer = [hold for hold in self._holds() if hold.until_us is None or hold.until_us > (wake_us or 0)]
        if not longer:
            return self._say(cause, sentence, start_us=wake_us)
        more = f" and {len(longer) - 1} more" if len(longer) > 1 else ""
        return self._say(
            cause, f"{sentence}; {longer[0]}{more} will keep it then", start_us=_end_of(longer),
            command=_release(longer), holds=[hold.id for hold in longer],
        )  # fmt: skip

    def _waiting(self) -> Explanation:
        waits_for = self.parked[0] if self.parked else None
        if waits_for == "needs":
            return self._for_needs()
        if waits_for == "serial":
            return self._in_line()
        if waits_for is not None and waits_for.startswith("lock:"):
            return self._for_lock(waits_for.removeprefix("lock:"))
        if waits_for == "children":
            return self._for_children()
        return self._say("accepted", "it is accepted and will be put in its place in a moment")

    def _for_needs(self) -> Explanation:
        found = self.tx.all(
            "select n.need_id, j.state from needs n join jobs j on j.id = n.need_id where n.job_id = ? "
            "and j.state <> 'completed' order by n.need_id limit ?",
            (self.row.id, _NAMED + 1),
        )
        if not found:
            return self._say("needs", "all jobs that it needs have settled; it goes on in a moment")
        named = ", ".join(f"{need_id} ({self._shown(need_id, state)})" for need_id, state in found[:_NAMED])
        more = " and more" if len(found) > _NAMED else ""
        return self._say(
            "needs", f"it needs job {named}{more}",
            command=f"spinney explain {found[0][0]}", needs=[n for n, _ in found],
        )  # fmt: skip

    def _for_children(self) -> Explanation:
        found = self.tx.all(
            "select child_id from children_left where parent_id = ? and bad = 0 limit ?", (self.row.id, COUNTED)
        )
        open_ = [child for (child,) in found]
        if not open_:
            return self._say("children", "its subjobs are being put in place", command=f"spinney tree {self.row.id}")
        count = f"{len(open_):,}" if len(open_) < COUNTED else f"{COUNTED:,} or more"
        state = self._shown(open_[0], rows.find(self.tx, open_[0]).state)
        noun = "subjob" if len(open_) == 1 else "subjobs"
        return self._say(
            "children", f"it waits for {count} {noun}, the first of them {open_[0]} ({state})",
            command=f"spinney explain {open_[0]}", children=len(open_), first=open_[0],
        )  # fmt: skip

    def _in_line(self) -> Explanation:
        first = self.tx.value(
            "select job_id from serial_line where root_id = ? order by lineage limit 1", (self.row.root_id,)
        )
        if first == self.row.id or first is None:
            return self._say("serial", f"a later job of its serial tree {self.row.root_id} is still running")
        return self._say(
            "serial", f"job {first} comes before it in the serial tree {self.row.root_id}",
            command=f"spinney explain {first}", before=first,
        )  # fmt: skip

    def _for_lock(self, name: str) -> Explanation:
        owners = self.tx.all("select job_id, fence from locks where name = ? order by job_id limit 2", (name,))
        if not owners:
            return self._say("lock", f"the lock {name!r} came free and it is about to go on", lock=name)
        owner, fence = owners[0]
        amount, given = self.tx.one(
            "select coalesce(wants_amount, 1), wants_capacity from parked where job_id = ?", (self.row.id,)
        ) or (1, None)  # fmt: skip
        room = locks.look(self.tx, self.registry, locks.Wanted(name, amount, given), self.row.id, in_line=False)
        if (amount, room.capacity) != (1, 1):
            return self._for_some(name, amount, room, owner)
        how = {None: "keeps until it settles", locks.RESERVED: "has been woken for"}.get(fence, "has")
        return self._say(
            "lock", f"job {owner} {how} the lock {name!r}", command=f"spinney unlock {shlex.quote(name)}",
            lock=name, owner=owner,
        )  # fmt: skip

    def _for_some(self, name: str, amount: int, room: locks.Look, owner: int) -> Explanation:
        """A lock of which several have some."""
        facts: dict[str, Any] = {
            "lock": name, "owner": owner, "amount": amount, "used": room.used, "capacity": room.capacity,
        }  # fmt: skip
        wants = f"it wants {amount:,} of the lock {name!r}"
        first = lock_line.first_waiting(self.tx, self.registry, name)
        if room.fits and first is not None and (first.priority, first.job_id) < (self.row.priority, self.row.id):
            return self._say(
                "lock", f"{wants}, and job {first.job_id} comes before it",
                command=f"spinney explain {first.job_id}", **facts, before=first.job_id,
            )  # fmt: skip
        if room.fits:
            return self._say("lock", f"{wants}, which has room for it by now; it is about to go on", **facts)
        holders = f"job {owner}" if room.others == 1 else f"{room.others:,} jobs, the first of them {owner},"
        has = "has" if room.others == 1 else "have"
        return self._say(
            "lock", f"{wants}, and of its capacity of {room.capacity:,} {holders} {has} {room.used:,}",
            command=f"spinney lock {shlex.quote(name)}", **facts,
        )  # fmt: skip

    # --- claimable ------------------------------------------------------------------------

    def _pending(self) -> Explanation:
        if not self._in_ready():
            return self._say("accepted", "it is accepted and will be put in its place in a moment")
        for question in (self._unserved, self._covered, self._asleep, self._limited, self._over_quota, self._locked):
            if (found := question()) is not None:
                return found
        return self._competing()

    def _in_ready(self) -> bool:
        row, queue = self.row, self.registry.queue(self.row.queue)
        lane = self._lane()
        return lane is not None and self.tx.value(
            "select 1 from ready where lane = ? and priority = ? and share = ? and position = ?",
            (lane.id, row.priority, ready_share(queue, row.share), position(queue, row.id, row.lineage)),
        ) is not None  # fmt: skip

    def _lane(self) -> Lane | None:
        row = self.row
        return next(
            (
                lane for lane in self.registry.lanes.values()
                if (lane.queue, lane.type, lane.stage, lane.home) == (row.queue, row.type, row.stage, self.home)
            ),
            None,
        )  # fmt: skip

    def _hindered(self, found: Hindrance) -> Explanation:
        return self._say(found.cause, found.sentence, command=found.command, **found.facts)

    def _unserved(self) -> Explanation | None:
        if outside.is_external(self.registry, self.row.type, self.row.stage or ""):
            none = outside.unclaimed(self.tx, self.registry, self.row, self.now_us)
            return None if none is None else self._hindered(none)
        everywhere = [n for n in nodes.known(self.tx) if not n.is_party]
        there = [n for n in everywhere if self.registry.homes.admit(n.home, self.home)]
        if (away := self._away(there, everywhere)) is not None:
            return away
        active = [n for n in there if n.state == "active"]
        queue = self.registry.queue(self.row.queue)
        none = serving.pinned_away(queue, self.row.type, there) or serving.shut_out(queue, self.row.type, active)
        if none is not None:
            return self._hindered(none)
        if able := [n for n in active if self._takes(n, queue.name)]:
            if (none := resting.drained(self.tx, self.row.type, able)) is not None:
                return self._hindered(none)
            return self._silent([n for n in able if n.claims])
        draining = [n.name for n in there if n.state == "draining" and self.row.type in n.types]
        if draining:
            return self._say(
                "draining", f"node {draining[0]}, which knows job type {self.row.type!r}, is draining and takes "
                "nothing new", command="spinney node", nodes=draining,
            )  # fmt: skip
        if not active:
            return self._say("no node", "no node is running", command="spinney node")
        names = ", ".join(n.name for n in active[:_NAMED])
        return self._say(
            "unknown type", f"no running node ({names}) knows job type {self.row.type!r}", command="spinney node"
        )

    def _away(self, there: Sequence[NodeInfo], everywhere: Sequence[NodeInfo]) -> Explanation | None:
        """Its folder is where no node runs, or none of those that may run it."""
        row, home = self.row, self.registry.homes.known.get(self.home)
        if home is None or home.gone:
            return None
        active = [n for n in there if n.state == "active"]
        able = [n for n in everywhere if n.state == "active" and self._takes(n, row.queue)]
        if not any(n.state != "left" for n in there):
            nobody = "where no node runs; start one there"
        elif active and able and not any(n in able for n in active):
            named = ", ".join(n.name for n in active[:_NAMED])
            nobody = f"and no node there ({named}) may run it, as {able[0].name} might; start one there that may"
        else:
            return None  # what keeps it is not where its folder is
        return self._say(
            "home", f"its folder is on {home}, {nobody}, or let go of the folder: then it goes on elsewhere with an "
            f"empty one", command=f"spinney rehome {row.id}", host=home.host, path=home.path,
        )  # fmt: skip

    def _takes(self, node: NodeInfo, queue: str, type_: str | None = None, stage: str | None = None) -> bool:
        """Whether the node could be given jobs of this queue, type and stage (None: its own), wherever their folders
        are."""
        runs = outside.known_by(self.registry, type_ or self.row.type, stage or self.row.stage or "")
        return runs in node.types and may_serve(self.registry.queue(queue), node.name, node.serves)

    def _reaches(self, node: NodeInfo, home: int) -> bool:
        return self.registry.homes.admit(node.home, home)

    def _silent(self, knowing: Sequence[NodeInfo]) -> Explanation | None:
        """A node that was killed, and is the only one, is declared dead by nobody."""
        last = max(knowing, key=lambda n: n.seen_us)
        if self.now_us - last.seen_us <= SILENT_US:
            return None
        return self._say(
            "silent", f"node {last.name}, which knows job type {self.row.type!r}, has given no sign of life for "
            f"{self._since(last.seen_us)}; if it is dead, start it again", command="spinney node",
            nodes=[n.name for n in knowing],
        )  # fmt: skip

    def _since(self, at_us: int) -> str:
        return durations.shown((self.now_us - at_us) // 1_000_000)

    def _covered(self) -> Explanation | None:
        holds = self._holds()
        return self._under(holds) if holds else None

    def _asleep(self) -> Explanation | None:
        lane = self._lane()
        if lane is None or not lane.probing:
            return None
        until = lane.asleep_until_us
        if until is not None and until > self.now_us:
            return self._say(
                "lane asleep", f"stage {lane.stage!r} of job type {lane.type!r} was put to sleep by one of its jobs",
                start_us=until,
            )  # fmt: skip
        sql = "select job_id from leases where lane in (select j.value from json_each(?) j) limit 1"
        probe = self.tx.value(sql, (self.registry.beside(lane),))
        if probe is None:
            return None
        return self._say(
            "lane asleep", f"job {probe} tries whether stage {lane.stage!r} of job type {lane.type!r} works again",
            command=f"spinney show {probe}", probe=probe,
        )  # fmt: skip

    def _limited(self) -> Explanation | None:
        queue = self.registry.queue(self.row.queue)
        if queue.limit is None:
            return None
        if queue.limit == 0:
            was = self.registry.declared.get(queue.name)
            back = "1" if was is not None and was.limit == 0 else "declared"  # where nothing is, there is no limit
            return self._say(
                "queue limit", f"queue {queue.name!r} is shut (its limit is 0)",
                command=f"spinney queue {queue.name} --limit {back}", queue=queue.name,
            )  # fmt: skip
        taken = len(self.registry.occupied(self.tx, queue.name))
        if taken < queue.limit:
            return None
        users = self.tx.all(
            "select lanes.type, count(*) from leases l join lanes on lanes.id = l.lane where lanes.queue = ? "
            "group by lanes.type order by count(*) desc, lanes.type limit ?",
            (queue.name, _NAMED),
        )
        by = ", ".join(f"{count} of type {type_!r}" for type_, count in users)
        return self._say(
            "queue limit", f"queue {queue.name!r} is at its limit of {queue.limit} slots, used by {by}",
            command=f"spinney queue {queue.name} --limit {queue.limit + 1}",
            queue=queue.name, limit=queue.limit, taken=taken,
        )  # fmt: skip

    def _over_quota(self) -> Explanation | None:
        queue = self.registry.queue(self.row.queue)
        if queue.shared != "quota":
            return None
        lanes = self.registry.lanes_of(queue.name)
        held = self._slots_held(lanes)
        waiting = {
            share
            for (share,) in self.tx.all(
                "select distinct share from ready where lane in (select j.value from json_each(?) j) limit ?",
                (lanes, COUNTED),
            )
        }
        most = quota(nodes.slots_serving(self.tx, queue), len(waiting | set(held)))
        mine = held.get(self.row.share, 0)
        if mine < most:
            return None
        return self._say(
            "share", f"its share holds {mine} of the {most} slots that one share may hold in queue {queue.name!r}",
            held=mine, most=most,
        )  # fmt: skip

    def _slots_held(self, lanes: str) -> dict[int, int]:
        found: dict[int, int] = {}
        for share, _, _ in self.tx.all(
            "select distinct share, node_id, slot from leases where lane in (select j.value from json_each(?) j)",
            (lanes,),
        ):
            found[share] = found.get(share, 0) + 1
        return found

    def _locked(self) -> Explanation | None:
        spec = self.registry.types.get(self.row.type)
        stage = spec.stage(self.row.stage or "") if spec else None
        if stage is None or not stage.locks:
            return None
        params = orjson.loads(self.tx.value("select params from jobs where id = ?", (self.row.id,)))
        for lock in stage.locks:
            try:
                name = locking.render(lock.template, params)
            except BadParameters:
                continue  # the claim will say so
            if not locks.look(self.tx, self.registry, locks.Wanted(name), self.row.id).fits:
                return self._for_lock(name)
        return None

    # --- nothing but others ---------------------------------------------------------------

    def _competing(self) -> Explanation:
        there = [n for n in nodes.known(self.tx) if n.claims and self.now_us - n.seen_us <= _silent_us(n)]
        takers = [n for n in there if self._takes(n, self.row.queue) and self._reaches(n, self.home)]
        free = {n.name: max(0, n.slots - self._slots_taken(n.name)) for n in takers}
        names = ", ".join(list(free)[:_NAMED])
        surely, at_most = self._before(there, set(free))
        told = _jobs(surely) if surely < COUNTED else f"{COUNTED:,} or more jobs"
        if not any(free.values()):
            stand = f"; {told} stand before it" if surely else ""
            return self._say(
                "slots", f"all {sum(n.slots for n in takers)} slots of the nodes that may run it ({names}) are "
                f"taken{stand}", command=self._sooner(surely), before=surely,
            )  # fmt: skip
        own = self._lane()
        alone = own is None or self._restricted(own)
        if at_most < (1 if alone else max(free.values())):
            most = 0 if alone else at_most
            return self._say(
                "next", "nothing keeps it: it starts with the next claim", start_us=self.now_us,
                nodes=[name for name, slots in free.items() if slots > most],
            )  # fmt: skip
        if surely >= sum(free.values()):
            return self._say(
                "priority", f"{told} come before it for {sum(free.values())} free slots",
                command=self._sooner(surely), before=surely,
            )  # fmt: skip
        return self._say(
            "turn", f"slots are free, and its turn comes soon ({_jobs(at_most)} may come before it)", before=at_most
        )

    def _sooner(self, before: int) -> str | None:
        """What would let it start before others, where there are any and it is not the most urgent already."""
        return f"spinney priority {self.row.id} --to 0" if before and self.row.priority else None

    def _restricted(self, lane: Lane) -> bool:
        """Whether something else than slots may stop jobs of this lane once others have been served."""
        queue, spec = self.registry.queue(lane.queue), self.registry.types.get(lane.type)
        stage = spec.stage(lane.stage) if spec else None
        return queue.limit is not None or queue.shared == "quota" or lane.probing or bool(stage and stage.locks)

    def _slots_taken(self, name: str) -> int:
        return int(
            self.tx.value(
                "select count(*) from (select distinct l.slot from nodes n join leases l on l.node_id = n.id "
                "where n.name = ?) taken",
                (name,),
            )
        )

    def _before(self, there: Sequence[NodeInfo], own_takers: set[str]) -> tuple[int, int]:
        """How many claimable jobs surely come first (more urgent, or before it in its own share, and stopped
        by nothing but slots) with every node that may run it, and how many may at most with some."""
        row, own = self.row, self._lane()
        lanes = [
            (lane, own_takers & {n.name for n in there if self._takes(n, lane.queue, lane.type, lane.stage)
                                 and self._reaches(n, lane.home)})
            for lane in self.registry.lanes.values()
            if self._open(lane)
        ]
        at_most = self._count("r.priority <= ?2", [x for x, takers in lanes if takers], (row.priority,)) - 1
        sure = [x for x, takers in lanes if takers == own_takers and not self._restricted(x)]
        surely = self._count("r.priority < ?2", sure, (row.priority,))
        if own is not None and not self._restricted(own):
            queue = self.registry.queue(row.queue)
            place = ready_share(queue, row.share), position(queue, row.id, row.lineage)
            surely += self._count("r.priority = ?2 and r.share = ?3 and r.position < ?4", [own], (row.priority, *place))
        return surely, max(0, at_most)

    def _count(self, condition: str, lanes: Sequence[Lane], args: Sequence[Any]) -> int:
        listed = orjson.dumps([lane.id for lane in lanes]).decode()
        return int(
            self.tx.value(
                f"select count(*) from (select 1 from json_each(?1) l join ready r on r.lane = l.value "
                f"where {condition} limit {COUNTED}) counted",
                (listed, *args),
            )
        )

    def _open(self, lane: Lane) -> bool:
        """Whether its jobs can be claimed at all just now."""
        if lane.id in self.registry.stopped_lanes:
            return False
        if lane.asleep_until_us is not None and lane.asleep_until_us > self.now_us:
            return False
        limit = self.registry.queue(lane.queue).limit
        return limit is None or (limit > 0 and len(self.registry.occupied(self.tx, lane.queue)) < limit)

    def _shown(self, job_id: int, state: str) -> str:
        """As people know it: a leased job says pending in its row."""
        return "running" if rows.leased_fence(self.tx, job_id) is not None else str(state)


def _silent_us(node: NodeInfo) -> float:
    """After so long without a sign of life it is said to be silent; a party says itself when."""
    return SILENT_US if node.lease_s is None else node.lease_s * 1e6


def _end_of(holds: Sequence[Hold]) -> int | None:
    """When the last of them ends; None: one of them lasts until it is released."""
    known = [hold.until_us for hold in holds if hold.until_us is not None]
    return max(known) if len(known) == len(holds) else None


def _release(holds: Sequence[Hold]) -> str:
    return "spinney release" + "".join(f" --hold {hold.id}" for hold in holds)


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count:,} jobs"
