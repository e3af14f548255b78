"""Signing in, by password or by an identity provider, and signing out.

By password it takes one form. By an identity provider (OpenID Connect) the browser goes away and comes back:
what the answer is compared with is in a signed cookie for ten minutes, so that no server keeps anything about
a sign-in that is not finished, and any server may take the answer.
"""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from spinney.features.accounts import sign_in_forms
from spinney.model.errors import BadLogin, SpinneyError
from spinney.web.identity.cookies import OIDC_COOKIE
from spinney.web.identity.oidc import PendingAuthorization
from spinney.web.long_requests.bodies import SmallBody
from spinney.web.pages.error_pages import SIGN_IN
from spinney.web.pages.forms import base_url
from spinney.web.request_context import SESSION_COOKIE, MaybeAuthenticated

router = APIRouter(include_in_schema=False)
PAGE = "sign_in.html"
BY_PROVIDER = f"{SIGN_IN}/oidc"
CALLBACK = f"{BY_PROVIDER}/callback"


@router.get(SIGN_IN)
async def show(request: Request, context: MaybeAuthenticated, next: str = sign_in_forms.HOME) -> Response:  # noqa: A002 - its name
    """Show the form; a caller who has signed in is redirected."""
    if context is not None:
        return RedirectResponse(sign_in_forms.local(next), 303)
    anybody = await sign_in_forms.identity(request).sign_in(lambda sign_in: sign_in.store.accounts.any_user())
    return await sign_in_forms.anonymous_page(request, PAGE, **_shown(request, next=next, nobody=not anybody))


@router.post(SIGN_IN, dependencies=[SmallBody])
async def sign_in(request: Request) -> Response:
    """Sign in by password, and end the browser's previous session."""
    sign_in_flow = sign_in_forms.sign_in_flow(request)
    values = await sign_in_forms.fields(request)
    name, next_ = values.get("name", "").strip(), values.get("next", sign_in_forms.HOME)
    try:
        await sign_in_forms.require_form_token(request)
        new_session = await sign_in_flow.sign_in(request, name, values.get("password", ""))
    except SpinneyError as error:
        shown = _shown(request, next=next_, name=name[:100] if name.isprintable() else "")
        return await sign_in_forms.refused_page(request, PAGE, error, **shown)
    cookies = await sign_in_forms.identity(request).cookies()
    before = cookies.session(request.cookies)
    if before is not None:
        await sign_in_flow.sign_out(before)
    return sign_in_forms.start_session(cookies, new_session, sign_in_forms.local(next_))


@router.post("/sign-out", dependencies=[SmallBody])
async def sign_out(request: Request, context: MaybeAuthenticated) -> Response:
    """End the session, and have the browser forget its cookie and what it has cached."""
    cookies = await sign_in_forms.identity(request).cookies()
    secret = cookies.session(request.cookies)
    if secret is not None:
        await sign_in_forms.sign_in_flow(request).sign_out(secret)
    answer = RedirectResponse(SIGN_IN, 303)
    cookies.clear(answer, SESSION_COOKIE)
    answer.headers["Clear-Site-Data"] = '"cache", "storage"'
    return answer


@router.get(BY_PROVIDER)
async def begin_oidc(request: Request, next: str = sign_in_forms.HOME) -> Response:  # noqa: A002 - as above
    """Redirect the browser to the identity provider, which sends it back to the callback with a code."""
    try:
        address, away = await sign_in_forms.sign_in_flow(request).begin_oidc(base_url(request) + CALLBACK)
    except SpinneyError as error:
        return await sign_in_forms.refused_page(request, PAGE, error, **_shown(request, next=next))
    answer = RedirectResponse(address, 303)
    cookies = await sign_in_forms.identity(request).cookies()
    cookies.set_short(answer, OIDC_COOKIE, {"next": sign_in_forms.local(next), **asdict(away)})
    return answer


@router.get(CALLBACK)
async def complete_oidc(request: Request) -> Response:
    """Complete the sign-in after the identity provider has redirected back. The cookie is cleared in any
    case, so that an answer is accepted once."""
    cookies = await sign_in_forms.identity(request).cookies()
    pending = cookies.short(request.cookies, OIDC_COOKIE) or {}
    next_ = pending.pop("next", sign_in_forms.HOME)
    try:
        if not pending:
            raise BadLogin("this sign-in was not begun in this browser, or is long over; sign in again")
        new_session = await sign_in_forms.sign_in_flow(request).complete_oidc(
            request, request.query_params, PendingAuthorization(**pending)
        )
    except SpinneyError as error:
        answer = await sign_in_forms.refused_page(request, PAGE, error, **_shown(request, next=next_))
    else:
        answer = sign_in_forms.start_session(cookies, new_session, sign_in_forms.local(next_))
    cookies.clear(answer, OIDC_COOKIE)
    return answer


def _shown(request: Request, *, next: str, name: str = "", nobody: bool = False) -> dict[str, Any]:  # noqa: A002
    """Return the variables of the page. ``nobody``: there is no user yet, so that the page says how to create
    the first."""
    oidc = request.app.state.settings.oidc
    return {
        "name": name,
        "next": sign_in_forms.local(next),
        "nobody": nobody,
        "provider": oidc and oidc.label,
        "provider_path": BY_PROVIDER,
    }
