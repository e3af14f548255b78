"""The overview: what needs attention first (``action_needed``), then what runs, how fast, and what failed.

The parts are read within a moment, but not in one snapshot, and the result is shared by callers with the same limits.
Those that take long on a large store are kept a little longer (``stats_cache``). The charts come from what this server
has measured since it started (``spinney.web.events.history``) and count all jobs, so a caller who is limited to some
collections gets none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.commands.control import Control
from spinney.features.failures.page import with_own_messages
from spinney.features.stats.action_needed import BATCHES, CAUSES, LOOKED_AT, FailedBatch, Overview, needs
from spinney.features.webhooks.commands import ListWebhooks
from spinney.model.access import Role
from spinney.model.jobs import Filter
from spinney.model.operators.stats import QueueStats, ShareStats, Stats
from spinney.model.settings.webhooks import WebhookHealth
from spinney.model.states import FAILED_OR_ORPHANED, State
from spinney.service.queries import Queries
from spinney.web.events.history import Sample
from spinney.web.pages.charts import Spark, spark
from spinney.web.pages.forms import page_or_part, read_coalesced
from spinney.web.request_context import Authenticated, RequestContext
from spinney.web.stats_cache import OVERVIEW, StatsCache

router = APIRouter(include_in_schema=False)

CHARTED_US = 600_000_000
"""The period of the charts in microseconds: ten minutes."""
LISTED = 8
"""How many failures are listed, and how many shares of a queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLine:
    """A queue with its charts over the last minutes; a chart is None where there are too few samples."""

    stats: QueueStats
    depth: Spark | None
    throughput: Spark | None


@router.get("/")
async def overview(request: Request, context: Authenticated) -> Response:
    """Show what needs attention, and the state of queues, nodes, holds and failures. The page's script
    reads it again at changes."""
    topics = ("overview", "failures", "holds")
    return page_or_part(request, context, "overview", topics=topics, **await _shown(request, context))


async def _shown(request: Request, context: RequestContext) -> dict[str, Any]:
    """Return the values of the template."""
    rights = context.principal.rights
    stats_cache = context.stores.stats_cache
    shown = await read_coalesced(
        request,
        context,
        ("overview", rights.within, rights.permits(Role.OPERATOR)),
        lambda control: read(control, stats_cache),
    )
    # This server's samples count all jobs: a caller who sees only those of some collections is shown no chart.
    whole = rights.within.collections is None
    samples = request.app.state.history.samples if whole else ()
    return {
        "overview": shown,
        "needs": list(needs(shown)),
        "lines": queue_lines(shown.stats, samples),
        "total": total(shown.stats, samples) if rights.everywhere else (None, None),
        "shares": busiest(shown.stats.shares),
    }


def read(control: Control, stats_cache: StatsCache) -> Overview:
    """Read all parts, as the caller may see them. What cannot be there, by the counts of states, is not
    looked for."""
    look = control.queries
    stats = stats_cache.stats(control)
    bad = sum(stats.states.get(state, 0) for state in FAILED_OR_ORPHANED)
    failed, more_failed = (
        stats_cache.get(OVERVIEW, ("failed", look.rights), lambda: _failed_batches(look)) if bad else ((), 0)
    )
    return Overview(
        stats=stats,
        failures=with_own_messages(look, look.failures(limit=LISTED)),
        nodes=look.nodes(),
        holds=look.holds(),
        queues=look.queues(),
        failed=failed,
        more_failed=more_failed,
        held_by_stages=stats_cache.get(
            OVERVIEW,
            ("held", look.rights),
            lambda: look.store.statistics.held_by_stages(look.rights.within),
        )
        if stats.states.get(State.HELD)
        else 0,
        webhooks=stats_cache.get(OVERVIEW, ("webhooks", look.rights), lambda: _unwell_webhooks(control))
        if look.rights.permits(Role.OPERATOR)
        else {},
    )


