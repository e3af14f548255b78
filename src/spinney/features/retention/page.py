"""The page of retention: how long settled jobs are kept, and the forms with which admins change it.

A rule may delete jobs at the next walk, so it takes two requests: the first answers with a question, the
second has the field ``sure``.
"""

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.commands.control import Control
from spinney.features.retention.commands import (
    ListRetention,
    SetRetention,
    ShowRetentionClock,
    UnsetRetention,
)
from spinney.model.access import Role
from spinney.model.errors import UsageError
from spinney.model.settings.retention import ALL_TYPES
from spinney.model.states import ENDED
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
from spinney.web.pages.text_formats import capital, lasting
from spinney.web.request_context import Authenticated, RequestContext

router = APIRouter(include_in_schema=False)

RETENTION = "/retention"
FOR_EVER = "for ever"
"""What is entered for jobs that are never deleted."""


@router.get(RETENTION)
async def retention(request: Request, context: Authenticated) -> Response:
    """Show how long settled jobs are kept."""
    return await _list(request, context)


@router.post(RETENTION)
async def change(request: Request, context: Authenticated, form: Form) -> Response:
    """Set a rule, or remove the one that was set (``remove``). A rule by which jobs are deleted is set only when the
    user has confirmed it (``sure``)."""
    try:
        if (
            _may_set(context)
            and not (form.text("remove") or form.text("sure"))
            and (question := _question(form))
        ):
            return await _list(request, context, to_confirm=(form, question))
        done = await context.run(lambda control: _change(control, form))
    except FORM_ERRORS as error:
        return await _list(request, context, RefusedForm(form=form, error=error))
    return redirect(RETENTION, done=done)


def _may_set(context: RequestContext) -> bool:
    """Return whether the caller may set rules at all; others are refused before anything is asked."""
    rights = context.principal.rights
    return rights.permits(Role.ADMIN) and rights.everywhere


def _question(form: FormFields) -> str | None:
    """Return what the rule would do to jobs, to be confirmed; None for a rule by which no job is deleted."""
    keep_s = _keep_s(form)
    if keep_s is None:
        return None
    return (
        f"All {_jobs(form)} are deleted {lasting(keep_s)} after they settled, with their folders, their output and all "
        f"subjobs: those that settled earlier at once, and later ones as they reach that age. This cannot be undone."
    )


def _change(control: Control, form: FormFields) -> str:
    """Set or remove a rule, and return what is in force then, as a sentence."""
    type_, state, reason = form.text("type"), form.text("state"), form.maybe("reason")
    jobs = _jobs(form)
    if form.text("remove"):
        control.do(UnsetRetention(type=type_, state=state, reason=reason))
        return f"The rule for {jobs} is removed"
    keep_s = _keep_s(form)
    result = control.do(SetRetention(type=type_, state=state, keep_s=keep_s, reason=reason))
    others = f"; it overrules what {len(result.overruled)} types declare" if len(result.overruled) > 1 else ""
    time = "for ever" if keep_s is None else f"for {lasting(keep_s)}"
    return f"{capital(jobs)} are kept {time}{others}"


def _jobs(form: FormFields) -> str:
    """Return the jobs of a rule in words. Raises UsageError when the type or the state was not chosen."""
    type_, state = form.text("type"), form.text("state")
    if not type_ or not state:
        raise UsageError(f"choose a {'type' if not type_ else 'state'} of jobs")
    return f"{state} jobs of {'all types' if type_ == ALL_TYPES else type_}"


def _keep_s(form: FormFields) -> float | None:
    """Return the time that was entered, in seconds; None for ever. Raises UsageError."""
    text = form.text("keep")
    if not text:
        raise UsageError(f"enter how long the jobs are kept, such as 30d, or {FOR_EVER!r}")
    return None if text == FOR_EVER else durations.seconds(text, "the time")


async def _list(
    request: Request,
    context: RequestContext,
    refused: RefusedForm | None = None,
    to_confirm: tuple[FormFields, str] | None = None,
) -> Response:
    """Show the rules with their form. ``refused``: with what was entered, and why it was refused.
    ``to_confirm``: the form that was sent, and what the user has to confirm."""
    rules, clock, types = await context.run(
        lambda control: (
            control.do(ListRetention()).items,
            control.do(ShowRetentionClock()),
            sorted(control.queries.types()),
        )
    )
    return page_or_part(
        request,
        context,
        "retention",
        rules=rules,
        clock=clock,
        types=[ALL_TYPES, *types],
        states=sorted(ENDED),
        every_type=ALL_TYPES,
        may=_may_set(context),
        question=to_confirm[1] if to_confirm else None,
        **form_variables(refused, to_confirm[0].values if to_confirm else None),
    )
