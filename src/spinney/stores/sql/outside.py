"""External stages in words: why no party has a job that waits for one, or how it stands with the one that has it."""

from spinney.model import durations
from spinney.model.names import PARTY_PREFIX
from spinney.model.serving import may_serve
from spinney.model.types import Isolation
from spinney.stores.sql import nodes, resting
from spinney.stores.sql.database import Tx
from spinney.stores.sql.registry import Registry
from spinney.stores.sql.rows import Row
from spinney.stores.sql.serving import Hindrance

_NAMED = 3


def is_external(registry: Registry, type_: str, stage: str) -> bool:
    """Whether parties run this stage, and nodes leave it alone."""
    spec = registry.types.get(type_)
    found = None if spec is None else spec.stage(stage)
    return found is not None and found.isolation is Isolation.EXTERNAL


def known_by(registry: Registry, type_: str, stage: str) -> str:
    """What a node (or a party) that runs this stage has among its types."""
    return f"{type_}/{stage}" if is_external(registry, type_, stage) else type_


def unclaimed(tx: Tx, registry: Registry, row: Row, now_us: int) -> Hindrance | None:
    """Why no party that is there may be given a pending job; None: one may."""
    stage, facts = (
        f"external stage {row.stage!r} of job type {row.type!r}",
        {"type": row.type, "stage": row.stage},
    )
    active = [n for n in nodes.known(tx) if n.state == "active" and f"{row.type}/{row.stage}" in n.types]
    if not active:
        return Hindrance(
            "no party", f"no party is there that claims {stage}; start the program that runs it", None, facts
        )
    queue = registry.queue(row.queue)
    able = [n for n in active if may_serve(queue, n.name, n.serves)]
    if not able:
        named = ", ".join(_bare(n.name) for n in active[:_NAMED])
        return Hindrance(
            "not served",
            f"no party that claims {stage} ({named}) may serve queue {queue.name!r}",
            f"spinney queue {queue.name}",
            facts,
        )
    if (none := resting.drained(tx, row.type, able)) is not None:
        return none
    last = max((n for n in able if n.claims), key=lambda n: n.seen_us)
    if now_us - last.seen_us <= last.dead_after_s * 1e6:
        return None
    silent = durations.shown((now_us - last.seen_us) // 1_000_000)
    return Hindrance(
        "silent",
        f"party {_bare(last.name)}, which claims {stage}, has given no sign of life for {silent}; start the "
        f"program that runs it",
        None,
        facts,
    )


def at_work(node: str, *, left: bool, silent: str | None, wished: bool) -> Hindrance:
    """How it stands with a job that a party has."""
    party = _bare(node)
    facts = {"party": party}
    if left:
        return Hindrance(
            "recovering", f"party {party}, which had it, is gone; it is being taken back", None, facts
        )
    if silent is not None:
        return Hindrance(
            "silent",
            f"party {party} has it, but has given no sign of life for {silent}; it is about to be taken back",
            None,
            facts,
        )
    if wished:
        return Hindrance("cancelling", f"party {party} has it, and is being told to cancel it", None, facts)
    return Hindrance("running", f"party {party} has it", None, facts)


def _bare(name: str) -> str:
    return name.removeprefix(PARTY_PREFIX)
