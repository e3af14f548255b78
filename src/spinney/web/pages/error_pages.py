"""Refusals as pages: the same sentence and status as in the API, for people who read them in a browser.

The handlers that make ``application/problem+json`` stay the only ones that know which error means what; here
their answer is put into a page where a reader asked for one."""

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any
from urllib.parse import urlencode

import orjson
from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from spinney.web.media_types import PROBLEM, is_of_page, wants_part
from spinney.web.pages.page_responses import NAV_ITEMS, page, redirect
from spinney.web.problems import STORE_REPLACED
from spinney.web.request_context import Principal

SIGN_IN = "/sign-in"
_NOT_DONE = "You were signed out, so nothing was done; sign in, and send the form again"
_BACK = {
    404: ("It may have been deleted, or you may not see it.", "/jobs", "Show jobs"),
    403: ("The administrator of this server can give you more rights.", "/", "Back to the overview"),
    503: ("Nothing is lost: nodes go on by themselves once the store answers.", "", "Try again"),
    507: ("Nothing was half-written. Once there is space on the disk, repeat the request.", "", "Try again"),
}

_UNUSABLE = "The administrator of this server has to repair it; the log of the server has the same sentence."
"""The advice for a store that exists and cannot be used: it may not be the one in which the jobs were."""
_REPLACED = (
    "The jobs of the old store are not shown here; the administrator of this server knows where they are."
)

Handler = Callable[[Request, Exception], Response | Awaitable[Response]]


def add_to(app: FastAPI) -> None:
    """Put error pages in place of problem documents for browsers. This is to be called when all error handlers are
    there."""
    for kind, handler in list(app.exception_handlers.items()):
        app.exception_handlers[kind] = _for_readers(handler)


def _for_readers(handler: Handler) -> Handler:
    """Return an error handler that answers browsers with a page: problems become pages, 401 leads to the sign-in page,
    and the address of a form to the page that it is on. Other clients, and the page's script, get what ``handler``
    returns."""

    async def answer(request: Request, error: Exception) -> Response:
        result = handler(request, error)
        plain = await result if isawaitable(result) else result
        if not is_of_page(request) or plain.media_type != PROBLEM:
            return plain
        if plain.status_code == 401:
            return _to_sign_in(request)
        if wants_part(request):
            return plain  # the page's script shows the sentence of the problem
        if plain.status_code == 405 and request.method in ("GET", "HEAD"):
            # A refused form is shown again at its own address, to which people come back without the form: by a reload,
            # after signing in, by 'Try again'. The page that it is on is the one above.
            return redirect(request.url.path.rpartition("/")[0] or "/")
        return await _page(request, plain)

    return answer


def _to_sign_in(request: Request) -> Response:
    """Return the redirect to the sign-in page, which leads back to the page that was wanted, or to the one whose form
    was sent. A form is not sent again then, since the user would not see what is done; the sign-in page says so. The
    page's script gets the address in a header instead (htmx), since a redirect would put the sign-in page into the
    middle of the page."""
    path = _page_path(request)
    address = SIGN_IN if path == "/" else f"{SIGN_IN}?{urlencode({'next': path})}"
    sent = request.method not in ("GET", "HEAD")
    answer = redirect(address, refused=_NOT_DONE if sent else None)
    if wants_part(request):
        answer.status_code = 401
        answer.headers["HX-Redirect"] = address
        answer.headers["Cache-Control"] = "no-store"
        del answer.headers["location"]
    return answer


def _page_path(request: Request) -> str:
    """Return the path, with its query, of the page that a request wants, or on which the form is that it sends. A form
    has an address of its own, at which there is no page."""
    if wants_part(request):
        where = request.headers.get("hx-current-url", "")
    elif request.method in ("GET", "HEAD"):
        where = str(request.url)
    else:
        where = request.headers.get("referer", "")
    return "/" + where.partition("://")[2].partition("/")[2].lstrip("/")


async def _page(request: Request, plain: Response) -> Response:
    """Return a problem as a page with its status and the headers that belong to it."""
    problem: dict[str, Any] = orjson.loads(bytes(plain.body))
    hint, path, label = _BACK.get(plain.status_code, ("", "/", "Back to the overview"))
    if problem["type"].endswith(":store-unusable"):
        hint = _UNUSABLE
    elif problem["title"] == STORE_REPLACED:
        hint = _REPLACED
    section = next((item for item in NAV_ITEMS if request.url.path.startswith(f"{item.path}/")), None)
    if plain.status_code == 404 and section:
        path, label = section.path, f"Show {section.label.lower()}"
    answer = page(
        request,
        await _principal(request),
        "problem.html",
        status=plain.status_code,
        problem=problem,
        hint=hint,
        back=path or _page_path(request),
        label=label,
    )
    for name in ("retry-after", "allow", "www-authenticate"):
        if name in plain.headers:
            answer.headers[name] = plain.headers[name]
    return answer


async def _principal(request: Request) -> Principal | None:
    """Return the principal for the page's frame; None, as for somebody who has not signed in, where it is not known."""
    principal: Principal | None = getattr(request.state, "principal", None)
    if principal is not None or request.method not in ("GET", "HEAD"):
        return principal
    try:
        return await request.app.state.identity.authenticate(request)  # type: ignore[no-any-return]
    except (Exception, HTTPException):  # noqa: BLE001 - there is a refusal to tell already
        return None
