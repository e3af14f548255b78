"""The pages of failures: causes with their counts, and one cause with its jobs, which can be retried from there.

A retry of many jobs starts with a canary: a few are retried first, and the rest only if those pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from spinney.commands.control import Control
from spinney.features.bulk import verb_forms as verbs
from spinney.features.failures.commands import failure_of
from spinney.model.attempts.failure_groups import Failure, FailureGroups
from spinney.model.errors import NoSuch, Refused
from spinney.model.jobs import Attempt, Filter, Job
from spinney.model.operators.bulk_orders import Verb
from spinney.model.states import FAILED_OR_ORPHANED
from spinney.service.queries import Queries
from spinney.web.pages.filters import FINGERPRINT
from spinney.web.pages.forms import page_or_part, read_coalesced
from spinney.web.pages.tracebacks import Piece, failure_text
from spinney.web.request_context import Authenticated, RequestContext

router = APIRouter(include_in_schema=False)

GROUPS = 100
"""How many causes the list shows."""
NEWEST = 20
"""How many jobs the page of a cause shows."""
CANARY = 10
"""How many jobs are retried before all others."""

Mark = Annotated[str, Path(pattern=r"^[0-9a-fA-F]{1,16}$")]
Type = Annotated[str, Query(alias="type", max_length=200)]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureView:
    """One cause, as its page shows it."""

    failure: Failure
    jobs: Sequence[Job]
    """The newest jobs that are failed with it."""
    sample: Attempt | None
    """The last attempt with an error of the newest of these jobs; None: it has none any more."""
    message: str
    """The message of that attempt, else of the newest of these jobs; empty: it has none."""
    pieces: Sequence[Piece]
    """The traceback of that attempt, in pieces of the application's lines and of others."""
    canary: Sequence[int]
    """The oldest of the jobs, which are retried first; empty: there are too few jobs for a canary."""


@router.get("/failures")
async def failures(request: Request, context: Authenticated, type_: Type = "") -> Response:
    """Show the causes of failures, with the most frequent first."""
    groups = await _groups(request, context, type_.strip())
    return page_or_part(request, context, "failures", topics=("failures",), **groups)


@router.get("/failures/{fingerprint}")
async def failure(request: Request, context: Authenticated, fingerprint: Mark) -> Response:
    """Show one cause, with the newest jobs that failed with it."""
    shown = await _shown(context, fingerprint)
    return page_or_part(request, context, "failure", topics=("failures",), **shown)


def with_own_messages(look: Queries, failures: FailureGroups, *, root_id: int | None = None) -> FailureGroups:
    """Return the causes; one with a single job has the whole message of that job. Otherwise the message of a cause
    lacks numbers and paths, because the messages of its jobs may differ in them. ``root_id``: the tree whose jobs are
    grouped; None: all jobs are."""
    groups = []
    for group in failures.items:
        only = Filter(fingerprint=group.fingerprint, root_id=root_id)
        jobs = look.jobs(only, limit=1) if group.jobs == 1 else ()
        message = (jobs[0].message or "").removeprefix(f"{group.exception}: ") if jobs else ""
        groups.append(replace(group, message=message or group.message))
    return replace(failures, items=groups)


async def _groups(request: Request, context: RequestContext, type_: str) -> dict[str, Any]:
    """Return what the list shows. Simultaneous requests with the same limits and type share one query."""
    key = ("failures", context.principal.rights.within, type_)
    groups = await read_coalesced(
        request,
        context,
        key,
        lambda control: with_own_messages(control.queries, control.queries.failures(type_ or None, GROUPS)),
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
    """Return the whole fingerprint, and the cause with its jobs; None: no job is failed with it now.

    A whole fingerprint is accepted although no job has it, since a page may be open while its last job is
    retried. Raises NoSuch for a beginning that fits none or several, and UsageError for one that no
    fingerprint can have.
    """
    look = control.queries
    try:
        mark = look.fingerprint(beginning)
    except Refused as error:
        if len(beginning) == FINGERPRINT:
            return beginning, None  # perhaps it was one a moment ago
        raise NoSuch(str(error)) from None
    group = failure_of(look, mark)
    if group is None:
        return mark, None
    failed_jobs = Filter(fingerprint=mark, states=FAILED_OR_ORPHANED)
    jobs = look.jobs(failed_jobs, limit=NEWEST, newest=True)
    sample = _sample(look.attempts(jobs[0].id)) if jobs else None
    message, pieces = failure_text(sample) if sample else (jobs[0].message or "" if jobs else "", [])
    # A retry takes only what still counts for its parent.
    oldest = look.jobs(replace(failed_jobs, superseded=False), limit=CANARY) if group.jobs > CANARY else ()
    return mark, FailureView(
        failure=group,
        jobs=jobs,
        sample=sample,
        message=message,
        pieces=pieces,
        canary=[job.id for job in oldest],
    )


def _sample(attempts: Sequence[Attempt]) -> Attempt | None:
    """Return the last attempt that has an error; None: there is none."""
    return next((attempt for attempt in reversed(attempts) if attempt.error), None)
