"""Statistics of queues, stages, shares and nodes, computed from one snapshot.

Depths are counted from the narrow tables (``ready``, ``leases``, ``inactive_jobs``), never from all jobs;
rates come from ``throughput``, in which nodes record how many attempts of each lane ended; times from a
sample of recent jobs. A lease is not a running attempt: a node claims ahead, so what runs is counted by
occupied slots.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from spinney.model.access import AccessScope
from spinney.model.fleet import presumed_dead
from spinney.model.jobs import Filter
from spinney.model.operators.stats import NodeStats, QueueStats, ShareStats, StageStats, Stats
from spinney.model.states import FAILED_OR_ORPHANED, State
from spinney.model.types import DEFAULT_QUEUE
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.read import access_paths, duration_samples, filter_queries, state_counts
from spinney.store.sql.read.duration_samples import Sample, Wait
from spinney.store.sql.record import throughput
from spinney.store.sql.registry import nodes
from spinney.store.sql.registry.registry import Lane, Registry
from spinney.store.sql.session import SqlPart

K = TypeVar("K")
_SHOWN_INACTIVE = (State.SCHEDULED, State.WAITING, State.HELD, State.FAILED)
"""The states of inactive jobs that ``QueueStats`` has a field for."""


class SqlStatistics(SqlPart):
    """Compute figures for people: queue depths, rates, times and slots. Nothing here is written, and no
    decision uses it."""

    def stats(self, *, window_s: float, now_us: int, within: AccessScope | None = None) -> Stats:
        """Return the figures of one snapshot, within 200 ms beside a million finished jobs.

        Counts are exact; rates are those of the last ``window_s`` seconds (at most some minutes),
        times come from a sample.

        ``within``: only what lies within these limits. Where they name collections, rates and times
        are None, because the samples do not know the collection of a job.
        """
        with self._session.look() as tx:
            return _Look(tx, self._session.registry, round(window_s * 1e6), now_us, within).stats()

    def held_by_stages(self, within: AccessScope) -> int:
        """Return how many visible jobs are held by their own stages, and by no hold: their row names
        nothing that they wait for."""
        where, args = filter_queries.conditions(Filter(within=within))
        sql = (
            "select count(*) from inactive_jobs narrow join jobs on jobs.id = narrow.job_id "
            f"where {' and '.join(['narrow.state = ?', 'narrow.waits_for is null', *where])}"
        )
        with self._session.look() as tx:
            return int(tx.value(sql, (State.HELD, *args)))

    def failed_trees(self, within: AccessScope, *, latest: int) -> list[int]:
        """Return the newest visible batches (jobs at the top of a tree that have subjobs) that failed
        or were orphaned, newest first.

        Only the ``latest`` newest trees are looked at, so there may be fewer or none. This takes one
        look into an index for each tree, however many jobs it has, and however many other jobs have
        failed.
        """
        where, args = filter_queries.conditions(Filter(within=within))
        sql = f"{_TREES} where {' and '.join(['i.state in (?, ?)', *where])} order by jobs.id desc"
        with self._session.look() as tx:
            return tx.column(sql, (latest, *FAILED_OR_ORPHANED, *args))

    def waits(self, job_ids: Sequence[int]) -> list[Wait]:
        """Return how long each attempt of these jobs that has ended had waited.

        Attempts after a failure, which wait for something else than their turn, are left out.
        """
        with self._session.read() as tx:
            return duration_samples.waits(tx, job_ids)


_TREES = (
    "with recursive trees (root_id, nth) as (select max(root_id), 1 from jobs where parent_id is not null union all "
    "select (select max(j.root_id) from jobs j where j.parent_id is not null and j.root_id < trees.root_id), nth + 1 "
    "from trees where trees.root_id is not null and nth < ?) select jobs.id from trees join jobs on "
    "jobs.id = trees.root_id join inactive_jobs i on i.job_id = jobs.id"
)
"""The newest roots of jobs with subjobs, one by one from the index of lineages.

