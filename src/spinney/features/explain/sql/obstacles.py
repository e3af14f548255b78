"""Why no node, or no external worker, may run a pending job, or one whose time has come: what queues admit, what nodes
know, who is drained.

Each function returns the cause and its facts, or None where something is there that may run the job. They are
asked in order, and each assumes that the ones before it returned None.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from spinney.model.external import bare_name
from spinney.model.jobs import NodeInfo
from spinney.model.queue_selection import may_serve
from spinney.model.settings.queues import QueueSpec
from spinney.model.types import Isolation
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.registry import nodes
from spinney.store.sql.registry.job_rows import Row
from spinney.store.sql.registry.registry import Registry


class Obstacle(NamedTuple):
    """The cause for which a job cannot run anywhere, and its facts."""

    cause: str
    """The cause, as one of the words of ``Explanation.cause``."""
    facts: dict[str, Any]
    """The values that the words for the cause need."""


# --- nodes --------------------------------------------------------------------------------------


def pinned_away(
    queue: QueueSpec, type_: str, stage: str | None, nodes: Sequence[NodeInfo]
) -> Obstacle | None:
    """Return the obstacle when the queue is pinned to nodes of which none is active, whatever the other nodes
    could run. Its facts say which of them are draining, and whether ``others`` could run the job if it were
    not pinned."""
    active = [n for n in nodes if n.state == "active"]
    if not queue.pinned or any(n.name in queue.pinned for n in active):
        return None
    open_ = replace(queue, pinned=())
    return Obstacle(
        "pinned",
        {
            "queue": queue.name,
            "pinned": queue.pinned,
            "draining": sorted({n.name for n in nodes if n.state == "draining" and n.name in queue.pinned}),
            "others": any(n.knows(type_, stage) and may_serve(open_, n.name, n.serves) for n in active),
        },
    )


def shut_out(queue: QueueSpec, type_: str, stage: str | None, active: Sequence[NodeInfo]) -> Obstacle | None:
    """Return the obstacle when none of the active nodes that know the stage may serve the queue; None also
    when none knows it.

    ``pinned``: those to which the queue is pinned do not know the type. ``barred``: the queue bars some.
    ``not served``: they were started without the queue.
    """
    knowing = [n for n in active if n.knows(type_, stage)]
    if not knowing or any(may_serve(queue, n.name, n.serves) for n in knowing):
        return None
    facts: dict[str, Any] = {"queue": queue.name, "pinned": queue.pinned, "type": type_}
    if queue.pinned:
        pinned = [n for n in knowing if n.name in queue.pinned]
        if not pinned:
            able = sorted(n.name for n in knowing if n.serves.admits(queue.name))
            return Obstacle("pinned", facts | {"knowing": sorted({n.name for n in knowing}), "able": able})
        knowing = pinned
    barred = sorted({n.name for n in knowing if not queue.admits(n.name)})
    without = sorted({n.name for n in knowing if queue.admits(n.name)})
    return Obstacle("barred" if barred else "not served", facts | {"barred": barred, "without": without})


def drained(tx: Tx, type_: str, able: Sequence[NodeInfo]) -> Obstacle | None:
    """Return the obstacle when an operator has drained all of these nodes, which are active and could run the
    type. The facts name who drained the first of them, and the reason."""
    if any(n.claims for n in able):
        return None
    names = list(dict.fromkeys(n.name for n in able))
    by, reason = tx.one("select by, reason from node_settings where name = ?", (names[0],))
    return Obstacle("drained", {"nodes": names, "type": type_, "by": by, "reason": reason})


# --- external workers ---------------------------------------------------------------------------


def is_external(registry: Registry, type_: str, stage: str) -> bool:
    """Return whether this is an external stage, which nodes do not claim. False for a type or stage that is
    not known."""
    spec = registry.types.get(type_)
    stage_spec = None if spec is None else spec.stage(stage)
    return stage_spec is not None and stage_spec.isolation is Isolation.EXTERNAL


def entry(registry: Registry, type_: str, stage: str) -> str:
    """Return the entry among the ``types`` of a node that stands for this stage: the type, or for an external
    stage, which external workers name one by one, ``type/stage``."""
    return f"{type_}/{stage}" if is_external(registry, type_, stage) else type_


def unclaimed(tx: Tx, registry: Registry, row: Row, now_us: int) -> Obstacle | None:
    """Return the obstacle when no active external worker may be given this job (``row``)."""
    facts: dict[str, Any] = {"type": row.type, "stage": row.stage}
    active = [n for n in nodes.all_nodes(tx) if n.state == "active" and f"{row.type}/{row.stage}" in n.types]
    if not active:
        return Obstacle("no external worker", facts)
    queue = registry.queue(row.queue)
    able = [n for n in active if may_serve(queue, n.name, n.serves)]
    if not able:
        workers = [bare_name(n.name) for n in active]
        return Obstacle("not served", facts | {"workers": workers, "queue": queue.name})
    if (none := drained(tx, row.type, able)) is not None:
        return none
    last = max((n for n in able if n.claims), key=lambda n: n.seen_us)
    if now_us - last.seen_us <= last.dead_after_s * 1e6:
        return None
    silent_s = (now_us - last.seen_us) // 1_000_000
    return Obstacle("silent", facts | {"external_worker": bare_name(last.name), "silent_s": silent_s})
