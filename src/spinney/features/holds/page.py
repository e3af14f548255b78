"""The page of holds: the active ones, the form that places one, and their release.

A hold is in force when the form answers; the sweep runs in the background after that, so the numbers of held
jobs grow for a moment.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.background import BackgroundTask
from starlette.responses import Response

from spinney.commands.control import Control
from spinney.features.holds.commands import LayHold, LiftHold, held_filter, lift_holds, sweep_holds
from spinney.model.access import Rights, Role
from spinney.model.errors import UsageError
from spinney.model.settings.holds import Hold, Scope, scope_text
from spinney.model.values.hints import listed
from spinney.model.values.texts import counted
from spinney.web.pages.forms import (
    FORM_ERRORS,
    Form,
    FormFields,
    RefusedForm,
    form_variables,
    page_or_part,
    read_coalesced,
    run_and_redirect,
)
from spinney.web.pages.page_responses import redirect
from spinney.web.request_context import Authenticated, Principal, RequestContext

router = APIRouter(include_in_schema=False)

HOLDS = "/holds"
SHOWN = 200
"""How many holds the page lists."""
COUNTED = 50
"""How many holds the page counts the covered jobs of, each up to ``COUNTED_TO``."""
COUNTED_TO = 10_000
"""The number at which counting the jobs of a hold ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldList:
    """The active holds, and the names that the form suggests."""

    holds: Sequence[Hold]
    covered: Mapping[int, int]
    """How many held jobs each hold covers, up to a bound, by the id of the hold."""
    several: frozenset[tuple[str, str]]
    """The scopes and names with more than one hold."""
    names: Sequence[str]
    """Names of queues, types, collections and submitters."""


@router.get(HOLDS)
async def holds(request: Request, context: Authenticated) -> Response:
    """Show the holds that cover jobs that the caller may see."""
    return await _list(request, context)


@router.post(HOLDS)
async def lay(request: Request, context: Authenticated, form: Form) -> Response:
    """Place a hold, and hold back the jobs that it covers after the response."""

    def call(control: Control) -> Hold:
        scope = _scope(form)
        name = "" if scope is Scope.EVERYTHING else form.text("name").removeprefix("#")
        return control.do(
            LayHold(scope=scope, name=name, reason=form.text("reason"), until=form.moment("until"))
        )

    try:
        hold = await context.run(call)
    except FORM_ERRORS as error:
        return await _list(request, context, RefusedForm(form=form, error=error))
    there = "" if hold.scope is Scope.EVERYTHING else " there"
    answer = redirect(
        HOLDS, done=f"A hold is placed on {scope_text(hold.scope, hold.name)}: nothing new starts{there}"
    )
    answer.background = BackgroundTask(context.run, sweep_holds, long=True)
    return answer


@router.post(f"{HOLDS}/{{hold}}/release")
async def lift(context: Authenticated, hold: int, form: Form) -> Response:
    """Release a hold, or all of the same scope and name. Jobs that no other hold covers continue."""
    reason = form.maybe("reason")

    def call(control: Control) -> list[Hold]:
        first = control.do(LiftHold(hold=hold, reason=reason))
        more = form.text("all") and any(
            (other.scope, other.name) == (first.scope, first.name) for other in control.queries.holds()
        )
        return [first, *(lift_holds(control, first.scope, first.name, reason=reason) if more else ())]

    def done(released: list[Hold]) -> str:
        on = scope_text(released[0].scope, released[0].name)
        return f"{counted(len(released), 'hold')} on {on} released"

    return await run_and_redirect(context, HOLDS, call, done, then=sweep_holds)


def scopes(rights: Rights) -> list[str]:
    """Return the scopes that a caller with these rights may choose for a hold, the widest first.

    Which queue or tree it may be is checked when the hold is placed.
    """
    if not rights.permits(Role.SUBMITTER):
        return []
    if not rights.permits(Role.OPERATOR):
        return [Scope.TREE, Scope.JOB]
    if rights.everywhere:
        return list(Scope)
    allowed = [Scope.TREE, Scope.JOB]
    if rights.within.collections is None:
        allowed.insert(0, Scope.QUEUE)
    if rights.within.queues is None:
        allowed.insert(0, Scope.COLLECTION)
    return [str(scope) for scope in allowed]


def may_lift(principal: Principal, hold: Hold) -> bool:
    """Return whether to show the button that releases a hold; ``LiftHold`` checks the rights in detail."""
    if not principal.rights.permits(Role.OPERATOR):
        return principal.rights.permits(Role.SUBMITTER) and hold.by == principal.name
    return str(hold.scope) in scopes(principal.rights)


# --- parts of the page ------------------------------------------------------------------------


async def _list(request: Request, context: RequestContext, refused: RefusedForm | None = None) -> Response:
    """Show the list, with the form for a new hold; ``refused``: with what was entered there, and why it
    was refused."""
    principal = context.principal
    # What is visible depends on the limits, and a submitter's own holds on the name.
    key = ("holds", principal.rights.within, principal.name if not principal.rights.everywhere else None)
    listed_holds = await read_coalesced(request, context, key, _read)
    return page_or_part(
        request,
        context,
        "holds",
        topics=("holds",),
        hold_list=listed_holds,
        shown=SHOWN,
        counted_to=COUNTED_TO,
        scopes=[scope for scope in scopes(principal.rights) if scope != Scope.EVERYTHING],
        may_hold_everything=Scope.EVERYTHING in scopes(principal.rights),
        liftable={hold.id for hold in listed_holds.holds if may_lift(principal, hold)},
        **form_variables(refused, {k: v for k, v in request.query_params.items() if k in ("scope", "name")}),
    )


def _read(control: Control) -> HoldList:
    """Read the active holds. Only those of the first ``COUNTED`` are counted, since each count is a query."""
    look = control.queries
    active = look.holds()
    names = {*look.names("queue"), *look.types(), *look.names("collection"), *look.names("submitter")}
    scopes_and_names = Counter((str(hold.scope), hold.name) for hold in active)
    return HoldList(
        holds=active,
        covered={hold.id: n for hold in active[:COUNTED] if (n := _covered(control, hold)) is not None},
        several=frozenset(key for key, n in scopes_and_names.items() if n > 1),
        names=sorted(names)[:1_000],
    )


def _covered(control: Control, hold: Hold) -> int | None:
    """Return how many held jobs a hold covers; None when it cannot be determined."""
    held = held_filter(control, hold)
    return (
        None if held is None else control.store.job_lists.count(control.queries.within(held), most=COUNTED_TO)
    )


def _scope(form: FormFields) -> Scope:
    """Return the scope that was chosen. Raises UsageError for another text."""
    text = form.text("scope")
    if text not in list(Scope):
        raise UsageError(f"there is no scope {text[:40]!r}; use one of: {listed(Scope)}")
    return Scope(text)
