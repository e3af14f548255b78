"""Forms, cookies and redirects of the pages that visitors use before they have signed in.

Such a page has no session whose form token it could use. So it sets a cookie with a random number, and its
form has a proof of that number, which another site cannot make (protection against forged requests).
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from spinney.model.errors import BadName, SpinneyError, UsageError
from spinney.model.rights.accounts import new_secret
from spinney.web.identity.authenticator import StoreAuthenticator
from spinney.web.identity.cookies import Cookies
from spinney.web.identity.sign_in import SignedIn, SignInFlow
from spinney.web.pages.forms import sentence
from spinney.web.pages.page_responses import page
from spinney.web.problems import for_caller, of_error

HOME = "/"


def identity(request: Request) -> StoreAuthenticator:
    """Return the authenticator of this application. Raises HTTPException where callers are known by other means than
    accounts of the store."""
    authenticator = request.app.state.identity
    if not isinstance(authenticator, StoreAuthenticator):
        raise HTTPException(404)
    return authenticator


def sign_in_flow(request: Request) -> SignInFlow:
    """Return the application's sign-in flow, which is created with the first request and kept in the
    application's state."""
    state = request.app.state
    if not hasattr(state, "sign_in_flow"):
        state.sign_in_flow = SignInFlow(identity(request), state.settings, state.refusals, state.counters)
    return state.sign_in_flow  # type: ignore[no-any-return]


async def fields(request: Request) -> Mapping[str, str]:
    """Return the text fields of the request's form; parts that are files are left out."""
    return {name: value for name, value in (await request.form()).items() if isinstance(value, str)}


async def anonymous_page(request: Request, template: str, **context: Any) -> Response:
    """Return a page with a form for a visitor who has not signed in, protected by a cookie of its own."""
    cookies = await identity(request).cookies()
    number = cookies.guest(request.cookies) or new_secret()
    answer = page(
        request,
        None,
        template,
        guest={"csrf": cookies.proof("guest", number)},
        **{"error": "", "wrong": {}, **context},
    )
    cookies.set_guest(answer, number)
    return answer


async def require_form_token(request: Request) -> None:
    """Raise Forbidden unless the form comes from a page of this browser that ``anonymous_page`` made."""
    cookies = await identity(request).cookies()
    number = cookies.guest(request.cookies)
    # Without the cookie no token fits.
    await sign_in_flow(request).require_ours(request, cookies.proof("guest", number or new_secret()))


async def refused_page(request: Request, template: str, error: SpinneyError, **context: Any) -> Response:
    """Return the form again, with the error beside the field that it concerns, or above the form. It has the
    status and the Retry-After that the API would answer with."""
    text = f"{sentence(for_caller(request, error))}."
    wrong = {}
    if isinstance(error, BadName):
        wrong = {"name": text}
    elif isinstance(error, UsageError):
        wrong = {"password": text}
    answer = await anonymous_page(request, template, error="" if wrong else text, wrong=wrong, **context)
    as_refusal(answer, error)
    return answer


def as_refusal(answer: Response, error: SpinneyError) -> None:
    """Give a page the status and the Retry-After with which the API answers this error."""
    plain = of_error(error)
    answer.status_code = plain.status_code
    if "retry-after" in plain.headers:
        answer.headers["Retry-After"] = plain.headers["retry-after"]


def start_session(cookies: Cookies, session: SignedIn, path: str) -> Response:
    """Return a redirect to ``path`` that starts a session."""
    answer = RedirectResponse(path, 303)
    keep(cookies, answer, session)
    return answer


def keep(cookies: Cookies, answer: Response, session: SignedIn) -> None:
    """Set the cookie of the session, and the one by which the browser is recognised at the next sign-in."""
    cookies.set_session(answer, session.secret)
    if session.device is not None:
        cookies.set_device(answer, session.device)


def local(path: str) -> str:
    """Return a path of this server to redirect to: the given one, unless it leads elsewhere or to a page for
    signing in or out; then the first page.

    Browsers take a path that begins with two slashes, or with a slash and a backslash, for the name of
    another host.
    """
    if not path.startswith("/") or path.startswith(("//", "/\\")) or not path.isprintable() or "\\" in path:
        return HOME
    try:
        parts = urlsplit(path)
    except ValueError:
        return HOME
    return HOME if parts.scheme or parts.netloc or parts.path.startswith(("/sign-", "//")) else path
