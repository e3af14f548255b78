"""Users: who may come in, and what each may."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.control import Control
from spinney.features.accounts.one_time_links import WELCOME
from spinney.model.access import Role
from spinney.model.rights.accounts import Link, Session, Token, User
from spinney.web.pages.formatting import plural
from spinney.web.pages.forms import FORM_ERRORS, Form, run_and_redirect, sentence
from spinney.web.pages.rendering import page, redirect, segment
from spinney.web.pages.rights_forms import NewSecret, fields_of, limits_in_words, rights_of
from spinney.web.request_context import Authenticated, RequestContext

router = APIRouter(include_in_schema=False)

USERS = "/users"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserDetails:
    """One user, with all that hangs on him."""

    user: User
    sessions: Sequence[Session]
    tokens: Sequence[Token]


@router.get(USERS, summary="Users")
async def users(request: Request, context: Authenticated) -> Response:
    """All, by name."""
    return await _list(request, context)


@router.post(USERS, summary="Make a user")
async def add(request: Request, context: Authenticated, form: Form) -> Response:
    """With a link with which he sets his password, unless a proxy or identity provider says who he is."""
    name, linked = form.text("name"), bool(form.text("link"))

    def call(control: Control) -> str | None:
        control.accounts.add(name, rights_of(form), None, reason=form.maybe("reason"))
        return control.accounts.invite(name)[0] if linked else None

    try:
        secret = await context.run(call)
    except FORM_ERRORS as error:
        return await _list(request, context, said=form.said, wrong=sentence(error), status=422)
    if secret is None:
        return redirect(_path(name), done=f"User {name} is created")
    return _linked(request, context, name, secret)


@router.get(f"{USERS}/{{name}}", summary="One user")
async def user(request: Request, context: Authenticated, name: str) -> Response:
    """What he may, where he is signed in, his tokens."""
    return await _one(request, context, name)


@router.post(f"{USERS}/{{name}}/rights", summary="Give a user other rights")
async def change(request: Request, context: Authenticated, name: str, form: Form) -> Response:
    """In force with the next request."""
    try:
        await context.run(
            lambda control: control.accounts.change(name, rights_of(form), reason=form.maybe("reason"))
        )
    except FORM_ERRORS as error:
        return await _one(request, context, name, said=form.said, wrong=sentence(error), status=422)
    return redirect(_path(name), done=f"{name} has other rights now")


@router.post(f"{USERS}/{{name}}/disable", summary="Disable a user")
async def disable(context: Authenticated, name: str, form: Form) -> Response:
    """Sessions and tokens are void meanwhile."""
    return await run_and_redirect(
        context,
        _path(name),
        lambda control: control.accounts.disable(name, reason=form.maybe("reason")),
        f"{name} is disabled: sessions and tokens are void",
    )


@router.post(f"{USERS}/{{name}}/enable", summary="Enable a user")
async def enable(context: Authenticated, name: str, form: Form) -> Response:
    """Tokens are good again."""

    def call(control: Control) -> User:
        return control.accounts.disable(name, disabled=False, reason=form.maybe("reason"))

    return await run_and_redirect(context, _path(name), call, f"{name} is enabled")


@router.post(f"{USERS}/{{name}}/delete", summary="Delete a user")
async def delete(context: Authenticated, name: str, form: Form) -> Response:
    """For good."""
    try:
        await context.run(lambda control: control.accounts.delete(name, reason=form.maybe("reason")))
    except FORM_ERRORS as error:
        return redirect(_path(name), refused=sentence(error))
    return redirect(USERS, done=f"{name} is deleted, with all tokens")


@router.post(f"{USERS}/{{name}}/link", summary="Make a link that sets a password")
async def link(request: Request, context: Authenticated, name: str) -> Response:
    """Shown once, good once, for a day."""

    def call(control: Control) -> tuple[str, Link]:
        return control.accounts.invite(name)

    try:
        secret, _ = await context.run(call)
    except FORM_ERRORS as error:
        return redirect(_path(name), refused=sentence(error))
    return _linked(request, context, name, secret)


@router.post(f"{USERS}/{{name}}/sessions", summary="End all sessions of a user")
async def end_sessions(context: Authenticated, name: str, form: Form) -> Response:
    """He has to sign in again."""
    return await run_and_redirect(
        context,
        _path(name),
        lambda control: control.accounts.end_sessions(name, reason=form.maybe("reason")),
        lambda ended: f"{plural(ended, 'session')} of {name} ended",
    )


# --- steps ------------------------------------------------------------------------------------


async def _list(
    request: Request,
    context: RequestContext,
    *,
    said: Mapping[str, str] | None = None,
    wrong: str = "",
    status: int = 200,
) -> Response:
    found = await context.run(lambda control: control.accounts.users())
    return page(
        request,
        context.principal,
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
    context: RequestContext,
    name: str,
    *,
    said: Mapping[str, str] | None = None,
    wrong: str = "",
    status: int = 200,
) -> Response:
    def read(control: Control) -> UserDetails:
        accounts = control.accounts
        control.require(Role.ADMIN, "manage users")
        return UserDetails(
            user=accounts.user(name), sessions=accounts.sessions(name), tokens=accounts.tokens(name)
        )

    found = await context.run(read)
    return page(
        request,
        context.principal,
        "user.html",
        status=status,
        found=found,
        path=_path(name),
        limits=limits_in_words,
        roles=list(Role),
        said=said or fields_of(found.user.rights),
        wrong=wrong,
    )


def _linked(request: Request, context: RequestContext, name: str, secret: str) -> Response:
    base = request.app.state.settings.url or f"{request.url.scheme}://{request.url.netloc}"
    told = NewSecret(
        title=f"A link for {name}",
        secret=f"{base.rstrip('/')}{WELCOME}?link={secret}",
        about=f"With it {name} sets a password. It is good once, for a day, and shown on this page alone: send it now.",
        back=_path(name),
        label=f"To {name}",
    )
    return page(request, context.principal, "secret.html", secret=told)


def _path(name: str) -> str:
    return f"{USERS}/{segment(name)}"
