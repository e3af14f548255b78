"""Users: who may come in, and what each may."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.control import Control
from spinney.features.accounts.commands import (
    AddUser,
    ChangeUser,
    DeleteUser,
    EndSessions,
    ListSessions,
    ListTokens,
    ListUsers,
    MakeLink,
    PasswordLink,
    ShowUser,
)
from spinney.model.access import Role
from spinney.model.rights.accounts import Session, Token, User
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

    def call(control: Control) -> PasswordLink | None:
        control.do(AddUser(name=name, rights=rights_of(form), reason=form.maybe("reason")))
        return control.do(MakeLink(name=name)) if linked else None

    try:
        link = await context.run(call)
    except FORM_ERRORS as error:
        return await _list(request, context, said=form.said, wrong=sentence(error), status=422)
    if link is None:
        return redirect(_path(name), done=f"User {name} is created")
    return _linked(request, context, name, link)


@router.get(f"{USERS}/{{name}}", summary="One user")
async def user(request: Request, context: Authenticated, name: str) -> Response:
    """What he may, where he is signed in, his tokens."""
    return await _one(request, context, name)


@router.post(f"{USERS}/{{name}}/rights", summary="Give a user other rights")
async def change(request: Request, context: Authenticated, name: str, form: Form) -> Response:
    """In force with the next request."""

    def call(control: Control) -> User:
        return control.do(ChangeUser(name=name, rights=rights_of(form), reason=form.maybe("reason")))

    try:
        await context.run(call)
    except FORM_ERRORS as error:
        return await _one(request, context, name, said=form.said, wrong=sentence(error), status=422)
    return redirect(_path(name), done=f"The rights of {name} are changed")


@router.post(f"{USERS}/{{name}}/disable", summary="Disable a user")
async def disable(context: Authenticated, name: str, form: Form) -> Response:
    """Sessions and tokens are void meanwhile."""
    return await run_and_redirect(
        context,
        _path(name),
        lambda control: control.do(ChangeUser(name=name, disabled=True, reason=form.maybe("reason"))),
        f"{name} is disabled: sessions and tokens are void",
    )


@router.post(f"{USERS}/{{name}}/enable", summary="Enable a user")
async def enable(context: Authenticated, name: str, form: Form) -> Response:
    """Tokens are good again."""

    def call(control: Control) -> User:
        return control.do(ChangeUser(name=name, disabled=False, reason=form.maybe("reason")))

    return await run_and_redirect(context, _path(name), call, f"{name} is enabled")


@router.post(f"{USERS}/{{name}}/delete", summary="Delete a user")
async def delete(context: Authenticated, name: str, form: Form) -> Response:
    """For good."""
    try:
        await context.run(lambda control: control.do(DeleteUser(name=name, reason=form.maybe("reason"))))
    except FORM_ERRORS as error:
        return redirect(_path(name), refused=sentence(error))
    return redirect(USERS, done=f"{name} is deleted with all tokens")


@router.post(f"{USERS}/{{name}}/link", summary="Make a link that sets a password")
async def make_link(request: Request, context: Authenticated, name: str) -> Response:
    """Shown once, good once, for a day."""
    try:
        link = await context.run(lambda control: control.do(MakeLink(name=name)))
    except FORM_ERRORS as error:
        return redirect(_path(name), refused=sentence(error))
    return _linked(request, context, name, link)


@router.post(f"{USERS}/{{name}}/sessions", summary="End all sessions of a user")
async def end_sessions(context: Authenticated, name: str, form: Form) -> Response:
    """He has to sign in again."""
    return await run_and_redirect(
        context,
        _path(name),
        lambda control: control.do(EndSessions(name=name, reason=form.maybe("reason"))),
        lambda done: f"{plural(done.ended, 'session')} of {name} ended",
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
    found = await context.run(lambda control: control.do(ListUsers()).items)
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
        control.require(Role.ADMIN, "manage users")
        return UserDetails(
            user=control.do(ShowUser(name=name)),
            sessions=control.do(ListSessions(name=name)).items,
            tokens=control.do(ListTokens(owner=name)).items,
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


def _linked(request: Request, context: RequestContext, name: str, link: PasswordLink) -> Response:
    base = request.app.state.settings.url or f"{request.url.scheme}://{request.url.netloc}"
    told = NewSecret(
        title=f"Password link for {name}",
        secret=f"{base.rstrip('/')}{link.path}",
        about=f"With this link {name} sets a password. It is valid once, for a day, and shown only here.",
        back=_path(name),
        label=f"Back to {name}",
    )
    return page(request, context.principal, "secret.html", secret=told)


def _path(name: str) -> str:
    return f"{USERS}/{segment(name)}"
