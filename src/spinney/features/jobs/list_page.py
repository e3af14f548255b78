"""Lists of jobs, and verbs on many."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from spinney.control import Control
from spinney.features.bulk import verb_forms as verbs
from spinney.features.bulk.service import Bulk
from spinney.model.bulk_runs import Plan, StageCount
from spinney.model.errors import Refused, SpinneyError, UsageError
from spinney.model.jobs import JOB_ID_MAX, Filter, Job
from spinney.model.rights.operators import Verb
from spinney.service.filter_checks import require_known
from spinney.web.pages.filters import FINGERPRINT, FilterQuery, parse_filters
from spinney.web.pages.formatting import plural
from spinney.web.pages.rendering import page, part, redirect
from spinney.web.request_context import Authenticated, RequestContext, now_us

router = APIRouter(include_in_schema=False)

PAGE = 50
SAMPLE = 10
KNOWN_FOR_S = 10.0
_BESIDE = ("after",)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """A page of a list."""

    jobs: Sequence[Job]
    next: int | None
    hint: str | None
    """Why nothing was found, where a name may be mistyped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterNames:
    """Names that a filter may say."""

    types: Sequence[str]
    queues: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbPreview:
    """What a verb would do, and to whom."""

    plan: Plan
    stages: Sequence[StageCount]
    sample: Sequence[Job]
    queues: Sequence[str]
    types: Mapping[str, Any]


_NOTHING = JobPage(jobs=(), next=None, hint=None)


@router.get("/jobs", summary="Jobs")
async def jobs(request: Request, context: Authenticated) -> Response:
    """A list that its address filters."""
    shown = await _shown(request, context)
    which: FilterQuery = shown["which"]
    topics = () if shown["after"] or which.errors else (which.topic,)
    return page(
        request, context.principal, "jobs.html", topics=topics, status=422 if which.errors else 200, **shown
    )


@router.get("/jobs/now", summary="What the list of jobs shows now")
async def jobs_now(request: Request, context: Authenticated) -> Response:
    """Its live part."""
    return part(request, context.principal, "jobs_now.html", **await _shown(request, context))


@router.get("/search", summary="Search for a job")
async def search(request: Request, context: Authenticated, q: str = "") -> Response:
    """A number leads to the job, anything else to the jobs whose message holds it."""
    text = q.strip()
    plain = text.removeprefix("#")
    if (
        plain.isascii()
        and plain.isdigit()
        and len(plain) <= len(str(JOB_ID_MAX))
        and int(plain) <= JOB_ID_MAX
    ):
        return redirect(f"/jobs/{int(plain)}")
    query = parse_filters([("message", text)], now_us()).query()
    return redirect(f"/jobs?{query}" if query else "/jobs")


@router.get("/jobs/verbs", summary="What a verb on many jobs would do")
async def plan(request: Request, context: Authenticated) -> Response:
    """Asks before it is done, and says what would be done to how many."""
    pairs = request.query_params.multi_items()
    return await _asked_about(request, context, pairs)


