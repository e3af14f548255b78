"""The query for statistics; ``stats`` prints what it returns, ``top`` refreshes it, the API sends it as JSON."""

from typing import Annotated

from pydantic import Field

from spinney.commands import Command
from spinney.define.params.duration_field import DurationField
from spinney.model.operators.stats import Stats
from spinney.service.queries import STATS_WINDOW_S, Queries
from spinney.service.service import Service

WINDOW_MAX_S = 840
"""The longest window in seconds: throughput is kept for a quarter of an hour, in slices of ten seconds."""


class ShowStats(Command, route="GET /stats"):
    """Show depths, rates, times and slots.

    One snapshot of the jobs that you may see. Counts are exact; times are of a sample. Where many jobs are inactive
    and a snapshot is expensive, it may be some seconds old: `at_us` is its time."""

    window_s: Annotated[
        float,
        Field(
            ge=1,
            le=WINDOW_MAX_S,
            description="The period for rates: seconds, or text such as `5m`.",
        ),
        DurationField(word=True),
    ] = STATS_WINDOW_S

    def run(self, service: Service) -> Stats:
        # A server that serves many callers keeps a recent snapshot of the usual window; any other window is
        # read anew.
        if self.window_s == STATS_WINDOW_S and service.recent_stats is not None:
            return service.recent_stats(service)
        return service.part(Queries).stats(self.window_s)
