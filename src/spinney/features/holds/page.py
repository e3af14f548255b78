"""Holds: what is stopped, why, by whom and until when; to lay one, and to release it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.background import BackgroundTask
from starlette.responses import Response

from spinney.control import Control
from spinney.features.holds.commands import LayHold, LiftHold, held_filter, lift_holds, sweep_holds
from spinney.model.access import Rights, Role
from spinney.model.errors import UsageError
from spinney.model.settings.holds import Hold, Scope, scope_text
from spinney.model.values.hints import listed
from spinney.web.pages.formatting import plural
from spinney.web.pages.forms import (
    FORM_ERRORS,
    Form,
    FormFields,
    page_or_part,
    read_coalesced,
    run_and_redirect,
    sentence,
)
from spinney.web.pages.rendering import redirect
from spinney.web.request_context import Authenticated, Principal, RequestContext

router = APIRouter(include_in_schema=False)

HOLDS = "/holds"
SHOWN = 200
COUNTED = 50
"""Of so many holds it is counted how many jobs they cover."""
COUNTED_TO = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldList:
    """Holds, and what they may lie on."""

    holds: Sequence[Hold]
    covered: Mapping[int, int]
    """How many jobs are held and lie where the hold does, up to a bound, by the hold's number."""
    several: frozenset[tuple[str, str]]
    """On what more than one lies."""
    known: Sequence[str]
    """Names that a hold may bear."""


@router.get(HOLDS, summary="Holds")
async def holds(request: Request, context: Authenticated) -> Response:
    """All that cover something in sight."""
    return await _list(
        request,
        context,
        said={key: request.query_params[key] for key in ("scope", "name") if key in request.query_params},
    )


@router.post(HOLDS, summary="Place a hold")
async def lay(request: Request, context: Authenticated, form: Form) -> Response:
    """With a reason."""

    def call(control: Control) -> Hold:
        scope = _scope(form)
        name = "" if scope is Scope.EVERYTHING else form.text("name").removeprefix("#")
        return control.do(
            LayHold(scope=scope, name=name, reason=form.text("reason"), until=form.moment("until"))
        )

    try:
        hold = await context.run(call)
    except FORM_ERRORS as error:
        return await _list(request, context, said=form.said, wrong=sentence(error), status=422)

    answer = redirect(
        HOLDS, done=f"A hold is placed on {scope_text(hold.scope, hold.name)}: nothing new starts there"
    )
    answer.background = BackgroundTask(context.run, sweep_holds, long=True)
    return answer


@router.post(f"{HOLDS}/{{hold}}/release", summary="Release a hold")
async def lift(context: Authenticated, hold: int, form: Form) -> Response:
    """Or every one that lies on the same. What no other covers goes on."""
    reason = form.maybe("reason")

    def call(control: Control) -> list[Hold]:
        found = control.do(LiftHold(hold=hold, reason=reason))
        more = form.text("all") and any(_same(found, other) for other in control.queries.holds())
        return [found, *(lift_holds(control, found.scope, found.name, reason=reason) if more else ())]

    def said(found: list[Hold]) -> str:
        return f"{plural(len(found), 'hold')} on {scope_text(found[0].scope, found[0].name)} released"

    return await run_and_redirect(context, HOLDS, call, said, then=sweep_holds)


def scopes(rights: Rights) -> list[str]:
    """What who asks may lay a hold on at all."""
    if not rights.permits(Role.SUBMITTER):
        return []
    if not rights.permits(Role.OPERATOR):
        return [Scope.TREE, Scope.JOB]
    if rights.everywhere:
        return list(Scope)
    found = [Scope.TREE, Scope.JOB]
    if rights.within.collections is None:
        found.insert(0, Scope.QUEUE)
    if rights.within.queues is None:
        found.insert(0, Scope.COLLECTION)
    return [str(scope) for scope in found]


def may_lift(principal: Principal, hold: Hold) -> bool:
    """Whether a button is shown; ``LiftHold`` asks closer."""
    if not principal.rights.permits(Role.OPERATOR):
        return principal.rights.permits(Role.SUBMITTER) and hold.by == principal.name
    return str(hold.scope) in scopes(principal.rights)


# --- steps ------------------------------------------------------------------------------------


async def _list(
    request: Request, context: RequestContext, *, said: Mapping[str, str], wrong: str = "", status: int = 200
) -> Response:
    principal = context.principal
    # Who may name what goes by his limits, and a submitter's own holds hang on his name.
    key = ("holds", principal.rights.within, principal.name if not principal.rights.everywhere else None)
    found = await read_coalesced(request, key, lambda: context.run(_read))
    return page_or_part(
        request,
        context,
        "holds",
        topics=("holds",),
        status=status,
        found=found,
        shown=SHOWN,
        counted_to=COUNTED_TO,
        scopes=scopes(principal.rights),
        liftable={hold.id for hold in found.holds if may_lift(principal, hold)},
        said=said,
        wrong=wrong,
    )


def _read(control: Control) -> HoldList:
    look = control.queries
    found = look.holds()
    known = {*look.names("queue"), *look.types(), *look.names("collection"), *look.names("submitter")}
    lying = Counter((str(hold.scope), hold.name) for hold in found)
    return HoldList(
        holds=found,
        covered={hold.id: n for hold in found[:COUNTED] if (n := _covered(control, hold)) is not None},
        several=frozenset(what for what, n in lying.items() if n > 1),
        known=sorted(known)[:1_000],
    )


def _covered(control: Control, hold: Hold) -> int | None:
    """How many jobs are held there. None: it cannot be told."""
    which = held_filter(control, hold)
    if which is None:
        return None
    return control.store.bulk.count(control.queries.within(which), most=COUNTED_TO)


def _same(one: Hold, other: Hold) -> bool:
    return (one.scope, one.name) == (other.scope, other.name)


def _scope(form: FormFields) -> Scope:
    text = form.text("scope")
    if text not in list(Scope):
        raise UsageError(f"there is no scope {text[:40]!r}; use one of: {listed(Scope)}")
    return Scope(text)
