"""The route ``/metrics`` for Prometheus: jobs, queues and nodes of the store, and the requests of this
server.

The figures of the store are those of ``GET /stats``; many scrapes share one look at the store. Every server
has the same figures of the store, so it is enough to scrape one for them. Names of metrics are an interface:
``tests/node/test_monitoring_files.py`` compares them with the dashboards and alerts that are delivered.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily
from starlette.responses import Response

from spinney.model.bridges import BridgeStatus
from spinney.model.errors import Forbidden
from spinney.model.operators.stats import NodeStats, QueueStats, StageStats, Stats
from spinney.service.queries import STATS_WINDOW_S
from spinney.web.problems import Unidentified
from spinney.web.request_context import MaybeAuthenticated
from spinney.web.store_pool import StorePool
from spinney.web.telemetry.instrumentation import Requests

router = APIRouter(tags=["metrics"])


def add_to(app: FastAPI) -> None:
    """Add the route to the application, and set up what this process counts itself: requests, streams,
    memory, file descriptors."""
    registry: CollectorRegistry = app.state.registry
    app.state.requests = Requests(registry)
    ProcessCollector(registry=registry)
    streams = Gauge("spinney_event_streams", "Open event streams.", registry=registry)
    streams.set_function(lambda: app.state.feed.streams)
    app.router.routes.extend(router.routes)


@router.get("/metrics", summary="Figures for Prometheus", response_class=Response)
async def metrics(request: Request, context: MaybeAuthenticated) -> Response:
    """The figures of the store and of this server in Prometheus' text format. Needs a token of somebody
    without limits, or `metrics = "open"` in `[server]`."""
    if request.app.state.settings.metrics != "open":
        if context is None:
            raise Unidentified
        if not context.principal.rights.everywhere:
            raise Forbidden("the figures are of all jobs; ask with a token without limits")
    stores: StorePool = request.app.state.stores
    stats = await stores.run(stores.stats_cache.of_all, long=True)
    bridges = await stores.run(lambda store: store.bridges.statuses())
    registry: CollectorRegistry = request.app.state.registry

    def written() -> bytes:
        return generate_latest(registry) + generate_latest(_Once(stats, bridges))

    return Response(await asyncio.to_thread(written), media_type=CONTENT_TYPE_LATEST)


_QUANTILES = ("0.5", "0.9", "0.99")
"""The label of each of the three ``Percentiles``, in their order."""


class _Once(CollectorRegistry):
    """The statistics of one snapshot, as a registry that is written once.

    A registry of gauges that are set before each scrape would keep the series of queues and nodes that
    are gone.
    """

    def __init__(self, stats: Stats, bridges: Sequence[BridgeStatus]) -> None:
        super().__init__(auto_describe=False)
        self._stats, self._bridges = stats, bridges

    def collect(self) -> Iterator[GaugeMetricFamily]:
        states = {(str(state),): count for state, count in self._stats.states.items()}
        yield _family("jobs", "Jobs by state.", ["state"], states)
        yield from _queue_families(self._stats.queues)
        yield from _stage_families(self._stats.stages)
        yield from _node_families(self._stats.nodes)
        yield from _bridge_families(self._bridges)


def _queue_families(queues: Sequence[QueueStats]) -> Iterator[GaugeMetricFamily]:
    """Yield gauges by queue, also of those without jobs. A queue without a limit has no ``limit``."""
    for name, about in (
        ("pending", "Jobs that may be claimed."),
        ("running", "Occupied slots."),
        ("scheduled", "Jobs not due."),
        ("waiting", "Jobs that wait for others."),
        ("held", "Jobs that are held."),
        ("failed", "Jobs that failed."),
        ("limit", "Slots that the queue may occupy."),
    ):
        yield _family(f"queue_{name}", about, ["queue"], {(q.queue,): getattr(q, name) for q in queues})
    about = f"Finished attempts, over {STATS_WINDOW_S:.0f} s."
    yield _family("queue_attempts_per_second", about, ["queue"], {(q.queue,): q.rate for q in queues})


def _stage_families(stages: Sequence[StageStats]) -> Iterator[GaugeMetricFamily]:
    """Yield the quantiles of wait and run times by stage. They are of a sample of recent attempts, so
    they are gauges with a label ``quantile``, and not a summary, whose sums Prometheus would add up."""
    for name, about in (("wait", "Time until a stage began"), ("run", "Running time of a stage")):
        times = {
            (stage.type, stage.stage, quantile): seconds
            for stage in stages
            for quantile, seconds in zip(_QUANTILES, getattr(stage, f"{name}_s") or (), strict=False)
        }
        labels = ["type", "stage", "quantile"]
        yield _family(f"stage_{name}_seconds", f"{about}, of recent attempts.", labels, times)


def _node_families(nodes: Sequence[NodeStats]) -> Iterator[GaugeMetricFamily]:
    """Yield gauges by node. External workers have slots, but no heartbeat of their own: those two gauges
    leave them out."""
    slots = {(n.node, n.state): n.slots for n in nodes}
    yield _family("node_slots", "Slots of a node.", ["node", "state"], slots)
    running = {(n.node,): n.running for n in nodes}
    yield _family("node_running", "Occupied slots of a node.", ["node"], running)
    own = [n for n in nodes if not n.is_external_worker]
    yield _family(
        "node_seen_timestamp_seconds",
        "When its heartbeat was last seen to move.",
        ["node"],
        {(n.node,): n.seen_us / 1e6 for n in own},
    )
    yield _family(
        "node_presumed_dead",
        "1 while it has been silent for longer than its lease.",
        ["node"],
        {(n.node,): n.presumed_dead for n in own},
    )


def _bridge_families(bridges: Sequence[BridgeStatus]) -> Iterator[GaugeMetricFamily]:
    """Yield gauges of bridges to other job systems, as each reported last; one that is silent keeps its
    last figures."""
    for name, about in (
        ("links", "Entries of another system that are claimed and not finished."),
        ("behind", "Links whose job has changed and whose entry does not show it yet."),
        ("in_trouble", "1 while the bridge suffers from something."),
    ):
        yield _family(f"bridge_{name}", about, ["bridge"], {(b.name,): getattr(b, name) for b in bridges})
    reports = {(b.name,): b.seen_us / 1e6 for b in bridges}
    yield _family("bridge_seen_timestamp_seconds", "When the bridge last reported.", ["bridge"], reports)


def _family(name: str, about: str, labels: list[str], values: Mapping[Any, Any]) -> GaugeMetricFamily:
    """Return a gauge with the prefix of all metrics. ``values``: by the tuple of its labels; None is left
    out."""
    family = GaugeMetricFamily(f"spinney_{name}", about, labels=labels)
    for label_values, value in values.items():
        if value is not None:
            family.add_metric(list(label_values), float(value))
    return family
