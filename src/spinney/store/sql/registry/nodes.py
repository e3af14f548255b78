"""Nodes: who is there, who beats, what they may be given, and taking back what a dead one had.

What operators want of a node (``node_settings``, by its name, so that it outlives restarts) is read with it: the
slots in force are theirs, else those that it was started with.
"""

from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

import orjson

from spinney.model.errors import NodeRefused, SpinneyError
from spinney.model.fleet import Load
from spinney.model.jobs import NodeInfo, Record
from spinney.model.outcomes import Outcome
from spinney.model.queue_selection import ALL, NONE, QueueSelection, may_serve
from spinney.model.types import QueueSpec
from spinney.model.values import limits
from spinney.model.values.unreadable import json_list
from spinney.store.sql.connection.database import SCHEMA_VERSION, Tx

_COLUMNS = (
    "id, name, boot_id, host, pid, slots, state, beat, started_us, seen_us, version, types, serves, "
    "home, lease_s"
)
_SLOTS = "coalesce(s.slots, n.slots)"
_WITH_ORDERS = "nodes n left join node_settings s on s.name = n.name"
_LEASES = "(select count(*) from leases l where l.node_id = n.id)"
_CLAIMS = "n.state = 'active' and coalesce(s.drained, 0) = 0"


def join(tx: Tx, node: NodeInfo, home: int, now_us: int) -> int:
    _require_admitted(tx)
    node_id = tx.take("node")
    tx.run(
        f"insert into nodes ({_COLUMNS}, schema_version) "
        "values (?, ?, ?, ?, ?, ?, 'active', 0, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            node_id,
            node.name,
            node.boot_id,
            node.host,
            node.pid,
            node.slots,
            node.started_us,
            now_us,
            node.version,
            orjson.dumps(list(node.types)).decode(),
            None if node.serves.all else orjson.dumps(node.serves.to_json()).decode(),
            home,
            node.lease_s,
            SCHEMA_VERSION,
        ),
    )
    return node_id


def _require_admitted(tx: Tx) -> None:
    """An upgrade is finished when no older node is there, so none may come in the meantime: this connection may have
    been opened before."""
    works_with = tx.value("select value from meta where name = 'works_with'")
    if works_with is not None and works_with > SCHEMA_VERSION:
        raise NodeRefused(
            f"the store works with schema {works_with} or later only, this Spinney is of {SCHEMA_VERSION}; upgrade "
            f"Spinney on this host"
        )


def beat(tx: Tx, node_id: int, now_us: int, load: Load | None, trouble: str | None) -> bool:
    tx.run(
        "update nodes set beat = beat + 1, seen_us = ?, load = coalesce(?, load), trouble = ? "
        "where id = ? and state <> 'left'",
        (now_us, None if load is None else load.to_json(), trouble, node_id),
    )
    return tx.changed() == 1


def update(tx: Tx, node_id: int, state: str, now_us: int, beat: int | None = None) -> bool:
    if state not in ("active", "draining", "left"):
        raise NodeRefused(f"a node is active, draining or left, not {state!r}")
    tx.run(
        "update nodes set state = ?, seen_us = ? where id = ? and state <> 'left' and beat = coalesce(?, beat)",
        (state, now_us, node_id, beat),
    )
    return tx.changed() == 1


def known(tx: Tx) -> list[NodeInfo]:
    columns = ", ".join(f"n.{column}" for column in _COLUMNS.split(", ")).replace("n.slots", _SLOTS)
    columns = columns.replace("n.lease_s", "coalesce(p.lease_s, n.lease_s)")
    found = tx.all(
        f"select {columns}, {_LEASES}, coalesce(s.drained, 0), n.load, n.trouble, p.node_id is not null "
        f"from {_WITH_ORDERS} left join external_workers p on p.node_id = n.id "
        "where n.state <> 'left' or exists (select 1 from leases l where l.node_id = n.id) order by n.id"
    )
    return [info(row) for row in found]


