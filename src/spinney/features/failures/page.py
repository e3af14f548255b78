"""Failures by cause: what failed, where, how often; and all that failed with one cause, to be retried."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from spinney.control import Control
from spinney.features.bulk import verb_forms as verbs
from spinney.model.errors import NoSuch, Refused
from spinney.model.jobs import Attempt, Filter, Job
from spinney.model.rights.operators import Failure, FailureGroups, Verb
from spinney.model.states import State
from spinney.web.pages.filters import FINGERPRINT
from spinney.web.pages.forms import page_or_part
from spinney.web.pages.tracebacks import Piece, pieces
from spinney.web.request_context import Authenticated, RequestContext

router = APIRouter(include_in_schema=False)

GROUPS = 100
GROUPS_MAX = 10_000
NEWEST = 20
CANARY = 10
"""So many are tried before all are."""

Mark = Annotated[str, Path(pattern=r"^[0-9a-fA-F]{1,16}$")]
Type = Annotated[str, Query(alias="type", max_length=200)]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureView:
    """One cause."""

    failure: Failure
    jobs: Sequence[Job]
    """The newest that stand failed with it."""
    sample: Attempt | None
    """How the newest of them failed."""
    pieces: Sequence[Piece]
    canary: Sequence[int]
    """The oldest of them, to try it on."""


@router.get("/failures", summary="Failures by cause")
async def failures(request: Request, context: Authenticated, type_: Type = "") -> Response:
    """Show the causes of failures, with the most frequent first."""
    groups = await _groups(request, context, type_.strip())
    return page_or_part(request, context, "failures", topics=("failures",), **groups)


@router.get("/failures/{fingerprint}", summary="One cause of failures")
async def failure(request: Request, context: Authenticated, fingerprint: Mark) -> Response:
    """Show one cause, with the newest jobs that failed with it."""
    shown = await _shown(context, fingerprint)
    return page_or_part(request, context, "failure", topics=("failures",), **shown)


async def _groups(request: Request, context: RequestContext, type_: str) -> dict[str, Any]:
    key = ("failures", context.principal.rights.within, type_)
    groups: FailureGroups = await request.app.state.coalesced.get(
        key, lambda: context.run(lambda control: control.queries.failures(type_ or None, GROUPS))
    )
    types = await context.run(lambda control: sorted(control.queries.types()))
    return {
        "failures": groups,
        "type": type_,
        "types": types,
        "may_retry": Verb.RETRY in verbs.usable(context.principal),
    }


async def _shown(context: RequestContext, fingerprint: str) -> dict[str, Any]:
    mark, view = await context.run(lambda control: _read(control, fingerprint.lower()))
    may_retry = Verb.RETRY in verbs.usable(context.principal)
    return {"mark": mark, "shown": view, "may_retry": may_retry, "canary_of": CANARY}


def _read(control: Control, beginning: str) -> tuple[str, FailureView | None]:
    """The whole fingerprint, and what stands failed with it; None: nothing does any more. Raises NoSuch, UsageError."""
    look = control.queries
    try:
        mark = look.fingerprint(beginning)
    except Refused as error:
        if len(beginning) == FINGERPRINT:
            return beginning, None  # it was one a moment ago, perhaps
        raise NoSuch(str(error)) from None
    groups = look.failures(limit=GROUPS_MAX).groups
    group = next((group for group in groups if group.fingerprint == mark), None)
    if group is None:
        return mark, None
    failed_jobs = Filter(fingerprint=mark, states=(State.FAILED, State.ORPHANED))
    jobs = look.jobs(failed_jobs, limit=NEWEST, newest=True)
    sample = _sample(look.attempts(jobs[0].id)) if jobs else None
    text = str((sample.error or {}).get("traceback") or "") if sample else ""
    # A retry takes only what still counts for its parent.
    oldest = look.jobs(replace(failed_jobs, superseded=False), limit=CANARY) if group.jobs > CANARY else ()
    return mark, FailureView(
        failure=group, jobs=jobs, sample=sample, pieces=pieces(text), canary=[job.id for job in oldest]
    )


def _sample(attempts: Sequence[Attempt]) -> Attempt | None:
    return next((attempt for attempt in reversed(attempts) if attempt.error), None)
