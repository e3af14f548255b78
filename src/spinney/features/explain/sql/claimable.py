"""Pending jobs: the questions that a claim asks, in its order.

First the job must have its row in ``ready`` and its type the stage. Then follow who could run it (homes,
pins, bars, drains, silent nodes, external workers), holds, lanes that sleep, the limit of the queue, the
quota of the share, and locks. A job that passes all of these only competes with others for slots, and
``_competing`` bounds from both sides how many go before it: exact counting would mean making the claims of
all nodes.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from spinney.features.explain.explanation import COUNTED, NAMED, Cause
from spinney.features.explain.sql import obstacles
from spinney.features.explain.sql.case import Case
from spinney.features.explain.sql.obstacles import Obstacle
from spinney.model.errors import BadParameters
from spinney.model.jobs import NodeInfo
from spinney.model.queue_selection import may_serve
from spinney.model.values import lock_names
from spinney.model.values.unreadable import json_object, of_job
from spinney.store.sql.claim.limits import Limits
from spinney.store.sql.connection.database import list_text
from spinney.store.sql.registry import nodes
from spinney.store.sql.registry.ready_order import position, ready_share
from spinney.store.sql.registry.registry import Lane
from spinney.store.sql.transitions import locks


class Claimable(Case):
    """A pending job without a lease. Each question is a method that returns the cause, or None when the job
    passes it."""

    def cause(self) -> Cause:
        """Return why the job is not running: the first of the questions of a claim that stops it, else that its turn
        has not come."""
        if not self._in_ready():
            return self._cause("accepted")
        for question in (
            self._without_stage,
            self.unserved,
            self._covered,
            self._asleep,
            self._limited,
            self._over_quota,
            self._locked,
        ):
            if (cause := question()) is not None:
                return cause
        return self._competing()

    def _without_stage(self) -> Cause | None:
        """Return the cause of a job whose next stage its type does not have any more: no node that has registered the
        new type claims it, and the next sweep holds it."""
        spec = self.registry.types.get(self.row.type)
        if spec is None or spec.stage(self.row.stage or "") is not None:
            return None
        return self._cause("vanished stage", stage=self.row.stage, type=self.row.type)

    def _in_ready(self) -> bool:
        """Return whether the job has its row in ``ready``, by key. One that was just accepted may not have it
        yet."""
        row, queue, lane = self.row, self.registry.queue(self.row.queue), self._lane()
        if lane is None:
            return False
        key = lane.id, row.priority, ready_share(queue, row.share), position(queue, row.id, row.lineage)
        sql = "select 1 from ready where lane = ? and priority = ? and share = ? and position = ?"
        return self.tx.exists(sql, key)

    def _lane(self) -> Lane | None:
        """Return the lane from which the job is claimed; None: there is none for its queue, type, stage and home
        yet."""
        row = self.row
        lane_id = self.registry.known_lane(row.queue, row.type, row.stage or "", self.home)
        return None if lane_id is None else self.registry.lanes[lane_id]

    def unserved(self) -> Cause | None:
        """Return the cause when no node may run the job now: its folder is elsewhere, the queue admits no node, or all
        that could run it are drained, silent, draining or gone. For an external stage the same of external workers.
        None: one may run it."""
        if obstacles.is_external(self.registry, self.row.type, self.row.stage or ""):
            obstacle = obstacles.unclaimed(self.tx, self.registry, self.row, self.now_us)
            return self._stopped_by(obstacle)
        everywhere = [n for n in nodes.all_nodes(self.tx) if not n.is_external_worker]
        present = [n for n in everywhere if self.registry.homes.admit(n.home, self.home)]
        if (away := self._away(present, everywhere)) is not None:
            return away
        active = [n for n in present if n.state == "active"]
        queue = self.registry.queue(self.row.queue)
        type_, stage = self.row.type, self.row.stage
        obstacle = obstacles.pinned_away(queue, type_, stage, present) or obstacles.shut_out(
            queue, type_, stage, active
        )
        if obstacle is not None:
            return self._stopped_by(obstacle)
        if able := [n for n in active if self._takes(n, queue.name)]:
            if (obstacle := obstacles.drained(self.tx, self.row.type, able)) is not None:
                return self._stopped_by(obstacle)
            return self._silent([n for n in able if n.claims], everywhere)
        knowing = [n for n in present if n.state == "draining" and n.knows(type_, stage)]
        if draining := [n.name for n in knowing if not self._is_silent(n)]:
            return self._cause("draining", nodes=draining, type=self.row.type)
        if not active:
            return self._cause("no node")
        names = [n.name for n in active[:NAMED]]
        if any(type_ in n.types for n in active):
            return self._cause("unknown stage", type=type_, stage=stage, nodes=names)
        return self._cause("unknown type", type=type_, nodes=names)

    def _stopped_by(self, obstacle: Obstacle | None) -> Cause | None:
        return None if obstacle is None else self._cause(obstacle.cause, **obstacle.facts)

    def _away(self, present: Sequence[NodeInfo], everywhere: Sequence[NodeInfo]) -> Cause | None:
        """Return the cause when the job's folder is on a host where no node runs, or none that may run the job; else
        None."""
        row, home = self.row, self.registry.homes.by_id.get(self.home)
        if home is None or home.given_up:
            return None
        active = [n for n in present if n.state == "active"]
        able = [n for n in everywhere if n.state == "active" and self._takes(n, row.queue)]
        place: dict[str, Any] = {"host": home.host, "path": home.path}
        if not any(n.state != "left" for n in present):
            return self._cause("home", **place, nodes=[])
        if active and able and not any(n in able for n in active):
            return self._cause("home", **place, nodes=[n.name for n in active[:NAMED]], able=able[0].name)
        return None  # the place of its folder is not the cause

    def _takes(self, node: NodeInfo, queue: str, type_: str | None = None, stage: str | None = None) -> bool:
        """Return whether the node may claim jobs of this queue, type and stage (None: those of the job), wherever their
        folders are."""
        type_, stage = type_ or self.row.type, stage or self.row.stage or ""
        runs = obstacles.entry(self.registry, type_, stage)
        knows = runs in node.types if node.is_external_worker else node.knows(runs, stage)
        return knows and may_serve(self.registry.queue(queue), node.name, node.serves)

    def _reaches(self, node: NodeInfo, home: int) -> bool:
        """Return whether the node may claim jobs whose folder is at that home."""
        return self.registry.homes.admit(node.home, home)

    def _silent(self, knowing: Sequence[NodeInfo], everywhere: Sequence[NodeInfo]) -> Cause | None:
        """Return the cause when all nodes that know the type are silent; else None. A single node that was killed is
        declared dead by no other."""
        last = max(knowing, key=lambda n: n.seen_us)
        if not self._is_silent(last):
            return None
        silence = self._silence(last, everywhere)
        return self._cause("silent", **silence, nodes=[n.name for n in knowing], type=self.row.type)

    def _covered(self) -> Cause | None:
        holds = self._holds()
        return self._under(holds) if holds else None

    def _asleep(self) -> Cause | None:
        """Return the cause when the job's stage sleeps, or another job is just trying whether it works again;
        else None. Asleep and over its time without a probe, it is claimable: this job may become the
        probe."""
        lane = self._lane()
        if lane is None or not lane.probing:
            return None
        until = lane.asleep_until_us
        if until is not None and until > self.now_us:
            return self._cause("lane asleep", start_us=until, stage=lane.stage, type=lane.type, asleep=True)
        sql = (
            "select job_id from leases where lane in (select j.value from json_each(?) j) "
            "and claimed_us >= ? limit 1"
        )
        probe = self.tx.value(sql, (self.registry.beside(lane), until or 0))
        if probe is None:
            return None
        return self._cause("lane asleep", stage=lane.stage, type=lane.type, asleep=False, probe=probe)

    def _limited(self) -> Cause | None:
        """Return the cause when the limit of the queue is reached; else None. Its facts name the types that occupy most
        slots, and the silent node with most of them."""
        queue = self.registry.queue(self.row.queue)
        limit = nodes.ServingSlots(self.tx).limit(queue)
        if limit is None:
            return None
        if limit == 0:
            declared = self.registry.declared.get(queue.name)
            return self._cause(
                "queue limit",
                queue=queue.name,
                limit=0,
                declared=None if declared is None else declared.limit,
            )
        occupied = self.registry.occupied(self.tx, queue.name)
        if len(occupied) < limit:
            return None
        owned = Counter(node_id for node_id, _ in occupied)
        everywhere = nodes.all_nodes(self.tx)
        silent = max(filter(self._is_silent, everywhere), key=lambda n: owned[n.id], default=None)
        silence = {}
        if silent is not None and owned[silent.id] and not silent.is_external_worker:
            silence = {**self._silence(silent, everywhere), "silent_slots": owned[silent.id]}
        users = self.tx.all(
            "select lanes.type, count(*) from leases l join lanes on lanes.id = l.lane where lanes.queue = ? "
            "group by lanes.type order by count(*) desc, lanes.type limit ?",
            (queue.name, NAMED),
        )
        return self._cause(
            "queue limit",
            queue=queue.name,
            limit=limit,
            part=queue.limit if isinstance(queue.limit, str) else None,
            taken=len(occupied),
            users=[[type_, count] for type_, count in users],
            **silence,
        )

    def _over_quota(self) -> Cause | None:
        """Return the cause when the queue shares by quota and the share of the job has its quota; else None."""
        queue = self.registry.queue(self.row.queue)
        if queue.shared != "quota":
            return None
        lanes = self.registry.lanes_of(queue.name)
        held = self._slots_held(lanes)
        waiting = self.tx.column(
            "select distinct share from ready where lane in (select j.value from json_each(?) j) and priority = ? "
            "limit ?",
            (lanes, self.row.priority, COUNTED),
        )
        most = nodes.ServingSlots(self.tx).most_per_share(queue, len({*waiting, *held}))
        mine = held[self.row.share]
        if mine < most:
            return None
        return self._cause("share", held=mine, most=most, queue=queue.name)

    def _slots_held(self, lanes: str) -> Counter[int]:
        """Return how many slots of nodes each share has in these lanes (a JSON list of ids). Several leases
        in one slot count once."""
        rows = self.tx.all(
            "select distinct share, node_id, slot from leases where lane in (select j.value from json_each(?) j)",
            (lanes,),
        )
        return Counter(share for share, _, _ in rows)

    def _locked(self) -> Cause | None:
        """Return the cause when a lock that the stage declares is not free; else None. A lock whose name cannot be made
        from the parameters is left to the claim, which fails the job."""
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
                continue  # the claim fails the job with this message
            if not locks.look(self.tx, self.registry, locks.LockRequest(name), self.row.id).fits:
                return self._for_lock(name)
        return None

    def _competing(self) -> Cause:
        """Return the cause for a job that nothing holds but its turn.

        ``degraded``: all nodes that may run it are in trouble, so that they may take no jobs. ``slots``: none of the
        others has a free one. ``next``: fewer jobs can come first than one node has free slots. ``priority``: at least
        as many jobs surely come first as there are free slots. ``turn``: it lies in between, so that it cannot be known
        whether the next claim takes the job.
        """
        present = [n for n in nodes.all_nodes(self.tx) if n.claims and not self._is_silent(n)]
        able = [n for n in present if self._takes(n, self.row.queue) and self._reaches(n, self.home)]
        takers = [n for n in able if not n.is_degraded]
        if able and not takers:
            return self._cause("degraded", nodes=[n.name for n in able], trouble=able[0].trouble)
        free = {n.name: max(0, n.slots - self._slots_taken(n.name)) for n in takers}
        surely, at_most = self._before(present, set(free))
        could_be_sooner = bool(surely and self.row.priority)  # priority 0 is the most urgent
        if not any(free.values()):
            return self._cause(
                "slots",
                slots=sum(n.slots for n in takers),
                nodes=list(free),
                ahead=surely,
                could_be_sooner=could_be_sooner,
            )
        own = self._lane()
        alone = own is None or self._restricted(own)
        if at_most < (1 if alone else max(free.values())):
            most = 0 if alone else at_most
            nodes_ = [name for name, slots in free.items() if slots > most]
            return self._cause("next", start_us=self.now_us, nodes=nodes_)
        if surely >= sum(free.values()):
            return self._cause(
                "priority", ahead=surely, free=sum(free.values()), could_be_sooner=could_be_sooner
            )
        return self._cause("turn", ahead=at_most)

    def _restricted(self, lane: Lane) -> bool:
        """Return whether something else than slots may stop jobs of this lane once others have been served."""
        queue, spec = self.registry.queue(lane.queue), self.registry.types.get(lane.type)
        stage = spec.stage(lane.stage) if spec else None
        return (
            queue.limit is not None or queue.shared == "quota" or lane.probing or bool(stage and stage.locks)
        )

    def _slots_taken(self, name: str) -> int:
        """Return how many slots of the nodes of this name have a lease."""
        return int(
            self.tx.value(
                "select count(*) from (select distinct l.slot from nodes n join leases l on l.node_id = n.id "
                "where n.name = ?) taken",
                (name,),
            )
        )

    def _before(self, present: Sequence[NodeInfo], own_takers: set[str]) -> tuple[int, int]:
        """Return how many claimable jobs surely come first on every node that may run this one (more urgent, or before
        it in its own share, and stopped by nothing but slots), and how many may at most on some of them."""
        row, own, limits = self.row, self._lane(), Limits(self.tx, self.registry, 0)
        lanes = [
            (
                lane,
                own_takers
                & {
                    n.name
                    for n in present
                    if self._takes(n, lane.queue, lane.type, lane.stage) and self._reaches(n, lane.home)
                },
            )
            for lane in self.registry.lanes.values()
            if self._open(lane) and limits.below(lane.queue)
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
        """Return how many rows of ``ready`` in these lanes meet the condition, counted up to ``COUNTED``. The
        lanes are ``?1``; ``args`` follow from ``?2`` on. The index of ``ready`` begins with lane and
        priority."""
        listed = list_text(lane.id for lane in lanes)
        return int(
            self.tx.value(
                f"select count(*) from (select 1 from json_each(?1) l join ready r on r.lane = l.value "
                f"where {condition} limit {COUNTED}) counted",
                (listed, *args),
            )
        )

    def _open(self, lane: Lane) -> bool:
        """Return whether jobs of the lane can be claimed at all just now, as far as its queue has room."""
        if lane.id in self.registry.stopped_lanes:
            return False
        return lane.asleep_until_us is None or lane.asleep_until_us <= self.now_us