def info(row: Sequence[object]) -> NodeInfo:
    values = dict(
        zip(
            (*_COLUMNS.split(", "), "leases", "drained", "load", "trouble", "is_external_worker"),
            row,
            strict=True,
        )
    )
    values["types"] = tuple(json_list(values["types"]))
    values["serves"] = serves(values["serves"])
    values["drained"], values["is_external_worker"] = (
        bool(values["drained"]),
        bool(values["is_external_worker"]),
    )
    values["load"] = Load.from_json(values["load"])  # type: ignore[arg-type]
    return NodeInfo(**values)  # type: ignore[arg-type]  # columns of this module, in its order


def slots_serving(tx: Tx, queue: QueueSpec) -> int:
    """The slots of the nodes that may serve a queue and take something new, as quotas count them: at least one."""
    there = tx.all(f"select n.name, {_SLOTS}, n.serves from {_WITH_ORDERS} where {_CLAIMS}")
    return sum(slots for name, slots, column in there if may_serve(queue, name, serves(column))) or 1


def limit(tx: Tx, queue: QueueSpec) -> int | None:
    """How many slots a queue may occupy now; None: any."""
    given = queue.limit
    return limits.slots(given, slots_serving(tx, queue)) if isinstance(given, str) else given


def serves(column: Any) -> QueueSelection:
    """What the column of that name says; no queue at all where it cannot be read."""
    try:
        return ALL if column is None else QueueSelection.from_json(orjson.loads(column))
    except (SpinneyError, AttributeError, TypeError, ValueError):
        return NONE


class Claimant(NamedTuple):
    """What a claim must know of the node that asks."""

    name: str
    claims: bool
    """It may be given something new."""
    slots: int
    ordered: bool
    """An operator has set that number: more may be occupied."""


def claimant(tx: Tx, node_id: int) -> Claimant | None:
    """None: no such node has ever joined."""
    row = tx.one(
        f"select n.name, {_CLAIMS}, {_SLOTS}, s.slots is not null from {_WITH_ORDERS} where n.id = ?",
        (node_id,),
    )
    return None if row is None else Claimant(row[0], bool(row[1]), row[2], bool(row[3]))


def occupied(tx: Tx, name: str, least_fence: int) -> list[tuple[int, int]]:
    """(node, slot) of each slot that holds leases, over all incarnations of a name; no lease has a fence below."""
    found: list[tuple[int, int]] = tx.all(
        "select distinct l.node_id, l.slot from leases l join nodes n on n.id = l.node_id "
        "where l.fence >= ? and n.name = ?",
        (least_fence, name),
    )
    return found


def seated(tx: Tx, node_id: int, least_fence: int) -> tuple[Claimant, list[tuple[int, int]]] | None:
    """Who asks, and what its name occupies: ``claimant`` and ``occupied``, on a server in one exchange."""
    if not tx.postgresql:
        found = claimant(tx, node_id)
        return None if found is None else (found, occupied(tx, found.name, least_fence))
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


def may_keep(tx: Tx, node_id: int, slot: int) -> bool:
    """Whether a slot of the node may go on with a further stage, which is a lease like any other. That keeps the
    number of occupied slots, so it can be too many only where an operator has made them fewer."""
    found = claimant(tx, node_id)
    if found is None or not found.claims:
        return False
    return not found.ordered or len({(node_id, slot), *occupied(tx, found.name, 0)}) <= found.slots


def lost(
    tx: Tx, node_id: int, running: Mapping[int, int] | None, once: Set[int], limit: int, now_us: int
) -> list[Record]:
    """Records for the next ``limit`` leases of a dead node: lost when they had begun, else returned.

    ``once``: the lanes of types that may not silently run twice. What was marked as started there may have ended
    without being recorded, so that nobody found it running; it is lost all the same."""
    records = []
    external_worker = tx.value("select 1 from external_workers where node_id = ?", (node_id,)) is not None
    died = "its external worker was not heard of any more" if external_worker else "its node died under it"
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
