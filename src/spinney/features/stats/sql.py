"""Figures for people: how much stands where, how fast it goes, who has the slots. One snapshot, read only."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from spinney.model.access import AccessScope
from spinney.model.jobs import Filter
from spinney.model.rights.operators import NodeStats, QueueStats, ShareStats, StageStats, Stats
from spinney.model.states import State
from spinney.model.types import DEFAULT_QUEUE
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.read import access_paths, duration_samples, filter_queries, state_counts
from spinney.store.sql.read.duration_samples import Sample
from spinney.store.sql.record import throughput
from spinney.store.sql.record.throughput import Throughput
from spinney.store.sql.registry import nodes
from spinney.store.sql.registry.registry import Lane, Registry
from spinney.store.sql.session import Session

_SHOWN_ASIDE = (State.SCHEDULED, State.WAITING, State.HELD, State.FAILED)


class SqlStatistics:
    """Figures for people: queue depths, rates, times and slots."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def stats(self, *, window_s: float, now_us: int, within: AccessScope | None = None) -> Stats:
        """Return the figures of one snapshot, within 200 ms beside a million finished jobs. Counts are exact; rates are
        those of the last ``window_s`` seconds (at most some minutes), times come from a sample.

        ``within``: only what lies within these limits. Where they name collections, rates and times are None, because
        the samples do not know the collection of a job.
        """
        with self._session.look() as tx:
            return _Look(tx, self._session.registry, round(window_s * 1e6), now_us, within).stats()


class Slot(NamedTuple):
    """A slot that works for a lane and a share."""

    lane: int
    share: int
    node: int
    slot: int
    leases: int


def slots(tx: Tx, within: AccessScope | None) -> list[Slot]:
    """Slots that hold leases of jobs within somebody's limits, and how many."""
    where, args = filter_queries.conditions(Filter(within=within))
    source = (
        f"leases l cross join jobs where jobs.id = l.job_id and {' and '.join(where)}"
        if where
        else "leases l"
    )
    slot = "l.lane, l.share, l.node_id, l.slot"
    sql = f"select {slot}, count(*) from {source} group by {slot}"
    return [Slot(*row) for row in tx.all(sql, args)]


