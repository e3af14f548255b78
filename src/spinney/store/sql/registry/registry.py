"""Types, queues, lanes and holds as the current transaction sees them.

They are read from their tables only when ``counters.registry`` has changed, so that a transaction of the hot path pays
one primary-key look-up to be up to date.

Whoever changes one of these tables calls ``touch`` in the same transaction. The counter and the change are
committed together, so a later transaction sees both or neither. A change reads all of them again, in every
process: they are small, and change rarely. Only new lanes come by the thousand, with a submission into as many new
queues; the store that creates one adds it to its cache, and others read them with their next transaction."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from spinney.define.params.redaction import has_secrets, secret_paths
from spinney.model.errors import Refused, StoreUnusable
from spinney.model.queue_selection import may_serve
from spinney.model.settings.capacities import NONE, LockCapacity
from spinney.model.settings.queues import SETTABLE, QueueSpec
from spinney.model.settings.webhooks import Webhook
from spinney.model.types import DEFAULT_QUEUE, TypeSpec, known_type
from spinney.model.values.unreadable import UNREADABLE
from spinney.store.sql.connection.database import Tx, list_text
from spinney.store.sql.registry import capacities, hold_coverage, homes, nodes
from spinney.store.sql.registry.watermarks import Watermarks
from spinney.store.sql.registry.webhook_events import Subscription


class UnreadableDeclaration(StoreUnusable):
    """The row of a job type or a queue is damaged; the message names it and the remedy."""


class Lane(NamedTuple):
    """One (queue, type, stage), and where folders are local, one home."""

    id: int
    queue: str
    type: str
    stage: str
    asleep_until_us: int | None
    probing: bool
    home: int
    """The home whose nodes may serve it (``homes``); 0: all nodes may."""


class Registry:
    """The cache. ``refresh`` is called at the start of every transaction, ``forget`` after a rollback."""

    def __init__(self) -> None:
        self.types: dict[str, TypeSpec] = {}
        self.declared: dict[str, QueueSpec] = {}
        """Queues as applications declare them."""
        self.settings: dict[str, Mapping[str, Any]] = {}
        """Operators' settings of queues, by field; they take precedence."""
        self.queues: dict[str, QueueSpec] = {}
        """Queues as they are in force."""
        self.lanes: dict[int, Lane] = {}
        self.holds = hold_coverage.NONE
        self.stopped_lanes: frozenset[int] = frozenset()
        """Lanes that a hold stops."""
        self.streaks: frozenset[tuple[str, str]] = frozenset()
        """(type, stage) pairs with a circuit breaker that have failed recently; see ``circuit_breaker``."""
        self.probing: dict[tuple[str, str], Lane] = {}
        """One lane of each (type, stage) that was put to sleep; all of them sleep until the same time."""
        self.filled: set[int] = set()
        """Lanes to which this store object has added jobs since its last exchange."""
        self.capacities = NONE
        """Capacities of locks, of applications and operators."""
        self.homes = homes.NONE
        """The homes of jobs' folders, where folders are local."""
        self.subscriptions: Sequence[Subscription] = ()
        """The subscriptions of webhooks, including paused ones, which get their events later."""
        self.watermarks = Watermarks()
        self._lane_ids: dict[tuple[str, str, str, int], int] = {}
        self._shares: dict[str, int] = {}
        self._undeclared: dict[str, QueueSpec] = {}
        self._closed: dict[int, frozenset[int]] = {}
        self.version = -1

    def forget(self) -> None:
        """Drop the cache after a rollback, because it may have changes of that transaction."""
        self.version = -1
        self.watermarks.forget()
        self._shares.clear()

    def refresh(self, tx: Tx) -> None:
        """Bring the cache up to date; when nothing has changed, that costs one short query. Raises
        UnreadableDeclaration."""
        moves = tx.moves()
        # One may be missing in a damaged store, which the doctor has to read before it repairs that.
        version = moves.get("registry", 0)
        self.watermarks.refresh(tx, moves.get("watermarks", 0))
        if version == self.version:
            return
        self.types = {n: read_type(n, s) for n, s in tx.all("select name, spec from types")}
        self.declared = {n: read_queue(n, s) for n, s in tx.all("select name, spec from queues")}
        set_ = tx.all("select name, settings from queue_settings")
        self.settings = {n: read_settings(n, s) for n, s in set_}
        self.queues = self.declared | {n: self.in_force(n, s) for n, s in self.settings.items()}
        rows = tx.all("select id, queue, type, stage, asleep_until_us, probing, home from lanes")
        self.lanes = {row[0]: Lane(*row) for row in rows}
        self._lane_ids = {
            (lane.queue, lane.type, lane.stage, lane.home): lane.id for lane in self.lanes.values()
        }
        self.probing = {(lane.type, lane.stage): lane for lane in self.lanes.values() if lane.probing}
        self.capacities = capacities.read(tx)
        self.homes = homes.read(tx)
        self.holds = hold_coverage.read(tx)
        self.stopped_lanes = frozenset(
            lane.id for lane in self.lanes.values() if self.holds.stops(lane.queue, lane.type)
        )
        self.streaks = frozenset(tx.all("select type, stage from streaks"))
        webhook_rows = tx.all("select id, name, spec from webhooks order by id")
        hooks = [(id_, read_webhook(name, spec)) for id_, name, spec in webhook_rows]
        self.subscriptions = [Subscription(id_, hook) for id_, hook in hooks if hook.paused is None]
        self._closed.clear()
        self.version = version

    def touch(self, tx: Tx) -> None:
        """Increment the counter after a change, so that this and all other caches are read again: this one at
        once, as the transaction sees its own changes, the others with their next transaction."""
        tx.take("registry")
        self.version = -1
        self.refresh(tx)

    # --- look-ups -----------------------------------------------------------------------

    def type(self, name: str) -> TypeSpec:
        """Return the job type of this name. Raises UnknownType."""
        return known_type(self.types, name)

    def once_lanes(self) -> frozenset[int]:
        """Return the lanes of types that must not run twice unasked."""
        once = {name for name, spec in self.types.items() if spec.on_lost == "orphan"}
        return frozenset(lane.id for lane in self.lanes.values() if lane.type in once)

    def queue(self, name: str) -> QueueSpec:
        """Return the settings in force of a queue; for one that nobody has declared, the defaults."""
        spec = self.queues.get(name) or self._undeclared.get(name)
        if spec is None:
            spec = self._undeclared[name] = QueueSpec(name=name)
        return spec

    def in_force(self, name: str, settings: Mapping[str, Any]) -> QueueSpec:
        """Return the queue with these settings in place of the declared ones."""
        return replace(self.declared.get(name) or QueueSpec(name=name), **settings)

    def closed_to(self, tx: Tx, node_id: int) -> frozenset[int]:
        """Return the lanes that a node may not serve: by their queue's settings, by its own, or because the folders of
        their jobs are elsewhere. The result is cached until the registry changes, because a node's own settings never
        do."""
        closed = self._closed.get(node_id)
        if closed is None:
            row = tx.one("select name, serves, home from nodes where id = ?", (node_id,))
            closed = self._closed[node_id] = frozenset() if row is None else self._closed_lanes(*row)
        return closed

    def _closed_lanes(self, node: str, column: str | None, home: int) -> frozenset[int]:
        """Return the lanes that a node of this name, with this column ``serves`` and in this home, may not
        serve."""
        serves = nodes.serves(column)
        shut = {
            queue
            for queue in {lane.queue for lane in self.lanes.values()}
            if not may_serve(self.queue(queue), node, serves)
        }
        return frozenset(
            lane.id
            for lane in self.lanes.values()
            if lane.queue in shut or not self.homes.admit(home, lane.home)
        )

    def queue_names(self) -> set[str]:
        """Return the names of all queues that are declared or named anywhere."""
        named = {spec.queue for spec in self.types.values()}
        named |= {stage.queue for spec in self.types.values() for stage in spec.stages}
        lanes = {lane.queue for lane in self.lanes.values()}
        return {name for name in named if name is not None} | {DEFAULT_QUEUE} | set(self.queues) | lanes

    def lane(self, tx: Tx, queue: str, type_: str, stage: str, home: int) -> int:
        """Return the lane's id; create the lane when it is new. Lanes are never removed: there are as many as
        combinations that ever had a job."""
        lane_id = self._lane_ids.get((queue, type_, stage, home))
        if lane_id is not None:
            return lane_id
        # A stage that was put to sleep also sleeps in new lanes, the first of their queue or home.
        asleep = self.probing.get((type_, stage))
        lane = Lane(
            id=tx.take("lane"),
            queue=queue,
            type=type_,
            stage=stage,
            asleep_until_us=asleep.asleep_until_us if asleep else None,
            probing=asleep is not None,
            home=home,
        )
        tx.run(
            "insert into lanes (id, queue, type, stage, asleep_until_us, probing, home) values (?, ?, ?, ?, ?, ?, ?)",
            tuple(lane),
        )
        # The cache gets the lane here, and the caches of others by the counter.
        self.version = tx.take("registry")
        self.lanes[lane.id] = lane
        self._lane_ids[(queue, type_, stage, home)] = lane.id
        if self.holds.stops(queue, type_):
            self.stopped_lanes |= {lane.id}
        self._closed.clear()
        return lane.id

    def lane_to_fill(self, tx: Tx, queue: str, type_: str, stage: str, home: int) -> int:
        """Return the id of a lane to which jobs are added now, and remember it in ``filled``."""
        lane = self.lane(tx, queue, type_, stage, home)
        self.filled.add(lane)
        return lane

    def key_scope(self, type_: str) -> int:
        """Return the scope of the keys of this type's jobs without a parent (``TypeSpec.key_scope``)."""
        spec = self.types.get(type_)
        return 0 if spec is None else spec.key_scope

    def known_lane(self, queue: str, type_: str, stage: str, home: int) -> int | None:
        """Return the lane's id, if it exists."""
        return self._lane_ids.get((queue, type_, stage, home))

    def beside(self, lane: Lane) -> str:
        """Return the ids of the lanes of the same type and stage, in all queues and homes, as a JSON list."""
        return list_text(x.id for x in self.lanes.values() if (x.type, x.stage) == (lane.type, lane.stage))

    def lanes_of(self, queue: str) -> str:
        """Return the ids of a queue's lanes, as a JSON list for json_each."""
        return list_text(lane.id for lane in self.lanes.values() if lane.queue == queue)

    def occupied(self, tx: Tx, queue: str) -> set[tuple[int, int]]:
        """Return the (node, slot) pairs that a queue occupies, read from its leases now. Two jobs of the
        queue in one slot, of which one waits behind the other, occupy it once."""
        pairs = tx.all(
            "select distinct node_id, slot from leases where fence >= ? "
            "and lane in (select j.value from json_each(?) j)",
            (self.watermarks.fence, self.lanes_of(queue)),
        )
        return set(pairs)

    def occupied_by_limited(self, tx: Tx) -> dict[str, set[tuple[int, int]]]:
        """Return what ``occupied`` returns, for each queue that has a limit and occupies slots, by one statement."""
        limited = [lane.id for lane in self.lanes.values() if self.queue(lane.queue).limit is not None]
        occupied: dict[str, set[tuple[int, int]]] = {}
        for lane_id, node_id, slot in tx.all(
            "select distinct lane, node_id, slot from leases where fence >= ? "
            "and lane in (select j.value from json_each(?) j)",
            (self.watermarks.fence, list_text(limited)),
        ):
            occupied.setdefault(self.lanes[lane_id].queue, set()).add((node_id, slot))
        return occupied

    def share(self, tx: Tx, name: str) -> int:
        """Return the (negative) id of a named share; create it when it is new."""
        share_id = self._shares.get(name)
        if share_id is None:
            share_id = tx.value("select id from shares where name = ?", (name,))
            if share_id is None:
                share_id = tx.take("share")
                tx.run("insert into shares (id, name) values (?, ?)", (share_id, name))
            if len(self._shares) > 10_000:
                self._shares.clear()
            self._shares[name] = share_id
        return -share_id

    # --- changing -------------------------------------------------------------------------

    def register(
        self,
        tx: Tx,
        types: Iterable[TypeSpec],
        queues: Iterable[QueueSpec],
        locks: Iterable[LockCapacity] = (),
    ) -> None:
        """Store what an application declares, where it differs from what is stored. Nodes of one version that
        start one after the other therefore change nothing, and no cache is read again. What an application
        has no more stays stored, because jobs of it may exist. Raises Refused when a queue with jobs in it
        would get another order or sharing."""
        changed = capacities.declare(tx, locks)
        for declared in types:
            spec = _with_former_secrets(self.types.get(declared.name), declared)
            if self.types.get(spec.name) != spec:
                _put(tx, "types", spec.name, spec.to_json())
                changed = True
        for queue in queues:
            if self.declared.get(queue.name) != queue:
                self._require_reorderable(tx, queue)
                _put(tx, "queues", queue.name, queue.to_json())
                changed = True
        if changed:
            self.touch(tx)

    def _require_reorderable(self, tx: Tx, queue: QueueSpec) -> None:
        """Raise Refused when a queue's order changes while it has jobs, because the order is in the keys of
        ``ready``."""
        old = self.queue(queue.name)
        if (old.order, old.shared) == (queue.order, queue.shared):
            return
        waiting = tx.value(
            "select 1 from lanes l where l.queue = ? and exists (select 1 from ready r where r.lane = l.id) limit 1",
            (queue.name,),
        )
        if waiting:
            raise Refused(
                f"queue {queue.name!r} has jobs in it, so its order and sharing cannot change now; "
                f"let it run empty first, or declare a new queue"
            )


