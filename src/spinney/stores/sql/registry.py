"""Types, queues, lanes and holds as the current transaction sees them.

Read from their tables only when ``counters.registry`` has moved, so that a transaction of the hot
path pays one primary-key look-up for always being up to date.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import orjson

from spinney.model.errors import Refused, SpinneyError, StoreUnusable, UnknownType
from spinney.model.types import DEFAULT_QUEUE, QueueSpec, TypeSpec
from spinney.stores.sql import covering
from spinney.stores.sql.database import Tx


class UnreadableDeclaration(StoreUnusable):
    """A row that says what a job type or queue is was damaged; the message names it and the mend."""


class Lane(NamedTuple):
    """One (queue, type, stage)."""

    id: int
    queue: str
    type: str
    stage: str
    asleep_until_us: int | None
    probing: bool


class Registry:
    """The cache. ``refresh`` at the start of every transaction, ``forget`` after a rollback."""

    def __init__(self) -> None:
        self.types: dict[str, TypeSpec] = {}
        self.queues: dict[str, QueueSpec] = {}
        self.lanes: dict[int, Lane] = {}
        self.holds = covering.NONE
        self.stopped_lanes: frozenset[int] = frozenset()
        """Lanes in which a hold lets nothing start."""
        self.streaks: frozenset[tuple[str, str]] = frozenset()
        """(type, stage) pairs with a circuit breaker that have failed lately; see ``breaking``."""
        self._lane_ids: dict[tuple[str, str, str], int] = {}
        self._shares: dict[str, int] = {}
        self._undeclared: dict[str, QueueSpec] = {}
        self.version = -1

    def forget(self) -> None:
        """What a rolled-back transaction had added must not be believed."""
        self.version = -1
        self._shares.clear()

    def refresh(self, tx: Tx) -> None:
        version = tx.value("select value from counters where name = 'registry'")
        if version == self.version:
            return
        self.types = {n: read_type(n, s) for n, s in tx.all("select name, spec from types")}
        self.queues = {n: read_queue(n, s) for n, s in tx.all("select name, spec from queues")}
        rows = tx.all("select id, queue, type, stage, asleep_until_us, probing from lanes")
        self.lanes = {row[0]: Lane(*row) for row in rows}
        self._lane_ids = {(lane.queue, lane.type, lane.stage): lane.id for lane in self.lanes.values()}
        self.holds = covering.read(tx)
        self.stopped_lanes = frozenset(
            lane.id for lane in self.lanes.values() if self.holds.stops(lane.queue, lane.type)
        )
        self.streaks = frozenset(tx.all("select type, stage from streaks"))
        self.version = version

    def touch(self, tx: Tx) -> None:
        """Tell everybody (and this cache) that something changed."""
        tx.take("registry")
        self.version = -1
        self.refresh(tx)

    # --- looking up -----------------------------------------------------------------------

    def type(self, name: str) -> TypeSpec:
        spec = self.types.get(name)
        if spec is None:
            raise UnknownType(
                f"no job type {name!r} is known to this store; start a node whose application has it, "
                f"or use one of: {', '.join(sorted(self.types)) or '(none yet)'}"
            )
        return spec

    def queue(self, name: str) -> QueueSpec:
        found = self.queues.get(name) or self._undeclared.get(name)
        if found is None:
            found = self._undeclared[name] = QueueSpec(name=name)
        return found

    def queue_names(self) -> set[str]:
        """The queues that somebody declared or named."""
        named = {spec.queue for spec in self.types.values()}
        named |= {stage.queue for spec in self.types.values() for stage in spec.stages}
        lanes = {lane.queue for lane in self.lanes.values()}
        return {name for name in named if name is not None} | {DEFAULT_QUEUE} | set(self.queues) | lanes

    def lane(self, tx: Tx, queue: str, type_: str, stage: str) -> int:
        """The lane's number; made when it is new."""
        found = self._lane_ids.get((queue, type_, stage))
        if found is not None:
            return found
        tx.run(
            "insert into lanes (id, queue, type, stage, probing) values (?, ?, ?, ?, 0)",
            (tx.take("lane"), queue, type_, stage),
        )
        self.touch(tx)
        return self._lane_ids[(queue, type_, stage)]

    def known_lane(self, queue: str, type_: str, stage: str) -> int | None:
        """The lane's number, if there is such a lane."""
        return self._lane_ids.get((queue, type_, stage))

    def lanes_of(self, queue: str) -> str:
        """The numbers of a queue's lanes, as a JSON list for json_each."""
        return orjson.dumps([lane.id for lane in self.lanes.values() if lane.queue == queue]).decode()

    def occupied(self, tx: Tx, queue: str) -> set[tuple[int, int]]:
        """The (node, slot) pairs that a queue occupies, counted from its leases now."""
        found = tx.all(
            "select distinct node_id, slot from leases where lane in (select j.value from json_each(?) j)",
            (self.lanes_of(queue),),
        )
        return set(found)

    def share(self, tx: Tx, name: str) -> int:
        """The (negative) number of a named share; made when it is new."""
        found = self._shares.get(name)
        if found is None:
            found = tx.value("select id from shares where name = ?", (name,))
            if found is None:
                found = tx.take("share")
                tx.run("insert into shares (id, name) values (?, ?)", (found, name))
            if len(self._shares) > 10_000:
                self._shares.clear()
            self._shares[name] = found
        return -found

    # --- changing -------------------------------------------------------------------------

    def register(self, tx: Tx, types: Iterable[TypeSpec], queues: Iterable[QueueSpec]) -> None:
        changed = False
        for spec in types:
            if self.types.get(spec.name) != spec:
                _put(tx, "types", spec.name, spec.to_json())
                changed = True
        for queue in queues:
            if self.queues.get(queue.name) != queue:
                self._require_reorderable(tx, queue)
                value = {
                    "name": queue.name,
                    "limit": queue.limit,
                    "order": queue.order,
                    "sharing": queue.sharing,
                }
                _put(tx, "queues", queue.name, value)
                changed = True
        if changed:
            self.touch(tx)

    def _require_reorderable(self, tx: Tx, queue: QueueSpec) -> None:
        """The order is in the keys of ``ready``: it cannot change under jobs that stand there."""
        old = self.queue(queue.name)
        if (old.order, old.shared) == (queue.order, queue.shared):
            return
        standing = tx.value(
            "select 1 from lanes l where l.queue = ? and exists (select 1 from ready r where r.lane = l.id) limit 1",
            (queue.name,),
        )
        if standing:
            raise Refused(
                f"queue {queue.name!r} has jobs in it, so its order and sharing cannot change now; "
                f"let it run empty first, or declare a new queue"
            )


