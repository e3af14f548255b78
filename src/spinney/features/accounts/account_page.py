"""The page of the caller's own account: password and sessions.

Only a caller who has signed in with a session sees these; for one with a token the page has the rights alone.
After a new password, and after ending the other sessions, all sessions are over, and this browser gets a new
one.
"""

from collections.abc import Sequence

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.features.accounts import sign_in_forms
from spinney.features.accounts.commands import ListSessions, ShowUser
from spinney.model.errors import BadLogin, Forbidden, SpinneyError, UsageError
from spinney.model.rights.accounts import Session, User
from spinney.schemas import AuthMethod
from spinney.web.long_requests.bodies import SmallBody
from spinney.web.pages.forms import sentence
from spinney.web.pages.page_responses import page, redirect
from spinney.web.request_context import Authenticated, RequestContext

router = APIRouter(include_in_schema=False)
ACCOUNT = "/account"


@router.get(ACCOUNT)
async def show(request: Request, context: Authenticated) -> Response:
    """Show the caller's own account: rights, password and sessions."""
    return await _page(request, context)


@router.post(f"{ACCOUNT}/password", dependencies=[SmallBody])
async def change_password(request: Request, context: Authenticated) -> Response:
    """Change the password, and sign every other browser out. When it is refused, the form is shown again with
    the reason."""
    _require_session(context)
    values = await sign_in_forms.fields(request)
    try:
        if values.get("password") != values.get("again"):
            raise UsageError("the two new passwords differ; enter the same password twice")
        new_session = await sign_in_forms.sign_in_flow(request).change_password(
            request, context, values.get("before", ""), values.get("password", "")
        )
    except SpinneyError as error:
        return await _page(request, context, error)
    answer = redirect(ACCOUNT, done="The password is changed, and all other browsers are signed out.")
    sign_in_forms.keep(await sign_in_forms.identity(request).cookies(), answer, new_session)
    return answer


@router.post(f"{ACCOUNT}/alone", dependencies=[SmallBody])
async def end_other_sessions(request: Request, context: Authenticated) -> Response:
    """End all other sessions of the caller; this browser goes on in a new one."""
    _require_session(context)
    new_session = await sign_in_forms.sign_in_flow(request).end_other_sessions(
        request, context.principal.name
    )
    answer = redirect(ACCOUNT, done="All other browsers are signed out.")
    sign_in_forms.keep(await sign_in_forms.identity(request).cookies(), answer, new_session)
    return answer


def _require_session(context: RequestContext) -> None:
    """Raise Forbidden unless the caller has signed in with a session."""
    if context.principal.how is not AuthMethod.SESSION:
        raise Forbidden("only a user who has signed in here can do this; sign in with a password first")


async def _page(request: Request, context: RequestContext, error: SpinneyError | None = None) -> Response:
    """Return the page; ``error``: why a form was refused, which is shown beside the field that it
    concerns."""
    principal = context.principal
    has_session = principal.how is AuthMethod.SESSION
    user: User | None = None
    sessions: Sequence[Session] = ()
    if has_session:
        user = await context.run(lambda control: control.do(ShowUser(name=principal.name)))
        listed = await context.run(lambda control: control.do(ListSessions(name=principal.name)))
        sessions = listed.items
    text = "" if error is None else f"{sentence(error)}."
    where = "before" if isinstance(error, BadLogin) else "password" if isinstance(error, UsageError) else ""
    answer = page(
        request,
        principal,
        "account.html",
        user=user,
        sessions=sessions,
        signed_in=has_session,
        error="" if where else text,
        wrong={where: text},
    )
    if error is not None:
        sign_in_forms.as_refusal(answer, error)
    return answer