_remembered = lru_cache(maxsize=10_000)
"""Keeps the values of rows, most of which are unchanged when the registry has changed: each store of the process reads
all of them again, and the next transaction waits for it."""


@_remembered
def read_type(name: str, spec: Any) -> TypeSpec:
    """Return the type of a row of ``types``. Raises UnreadableDeclaration."""
    with _readable("types", name):
        return TypeSpec.from_json(orjson.loads(spec))


@_remembered
def read_queue(name: str, spec: Any) -> QueueSpec:
    """Return the queue of a row of ``queues``. Raises UnreadableDeclaration."""
    with _readable("queues", name):
        return QueueSpec.from_json(orjson.loads(spec))


def read_settings(name: str, settings: Any) -> Mapping[str, Any]:
    """Return the settings of a row of ``queue_settings``, by field of QueueSpec, checked as a whole queue
    would be. Raises UnreadableDeclaration, also for a field that operators cannot set."""
    with _readable("queue_settings", name):
        values: Mapping[str, Any] = orjson.loads(settings)
        if not values.keys() <= SETTABLE:
            raise ValueError(f"only {', '.join(sorted(SETTABLE))} can be set")
        spec = QueueSpec.from_json({"name": name, **values})
        return {field: getattr(spec, field) for field in values}


@_remembered
def read_webhook(name: str, spec: Any) -> Webhook:
    """Return the webhook of a row of ``webhooks``, without the columns beside ``spec``. An unreadable one is paused,
    with that reason."""
    try:
        return Webhook.from_json(name, orjson.loads(spec))
    except UNREADABLE:
        why = (
            f"what it is set to cannot be read; remove it (spinney webhook remove {name}), and make it again"
        )
        return Webhook(name=name, url="https://unreadable.invalid/", paused=why)


