"""The explanation that no node may serve a queue: its ``pinned`` and ``barred`` nodes, and the nodes' own settings."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from spinney.model.jobs import NodeInfo
from spinney.model.queue_selection import may_serve
from spinney.model.types import QueueSpec


class Obstacle(NamedTuple):
    """What keeps all nodes from a job, as ``Explanation`` has it."""

    cause: str
    sentence: str
    command: str | None
    facts: Mapping[str, Any]


def pinned_away(queue: QueueSpec, type_: str, nodes: Sequence[NodeInfo]) -> Obstacle | None:
    """Return the obstacle that the queue is pinned to nodes of which none is active, whatever the others could run."""
    active = [n for n in nodes if n.state == "active"]
    if not queue.pinned or any(n.name in queue.pinned for n in active):
        return None
    draining = sorted({n.name for n in nodes if n.state == "draining" and n.name in queue.pinned})
    drains = f" ({_named(draining)} {'drains' if len(draining) == 1 else 'drain'})" if draining else ""
    inactive = "which is not active" if len(queue.pinned) == 1 else "none of which is active"
    open_ = replace(queue, pinned=())
    others = any(type_ in n.types and may_serve(open_, n.name, n.serves) for n in active)
    unpin = f"spinney queue {queue.name}" + "".join(f" --unpin {node}" for node in queue.pinned)
    return Obstacle(
        "pinned",
        f"queue {queue.name!r} is pinned to {_nodes(queue.pinned)}, {inactive}{drains}",
        unpin if others else f"spinney node --name {queue.pinned[0]}",
        {"queue": queue.name, "pinned": queue.pinned},
    )


def shut_out(queue: QueueSpec, type_: str, active: Sequence[NodeInfo]) -> Obstacle | None:
    """Of the active nodes that know the type none may serve the queue."""
    knowing = [n for n in active if type_ in n.types]
    if not knowing or any(may_serve(queue, n.name, n.serves) for n in knowing):
        return None
    if queue.pinned:
        pinned = [n for n in knowing if n.name in queue.pinned]
        if not pinned:
            return _pinned_to_ignorant(queue, type_, knowing)
        knowing = pinned
    barred = sorted({n.name for n in knowing if not queue.admits(n.name)})
    without = sorted({n.name for n in knowing if queue.admits(n.name)})
    reasons = [f"queue {queue.name!r} is barred from {_nodes(barred)}"] if barred else []
    if without:
        reasons.append(
            f"{_nodes(without)} {'was' if len(without) == 1 else 'were'} started without queue {queue.name!r}"
        )
    among = "it is pinned to no other active node that" if queue.pinned else "no other active node"
    return Obstacle(
        "barred" if barred else "not served",
        f"{' and '.join(reasons)}; {among} knows job type {type_!r}",
        f"spinney queue {queue.name} --unbar {barred[0]}"
        if barred
        else f"spinney node --active {queue.name}",
        {"queue": queue.name, "barred": barred, "without": without},
    )


def _pinned_to_ignorant(queue: QueueSpec, type_: str, knowing: Sequence[NodeInfo]) -> Obstacle:
    able = sorted(n.name for n in knowing if n.serves.admits(queue.name))
    return Obstacle(
        "pinned",
        f"queue {queue.name!r} is pinned to {_nodes(queue.pinned)}, and no active node of these knows job type "
        f"{type_!r}, as {_nodes(sorted({n.name for n in knowing}))} would",
        f"spinney queue {queue.name} --pin {able[0]}" if able else None,
        {"queue": queue.name, "pinned": queue.pinned},
    )


def _nodes(names: Sequence[str]) -> str:
    return f"{'node' if len(names) == 1 else 'nodes'} {_named(names)}"


def _named(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