@router.post("/jobs/verbs", summary="Do a verb to many jobs")
async def do(request: Request, context: Authenticated) -> Response:
    """What was asked about before; where more fit by now than were shown, it is asked about again."""
    form = await request.form()
    pairs = [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
    said = dict(pairs)
    order = verbs.order(said)
    ids, which = _whom(pairs)

    def call(control: Control) -> Plan:
        return control.part(Bulk).plan(order, None if ids else which.filter(control), ids, exact=True)

    try:
        found = await context.run(call)
    except UsageError as error:
        return await _asked_about(request, context, pairs, refused=str(error))
    expected = said.get("expect", "")
    if expected.isdigit() and found.jobs > int(expected):
        more = (
            f"{found.jobs:,} jobs match now, not {int(expected):,} as shown before; check them, and confirm"
        )
        return await _asked_about(request, context, pairs, refused=more)
    back = f"/jobs?{which.query()}" if which.any else "/jobs"
    run = await request.app.state.runs.begin(
        found, context.principal.name, back, lambda run: verbs.run_plan(context, run)
    )
    if not run.done:
        return redirect(f"/jobs/runs/{run.id}")
    done, refused = verbs.told(order.verb, run.report)
    return redirect(back, done=done, refused=f"{done}; {refused}" if refused else None)


@router.get("/jobs/runs/{run_id}", summary="How far a verb on many jobs is")
async def run(request: Request, context: Authenticated, run_id: str) -> Response:
    """The page that shows it, or its live part."""
    found = request.app.state.runs.of(run_id, context.principal.name)
    if found is None:
        raise HTTPException(404)
    done, refused = verbs.told(found.plan.order.verb, found.report)
    variables = {"run": found, "done": done, "refused": refused}
    if request.headers.get("hx-request") == "true":
        return part(request, context.principal, "run_now.html", **variables)
    return page(request, context.principal, "run.html", **variables)


# --- the list ---------------------------------------------------------------------------------


async def _shown(request: Request, context: RequestContext) -> dict[str, Any]:
    pairs = request.query_params.multi_items()
    which = parse_filters(pairs, now_us(), beside=_BESIDE)
    after = _after(request.query_params.get("after", ""))
    if which.errors:
        found = _NOTHING
    else:
        try:
            found = await context.run(lambda control: _found(control, which, after))
        except SpinneyError as error:
            if not which.value("failure"):
                raise
            which = replace(which, errors={"failure": str(error)})
            found = _NOTHING
    query = which.query()
    return {
        "which": which,
        "found": found,
        "after": after,
        "counts": await _counts(request, context, which),
        "known": await _known(request, context),
        "verbs": verbs.usable(context.principal),
        "now_path": f"/jobs/now?{request.query_params}",
        "next": f"/jobs?{which.query(after=found.next)}" if found.next else None,
        "first": (f"/jobs?{query}" if query else "/jobs") if after else None,
    }


def _found(control: Control, which: FilterQuery, after: int) -> JobPage:
    try:
        fits = which.filter(control)
    except Refused:
        if len(which.value("failure")) != FINGERPRINT:
            raise
        # Whoever retries all that failed so comes back here, and so does each link to it that somebody kept.
        return replace(_NOTHING, hint="no failed job has this failure any more")
    jobs = control.queries.jobs(fits, after=after, limit=PAGE + 1, newest=True)
    hint = None
    if not jobs and which.any:
        try:
            require_known(control.store, fits, labels=False, within=control.rights.within)
        except SpinneyError as error:
            hint = str(error)
    return JobPage(
        jobs=jobs[:PAGE],
        next=jobs[PAGE - 1].id if len(jobs) > PAGE else None,
        hint=hint,
    )


async def _known(request: Request, context: RequestContext) -> FilterNames:
    def call(control: Control) -> FilterNames:
        return FilterNames(
            types=sorted(control.queries.types()), queues=[queue.queue for queue in control.queries.queues()]
        )

    key = ("known", context.principal.rights.within)
    return await request.app.state.shared.get(key, lambda: context.run(call), for_s=KNOWN_FOR_S)  # type: ignore[no-any-return]


async def _counts(request: Request, context: RequestContext, which: FilterQuery) -> Mapping[str, int] | None:
    """By state, whatever states are asked for; None where that would take long."""
    if which.errors or not which.countable:
        return None
    every: Filter = replace(which.which, states=None)
    key = ("counts", context.principal.rights.within, every)
    return await request.app.state.coalesced.get(  # type: ignore[no-any-return]
        key,
        lambda: context.run(
            lambda control: context.stores.stats_cache.get(
                which.topic, key, lambda: dict(control.queries.counts(every))
            )
        ),
    )


def _after(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(JOB_ID_MAX)) else 0


# --- verbs ------------------------------------------------------------------------------------


async def _asked_about(
    request: Request, context: RequestContext, pairs: Sequence[tuple[str, str]], *, refused: str | None = None
) -> Response:
    said = dict(pairs)
    what = verbs.verb(said.get("verb", ""))
    ids, which = _whom(pairs)
    if which.errors:
        raise UsageError(next(iter(which.errors.values())))
    try:
        order = verbs.order(said)
    except UsageError as error:
        order, refused = verbs.order({"verb": what}), str(error)

    def call(control: Control) -> VerbPreview:
        fits = None if ids else which.filter(control)
        found = verbs.planned(control, order, fits, ids)
        sample = Filter(ids=ids) if ids else found.which
        return VerbPreview(
            plan=found,
            stages=control.part(Bulk).stages(found) if what in (Verb.RETRY, Verb.RERUN) else (),
            sample=control.queries.jobs(sample, limit=SAMPLE, newest=True) if sample is not None else (),
            queues=[queue.queue for queue in control.queries.queues()],
            types=control.queries.types(),
        )

    found = await context.run(call, long=True)
    count = f"{'more than ' if found.plan.more else ''}{plural(found.plan.jobs, 'job')}"
    stages = sorted({stage.name for spec in found.types.values() for stage in spec.stages})
    return page(
        request,
        context.principal,
        "verbs.html",
        status=422 if refused else 200,
        what=str(what),
        order=order,
        ids=ids,
        which=which,
        found=found,
        count=count,
        said=said,
        refused=refused,
        stage_names=stages,
        back=f"/jobs?{which.query()}" if which.any else "/jobs",
    )


def _whom(pairs: Sequence[tuple[str, str]]) -> tuple[tuple[int, ...], FilterQuery]:
    """Those that were chosen by their boxes, or else all that the filter fits."""
    ids = verbs.numbers([value for name, value in pairs if name == "id"])
    return ids, parse_filters(pairs, now_us(), beside=(*verbs.FIELDS, *_BESIDE))
