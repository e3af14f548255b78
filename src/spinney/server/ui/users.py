"""Users: who may come in, and what each may."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.control import Control
from spinney.model.access import Role
from spinney.model.accounts import Link, Session, Token, User
from spinney.server.asking import Asked, Hands
from spinney.server.ui.given import TOLD, Form, deed, sentence
from spinney.server.ui.people import Told, fields_of, limits_in_words, rights_of
from spinney.server.ui.rendering import page, redirect, segment
from spinney.server.ui.welcoming import WELCOME
from spinney.server.ui.words import plural

router = APIRouter(include_in_schema=False)

USERS = "/users"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One user, with all that hangs on him."""

    user: User
    sessions: Sequence[Session]
    tokens: Sequence[Token]


@router.get(USERS, summary="Users")
async def users(request: Request, hands: Asked) -> Response:
    """All, by name."""
    return await _list(request, hands)


@router.post(USERS, summary="Make a user")
async def add(request: Request, hands: Asked, form: Form) -> Response:
    """With a link with which he sets his password, unless a proxy or identity provider says who he is."""
    name, linked = form.text("name"), bool(form.text("link"))

    def call(control: Control) -> str | None:
        control.accounts.add(name, rights_of(form), None, reason=form.maybe("reason"))
        return control.accounts.invite(name)[0] if linked else None

    try:
        secret = await hands.run(call)
    except TOLD as error:
        return await _list(request, hands, said=form.said, wrong=sentence(error), status=422)
    if secret is None:
        return redirect(_path(name), done=f"User {name} is there now")
    return _linked(request, hands, name, secret)


@router.get(f"{USERS}/{{name}}", summary="One user")
async def user(request: Request, hands: Asked, name: str) -> Response:
    """What he may, where he is signed in, his tokens."""
    return await _one(request, hands, name)


@router.post(f"{USERS}/{{name}}/rights", summary="Give a user other rights")
async def change(request: Request, hands: Asked, name: str, form: Form) -> Response:
    """In force with the next request."""
    try:
        await hands.run(
            lambda control: control.accounts.change(name, rights_of(form), reason=form.maybe("reason"))
        )
    except TOLD as error:
        return await _one(request, hands, name, said=form.said, wrong=sentence(error), status=422)
    return redirect(_path(name), done=f"{name} has other rights now")


@router.post(f"{USERS}/{{name}}/disable", summary="Let nobody in by this name")
async def disable(hands: Asked, name: str, form: Form) -> Response:
    """Sessions and tokens are void meanwhile."""
    return await deed(
        hands,
        _path(name),
        lambda control: control.accounts.disable(name, reason=form.maybe("reason")),
        f"{name} is disabled: sessions and tokens are void",
    )


@router.post(f"{USERS}/{{name}}/enable", summary="Let somebody in again")
async def enable(hands: Asked, name: str, form: Form) -> Response:
    """Tokens are good again."""

    def call(control: Control) -> User:
        return control.accounts.disable(name, disabled=False, reason=form.maybe("reason"))

    return await deed(hands, _path(name), call, f"{name} may come in again")


@router.post(f"{USERS}/{{name}}/delete", summary="Delete a user")
async def delete(hands: Asked, name: str, form: Form) -> Response:
    """For good."""
    try:
        await hands.run(lambda control: control.accounts.delete(name, reason=form.maybe("reason")))
    except TOLD as error:
        return redirect(_path(name), refused=sentence(error))
    return redirect(USERS, done=f"{name} is deleted, with all tokens")


@router.post(f"{USERS}/{{name}}/link", summary="Make a link that sets a password")
async def link(request: Request, hands: Asked, name: str) -> Response:
    """Shown once, good once, for a day."""

    def call(control: Control) -> tuple[str, Link]:
        return control.accounts.invite(name)

    try:
        secret, _ = await hands.run(call)
    except TOLD as error:
        return redirect(_path(name), refused=sentence(error))
    return _linked(request, hands, name, secret)


@router.post(f"{USERS}/{{name}}/sessions", summary="End all sessions of a user")
async def end_sessions(hands: Asked, name: str, form: Form) -> Response:
    """He has to sign in again."""
    return await deed(
        hands,
        _path(name),
        lambda control: control.accounts.end_sessions(name, reason=form.maybe("reason")),
        lambda ended: f"{plural(ended, 'session')} of {name} ended",
    )


# --- steps ------------------------------------------------------------------------------------


async def _list(
    request: Request,
    hands: Hands,
    *,
    said: Mapping[str, str] | None = None,
    wrong: str = "",
    status: int = 200,
) -> Response:
    found = await hands.run(lambda control: control.accounts.users())
    return page(
        request,
        hands.asker,
        "users.html",
        status=status,
        users=found,
        limits=limits_in_words,
        roles=list(Role),
        said=said or {"role": str(Role.SUBMITTER), "link": "1"},
        wrong=wrong,
    )


async def _one(
    request: Request,
    hands: Hands,
    name: str,
    *,
    said: Mapping[str, str] | None = None,
    wrong: str = "",
    status: int = 200,
) -> Response:
    def read(control: Control) -> Found:
        accounts = control.accounts
        control.require(Role.ADMIN, "manage users")
        return Found(user=accounts.user(name), sessions=accounts.sessions(name), tokens=accounts.tokens(name))

    found = await hands.run(read)
    return page(
        request,
        hands.asker,
        "user.html",
        status=status,
        found=found,
        path=_path(name),
        limits=limits_in_words,
        roles=list(Role),
        said=said or fields_of(found.user.rights),
        wrong=wrong,
    )


def _linked(request: Request, hands: Hands, name: str, secret: str) -> Response:
    base = request.app.state.settings.url or f"{request.url.scheme}://{request.url.netloc}"
    told = Told(
        title=f"A link for {name}",
        secret=f"{base.rstrip('/')}{WELCOME}?link={secret}",
        about=f"With it {name} sets a password. It is good once, for a day, and shown on this page alone: send it now.",
        back=_path(name),
        label=f"To {name}",
    )
    return page(request, hands.asker, "secret.html", secret=told)


def _path(name: str) -> str:
    return f"{USERS}/{segment(name)}"
