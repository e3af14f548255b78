"""A verb on many jobs of the list: what it would do, the form that confirms it, and how far it is.

A verb takes two requests: the first tries it and shows how many jobs it would change, the second carries it out, unless
more jobs match by then. A run that takes longer than a moment continues in the server, and its page shows
how far it is (``spinney.features.bulk.page``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from spinney.commands.control import Control
from spinney.features.bulk import verb_forms as verbs
from spinney.features.bulk.service import Bulk
from spinney.features.jobs.list_page import BESIDE
from spinney.model.errors import UsageError
from spinney.model.jobs import Filter, Job
from spinney.model.operators.bulk_orders import Order
from spinney.model.operators.bulk_runs import Plan, StageCount
from spinney.model.values.texts import counted
from spinney.web.pages.filters import FilterQuery, parse_filters
from spinney.web.pages.forms import Form, page_or_part
from spinney.web.pages.page_responses import page, redirect
from spinney.web.request_context import Authenticated, RequestContext, now_us

router = APIRouter(include_in_schema=False)

SAMPLE = 10
"""How many of the jobs that a verb would change are shown for confirmation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbPreview:
    """What a verb would do, and to which jobs, as the page shows it that asks for confirmation."""

    plan: Plan
    """The jobs and the order."""
    stages: Sequence[StageCount]
    """For retry and rerun: the stages that would run again, each with the number of jobs; empty for other
    verbs."""
    sample: Sequence[Job]
    """The newest of the jobs, at most ``SAMPLE``."""
    queues: Sequence[str]
    """The queues that the form may name as a target."""
    types: Mapping[str, Any]
    """The job types, whose stages a form may name."""
    still_held: str
    """For release: the other holds by which the jobs stay held; empty: there are none."""
    refused: str | None
    """Why the verb would be refused for other jobs that match; None: it would be for none."""


@router.get("/jobs/verbs")
async def plan(request: Request, context: Authenticated) -> Response:
    """Show the page that asks for confirmation of a verb, with what it would do to how many jobs."""
    pairs = request.query_params.multi_items()
    return await _verb_page(request, context, pairs)


@router.post("/jobs/verbs")
async def do(request: Request, context: Authenticated, form: Form) -> Response:
    """Carry out a verb that was confirmed; where more jobs match by now than the page showed, ask again.

    Fewer are no reason to ask, since some may have settled meanwhile. A short run ends with the list and
    its outcome, a long one continues in the server, and the answer redirects to the page of its progress.
    """
    pairs = form.pairs
    ids, filters = _whom(pairs)
    expected = form.whole("expect", "number of jobs")
    if not ids and expected is None:
        raise UsageError(
            "'all' needs 'expect', how many jobs matched when the page was shown; go back, and confirm again"
        )

    def call(control: Control) -> Plan:
        fits = None if ids else filters.resolve(control)
        return control.part(Bulk).plan(verbs.order(form.values), fits, ids)

    try:
        bulk_plan = await context.run(call, long=True)
    except UsageError as error:
        return await _verb_page(request, context, pairs, refused=str(error))
    if expected is not None and bulk_plan.jobs > expected:
        more = f"{bulk_plan.jobs:,} jobs match now, {expected:,} did before; check them, and confirm"
        return await _verb_page(request, context, pairs, refused=more)
    back = filters.address("/jobs")
    run = await request.app.state.runs.begin(
        bulk_plan, context.principal.name, back, lambda run: verbs.run_plan(context, run)
    )
    if not run.done:
        return redirect(f"/jobs/runs/{run.id}")
    done, refused = await verbs.outcome(context, bulk_plan, run.report)
    return redirect(back, done=done, refused=f"{done}; {refused}" if refused else None)