class _Look:
    """One snapshot, looked at once."""

    def __init__(
        self, tx: Tx, registry: Registry, window_us: int, now_us: int, within: AccessScope | None
    ) -> None:
        self.tx, self.registry, self.now_us, self.within = tx, registry, now_us, within
        self.queues = None if within is None else within.queues
        self.told_apart = within is None or within.collections is None
        """Whether what is measured by lane is that of what lies within: a lane knows its queue, and no collection."""
        self.lane_throughput, self.window_s = throughput.lately(tx, window_us, now_us)
        self.lane_throughput = {
            lane: lane_throughput
            for lane, lane_throughput in self.lane_throughput.items()
            if self._is_within(registry.lanes[lane].queue)
        }
        self.slots = slots(tx, within)
        self.pending, fronts = pending(tx, registry, within)
        self.samples: Mapping[tuple[str, str], Sample] = {}
        if self.told_apart:
            fronts += [
                (lane, highest + 1)
                for lane, highest in tx.all("select lane, max(job_id) from leases group by lane")
                if self._is_within(registry.lanes[lane].queue)
            ]
            self.samples = duration_samples.samples(tx, registry, fronts, self.queues)

    def _is_within(self, queue: str) -> bool:
        return self.queues is None or queue in self.queues

    def stats(self) -> Stats:
        return Stats(
            at_us=self.now_us,
            window_s=self.window_s,
            rate=self._rate(self.lane_throughput.values()),
            states=state_counts.counts(self.tx.all, Filter(within=self.within)),
            queues=self._queues(),
            stages=self._stages(),
            shares=self._shares(),
            nodes=self._nodes(),
        )

    # --- by queue and by stage ------------------------------------------------------------

    def _queues(self) -> list[QueueStats]:
        aside = self._aside()
        lanes = self.registry.lanes.values()
        named = {
            DEFAULT_QUEUE,
            *self.registry.queues,
            *(lane.queue for lane in lanes),
            *(q for q, _ in aside),
        }
        return [
            QueueStats(
                queue=name,
                limit=nodes.limit(self.tx, self.registry.queue(name)),
                said=self.registry.queue(name).limit,
                pending=sum(n for kind, n in self.pending.items() if kind.queue == name),
                running=self._occupied(lane for lane in lanes if lane.queue == name),
                scheduled=aside[name, State.SCHEDULED],
                waiting=aside[name, State.WAITING],
                held=aside[name, State.HELD],
                failed=aside[name, State.FAILED],
                rate=self._rate(
                    self.lane_throughput[lane.id]
                    for lane in lanes
                    if lane.queue == name and lane.id in self.lane_throughput
                ),
            )
            for name in sorted(filter(self._is_within, named))
        ]

    def _stages(self) -> list[StageStats]:
        """In the order of each type's stages; one that has vanished from its type only while jobs stand in it."""
        declared = [(spec.name, stage.name) for spec in self.registry.types.values() for stage in spec.stages]
        busy = {(kind.type, kind.stage) for kind in self.pending}
        busy |= {
            (lane.type, lane.stage)
            for lane in map(self.registry.lanes.__getitem__, {s.lane for s in self.slots})
        }
        return [self._stage(type_, stage) for type_, stage in [*declared, *sorted(busy - {*declared})]]

    def _stage(self, type_: str, stage: str) -> StageStats:
        lanes = [lane for lane in self.registry.lanes.values() if (lane.type, lane.stage) == (type_, stage)]
        throughputs = [self.lane_throughput[lane.id] for lane in lanes if lane.id in self.lane_throughput]
        sample = self.samples.get((type_, stage), Sample(0, None, None))
        return StageStats(
            type=type_,
            stage=stage,
            pending=sum(n for kind, n in self.pending.items() if (kind.type, kind.stage) == (type_, stage)),
            running=self._occupied(lanes),
            ended=sum(lane_throughput.ended for lane_throughput in throughputs) if self.told_apart else None,
            failures=sum(lane_throughput.failed for lane_throughput in throughputs)
            if self.told_apart
            else None,
            rate=self._rate(throughputs),
            sampled=sample.size,
            wait_s=sample.wait_s,
            run_s=sample.run_s,
        )

    def _rate(self, throughputs: Iterable[Throughput]) -> float | None:
        if not self.told_apart:
            return None
        return (
            sum(lane_throughput.ended for lane_throughput in throughputs) / self.window_s
            if self.window_s
            else 0.0
        )

    def _occupied(self, lanes: Iterable[Lane]) -> int:
        """A slot that was given work of several lanes is occupied once."""
        wanted = {lane.id for lane in lanes}
        return len({(s.node, s.slot) for s in self.slots if s.lane in wanted})

    # --- what stands ----------------------------------------------------------------------

    def _aside(self) -> Mapping[tuple[str, str], int]:
        """How many jobs of each queue stand aside, by state."""
        found: Counter[tuple[str, str]] = Counter()
        said, values = filter_queries.conditions(Filter(within=self.within))
        # Some condition, so that the job's row, which has the queue, is joined.
        for part in access_paths.narrow_parts(
            self.tx.all, Filter(), _SHOWN_ASIDE, lambda _: (["jobs.id > 0", *said], values)
        ):
            sql = f"select jobs.queue, count(*) from {part.source} where {part.where} group by jobs.queue"
            found.update({(queue, str(part.state)): n for queue, n in self.tx.all(sql, part.args)})
        return found

    # --- who has the slots ----------------------------------------------------------------

    def _shares(self) -> list[ShareStats]:
        taken: dict[tuple[str, int], set[tuple[int, int]]] = {}
        for slot in self.slots:
            taken.setdefault((self.registry.lanes[slot.lane].queue, slot.share), set()).add(
                (slot.node, slot.slot)
            )
        names = dict(self.tx.all("select -id, name from shares where id in (select -l.share from leases l)"))
        # Where the queue does not share, the lease says 0.
        found = [
            ShareStats(queue=queue, share=names.get(share, str(share)) if share else None, running=len(held))
            for (queue, share), held in taken.items()
        ]
        return sorted(found, key=lambda s: (-s.running, s.queue, s.share or ""))

    def _nodes(self) -> list[NodeStats]:
        return [
            NodeStats(
                node=node.name,
                state=node.status,
                slots=node.slots,
                seen_us=node.seen_us,
                leases=sum(slot.leases for slot in self.slots if slot.node == node.id),
                running=len({slot.slot for slot in self.slots if slot.node == node.id}),
            )
            for node in nodes.all_nodes(self.tx)
        ]


class Kind(NamedTuple):
    """What jobs of one lane have in common, whether they stand in it yet or not."""

    queue: str
    type: str
    stage: str


def pending(
    tx: Tx, registry: Registry, within: AccessScope | None = None
) -> tuple[Mapping[Kind, int], list[tuple[int, int]]]:
    """How many jobs (within somebody's limits) are pending by kind; and of each lane the lowest number that is."""
    found: Counter[Kind] = Counter()
    fronts = []
    for part in access_paths.narrow_parts(
        tx.all, Filter(within=within), [State.PENDING], filter_queries.conditions
    ):
        if part.key == "jobs.id":  # accepted, and not in a lane yet
            columns = "jobs.queue, jobs.type, jobs.stage"
            sql = f"select {columns}, count(*) from {part.source} where {part.where} group by {columns}"
            for *kind, n in tx.all(sql, part.args):
                found[Kind(*kind)] += n
            continue
        sql = (
            f"select narrow.lane, count(*), min(narrow.job_id) from {part.source} where {part.where} "
            "group by narrow.lane"
        )
        for lane_id, n, lowest in tx.all(sql, part.args):
            lane = registry.lanes[lane_id]
            found[Kind(lane.queue, lane.type, lane.stage)] += n
            fronts.append((lane_id, lowest))
    return found, fronts
