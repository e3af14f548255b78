"""The pages of schedules: the list, a schedule with its times, the form that creates one, and the actions on both.

The form has the fields of a submission (``param_fields``, ``options_form``) and those of the times; errors are shown at
their fields.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from spinney.commands.control import Control
from spinney.features.schedules.commands import DropSchedule, PauseSchedule, PutSchedule, RunSchedule
from spinney.features.submission.page import submittable_types
from spinney.model.access import Role
from spinney.model.errors import BadParameters, Refused, SpinneyError, UsageError
from spinney.model.jobs import Filter, Job
from spinney.model.settings.schedules import OPTIONS, CatchUp, Overlap, Schedule, ScheduleRun
from spinney.model.types import TypeSpec
from spinney.model.values import durations
from spinney.model.values.lists import Page, page_by_name
from spinney.scheduling import recurrence
from spinney.web.pages import options_form, param_fields
from spinney.web.pages.forms import add_action, page_or_part
from spinney.web.pages.page_responses import page, redirect, segment
from spinney.web.pages.param_fields import PREFIX, Kind
from spinney.web.problems import kind
from spinney.web.request_context import Authenticated, RequestContext, now_us

router = APIRouter(include_in_schema=False)

RUNS = 20
"""How many past times the page of a schedule shows."""
COMING = 8
"""How many coming times the page of a schedule shows."""
PAGE = 100
"""How many schedules a page of the list has."""
_TOPICS = ("schedules", "overview")
"""Events at which the page's script reads the live part again."""

