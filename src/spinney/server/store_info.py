"""Routes for figures, and the caller."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Query

from spinney.define.params.duration_field import DurationField
from spinney.model.access import Rights
from spinney.model.rights.operators import Stats
from spinney.web.api.json_routes import routes
from spinney.web.request_context import Authenticated, AuthMethod
from spinney.web.stats_cache import WINDOW_S

stats = routes("stats")
me = routes("accounts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """The caller."""

    name: str
    how: AuthMethod
    rights: Rights


@stats.get("/stats", summary="Show depths, rates, times and slots")
async def show_stats(
    context: Authenticated,
    window_s: Annotated[
        float,
        Query(ge=1, le=600, description="Rates are over the last so many seconds, or a text such as `5m`."),
        DurationField(word=True),
    ] = WINDOW_S,
) -> Stats:
    """One snapshot of the jobs that you may see. Counts are exact; times are of a sample. Where many jobs are inactive
    and a snapshot is expensive, it may be some seconds old: `at_us` is its time."""
    if window_s != WINDOW_S:
        return await context.run(lambda control: control.queries.stats(window_s))
    return await context.run(context.stores.stats_cache.stats)


@me.get("/me", summary="Show who asks")
async def show_me(context: Authenticated) -> Me:
    """Your name, how you signed in, and your rights."""
    return Me(name=context.principal.name, how=context.principal.how, rights=context.principal.rights)