def read_type(name: str, spec: Any) -> TypeSpec:
    """What a row of ``types`` says. Raises UnreadableDeclaration."""
    with _readable("types", name):
        return TypeSpec.from_json(orjson.loads(spec))


def read_queue(name: str, spec: Any) -> QueueSpec:
    """What a row of ``queues`` says. Raises UnreadableDeclaration."""
    with _readable("queues", name):
        return QueueSpec(**orjson.loads(spec))


@contextmanager
def _readable(table: str, name: str) -> Iterator[None]:
    try:
        yield
    except (SpinneyError, AttributeError, KeyError, TypeError, ValueError) as error:
        quoted = str(name).replace("'", "''")
        raise UnreadableDeclaration(
            f"the row {name!r} in the table {table} cannot be read ({type(error).__name__}: {error}), so that nobody "
            f"can work; restore the database from a backup, or delete the row (sqlite3 FILE \"delete from {table} "
            f"where name = '{quoted}'; update counters set value = value + 1 where name = 'registry'\") and start "
            f"a node whose application declares it"
        ) from error


def _put(tx: Tx, table: str, name: str, value: object) -> None:
    """``table`` is one of two literals of this module."""
    sql = f"insert into {table} (name, spec) values (?, ?) on conflict (name) do update set spec = excluded.spec"
    tx.run(sql, (name, orjson.dumps(value).decode()))


def effective_queue(
    spec: TypeSpec, stage: str, moved: str | None, named: str | None, parent: str | None
) -> str:
    """moved > named > the stage's > the parent's > the type's."""
    found = spec.stage(stage)
    return moved or named or (found.queue if found else None) or parent or spec.queue or DEFAULT_QUEUE


def ready_share(queue: QueueSpec, share: int) -> int:
    """The share by which a job stands in ``ready`` and ``leases``: none where the queue does not share."""
    return 0 if queue.shared == "none" else share


def position(queue: QueueSpec, job_id: int, lineage: str) -> str:
    """Where a job stands within its share; unique."""
    if queue.order == "default":
        return lineage
    return f"{job_id:012d}" if queue.order == "fifo" else f"{10**12 - 1 - job_id:012d}"
