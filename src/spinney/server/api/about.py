"""Figures, job types, retention, and who asks."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Path, Query
from pydantic import Field

from spinney.answers import Unset
from spinney.control import Control
from spinney.control.retaining import Set
from spinney.model.access import Rights
from spinney.model.operators import Keeping, Stats
from spinney.model.types import KEEP_MAX_S, TypeSpec
from spinney.params.lengths import LengthOfTime
from spinney.server.api.missing import not_there
from spinney.server.api.parsing import routes
from spinney.server.api.shapes import All, Named, Reason, Word
from spinney.server.asking import Asked, How
from spinney.server.figures import WINDOW_S
from spinney.server.problems import documented

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


class KeepAsked(Reason):
    """How long settled jobs are kept."""

    keep_s: Annotated[float, Field(ge=0, le=KEEP_MAX_S), LengthOfTime()] | None = Field(
        description="Seconds, or text such as `30d`, after settling; null: for ever.", examples=[2_592_000]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """Who asks."""

    name: str
    how: How
    rights: Rights


@stats.get("/stats", summary="Show depths, rates, times and slots")
async def show_stats(
    hands: Asked,
    window_s: Annotated[
        float,
        Query(ge=1, le=600, description="Rates are of so many seconds back, or of text such as `5m`."),
        LengthOfTime(word=True),
    ] = WINDOW_S,
) -> Stats:
    """One snapshot of what is in sight. Counts are exact; times are of a sample. Where so much stands aside that
    a look is dear, the snapshot may be some seconds old: `at_us` says of when it is."""
    if window_s != WINDOW_S:
        return await hands.run(lambda control: control.look.stats(window_s))
    return await hands.run(hands.stores.figures.stats)


@types.get("/types", summary="List job types")
async def list_types(hands: Asked) -> All[TypeSpec]:
    """Those that nodes have registered, by name, with their stages and the schemas of their parameters."""
    return await hands.run(lambda control: All(items=[t for _, t in sorted(control.look.types().items())]))


@types.get("/types/{name}", summary="Show a job type", responses=documented(404))
async def show_type(name: Named, hands: Asked) -> TypeSpec:
    """Its stages, its policy, and the JSON schema of its parameters."""

    def call(control: Control) -> TypeSpec:
        with not_there():
            return control.look.type(name)

    return await hands.run(call)


@retention.get("/retention", summary="List how long settled jobs are kept")
async def list_retention(hands: Asked) -> All[Keeping]:
    """What operators set and types declare."""
    return await hands.run(lambda control: All(items=control.look.retention()))


@retention.put(
    "/retention/{type}/{state}", summary="Set how long settled jobs are kept", responses=documented(415)
)
async def set_retention(type_: TypeName, state: StateName, asked: KeepAsked, hands: Asked) -> Set:
    """The rule of the job at the top decides for all below it."""
    return await hands.run(
        lambda control: control.retention.keep(type_, state, asked.keep_s, reason=asked.reason)
    )


@retention.delete("/retention/{type}/{state}", summary="Take back what was set", responses=documented())
async def unset_retention(
    type_: TypeName,
    state: StateName,
    hands: Asked,
    reason: Annotated[Word | None, Query(description="Why; kept in the audit.")] = None,
) -> Unset:
    """What the type declares counts again."""
    return await hands.run(
        lambda control: Unset(unset=control.retention.as_declared(type_, state, reason=reason))
    )


@me.get("/me", summary="Show who asks")
async def show_me(hands: Asked) -> Me:
    """Your name, how you are known, and what you may."""
    return Me(name=hands.asker.name, how=hands.asker.how, rights=hands.asker.rights)