def _failed_batches(look: Queries) -> tuple[Sequence[FailedBatch], int]:
    """Return the latest failed batches with their causes, and how many more there are among the
    ``LOOKED_AT`` latest trees."""
    failed = look.store.statistics.failed_trees(look.rights.within, latest=LOOKED_AT)
    latest = look.jobs(Filter(ids=tuple(failed[:BATCHES])), limit=BATCHES, newest=True) if failed else ()
    within = look.within(Filter()).within
    batches = [
        FailedBatch(job=job, causes=look.store.failures.groups(root_id=job.id, limit=CAUSES, within=within))
        for job in latest
    ]
    return batches, max(0, len(failed) - BATCHES)


def _unwell_webhooks(control: Control) -> Mapping[str, WebhookHealth]:
    """Return the webhooks that the caller may see, that are not paused, and whose deliveries are not
    accepted, by name."""
    health = control.store.webhooks.health()
    if not any(webhook.is_unwell for webhook in health.values()):
        return {}
    at_work = [webhook.name for webhook in control.do(ListWebhooks()).items if webhook.paused is None]
    return {name: health[name] for name in at_work if name in health and health[name].is_unwell}


def queue_lines(stats: Stats, samples: Sequence[Sample]) -> list[QueueLine]:
    """Return the queues that have jobs or throughput, the busiest first: by running, then by pending jobs."""
    busy = [q for q in stats.queues if q.pending or q.running or q.scheduled or q.waiting or q.held or q.rate]
    lines = []
    for queue in sorted(busy, key=lambda q: (-q.running, -q.pending, q.queue)):
        depth, throughput = queue_charts(stats, queue.queue, queue, samples)
        lines.append(QueueLine(stats=queue, depth=depth, throughput=throughput))
    return lines


def queue_charts(
    stats: Stats, name: str, queue: QueueStats | None, samples: Sequence[Sample]
) -> tuple[Spark | None, Spark | None]:
    """Return the charts of depth and throughput of a queue; the last point is that of the snapshot ``stats``.
    ``queue``: its figures there; None: it is newer. Both are None where there are no samples."""
    pending, rate = (0, 0.0) if queue is None else (queue.pending, queue.rate or 0.0)
    points = [(s.at_us, s.queues.get(name, (0, 0, 0.0))) for s in samples]
    depth = [*((at_us, float(point[0])) for at_us, point in points), (stats.at_us, float(pending))]
    throughput = [*((at_us, point[2]) for at_us, point in points), (stats.at_us, rate)]
    return _charts(stats, depth, throughput)


def total(stats: Stats, samples: Sequence[Sample]) -> tuple[Spark | None, Spark | None]:
    """Return the charts of depth and throughput over all queues; both are None where there are no samples."""
    pending = sum(q.pending for q in stats.queues)
    depth = [*((s.at_us, float(s.pending)) for s in samples), (stats.at_us, float(pending))]
    throughput = [*((s.at_us, s.rate) for s in samples), (stats.at_us, stats.rate or 0.0)]
    return _charts(stats, depth, throughput)


def _charts(
    stats: Stats, depth: Sequence[tuple[int, float]], throughput: Sequence[tuple[int, float]]
) -> tuple[Spark | None, Spark | None]:
    """Return two charts of the last minutes before the snapshot."""
    from_us, until_us = stats.at_us - CHARTED_US, stats.at_us
    return (
        spark(depth, from_us=from_us, until_us=until_us),
        spark(throughput, from_us=from_us, until_us=until_us),
    )


def busiest(shares: Sequence[ShareStats]) -> Mapping[str, Sequence[ShareStats]]:
    """Return the shares that occupy most slots, by queue, at most ``LISTED`` of each. Queues without
    shares are left out."""
    by_queue: dict[str, list[ShareStats]] = {}
    for share in shares:
        if share.share is not None and len(of := by_queue.setdefault(share.queue, [])) < LISTED:
            of.append(share)
    return by_queue
