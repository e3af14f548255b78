"""Figures, job types, retention, and who asks."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Path, Query
from pydantic import Field

from spinney.control import Control
from spinney.define.params.duration_field import DurationField
from spinney.features.retention.service import RetentionChange
from spinney.model.access import Rights
from spinney.model.rights.operators import RetentionRule, Stats
from spinney.model.types import KEEP_MAX_S, TypeSpec
from spinney.model.values.lists import All
from spinney.schemas import UnsetResult
from spinney.web.api.json_routes import routes
from spinney.web.api.not_found import missing_is_404
from spinney.web.api.request_types import NamePath, ReasonRequest, Word
from spinney.web.problems import documented
from spinney.web.request_context import Authenticated, AuthMethod
from spinney.web.stats_cache import WINDOW_S

stats = routes("stats")
types = routes("types")
retention = routes("retention")
me = routes("accounts")
TypeName = Annotated[
    Word, Path(alias="type", description="The job type, or `*` for all.", examples=["resize"])
]
StateName = Annotated[
    Word, Path(alias="state", description="A state of settled jobs.", examples=["completed"])
]


class RetentionRequest(ReasonRequest):
    """How long settled jobs are kept."""

    keep_s: Annotated[float, Field(ge=0, le=KEEP_MAX_S), DurationField()] | None = Field(
        description="Seconds, or text such as `30d`, after settling; null: for ever.", examples=[2_592_000]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """Who asks."""

    name: str
    how: AuthMethod
    rights: Rights


@stats.get("/stats", summary="Show depths, rates, times and slots")
async def show_stats(
    context: Authenticated,
    window_s: Annotated[
        float,
        Query(ge=1, le=600, description="Rates are of so many seconds back, or of text such as `5m`."),
        DurationField(word=True),
    ] = WINDOW_S,
) -> Stats:
    """One snapshot of what is in sight. Counts are exact; times are of a sample. Where so much stands aside that
    a look is dear, the snapshot may be some seconds old: `at_us` says of when it is."""
    if window_s != WINDOW_S:
        return await context.run(lambda control: control.queries.stats(window_s))
    return await context.run(context.stores.stats_cache.stats)


@types.get("/types", summary="List job types")
async def list_types(context: Authenticated) -> All[TypeSpec]:
    """Those that nodes have registered, by name, with their stages and the schemas of their parameters."""
    return await context.run(
        lambda control: All(items=[t for _, t in sorted(control.queries.types().items())])
    )


@types.get("/types/{name}", summary="Show a job type", responses=documented(404))
async def show_type(name: NamePath, context: Authenticated) -> TypeSpec:
    """Its stages, its policy, and the JSON schema of its parameters."""

    def call(control: Control) -> TypeSpec:
        with missing_is_404():
            return control.queries.type(name)

    return await context.run(call)


@retention.get("/retention", summary="List how long settled jobs are kept")
async def list_retention(context: Authenticated) -> All[RetentionRule]:
    """What operators set and types declare."""
    return await context.run(lambda control: All(items=control.queries.retention()))


@retention.put(
    "/retention/{type}/{state}", summary="Set how long settled jobs are kept", responses=documented(415)
)
async def set_retention(
    type_: TypeName, state: StateName, asked: RetentionRequest, context: Authenticated
) -> RetentionChange:
    """The rule of the job at the top decides for all below it."""
    return await context.run(
        lambda control: control.retention.keep(type_, state, asked.keep_s, reason=asked.reason)
    )


@retention.delete("/retention/{type}/{state}", summary="Take back what was set", responses=documented())
async def unset_retention(
    type_: TypeName,
    state: StateName,
    context: Authenticated,
    reason: Annotated[Word | None, Query(description="Why; kept in the audit.")] = None,
) -> UnsetResult:
    """What the type declares counts again."""
    return await context.run(
        lambda control: UnsetResult(unset=control.retention.as_declared(type_, state, reason=reason))
    )


@me.get("/me", summary="Show who asks")
async def show_me(context: Authenticated) -> Me:
    """Your name, how you are known, and what you may."""
    return Me(name=context.principal.name, how=context.principal.how, rights=context.principal.rights)
