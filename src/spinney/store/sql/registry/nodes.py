"""Nodes: joining, heartbeats, what they may claim, and the records of a dead node's leases.

Operators' orders (``node_settings``, by the node's name, so that they survive restarts) are read with the node: the
slots in force are theirs, else those that it was started with.

A node has one row for each start. Rows of one name are its incarnations: while one is being replaced, both
may hold leases, and share the slots of the name. External workers have rows here, too, beside those in
``external_workers``."""

from collections.abc import Mapping, Set
from functools import cached_property
from typing import Any, NamedTuple

import orjson

from spinney.model.errors import NodeRefused
from spinney.model.fleet import DIED, Load, lasts
from spinney.model.jobs import NodeInfo, Record
from spinney.model.outcomes import Outcome
from spinney.model.queue_selection import ALL, NONE, QueueSelection, may_serve
from spinney.model.settings.queues import QueueSpec
from spinney.model.values import limits
from spinney.model.values.unreadable import UNREADABLE, json_list
from spinney.scheduling.quota import quota
from spinney.store.sql.connection.database import Tx, list_text
from spinney.store.sql.connection.schema_state import SCHEMA_VERSION
from spinney.store.sql.records import RowMap, insert

_SLOTS = "coalesce(s.slots, n.slots)"
_WITH_ORDERS = "nodes n left join node_settings s on s.name = n.name"
_CLAIMS = "n.state = 'active' and coalesce(s.drained, 0) = 0"


def join(tx: Tx, node: NodeInfo, home: int, now_us: int) -> int:
    """Enter a node as active, and return its id. Raises NodeRefused when the store works only with later versions."""
    _require_admitted(tx)
    node_id = tx.take("node")
    values = {
        "id": node_id,
        "name": node.name,
        "boot_id": node.boot_id,
        "host": node.host,
        "pid": node.pid,
        "slots": node.slots,
        "state": "active",
        "beat": 0,
        "started_us": node.started_us,
        "seen_us": now_us,
        "version": node.version,
        "types": list_text(node.types),
        "stages": None if node.stages is None else list_text(node.stages),
        "serves": serves_text(node.serves),
        "home": home,
        "lease_s": node.lease_s,
        "schema_version": SCHEMA_VERSION,
    }
    insert(tx, "nodes", values)
    return node_id


def _require_admitted(tx: Tx) -> None:
    """Refuse a node of an older version once an upgrade is finished: this connection may have been opened before."""
    works_with = tx.value("select value from meta where name = 'works_with'")
    if works_with is not None and works_with > SCHEMA_VERSION:
        raise NodeRefused(
            f"the store works with schema {works_with} or later only, this Spinney is of {SCHEMA_VERSION}; upgrade "
            f"Spinney on this host"
        )


def beat(tx: Tx, node_id: int, now_us: int, load: Load | None, trouble: str | None) -> int | None:
    """Increment the heartbeat counter, and store load (None: keep the last one) and trouble, with the time since which
    it lasts; return the counter, or None when the node has left, which it also has when it was declared dead."""
    beat: int | None = tx.value(
        "update nodes set beat = beat + 1, seen_us = ?1, load = coalesce(?2, load), trouble = ?3, "
        "degraded_since_us = case when ?4 = 1 then coalesce(degraded_since_us, ?1) end "
        "where id = ?5 and state <> 'left' returning beat",
        (now_us, None if load is None else load.to_json(), trouble, int(lasts(trouble)), node_id),
    )
    return beat


def update(
    tx: Tx, node_id: int, state: str, now_us: int, beat: int | None = None, *, died: bool = False
) -> bool:
    """Set the state of a node. ``died``: others have declared it dead, which is recorded as its trouble. Return
    False when it has left already, or when its heartbeat counter is no longer ``beat`` (None: any). Raises NodeRefused
    for an unknown state."""
    if state not in ("active", "draining", "left"):
        raise NodeRefused(f"a node is active, draining or left, not {state!r}")
    tx.run(
        "update nodes set state = ?, seen_us = ?, trouble = coalesce(?, trouble) "
        "where id = ? and state <> 'left' and beat = coalesce(?, beat)",
        (state, now_us, DIED if died else None, node_id, beat),
    )
    if tx.changed() != 1:
        return False
    if state != "active":
        tx.run("update inboxes set since_us = ? where node_id = ?", (now_us, node_id))
    return True