Name = Annotated[str, Path(min_length=1, max_length=200)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRow:
    """A schedule in the list, with the last job that it created."""

    schedule: Schedule
    last: Job | None
    """The last job that it created, if it still exists and the caller may see it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleView:
    """A schedule with the next times at which it submits, and its latest runs."""

    line: ScheduleRow
    coming: Sequence[tuple[int, str]]
    """The next times, in microseconds since 1970 UTC, and as the clock of the schedule's zone shows them; an empty text
    where that is UTC, or not known to this host."""
    runs: Sequence[ScheduleRun]
    """The latest decisions on its times, the newest first."""


@router.get("/schedules")
async def schedules(request: Request, context: Authenticated, after: str = "") -> Response:
    """Show a page of the schedules that the caller may see, by name."""
    return page_or_part(request, context, "schedules", topics=_TOPICS, **await _list(context, after))


@router.get("/make-schedule")
async def make(
    request: Request, context: Authenticated, type_: Annotated[str, Query(alias="type", max_length=200)] = ""
) -> Response:
    """Ask for the job type, then show the form for its jobs."""
    await context.run(_require)
    return await _form(request, context, type_, {}, {})


@router.post("/make-schedule")
async def made(request: Request, context: Authenticated) -> Response:
    """Create a schedule and redirect to its page, or show the form again with the error at its field."""
    values = {name: value for name, value in (await request.form()).items() if isinstance(value, str)}
    await context.run(_require)
    type_ = values.get("type", "")
    spec = await context.run(lambda control: control.queries.type(type_))
    params, wrong = param_fields.read(spec.schema, values)
    options, errors = options_form.read({n: values.get(n, "") for n in OPTIONS}, now_us())
    errors |= {PREFIX + name: text for name, text in wrong.items()}
    every_s, cron = _interval(values, errors), values.get("cron", "").strip() or None
    if errors:
        return await _form(request, context, type_, values, errors, status=422)
    try:
        command = PutSchedule(
            name=values.get("name", "").strip(),
            type=type_,
            cron=cron,
            every_s=every_s,
            zone=values.get("zone", "").strip() or "UTC",
            params=params,
            options=options,
            overlap=values.get("overlap", Overlap.SKIP),
            catch_up=values.get("catch_up", CatchUp.LAST),
        )
        await context.run(lambda control: control.do(command))
    except SpinneyError as error:
        refused = kind(error)
        if refused is None or refused[0] >= 500:
            raise
        field = _field_of(error, values)
        return await _form(request, context, type_, values, {field: str(error)}, status=refused[0])
    return redirect(f"/schedules/{segment(command.name)}", done=f"Schedule {command.name} is created")


@router.get("/schedules/{name}")
async def schedule(request: Request, context: Authenticated, name: Name) -> Response:
    """Show a schedule: when it runs next, and its last runs."""
    return page_or_part(
        request, context, "schedule", topics=_TOPICS, **await _schedule_context(context, name)
    )


# --- reading the form -------------------------------------------------------------------------


def _require(control: Control) -> None:
    control.require(Role.OPERATOR, "make schedules")


def _interval(values: Mapping[str, str], errors: dict[str, str]) -> float | None:
    """Return the interval of a form in seconds; None without one. What is wrong is added to ``errors``,
    by field."""
    text = values.get("every", "").strip()
    if bool(text) == bool(values.get("cron", "").strip()):
        errors["cron"] = "enter either a cron expression or an interval"
        return None
    try:
        return durations.seconds(text) if text else None
    except UsageError as error:
        errors["every"] = str(error)
        return None


def _field_of(error: SpinneyError, values: Mapping[str, str]) -> str:
    """Return the field beside which a refusal is shown; empty: above the form."""
    text = str(error)
    if isinstance(error, BadParameters):
        return ""
    if isinstance(error, Refused) or "cannot name a schedule" in text:
        return "name"
    if "zone" in text:
        return "zone"
    return "cron" if "cron" in text and values.get("cron") else ""


# --- reads ------------------------------------------------------------------------------------


async def _list(context: RequestContext, after: str) -> dict[str, Any]:
    def call(control: Control) -> Page[ScheduleRow]:
        shown = page_by_name(control.queries.schedules(), lambda item: item.name, after=after, limit=PAGE)
        lasts = _lasts(control, shown.items)
        rows = [ScheduleRow(schedule=item, last=lasts.get(item.last_job_id or 0)) for item in shown.items]
        return Page(items=rows, next=shown.next)

    rows = await context.run(call)
    may = context.principal.rights.permits(Role.OPERATOR)
    return {"lines": rows.items, "after": after, "next": rows.next, "may": may}


async def _schedule_context(context: RequestContext, name: str) -> dict[str, Any]:
    def call(control: Control) -> ScheduleView:
        look = control.queries
        item = look.schedule(name)
        return ScheduleView(
            line=ScheduleRow(schedule=item, last=_lasts(control, [item]).get(item.last_job_id or 0)),
            coming=[(at_us, _in_zone(item, at_us)) for at_us in look.coming(name, COMING)],
            runs=look.runs(name, limit=RUNS),
        )

    return {"shown": await context.run(call), "may": context.principal.rights.permits(Role.OPERATOR)}


def _in_zone(schedule: Schedule, at_us: int) -> str:
    if schedule.cron is None or schedule.zone == "UTC":
        return ""
    try:
        return recurrence.in_zone(schedule, at_us).strftime("%Y-%m-%d %H:%M %Z")
    except UsageError:
        return ""


def _lasts(control: Control, listed: Sequence[Schedule]) -> Mapping[int, Job]:
    """Return the last jobs of schedules, by number, without those that are deleted or not visible."""
    ids = tuple(schedule.last_job_id for schedule in listed if schedule.last_job_id is not None)
    return {job.id: job for job in control.queries.jobs(Filter(ids=ids), limit=len(ids))} if ids else {}


async def _form(
    request: Request,
    context: RequestContext,
    type_: str,
    values: Mapping[str, str],
    errors: Mapping[str, str],
    *,
    status: int = 200,
) -> Response:
    """Show the form: without a type the choice of one, else its fields with what was entered and the
    errors beside them.

    Secrets are never sent back to the browser.
    """

    def call(control: Control) -> tuple[TypeSpec | None, Sequence[str], Sequence[str]]:
        spec = control.queries.type(type_) if type_ else None
        types = [submittable.name for submittable in submittable_types(control)]
        return spec, types, [queue.queue for queue in control.queries.queues()]

    spec, types, queues = await context.run(call)
    param_list = param_fields.fields(spec.schema) if spec else []
    secret = {PREFIX + field.name for field in param_list if field.kind is Kind.SECRET}
    return page(
        request,
        context.principal,
        "make_schedule.html",
        status=status,
        spec=spec,
        types=types,
        queues=queues,
        fields=param_list,
        values={name: text for name, text in values.items() if name not in secret},
        errors=errors,
        overlaps=list(Overlap),
        catch_ups=list(CatchUp),
    )


_add_action = partial(add_action, router, "/schedules")
_add_action("pause", PauseSchedule, "Schedule {name} is paused", paused=True)
_add_action("resume", PauseSchedule, "Schedule {name} is resumed", paused=False)
_add_action("run", RunSchedule, lambda name, job: f"Schedule {name} has submitted job {job.id}")
_add_action("drop", DropSchedule, "Schedule {name} is deleted; its jobs stay", removes=True)
