"""What needs attention on the overview: work that does not continue until somebody acts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from spinney.model.attempts.failure_groups import Failure, FailureGroups
from spinney.model.attempts.failures import POISON
from spinney.model.fleet import NodeStatus, lasts
from spinney.model.jobs import Job
from spinney.model.operators.queues import QueueInfo
from spinney.model.operators.stats import Stats
from spinney.model.outcomes import Outcome
from spinney.model.settings.holds import Hold, Scope, scope_text
from spinney.model.settings.webhooks import WebhookHealth
from spinney.model.states import FAILED_OR_ORPHANED, State
from spinney.model.values.hints import first_of
from spinney.model.values.texts import counted
from spinney.web.pages.page_responses import segment, with_query
from spinney.web.pages.text_formats import cut, exception

OLD_HOLD_US = 86_400_000_000
"""A hold that is older than a day (in microseconds) may have been forgotten. One on everything is listed at
once."""
BATCHES = 5
"""How many failed batches are listed."""
CAUSES = 3
"""How many causes of failures are named, of a batch and in all."""
_MESSAGE_MAX = 48
"""How many characters of a failure's message stand with a cause that is named among others."""
LOOKED_AT = 1_000
"""How many of the latest batches are looked at for failed ones."""
_UNWELL = ("dead", "silent", "degraded")
"""States of nodes that need attention."""
_TAKES_NOTHING = ("draining", "drained")
"""States of nodes that are about to end, and of those that an operator has drained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionNeeded:
    """Something that does not continue until somebody acts."""

    id: str
    """Identifies the line while the page is updated."""
    kind: str
    """A state or outcome, by which the page chooses shape and colour."""
    title: str
    """The heading: what does not continue."""
    more: str
    """The details, and what would help."""
    path: str
    """The page to which it leads."""
    label: str
    """The text of that link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedBatch:
    """A failed job that has subjobs, with the causes in its tree."""

    job: Job
    causes: FailureGroups
    """The causes of the failures in its tree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Everything that the page shows, read within a moment, but not in one snapshot."""

    stats: Stats
    failures: FailureGroups
    """The causes with the most failed jobs, at most ``LISTED``."""
    nodes: Sequence[NodeStatus]
    """The nodes that have not left, and those that died lately; external workers are among them."""
    holds: Sequence[Hold]
    """The holds in force that cover visible jobs, the oldest first."""
    queues: Sequence[QueueInfo]
    """The visible queues with what keeps their jobs from running."""
    failed: Sequence[FailedBatch]
    """The latest failed jobs that have subjobs, at most ``BATCHES``. Single jobs are among the failures by cause."""
    more_failed: int
    """How many other of the ``LOOKED_AT`` latest batches have failed."""
    held_by_stages: int
    """How many jobs are held by their own stages, and by no hold."""
    webhooks: Mapping[str, WebhookHealth]
    """Webhooks whose deliveries are not accepted, by name; for operators only."""


def needs(shown: Overview) -> Iterator[ActionNeeded]:
    """Yield what needs attention, the worst first.

    The order is: nothing can run; jobs that kill their workers; nodes in trouble; failed batches; other
    causes of failures; held jobs; webhooks; and holds that may have been forgotten, or that a circuit
    breaker has placed.
    """
    yield from _stuck(shown.queues, shown.nodes)
    groups = shown.failures.items
    yield from (_poison(group) for group in groups if group.exception == POISON)
    yield from (_cause(group, "died", group.message) for group in groups if group.exception == Outcome.DIED)
    yield from (_unwell(node) for node in shown.nodes if _is_unwell(node))
    yield from (_failed_batch(batch) for batch in shown.failed)
    if shown.more_failed:
        yield _more_failed(shown.more_failed)
    others = [group for group in groups if group.exception not in (POISON, Outcome.DIED)]
    for group in others[:CAUSES]:
        yield _cause(group, "failed", f"{exception(group.exception)}: {group.message}")
    if shown.held_by_stages:
        yield _held(shown.held_by_stages)
    yield from (_unwell_webhook(name, health) for name, health in shown.webhooks.items())
    for hold in shown.holds:
        is_old = shown.stats.at_us - hold.since_us > OLD_HOLD_US
        if is_old or hold.automatic or hold.scope is Scope.EVERYTHING:
            yield _listed_hold(hold, is_old=is_old)


