"""The page of retention: how long settled jobs are kept, and the forms with which admins change it."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.control import Control
from spinney.features.retention.commands import ListRetention, SetRetention, UnsetRetention
from spinney.model.settings.retention import ALL_TYPES
from spinney.model.states import SETTLED
from spinney.model.values import durations
from spinney.web.pages.forms import (
    FORM_ERRORS,
    Form,
    FormFields,
    RefusedForm,
    form_variables,
    page_or_part,
)
from spinney.web.pages.page_responses import redirect
from spinney.web.pages.text_formats import lasting
from spinney.web.request_context import Authenticated, RequestContext

router = APIRouter(include_in_schema=False)

RETENTION = "/retention"
DEFAULTS = {"type": ALL_TYPES, "state": "completed", "keep": "30d"}
"""What the form shows at first."""


@router.get(RETENTION, summary="Retention")
async def retention(request: Request, context: Authenticated) -> Response:
    """Show how long settled jobs are kept."""
    return await _list(request, context)


@router.post(RETENTION, summary="Set how long jobs are kept")
async def change(request: Request, context: Authenticated, form: Form) -> Response:
    """Set a rule, or remove the one that was set (``remove``)."""
    try:
        done = await context.run(lambda control: _change(control, form))
    except FORM_ERRORS as error:
        return await _list(request, context, RefusedForm(form=form, error=error))
    return redirect(RETENTION, done=done)


def _change(control: Control, form: FormFields) -> str:
    type_, state, reason = form.text("type"), form.text("state"), form.maybe("reason")
    jobs = f"{state} jobs of {'all types' if type_ == ALL_TYPES else type_}"
    if form.text("remove"):
        control.do(UnsetRetention(type=type_, state=state, reason=reason))
        return f"The rule for {jobs} is removed"
    text = form.text("keep")
    keep_s = None if text in ("", "for ever") else durations.seconds(text, "the time")
    result = control.do(SetRetention(type=type_, state=state, keep_s=keep_s, reason=reason))
    others = f"; it overrules what {len(result.overruled)} types declare" if len(result.overruled) > 1 else ""
    return f"{jobs[:1].upper()}{jobs[1:]} are kept {_time(keep_s)}{others}"


def _time(keep_s: float | None) -> str:
    return "for ever" if keep_s is None else f"for {lasting(keep_s)}"


async def _list(request: Request, context: RequestContext, refused: RefusedForm | None = None) -> Response:
    rules, types = await context.run(
        lambda control: (control.do(ListRetention()).items, sorted(control.queries.types()))
    )
    return page_or_part(
        request,
        context,
        "retention",
        rules=rules,
        types=[ALL_TYPES, *types],
        states=sorted(SETTLED - {"deleted"}),
        every_type=ALL_TYPES,
        **form_variables(refused, DEFAULTS),
    )
