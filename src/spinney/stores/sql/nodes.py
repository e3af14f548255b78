"""Nodes: who is there, who beats, and taking back what a dead one had."""

from collections.abc import Mapping, Sequence

import orjson

from spinney.model.errors import NodeRefused
from spinney.model.jobs import NodeInfo, Record
from spinney.model.outcomes import Outcome
from spinney.stores.sql.database import Tx

_COLUMNS = "id, name, boot_id, host, pid, slots, state, beat, started_us, seen_us, version, types"


def join(tx: Tx, node: NodeInfo, now_us: int) -> int:
    node_id = tx.take("node")
    tx.run(
        f"insert into nodes ({_COLUMNS}) values (?, ?, ?, ?, ?, ?, 'active', 0, ?, ?, ?, ?)",
        (
            node_id, node.name, node.boot_id, node.host, node.pid, node.slots, node.started_us, now_us,
            node.version, orjson.dumps(list(node.types)).decode(),
        ),
    )  # fmt: skip
    return node_id


def beat(tx: Tx, node_id: int, now_us: int) -> bool:
    tx.run(
        "update nodes set beat = beat + 1, seen_us = ? where id = ? and state <> 'left'", (now_us, node_id)
    )
    return tx.changed() == 1


def update(tx: Tx, node_id: int, state: str, now_us: int) -> None:
    if state not in ("active", "draining", "left"):
        raise NodeRefused(f"a node is active, draining or left, not {state!r}")
    tx.run(
        "update nodes set state = ?, seen_us = ? where id = ? and state <> 'left'", (state, now_us, node_id)
    )


def known(tx: Tx) -> list[NodeInfo]:
    found = tx.all(
        f"select {_COLUMNS}, (select count(*) from leases l where l.node_id = nodes.id) as n from nodes "
        "where state <> 'left' or exists (select 1 from leases l where l.node_id = nodes.id) order by id"
    )
    return [info(row) for row in found]


def info(row: Sequence[object]) -> NodeInfo:
    values = dict(zip((*_COLUMNS.split(", "), "leases"), row, strict=True))
    values["types"] = tuple(orjson.loads(str(values["types"])))
    return NodeInfo(**values)  # type: ignore[arg-type]  # columns of this module, in its order


def lost(tx: Tx, node_id: int, running: Mapping[int, int] | None, limit: int, now_us: int) -> list[Record]:
    """Records for the next ``limit`` leases of a dead node: lost when they had begun, else returned."""
    records = []
    for job_id, fence, running_us in tx.all(
        "select job_id, fence, running_us from leases where node_id = ? order by fence limit ?",
        (node_id, limit),
    ):
        started_us = running_us if running is None else running.get(fence)
        records.append(
            Record(
                job_id,
                fence,
                Outcome.LOST if started_us else Outcome.RETURNED,
                started_us or 0,
                now_us,
                message="its node died under it" if started_us else None,
            )
        )
    return records