@router.get("/jobs/runs/{run_id}")
async def run(request: Request, context: Authenticated, run_id: str) -> Response:
    """Show the progress of a verb on many jobs that the caller started; 404 for a run of others, or one
    that is forgotten."""
    bulk_run = request.app.state.runs.of(run_id, context.principal.name)
    if bulk_run is None:
        raise HTTPException(404)
    done, refused = await verbs.outcome(context, bulk_run.plan, bulk_run.report)
    return page_or_part(request, context, "run", run=bulk_run, done=done, refused=refused)


async def _verb_page(
    request: Request, context: RequestContext, pairs: Sequence[tuple[str, str]], *, refused: str | None = None
) -> Response:
    """Show the page that asks for confirmation of a verb. ``refused``: why a confirmation just now was
    not enough."""
    values = dict(pairs)
    verb = verbs.verb(values.get("verb", ""))
    ids, filters = _whom(pairs)

    def call(control: Control, form: verbs.Form = values) -> VerbPreview:
        return _preview(control, verbs.order(form), ids, filters)

    try:
        preview = await context.run(call, long=True)
    except UsageError as error:
        # The form is shown again with all that was entered, and beside it what the verb does without the wrong detail.
        plain: verbs.Form = {name: values[name] for name in ("verb", "and_after", "tree") if name in values}
        preview, refused = await context.run(lambda control: call(control, plain), long=True), str(error)
    count = f"{'more than ' if preview.plan.more else ''}{counted(preview.plan.jobs, 'job')}"
    return page(
        request,
        context.principal,
        "verbs.html",
        status=422 if refused else 200,
        verb=str(verb),
        ids=ids,
        filters=filters,
        preview=preview,
        count=count,
        values=values,
        refused=refused,
        stage_names=_stage_names(preview, filters.job_filter.type),
        back=filters.address("/jobs"),
    )


def _preview(control: Control, order: Order, ids: tuple[int, ...], filters: FilterQuery) -> VerbPreview:
    """Return what a verb would do, without doing it. Raises UsageError for details of the verb that do
    not fit."""
    bulk_plan = verbs.planned(control, order, None if ids else filters.resolve(control), ids)
    sample = Filter(ids=bulk_plan.newest[:SAMPLE])
    return VerbPreview(
        plan=bulk_plan,
        stages=bulk_plan.stages or (),
        sample=control.queries.jobs(sample, limit=SAMPLE, newest=True) if sample.ids else (),
        queues=[queue.queue for queue in control.queries.queues()],
        types=control.queries.types(),
        still_held=verbs.named(verbs.remaining_holds(control, bulk_plan)),
        refused=verbs.refusals(bulk_plan.refused, "would be refused"),
    )


def _stage_names(preview: VerbPreview, only_type: str | None) -> Sequence[str]:
    """Return the stages from which the jobs of a preview may run again, by name.

    They are those of the jobs' types, or of all types where not all jobs were looked at and the filter
    does not name the type.
    """
    if preview.plan.more and only_type is None:
        types = set(preview.types)
    else:
        types = {job.type for job in preview.sample} | {count.type for count in preview.stages}
        types |= set() if only_type is None else {only_type}
    return sorted(
        {stage.name for name in types & preview.types.keys() for stage in preview.types[name].stages}
    )


def _whom(pairs: Sequence[tuple[str, str]]) -> tuple[tuple[int, ...], FilterQuery]:
    """Return the jobs that were chosen by their boxes, and the filter; no jobs if the box ``all`` chose
    all that match it.

    Raises UsageError if nothing was chosen, and for an invalid filter: without it, more jobs would match.
    """
    every = any(name == "all" and value for name, value in pairs)
    ids = () if every else verbs.numbers([value for name, value in pairs if name == "id"])
    if not every and not ids:
        raise UsageError("no job is chosen; go back and tick jobs, or all that match")
    filters = parse_filters(pairs, now_us(), beside=(*verbs.FIELDS, *BESIDE))
    if filters.errors:
        raise UsageError(next(iter(filters.errors.values())))
    return ids, filters