@contextmanager
def _readable(table: str, name: str) -> Iterator[None]:
    try:
        yield
    except UNREADABLE as error:
        quoted = str(name).replace("'", "''")
        raise UnreadableDeclaration(
            f"the row {name!r} in the table {table} cannot be read ({type(error).__name__}: {error}), so that nobody "
            f'can work; restore the database from a backup, or delete the row (sqlite3 FILE "delete from {table} '
            f"where name = '{quoted}'; update counters set value = value + 1 where name = 'registry'\") and "
            f"{_AGAIN.get(table, 'start a node whose application declares it')}"
        ) from error


_AGAIN = {
    "queue_settings": "set it again with 'spinney queue NAME'",
}


def _with_former_secrets(stored: TypeSpec | None, declared: TypeSpec) -> TypeSpec:
    """Return the declaration with the secrets of the stored one that it does not have itself, and with those that the
    stored one has from declarations before it.

    A parameter that is declared secret again leaves the list. The order is fixed, so that a declaration that
    changes nothing equals the stored one, and no process has to read its registry again."""
    if stored is None or not (stored.former_secrets or has_secrets(stored.schema)):
        return declared
    former = {*stored.former_secrets, *declared.former_secrets, *secret_paths(stored.schema)}
    former -= {*secret_paths(declared.schema)}
    return replace(declared, former_secrets=tuple(sorted(former, key=repr)))


def _put(tx: Tx, table: str, name: str, value: object) -> None:
    """Insert or update a spec; ``table`` is one of two literals of this module."""
    sql = f"insert into {table} (name, spec) values (?, ?) on conflict (name) do update set spec = excluded.spec"
    tx.run(sql, (name, orjson.dumps(value).decode()))


def effective_queue(
    spec: TypeSpec, stage: str, moved: str | None, named: str | None, parent: str | None
) -> str:
    """Return the queue of a stage, by precedence: the one into which an operator ``moved`` the job, the one
    that its submission ``named``, the stage's, that of its ``parent``, the type's, else ``default``."""
    stage_spec = spec.stage(stage)
    return (
        moved or named or (stage_spec.queue if stage_spec else None) or parent or spec.queue or DEFAULT_QUEUE
    )
