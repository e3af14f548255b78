"""The node's own ``/metrics`` for Prometheus: an HTTP server of prometheus-client in a thread of the supervisor.

A scrape reads the figures that ``NodeMeasurements`` has added up. Waiting times are not measured by anything that jobs
pass: once a second this service looks them up in the store, for up to a hundred of the attempts that have been
recorded since.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from spinney.model.errors import StoreUnusable
from spinney.node.context import NodeContext
from spinney.node.measurements import NodeMeasurements, TimeHistogram
from spinney.node.services.loop import every
from spinney.version import VERSION

if TYPE_CHECKING:
    from prometheus_client.core import HistogramMetricFamily, Metric

log = logging.getLogger(__name__)

SAMPLE_EVERY_S = 1.0
"""Seconds between two looks for the waiting times of a sample."""
BIND_AGAIN_S = 1.0
"""Seconds between two attempts to listen: a node that is replaced has the port until it has drained."""

Gauges = Mapping[str, Callable[[], float]]
"""What is read at each scrape, by its name; ``_GAUGES`` has the help."""
_GAUGES = {
    "slots": "Slots that the node has.",
    "leases": "Attempts that the node holds and has not recorded.",
    "records_waiting": "Records that the store has not written yet.",
    "degraded": "1 while the database or the folders are in trouble, or no worker can be started.",
}


class MetricsService:
    """Serves the figures for as long as the node lives; ``run`` is its task."""

    def __init__(
        self, context: NodeContext, measurements: NodeMeasurements, address: tuple[str, int], gauges: Gauges
    ) -> None:
        self._context, self._measurements, self._gauges = context, measurements, gauges
        self._address = address

    async def run(self) -> None:
        """Serve, for ever. While another process has the port it is tried again each second; the node works
        meanwhile. ``NodeSettings`` has seen that prometheus-client is installed."""
        from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server

        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(_Collector(self._measurements, self._gauges, self._context.settings.name))
        address, port = self._address
        is_refused = False
        while True:
            try:
                server, _ = start_http_server(port, address, registry)
                break
            except OSError as error:
                if not is_refused:
                    log.warning("metrics wait for %s port %d: %s", address, port, error.strerror or error)
                is_refused = True
                await asyncio.sleep(BIND_AGAIN_S)
        log.info("metrics are at http://%s:%d/metrics", address, server.server_port)
        # The server ends with the process.
        await every(SAMPLE_EVERY_S, self._look_up_waits, "metrics", dispensable=True)

    async def _look_up_waits(self) -> None:
        """Look up how long the attempts of the sample had waited, and add that to the figures. Jobs that run
        again meanwhile have another start than the one in the sample, and are left out."""
        sample = self._measurements.sample
        looked_up = len(sample)
        if not looked_up:
            return
        began, job_ids = set(sample), sorted({job_id for job_id, _ in sample})
        try:
            waits = await self._context.reader.call(lambda store: store.statistics.waits(job_ids))
        except StoreUnusable:
            raise  # they are looked up again
        except Exception:
            del sample[:looked_up]  # whatever is wrong with them, the next ones may be measured
            raise
        del sample[:looked_up]
        for wait in waits:
            if (wait.job_id, wait.started_us) in began:
                self._measurements.wait[wait.type, wait.stage].add(wait.wait_us)


class _Collector:
    """Makes the families of one scrape of plain numbers. It is called in threads of the HTTP server."""

    def __init__(self, measurements: NodeMeasurements, gauges: Gauges, node: str) -> None:
        self._measurements, self._gauges, self._node = measurements, gauges, node

    def collect(self) -> Iterator["Metric"]:
        """Yield the families of one scrape. The counters may grow meanwhile, so each dict is copied before it
        is walked."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily

        figures = self._measurements
        yield InfoMetricFamily("spinney_node", "The node.", value={"node": self._node, "version": VERSION})
        for name, read in self._gauges.items():
            yield GaugeMetricFamily(f"spinney_own_{name}", _GAUGES[name], value=read())
        attempts = CounterMetricFamily(
            "spinney_attempts", "Finished attempts.", labels=("type", "stage", "outcome")
        )
        for (type_, stage, outcome), count in list(figures.attempts.items()):
            attempts.add_metric((type_, stage, outcome), count)
        yield attempts
        errors = CounterMetricFamily(
            "spinney_database_errors", "Calls of the store that failed.", labels=("kind",)
        )
        for kind, count in list(figures.store_errors.items()):
            errors.add_metric((kind,), count)
        yield errors
        for name, about, total in (
            ("claimed_jobs", "Leases that the store has granted.", figures.claimed),
            ("records", "Records that the store has written.", figures.recorded),
            ("refused_records", "Records of attempts that had lost their lease.", figures.refused),
            ("dead_nodes", "Dead nodes from which this node has taken the jobs back.", figures.dead_nodes),
        ):
            yield CounterMetricFamily(f"spinney_{name}", about, value=total)
        for name, about, labels, histograms in (
            ("attempt_run", "Running time of attempts.", ("type", "stage"), figures.run),
            (
                "attempt_wait",
                "From when a stage could begin to its start; a sample.",
                ("type", "stage"),
                figures.wait,
            ),
            ("exchange", "Claims and flushes, with their waits for the store.", ("kind",), figures.exchanges),
            ("transaction", "Committed transactions, by phase.", ("phase",), figures.transactions),
        ):
            yield _histogram(f"spinney_{name}_seconds", about, labels, histograms)


def _histogram(
    name: str, about: str, labels: Sequence[str], histograms: "Mapping[Any, TimeHistogram]"
) -> "HistogramMetricFamily":
    from prometheus_client.core import HistogramMetricFamily

    family = HistogramMetricFamily(name, about, labels=labels)
    for key, histogram in list(histograms.items()):
        totals = accumulate(histogram.counts)
        bounds = [*(str(bound / 1e6) for bound in histogram.bounds_us), "+Inf"]
        buckets = list(zip(bounds, totals, strict=True))
        family.add_metric(key if isinstance(key, tuple) else (key,), buckets, histogram.sum_us / 1e6)
    return family