def all_nodes(tx: Tx) -> list[NodeInfo]:
    """Return the nodes that have not left or still own leases, by id. External workers are among them. The
    heartbeat counter (``beat``) is what observers compare between two calls."""
    has_leases = "exists (select 1 from leases l where l.node_id = n.id)"
    return _NODES.all(tx, f"where n.state <> 'left' or {has_leases} order by n.id")


def died_since(tx: Tx, since_us: int) -> list[NodeInfo]:
    """Return the nodes that were declared dead after ``since_us`` and own no leases any more, by id, without those of
    whose name a node has joined since. External workers are not among them."""
    return _NODES.all(
        tx,
        "where n.state = 'left' and n.trouble = ? and n.seen_us > ? and p.node_id is null "
        "and not exists (select 1 from leases l where l.node_id = n.id) "
        "and not exists (select 1 from nodes m where m.name = n.name and m.id > n.id) order by n.id",
        (DIED, since_us),
    )


class ServingSlots:
    """Counts the slots that may serve a queue, as one transaction sees them. The nodes are read once for all queues,
    and those of each queue counted once."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._counts: dict[str, int] = {}

    @cached_property
    def _nodes(self) -> list[tuple[str, int, QueueSelection]]:
        rows = self._tx.all(f"select n.name, {_SLOTS}, n.serves from {_WITH_ORDERS} where {_CLAIMS}")
        return [(name, slots, serves(column)) for name, slots, column in rows]

    def count(self, queue: QueueSpec) -> int:
        """Return the slots of the nodes that may serve a queue and take new jobs, as quotas and percentages count
        them. At least one, so that a quota has something to share out while no node runs."""
        if queue.name not in self._counts:
            serving = (slots for name, slots, selection in self._nodes if may_serve(queue, name, selection))
            self._counts[queue.name] = sum(serving) or 1
        return self._counts[queue.name]

    def limit(self, queue: QueueSpec) -> int | None:
        """Return how many slots a queue may occupy now; None: any."""
        setting = queue.limit
        return limits.slots(setting, self.count(queue)) if isinstance(setting, str) else setting

    def most_per_share(self, queue: QueueSpec, shares: int) -> int:
        """Return how many slots one share may hold in a queue with quotas while so many shares are active. They are
        dealt the slots that its nodes have, and no more than its limit: else one share could fill a low limit."""
        slots, most = self.count(queue), self.limit(queue)
        return quota(slots if most is None else min(slots, most), shares, queue.turn)


def serves(column: Any) -> QueueSelection:
    """Return the selection of the column ``serves``; no queue at all where it cannot be read."""
    try:
        return ALL if column is None else QueueSelection.from_json(orjson.loads(column))
    except UNREADABLE:
        return NONE


def serves_text(selection: QueueSelection) -> str | None:
    """Return the value of the column ``serves`` for this selection."""
    return None if selection.all else orjson.dumps(selection.to_json()).decode()


_NODES = RowMap(
    NodeInfo,
    f"{_WITH_ORDERS} left join external_workers p on p.node_id = n.id",
    columns={
        "slots": _SLOTS,
        "leases": "(select count(*) from leases l where l.node_id = n.id)",
        "drained": "coalesce(s.drained, 0)",
        "lease_s": "coalesce(p.lease_s, n.lease_s)",
        "is_external_worker": "p.node_id is not null",
    },
    prefix="n.",
    decode={
        "types": lambda text: tuple(json_list(text)),
        "stages": lambda text: None if text is None else tuple(json_list(text)),
        "serves": serves,
        "load": Load.from_json,
    },
    omit=("root",),
)


class Claimant(NamedTuple):
    """What a claim needs of its node."""

    name: str
    claims: bool
    """Whether it may get new jobs."""
    slots: int
    ordered: bool
    """Whether an operator has set the number of slots: more may be occupied."""


def claimant(tx: Tx, node_id: int) -> Claimant | None:
    """Return the claimant; None: no such node has ever joined."""
    row = tx.one(
        f"select n.name, {_CLAIMS}, {_SLOTS}, s.slots is not null from {_WITH_ORDERS} where n.id = ?",
        (node_id,),
    )
    return None if row is None else Claimant(row[0], bool(row[1]), row[2], bool(row[3]))


def occupied(tx: Tx, name: str, least_fence: int) -> list[tuple[int, int]]:
    """Return (node, slot) of each slot that holds leases, over all incarnations of a name.

    ``least_fence``: no lease has a lower fence (``watermarks``). On PostgreSQL the condition makes the index
    on fences begin behind the dead rows of leases that have ended."""
    pairs: list[tuple[int, int]] = tx.all(
        "select distinct l.node_id, l.slot from leases l join nodes n on n.id = l.node_id "
        "where l.fence >= ? and n.name = ?",
        (least_fence, name),
    )
    return pairs


def seated(tx: Tx, node_id: int, least_fence: int) -> tuple[Claimant, list[tuple[int, int]]] | None:
    """Return ``claimant`` and ``occupied``, on a server in one exchange. None: no such node has ever joined."""
    if not tx.postgresql:
        asking = claimant(tx, node_id)
        return None if asking is None else (asking, occupied(tx, asking.name, least_fence))
    rows = tx.all(_SEATED, (least_fence, node_id))
    if not rows:
        return None
    name, claims, slots, ordered, *_ = rows[0]
    return Claimant(name, claims, slots, ordered), [
        (owner, slot) for *_, owner, slot in rows if owner is not None
    ]


_SEATED = (
    f"select n.name, {_CLAIMS}, {_SLOTS}, s.slots is not null, o.node_id, o.slot from {_WITH_ORDERS} "
    "left join lateral (select distinct l.node_id, l.slot from leases l join nodes m on m.id = l.node_id "
    "where l.fence >= ? and m.name = n.name) o on true where n.id = ?"
)


def may_keep(tx: Tx, claimant: Claimant | None, node_id: int, slot: int) -> bool:
    """Return whether a slot of the node (``claimant``) may continue with a further stage, which is a lease like any
    other. The number of occupied slots stays, so it can be too large only where an operator has reduced it."""
    if claimant is None or not claimant.claims:
        return False
    return not claimant.ordered or len({(node_id, slot), *occupied(tx, claimant.name, 0)}) <= claimant.slots


def lost(
    tx: Tx, node_id: int, running: Mapping[int, int] | None, once: Set[int], limit: int, now_us: int
) -> list[Record]:
    """Return records for the next ``limit`` leases of a dead node: lost when they had begun, else returned.

    ``running``: fence to start of those that were found running; None: it is not known, and the marks of the
    store count. ``once``: the lanes of types that must not run twice unasked. An attempt that is marked as
    started may have ended unrecorded, and so was not found running; it is lost all the same."""
    records = []
    external_worker = tx.exists("select 1 from external_workers where node_id = ?", (node_id,))
    died = "its external worker sent no more heartbeats" if external_worker else "its node died under it"
    for job_id, fence, lane, running_us in tx.all(
        "select job_id, fence, lane, running_us from leases where node_id = ? order by fence limit ?",
        (node_id, limit),
    ):
        started_us = (
            running_us if running is None else running.get(fence) or (running_us if lane in once else None)
        )
        records.append(
            Record(
                job_id,
                fence,
                Outcome.LOST if started_us else Outcome.RETURNED,
                started_us or 0,
                now_us,
                message=died if started_us else None,
            )
        )
    return records
