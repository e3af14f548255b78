"""Explanations for external stages: why no external worker has a pending job, or the status of the one that has it."""

from spinney.model.queue_selection import may_serve
from spinney.model.types import Isolation
from spinney.model.values import durations
from spinney.model.values.names import EXTERNAL_PREFIX
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.connection.rows import Row
from spinney.store.sql.read import drained_nodes
from spinney.store.sql.read.unserved_queues import Obstacle
from spinney.store.sql.registry import nodes
from spinney.store.sql.registry.registry import Registry

_NAMED = 3


def is_external(registry: Registry, type_: str, stage: str) -> bool:
    """Return whether this is an external stage, which nodes do not claim."""
    spec = registry.types.get(type_)
    stage_spec = None if spec is None else spec.stage(stage)
    return stage_spec is not None and stage_spec.isolation is Isolation.EXTERNAL


def known_by(registry: Registry, type_: str, stage: str) -> str:
    """Return the entry among the types of a node (or an external worker) that runs this stage."""
    return f"{type_}/{stage}" if is_external(registry, type_, stage) else type_


def unclaimed(tx: Tx, registry: Registry, row: Row, now_us: int) -> Obstacle | None:
    """Return why no active external worker may get a pending job; None: one may."""
    stage, facts = (
        f"external stage {row.stage!r} of job type {row.type!r}",
        {"type": row.type, "stage": row.stage},
    )
    active = [n for n in nodes.all_nodes(tx) if n.state == "active" and f"{row.type}/{row.stage}" in n.types]
    if not active:
        return Obstacle(
            "no external worker",
            f"no external worker is there that claims {stage}; start the program that runs it",
            None,
            facts,
        )
    queue = registry.queue(row.queue)
    able = [n for n in active if may_serve(queue, n.name, n.serves)]
    if not able:
        named = ", ".join(_bare(n.name) for n in active[:_NAMED])
        return Obstacle(
            "not served",
            f"no external worker that claims {stage} ({named}) may serve queue {queue.name!r}",
            f"spinney queue {queue.name}",
            facts,
        )
    if (none := drained_nodes.drained(tx, row.type, able)) is not None:
        return none
    last = max((n for n in able if n.claims), key=lambda n: n.seen_us)
    if now_us - last.seen_us <= last.dead_after_s * 1e6:
        return None
    silent = durations.shown((now_us - last.seen_us) // 1_000_000)
    return Obstacle(
        "silent",
        f"external worker {_bare(last.name)}, which claims {stage}, has given no sign of life for {silent}; start the "
        f"program that runs it",
        None,
        facts,
    )


def at_work(node: str, *, left: bool, silent: str | None, cancelling: bool) -> Obstacle:
    """Return the status of a job that an external worker has."""
    external_worker = _bare(node)
    facts = {"external_worker": external_worker}
    if left:
        return Obstacle(
            "recovering",
            f"external worker {external_worker}, which had it, is gone; it is being taken back",
            None,
            facts,
        )
    if silent is not None:
        return Obstacle(
            "silent",
            f"external worker {external_worker} has it, but has given no sign of life for {silent}; it "
            "is about to be taken back",
            None,
            facts,
        )
    if cancelling:
        return Obstacle(
            "cancelling",
            f"external worker {external_worker} has it, and is being told to cancel it",
            None,
            facts,
        )
    return Obstacle("running", f"external worker {external_worker} has it", None, facts)


def _bare(name: str) -> str:
    return name.removeprefix(EXTERNAL_PREFIX)
