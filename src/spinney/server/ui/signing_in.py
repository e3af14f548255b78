"""Signing in, by password or by an identity provider, and signing out."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from spinney.model.errors import BadLogin, SpinneyError
from spinney.server.asking import SESSION_COOKIE, PerhapsAsked
from spinney.server.bodies import SmallBody
from spinney.server.identity.cookies import AWAY_COOKIE
from spinney.server.identity.oidc import Away
from spinney.server.ui import entrance
from spinney.server.ui.refusing import SIGN_IN

router = APIRouter(include_in_schema=False)
PAGE = "sign_in.html"
BY_PROVIDER = f"{SIGN_IN}/oidc"
CALLBACK = f"{BY_PROVIDER}/callback"


@router.get(SIGN_IN)
async def show(request: Request, hands: PerhapsAsked, next: str = entrance.HOME) -> Response:  # noqa: A002 - its name
    """The form; who is known already goes on."""
    if hands is not None:
        return RedirectResponse(entrance.local(next), 303)
    anybody = await entrance.identity(request).entering(lambda entering: entering.store.accounts.any_user())
    return await entrance.guest_page(request, PAGE, **_shown(request, next=next, nobody=not anybody))


@router.post(SIGN_IN, dependencies=[SmallBody])
async def sign_in(request: Request) -> Response:
    """By password. A session that this browser had before ends."""
    doorway = entrance.doorway(request)
    given = await entrance.fields(request)
    name, next_ = given.get("name", "").strip(), given.get("next", entrance.HOME)
    try:
        await entrance.require_guests(request)
        who = await doorway.sign_in(request, name, given.get("password", ""))
    except SpinneyError as error:
        shown = _shown(request, next=next_, name=name[:100] if name.isprintable() else "")
        return await entrance.refused_page(request, PAGE, error, **shown)
    cookies = await entrance.identity(request).cookies()
    before = cookies.session(request.cookies)
    if before is not None:
        await doorway.sign_out(before)
    return entrance.entered(cookies, who, entrance.local(next_))


@router.post("/sign-out", dependencies=[SmallBody])
async def sign_out(request: Request, hands: PerhapsAsked) -> Response:
    """End this session."""
    cookies = await entrance.identity(request).cookies()
    secret = cookies.session(request.cookies)
    if secret is not None:
        await entrance.doorway(request).sign_out(secret)
    answer = RedirectResponse(SIGN_IN, 303)
    cookies.clear(answer, SESSION_COOKIE)
    answer.headers["Clear-Site-Data"] = '"cache", "storage"'
    return answer


@router.get(BY_PROVIDER)
async def leave(request: Request, next: str = entrance.HOME) -> Response:  # noqa: A002 - as above
    """To the identity provider."""
    url = request.app.state.settings.url
    base = (url or f"{request.url.scheme}://{request.headers.get('host', '')}").rstrip("/")
    try:
        address, away = await entrance.doorway(request).leave(base + CALLBACK)
    except SpinneyError as error:
        return await entrance.refused_page(request, PAGE, error, **_shown(request, next=next))
    answer = RedirectResponse(address, 303)
    cookies = await entrance.identity(request).cookies()
    cookies.set_short(answer, AWAY_COOKIE, {"next": entrance.local(next), **asdict(away)})
    return answer


@router.get(CALLBACK)
async def arrive(request: Request) -> Response:
    """Back from there."""
    cookies = await entrance.identity(request).cookies()
    kept = cookies.short(request.cookies, AWAY_COOKIE) or {}
    next_ = kept.pop("next", entrance.HOME)
    try:
        if not kept:
            raise BadLogin("this sign-in was not begun in this browser, or is long over; sign in again")
        who = await entrance.doorway(request).arrive(request, request.query_params, Away(**kept))
    except SpinneyError as error:
        answer = await entrance.refused_page(request, PAGE, error, **_shown(request, next=next_))
    else:
        answer = entrance.entered(cookies, who, entrance.local(next_))
    cookies.clear(answer, AWAY_COOKIE)
    return answer


def _shown(request: Request, *, next: str, name: str = "", nobody: bool = False) -> dict[str, Any]:  # noqa: A002
    oidc = request.app.state.settings.oidc
    return {
        "name": name,
        "next": entrance.local(next),
        "nobody": nobody,
        "provider": oidc and oidc.label,
        "provider_path": BY_PROVIDER,
    }
