"""What may be claimed, and is not yet: the questions of a claim, in its order."""

from collections.abc import Sequence
from typing import Any

import orjson

from spinney.features.explain.sql.case import COUNTED, NAMED, Case, jobs_of
from spinney.model.errors import BadParameters
from spinney.model.fleet import UNHEARD_US
from spinney.model.jobs import NodeInfo
from spinney.model.queue_selection import may_serve
from spinney.model.rights.operators import Explanation
from spinney.model.values import lock_names
from spinney.model.values.unreadable import json_object, of_job
from spinney.scheduling.quota import quota
from spinney.store.sql.read import drained_nodes, external_explanations, unserved_queues
from spinney.store.sql.registry import nodes
from spinney.store.sql.registry.ready_order import position, ready_share
from spinney.store.sql.registry.registry import Lane
from spinney.store.sql.transitions import locks


class Claimable(Case):
    """Of a job whose state is pending."""

    def answer(self) -> Explanation:
        if not self._in_ready():
            return self._say("accepted", "it is accepted and will be put in its place in a moment")
        for question in (
            self._without_stage,
            self._unserved,
            self._covered,
            self._asleep,
            self._limited,
            self._over_quota,
            self._locked,
        ):
            if (found := question()) is not None:
                return found
        return self._competing()

    def _without_stage(self) -> Explanation | None:
        """Return the cause of a job whose next stage its type does not have any more: no node that has registered the
        new type claims it, and the next sweep holds it."""
        spec = self.registry.types.get(self.row.type)
        if spec is None or spec.stage(self.row.stage or "") is not None:
            return None
        return self._say(
            "vanished stage",
            f"its next stage {self.row.stage!r} has vanished from job type {self.row.type!r}, and it is about to be "
            "held; start a node whose application has that stage, or cancel the job",
            command="spinney node",
        )

    def _in_ready(self) -> bool:
        row, queue = self.row, self.registry.queue(self.row.queue)
        lane = self._lane()
        return (
            lane is not None
            and self.tx.value(
                "select 1 from ready where lane = ? and priority = ? and share = ? and position = ?",
                (lane.id, row.priority, ready_share(queue, row.share), position(queue, row.id, row.lineage)),
            )
            is not None
        )

    def _lane(self) -> Lane | None:
        row = self.row
        return next(
            (
                lane
                for lane in self.registry.lanes.values()
                if (lane.queue, lane.type, lane.stage, lane.home)
                == (row.queue, row.type, row.stage, self.home)
            ),
            None,
        )

    def _unserved(self) -> Explanation | None:
        if external_explanations.is_external(self.registry, self.row.type, self.row.stage or ""):
            none = external_explanations.unclaimed(self.tx, self.registry, self.row, self.now_us)
            return None if none is None else self._hindered(none)
        everywhere = [n for n in nodes.all_nodes(self.tx) if not n.is_external_worker]
        there = [n for n in everywhere if self.registry.homes.admit(n.home, self.home)]
        if (away := self._away(there, everywhere)) is not None:
            return away
        active = [n for n in there if n.state == "active"]
        queue = self.registry.queue(self.row.queue)
        none = unserved_queues.pinned_away(queue, self.row.type, there) or unserved_queues.shut_out(
            queue, self.row.type, active
        )
        if none is not None:
            return self._hindered(none)
        if able := [n for n in active if self._takes(n, queue.name)]:
            if (none := drained_nodes.drained(self.tx, self.row.type, able)) is not None:
                return self._hindered(none)
            return self._silent([n for n in able if n.claims])
        draining = [n.name for n in there if n.state == "draining" and self.row.type in n.types]
        if draining:
            return self._say(
                "draining",
                f"node {draining[0]}, which knows job type {self.row.type!r}, is draining and takes "
                "nothing new",
                command="spinney node",
                nodes=draining,
            )
        if not active:
            return self._say("no node", "no node is running", command="spinney node")
        names = ", ".join(n.name for n in active[:NAMED])
        return self._say(
            "unknown type",
            f"no running node ({names}) knows job type {self.row.type!r}",
            command="spinney node",
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
            named = ", ".join(n.name for n in active[:NAMED])
            nobody = (
                f"and no node there ({named}) may run it, as {able[0].name} might; start one there that may"
            )
        else:
            return None  # what keeps it is not where its folder is
        return self._say(
            "home",
            f"its folder is on {home}, {nobody}, or let go of the folder: then it goes on elsewhere with an "
            f"empty one",
            command=f"spinney rehome {row.id}",
            host=home.host,
            path=home.path,
        )

    def _takes(self, node: NodeInfo, queue: str, type_: str | None = None, stage: str | None = None) -> bool:
        """Whether the node could be given jobs of this queue, type and stage (None: its own), wherever their folders
        are."""
        runs = external_explanations.known_by(
            self.registry, type_ or self.row.type, stage or self.row.stage or ""
        )
        return runs in node.types and may_serve(self.registry.queue(queue), node.name, node.serves)

    def _reaches(self, node: NodeInfo, home: int) -> bool:
        return self.registry.homes.admit(node.home, home)

    def _silent(self, knowing: Sequence[NodeInfo]) -> Explanation | None:
        """A node that was killed, and is the only one, is declared dead by nobody."""
        last = max(knowing, key=lambda n: n.seen_us)
        if self.now_us - last.seen_us <= UNHEARD_US:
            return None
        return self._say(
            "silent",
            f"node {last.name}, which knows job type {self.row.type!r}, has given no sign of life for "
            f"{self._since(last.seen_us)}; if it is dead, start it again",
            command="spinney node",
            nodes=[n.name for n in knowing],
        )

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
                "lane asleep",
                f"stage {lane.stage!r} of job type {lane.type!r} was put to sleep by one of its jobs",
                start_us=until,
            )
        sql = "select job_id from leases where lane in (select j.value from json_each(?) j) limit 1"
        probe = self.tx.value(sql, (self.registry.beside(lane),))
        if probe is None:
            return None
        return self._say(
            "lane asleep",
            f"job {probe} tries whether stage {lane.stage!r} of job type {lane.type!r} works again",
            command=f"spinney show {probe}",
            probe=probe,
        )

    def _limited(self) -> Explanation | None:
        queue = self.registry.queue(self.row.queue)
        limit = nodes.limit(self.tx, queue)
        if limit is None:
            return None
        if limit == 0:
            was = self.registry.declared.get(queue.name)
            back = (
                "1" if was is not None and was.limit == 0 else "declared"
            )  # where nothing is, there is no limit
            return self._say(
                "queue limit",
                f"queue {queue.name!r} is shut (its limit is 0)",
                command=f"spinney queue {queue.name} --limit {back}",
                queue=queue.name,
            )
        taken = len(self.registry.occupied(self.tx, queue.name))
        if taken < limit:
            return None
        users = self.tx.all(
            "select lanes.type, count(*) from leases l join lanes on lanes.id = l.lane where lanes.queue = ? "
            "group by lanes.type order by count(*) desc, lanes.type limit ?",
            (queue.name, NAMED),
        )
        part = f" ({queue.limit} of all)" if isinstance(queue.limit, str) else ""
        by = ", ".join(f"{count} of type {type_!r}" for type_, count in users)
        return self._say(
            "queue limit",
            f"queue {queue.name!r} is at its limit of {limit} slots{part}, used by {by}",
            command=f"spinney queue {queue.name} --limit {limit + 1}",
            queue=queue.name,
            limit=limit,
            taken=taken,
        )

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
            "share",
            f"its share holds {mine} of the {most} slots that one share may hold in queue {queue.name!r}",
            held=mine,
            most=most,
        )

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
        text = self.tx.value("select params from jobs where id = ?", (self.row.id,))
        params = json_object(text, of_job(self.row.id))
        for lock in stage.locks:
            try:
                name = lock_names.render(lock.template, params)
            except BadParameters:
                continue  # the claim will say so
            if not locks.look(self.tx, self.registry, locks.LockRequest(name), self.row.id).fits:
                return self._for_lock(name)
        return None

    def _competing(self) -> Explanation:
        there = [n for n in nodes.all_nodes(self.tx) if n.claims and self.now_us - n.seen_us <= _silent_us(n)]
        takers = [n for n in there if self._takes(n, self.row.queue) and self._reaches(n, self.home)]
        free = {n.name: max(0, n.slots - self._slots_taken(n.name)) for n in takers}
        names = ", ".join(list(free)[:NAMED])
        surely, at_most = self._before(there, set(free))
        told = jobs_of(surely) if surely < COUNTED else f"{COUNTED:,} or more jobs"
        if not any(free.values()):
            stand = f"; {told} stand before it" if surely else ""
            return self._say(
                "slots",
                f"all {sum(n.slots for n in takers)} slots of the nodes that may run it ({names}) are "
                f"taken{stand}",
                command=self._sooner(surely),
                before=surely,
            )
        own = self._lane()
        alone = own is None or self._restricted(own)
        if at_most < (1 if alone else max(free.values())):
            most = 0 if alone else at_most
            return self._say(
                "next",
                "nothing keeps it: it starts with the next claim",
                start_us=self.now_us,
                nodes=[name for name, slots in free.items() if slots > most],
            )
        if surely >= sum(free.values()):
            return self._say(
                "priority",
                f"{told} come before it for {sum(free.values())} free slots",
                command=self._sooner(surely),
                before=surely,
            )
        return self._say(
            "turn",
            f"slots are free, and its turn comes soon ({jobs_of(at_most)} may come before it)",
            before=at_most,
        )

    def _sooner(self, before: int) -> str | None:
        """What would let it start before others, where there are any and it is not the most urgent already."""
        return f"spinney priority {self.row.id} --to 0" if before and self.row.priority else None

    def _restricted(self, lane: Lane) -> bool:
        """Whether something else than slots may stop jobs of this lane once others have been served."""
        queue, spec = self.registry.queue(lane.queue), self.registry.types.get(lane.type)
        stage = spec.stage(lane.stage) if spec else None
        return (
            queue.limit is not None or queue.shared == "quota" or lane.probing or bool(stage and stage.locks)
        )

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
            (
                lane,
                own_takers
                & {
                    n.name
                    for n in there
                    if self._takes(n, lane.queue, lane.type, lane.stage) and self._reaches(n, lane.home)
                },
            )
            for lane in self.registry.lanes.values()
            if self._open(lane)
        ]
        at_most = self._count("r.priority <= ?2", [x for x, takers in lanes if takers], (row.priority,)) - 1
        sure = [x for x, takers in lanes if takers == own_takers and not self._restricted(x)]
        surely = self._count("r.priority < ?2", sure, (row.priority,))
        if own is not None and not self._restricted(own):
            queue = self.registry.queue(row.queue)
            place = ready_share(queue, row.share), position(queue, row.id, row.lineage)
            surely += self._count(
                "r.priority = ?2 and r.share = ?3 and r.position < ?4", [own], (row.priority, *place)
            )
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
        limit = nodes.limit(self.tx, self.registry.queue(lane.queue))
        return limit is None or (limit > 0 and len(self.registry.occupied(self.tx, lane.queue)) < limit)


def _silent_us(node: NodeInfo) -> float:
    """After so long without a sign of life it is said to be silent; an external worker says itself when."""
    return node.dead_after_s * 1e6 if node.is_external_worker else UNHEARD_US