A ``distinct`` would read all subjobs of each tree. Here each step of the recursion seeks the greatest root
below the last one, and the recursion ends after ``?`` steps or when there is none. The join with
``inactive_jobs``, which has failed jobs but not completed ones, leaves out the others.
"""


class Slot(NamedTuple):
    """A slot of a node that has leases of a lane and a share; a slot with several of these is several
    rows."""

    lane: int
    """The number of the lane."""
    share: int
    """The number of the share; 0: the queue does not share."""
    node: int
    """The id of the node."""
    slot: int
    """The number of the slot on that node."""
    leases: int
    """How many leases of the lane and share it has: one, and those that wait for it."""


def slots(tx: Tx, within: AccessScope | None) -> list[Slot]:
    """Return the slots that have leases on visible jobs, by lane and share, with the number of leases.

    Without limits the jobs need not be joined. ``cross join`` makes SQLite begin with the leases, which
    are few.
    """
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
    """The figures of one snapshot, within the limits of the caller.

    Everything that several tables need is read once at the beginning; the methods then only put it
    together.
    """

    def __init__(
        self, tx: Tx, registry: Registry, window_us: int, now_us: int, within: AccessScope | None
    ) -> None:
        """``window_us``: the period for rates. ``within``: the limits of the caller; None: none."""
        self.tx, self.registry, self.now_us, self.within = tx, registry, now_us, within
        self.queues = None if within is None else within.queues
        self.is_measured = within is None or within.collections is None
        """Whether rates and times, which are measured by lane, are those of the jobs within the limits: a lane knows
        its queue, but no collection."""
        self.lane_throughput, self.window_s = throughput.lately(tx, window_us, now_us)
        self.lane_throughput = {
            lane: ended
            for lane, ended in self.lane_throughput.items()
            if self._is_within(registry.lanes[lane].queue)
        }
        self.slots = slots(tx, within)
        self.pending, fronts = pending(tx, registry, within)
        self.samples: Mapping[tuple[str, str], Sample] = {}
        if self.is_measured:
            # The sample is taken around the work in progress: below the pending jobs, and from the highest
            # leased one.
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
            rate=self._rate(sum(lane.ended for lane in self.lane_throughput.values())),
            states=state_counts.counts(self.tx.all, Filter(within=self.within)),
            queues=self._queues(),
            stages=self._stages(),
            shares=self._shares(),
            nodes=self._nodes(),
        )

    # --- by queue and by stage ------------------------------------------------------------

    def _queues(self) -> list[QueueStats]:
        """Return the figures of all visible queues, also of those without jobs, by name.

        The limit is the one in force now: a percentage is counted over the slots of the nodes that
        are there.
        """
        inactive = self._inactive()
        names = {
            DEFAULT_QUEUE,
            *self.registry.queues,
            *(lane.queue for lane in self.registry.lanes.values()),
            *(queue for queue, _ in inactive),
        }
        by_queue = self._totals(lambda lane: lane.queue)
        queues, serving_slots = [], nodes.ServingSlots(self.tx)
        for name in sorted(filter(self._is_within, names)):
            spec = self.registry.queue(name)
            totals = by_queue[name]
            queues.append(
                QueueStats(
                    queue=name,
                    limit=serving_slots.limit(spec),
                    limit_setting=spec.limit,
                    pending=totals.pending,
                    running=len(totals.slots),
                    rate=self._rate(totals.ended),
                    **{str(state): inactive[name, state] for state in _SHOWN_INACTIVE},
                )
            )
        return queues

    def _stages(self) -> list[StageStats]:
        """Return the stages in the order of each type; one that has vanished from its type follows,
        and only while it has jobs."""
        declared = [(spec.name, stage.name) for spec in self.registry.types.values() for stage in spec.stages]
        busy = {(kind.type, kind.stage) for kind in self.pending}
        busy |= {(lane.type, lane.stage) for lane in (self.registry.lanes[slot.lane] for slot in self.slots)}
        by_stage = self._totals(lambda lane: (lane.type, lane.stage))
        return [self._stage(*stage, by_stage[stage]) for stage in [*declared, *sorted(busy - {*declared})]]

    def _stage(self, type_: str, stage: str, totals: "_Totals") -> StageStats:
        """Return the figures of a stage over all queues."""
        sample = self.samples.get((type_, stage), Sample(0, None, None))
        return StageStats(
            type=type_,
            stage=stage,
            pending=totals.pending,
            running=len(totals.slots),
            ended=totals.ended if self.is_measured else None,
            failures=totals.failed if self.is_measured else None,
            rate=self._rate(totals.ended),
            sampled=sample.size,
            wait_s=sample.wait_s,
            run_s=sample.run_s,
        )

    def _totals(self, key: "Callable[[Kind | Lane], K]") -> "Mapping[K, _Totals]":
        """Return the figures of the lanes that have a key in common, by one pass over all of them; zeros for keys
        without jobs."""
        lanes = self.registry.lanes
        totals: defaultdict[K, _Totals] = defaultdict(_Totals)
        # Pending jobs go by kind and not by lane, since some are not in a lane yet.
        for kind, n in self.pending.items():
            totals[key(kind)].pending += n
        for slot in self.slots:
            totals[key(lanes[slot.lane])].slots.add((slot.node, slot.slot))
        for lane, lane_ended in self.lane_throughput.items():
            of_key = totals[key(lanes[lane])]
            of_key.ended += lane_ended.ended
            of_key.failed += lane_ended.failed
        return totals

    def _rate(self, ended: int) -> float | None:
        """Return attempts a second over the window; None where the figure would count jobs beyond the
        limits."""
        if not self.is_measured:
            return None
        return ended / self.window_s if self.window_s else 0.0

    def _inactive(self) -> Mapping[tuple[str, str], int]:
        """Return how many inactive jobs each queue has, by queue and state. A pair without jobs
        counts as 0."""
        counts: Counter[tuple[str, str]] = Counter()
        where, values = filter_queries.conditions(Filter(within=self.within))
        # Some condition, so that the job's row, which has the queue, is joined.
        for part in access_paths.narrow_parts(
            self.tx.all, Filter(), _SHOWN_INACTIVE, lambda _: (["jobs.id > 0", *where], values)
        ):
            sql = f"select jobs.queue, count(*) from {part.source} where {part.where} group by jobs.queue"
            counts.update({(queue, str(part.state)): n for queue, n in self.tx.all(sql, part.args)})
        return counts

    # --- occupied slots, and nodes --------------------------------------------------------

    def _shares(self) -> list[ShareStats]:
        """Return the slots that each share of each queue occupies, those with the most slots first.

        A slot with several leases of a share counts once. Leases have negative numbers for shares
        with names, and for others the number of the root.
        """
        occupied = {(self.registry.lanes[s.lane].queue, s.share, s.node, s.slot) for s in self.slots}
        names = dict(self.tx.all("select -id, name from shares where id in (select -l.share from leases l)"))
        # A queue without shares has leases with share 0.
        shares = [
            ShareStats(queue=queue, share=names.get(share, str(share)) if share else None, running=running)
            for (queue, share), running in Counter((queue, share) for queue, share, _, _ in occupied).items()
        ]
        return sorted(shares, key=lambda s: (-s.running, s.queue, s.share or ""))

    def _nodes(self) -> list[NodeStats]:
        """Return the figures of nodes and external workers. ``running`` counts occupied slots, ``leases`` also what
        waits in them."""
        return [
            NodeStats(
                node=node.name,
                state=node.state_shown(self.now_us),
                slots=node.slots,
                seen_us=node.seen_us,
                presumed_dead=node.state != "left" and presumed_dead(node.seen_us, node.lease_s, self.now_us),
                is_external_worker=node.is_external_worker,
                leases=sum(slot.leases for slot in self.slots if slot.node == node.id),
                running=len({slot.slot for slot in self.slots if slot.node == node.id}),
            )
            for node in nodes.all_nodes(self.tx)
        ]


@dataclass(slots=True, kw_only=True)
class _Totals:
    """Figures of several lanes: pending jobs, occupied slots (one that was given work of several lanes counts once),
    and the attempts that ended within the window, and how many of these failed."""

    pending: int = 0
    slots: set[tuple[int, int]] = field(default_factory=set)
    """(node, slot) pairs."""
    ended: int = 0
    failed: int = 0


class Kind(NamedTuple):
    """What jobs have in common that are, or will be, in one lane; the home of a lane does not matter here."""

    queue: str
    type: str
    stage: str


def pending(
    tx: Tx, registry: Registry, within: AccessScope | None = None
) -> tuple[Mapping[Kind, int], list[tuple[int, int]]]:
    """Return how many visible jobs are pending by kind, and the lowest id among those of each lane.

    They are in two places: jobs that were accepted and have not been placed in a lane yet are counted
    from their rows; all others are in ``ready``. Leased jobs are in neither.
    """
    counts: Counter[Kind] = Counter()
    fronts = []
    for part in access_paths.narrow_parts(
        tx.all, Filter(within=within), [State.PENDING], filter_queries.conditions
    ):
        if part.key == "jobs.id":  # accepted, and not in a lane yet
            columns = "jobs.queue, jobs.type, jobs.stage"
            sql = f"select {columns}, count(*) from {part.source} where {part.where} group by {columns}"
            for *kind, n in tx.all(sql, part.args):
                counts[Kind(*kind)] += n
            continue
        sql = (
            f"select narrow.lane, count(*), min(narrow.job_id) from {part.source} where {part.where} "
            "group by narrow.lane"
        )
        for lane_id, n, lowest in tx.all(sql, part.args):
            lane = registry.lanes[lane_id]
            counts[Kind(lane.queue, lane.type, lane.stage)] += n
            fronts.append((lane_id, lowest))
    return counts, fronts