def _stuck(queues: Sequence[QueueInfo], nodes: Sequence[NodeStatus]) -> Iterator[ActionNeeded]:
    """Yield queues with pending jobs that no node would take.

    Where no node takes anything at all, there is one line for that, instead of the same line for each
    queue.
    """
    pending = [queue for queue in queues if queue.pending]
    running = [node for node in nodes if node.is_running]
    if pending and all(node.state in _TAKES_NOTHING for node in running):
        yield _no_node(sum(queue.pending for queue in pending), running)
        return
    for queue in pending:
        if (why := _stuck_queue(queue)) is not None:
            yield ActionNeeded(
                id=f"queue-{queue.queue}",
                kind=why[0],
                title=f"Queue {queue.queue}: {why[1]}",
                more=f"{counted(queue.pending, 'job')} pending; {why[2]}",
                path=with_query("/jobs", queue=queue.queue, state="pending"),
                label="Jobs",
            )


def _no_node(pending: int, running: Sequence[NodeStatus]) -> ActionNeeded:
    """Return the line that no node takes jobs.

    ``running``: the nodes that run, all of which take no new jobs. One that is about to end cannot be
    resumed, so another must be started.
    """
    drained = [node for node in running if node.state == "drained"]
    wait = f"{counted(pending, 'pending job')} {'waits' if pending == 1 else 'wait'}"
    title = "All nodes are about to end" if running else "No node is running"
    more = f"{wait} for one: start it with 'spinney node'"
    if drained:
        title = (
            f"Node {drained[0].node} is drained"
            if len(drained) == 1
            else f"All {len(drained)} nodes are drained"
        )
        by, reason = drained[0].drained_by, drained[0].drained_reason
        who = f" (by {by}{f': {reason}' if reason else ''})" if by else ""
        more = f"{wait} until {'it' if len(drained) == 1 else 'one'} is resumed{who}"
    kind = "drained" if drained else "dead"
    return ActionNeeded(id="no-node", kind=kind, title=title, more=more, path="/nodes", label="Nodes")


def _stuck_queue(queue: QueueInfo) -> tuple[str, str, str] | None:
    """Return the kind of trouble, what it is, and what would help; None: there is none.

    The trouble that has to be dealt with first comes first: a type that no node has, then nodes that may
    not serve the queue.
    """
    if queue.unknown:
        return (
            "silent",
            f"no active node knows {first_of(queue.unknown, 2)}",
            "start a node whose application has it",
        )
    if queue.unserved or not queue.nodes:
        return "silent", "no running node may serve it", "start another node, or change the queue's nodes"
    if queue.in_force.limit == 0:
        return "held", "its limit is 0", "nothing starts until the limit is raised"
    return None


def _poison(group: Failure) -> ActionNeeded:
    return ActionNeeded(
        id=f"poison-{group.fingerprint}",
        kind="died",
        title=f"{counted(group.jobs, 'poison job')} in {group.type}.{group.stage}",
        more="each time one ran, its worker or node died; check the output before you retry",
        path=with_query("/jobs", failure=group.fingerprint),
        label="Jobs",
    )


def _is_unwell(node: NodeStatus) -> bool:
    """Return whether a node needs attention: by its state, or for trouble that has not passed."""
    return node.state in _UNWELL or lasts(node.trouble)


def _unwell(node: NodeStatus) -> ActionNeeded:
    more = node.trouble or f"no heartbeat; {counted(node.leases, 'job')} claimed by it"
    return ActionNeeded(
        id=f"node-{node.id}",
        kind=node.state if node.state in _UNWELL else "degraded",
        title=f"Node {node.node} is {node.state}",
        more=more,
        path=f"/nodes/{segment(node.node)}",
        label="Nodes",
    )


def _cause(group: Failure, kind: str, more: str) -> ActionNeeded:
    """Return the line of a cause of failures. ``kind``: what became of its jobs."""
    return ActionNeeded(
        id=f"cause-{group.fingerprint}",
        kind=kind,
        title=f"{counted(group.jobs, 'job')} {kind} in {_place(group)}",
        more=more,
        path=f"/failures/{group.fingerprint}",
        label="Cause",
    )


def _held(jobs: int) -> ActionNeeded:
    return ActionNeeded(
        id="held",
        kind="held",
        title=f"{counted(jobs, 'job')} held by their own stages"
        if jobs > 1
        else "1 job held by its own stage",
        more="they go on when somebody releases them; the list has their reasons",
        path=with_query("/jobs", state=State.HELD),
        label="Jobs",
    )


def _place(group: Failure) -> str:
    """Return the stage of a failure as text; a type with one stage of the same name is named once."""
    return group.type if group.stage == group.type else f"{group.type}.{group.stage}"


def _named_causes(groups: Sequence[Failure]) -> list[str]:
    """Return causes of failures as short texts. Those of the same exception in the same stage have their messages,
    which alone tell them apart."""
    texts = [f"{exception(group.exception)} in {_place(group)}" for group in groups]
    return [
        f"{group.jobs:,} × {text}"
        + (f" ({cut(group.message, _MESSAGE_MAX)})" if texts.count(text) > 1 else "")
        for group, text in zip(groups, texts, strict=True)
    ]


def _failed_batch(batch: FailedBatch) -> ActionNeeded:
    job, causes = batch.job, batch.causes
    named = _named_causes(causes.items)
    more = f" and {counted(causes.causes - len(named), 'more cause')}" if causes.causes > len(named) else ""
    return ActionNeeded(
        id=f"failed-{job.id}",
        kind=job.state,
        title=f"#{job.id} {job.type} {job.state}" + (f": {job.subject}" if job.subject else ""),
        more=f"{', '.join(named)}{more}" if named else job.message or "it failed",
        path=f"/batches/{job.id}",
        label="Batch",
    )


def _unwell_webhook(name: str, health: WebhookHealth) -> ActionNeeded:
    last = " ".join(str(part) for part in (health.status, health.answer) if part)
    return ActionNeeded(
        id=f"webhook-{name}",
        kind="failed",
        title=f"The deliveries of webhook {name} fail",
        more=(
            "the last delivery was not accepted"
            if health.failing == 1
            else f"the last {health.failing:,} deliveries were not accepted"
        )
        + (f": {last}" if last else ""),
        path=f"/webhooks/{segment(name)}",
        label="Webhook",
    )


def _more_failed(batches: int) -> ActionNeeded:
    return ActionNeeded(
        id="more-failed",
        kind="failed",
        title=f"{batches:,} more failed {'batch' if batches == 1 else 'batches'}",
        more=f"among the {LOOKED_AT:,} latest batches; the {BATCHES} that failed last are shown above",
        path=with_query("/batches", state=[str(state) for state in FAILED_OR_ORPHANED]),
        label="Batches",
    )


def _listed_hold(hold: Hold, *, is_old: bool) -> ActionNeeded:
    """Return the line of a hold, with who has placed it and why."""
    why = "Placed by a circuit breaker" if hold.automatic else f"By {hold.by}"
    if is_old and not hold.automatic:
        why += ", for longer than a day"
    return ActionNeeded(
        id=f"hold-{hold.id}",
        kind="held",
        title=f"Hold on {scope_text(hold.scope, hold.name)}",
        more=f"{why}: {hold.reason}",
        path="/holds",
        label="Holds",
    )
