"""The pages of users: the list, a user's details, and the actions of admins on both."""

from collections.abc import Sequence
from functools import partial

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.commands.control import Control
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
from spinney.features.accounts.rights_form import fields_of, limits_in_words, rights_of
from spinney.model.access import Role
from spinney.model.rights.accounts import Session, Token, User
from spinney.model.values.texts import counted
from spinney.web.pages.forms import (
    FORM_ERRORS,
    Form,
    NewSecret,
    RefusedForm,
    add_action,
    base_url,
    form_variables,
    secret_page,
    sentence,
)
from spinney.web.pages.page_responses import page, redirect, segment
from spinney.web.request_context import Authenticated, RequestContext

router = APIRouter(include_in_schema=False)

USERS = "/users"


@router.get(USERS)
async def users(request: Request, context: Authenticated) -> Response:
    """Show all users with their rights, ordered by name."""
    return await _list(request, context)


@router.post(USERS)
async def add(request: Request, context: Authenticated, form: Form) -> Response:
    """Create a user; with a link that sets a password, unless a proxy or identity provider authenticates the user."""
    name, with_link = form.text("name"), bool(form.text("link"))

    def call(control: Control) -> PasswordLink | None:
        control.do(AddUser(name=name, rights=rights_of(form), reason=form.maybe("reason")))
        return control.do(MakeLink(name=name)) if with_link else None

    try:
        link = await context.run(call)
    except FORM_ERRORS as error:
        return await _list(request, context, RefusedForm(form=form, error=error))
    if link is None:
        return redirect(_path(name), done=f"User {name} is created")
    return _link_page(request, context, name, link)


@router.get(f"{USERS}/{{name}}")
async def user(request: Request, context: Authenticated, name: str) -> Response:
    """Show a user's rights, sessions and tokens."""
    return await _user_page(request, context, name)


@router.post(f"{USERS}/{{name}}/rights")
async def change(request: Request, context: Authenticated, name: str, form: Form) -> Response:
    """Change a user's rights, from the next request on."""

    def call(control: Control) -> User:
        return control.do(ChangeUser(name=name, rights=rights_of(form), reason=form.maybe("reason")))

    try:
        await context.run(call)
    except FORM_ERRORS as error:
        return await _user_page(request, context, name, RefusedForm(form=form, error=error))
    return redirect(_path(name), done=f"The rights of {name} are changed")


@router.post(f"{USERS}/{{name}}/link")
async def make_link(request: Request, context: Authenticated, name: str) -> Response:
    """Show a link that sets a password once, within a day."""
    try:
        link = await context.run(lambda control: control.do(MakeLink(name=name)))
    except FORM_ERRORS as error:
        return redirect(_path(name), refused=sentence(error))
    return _link_page(request, context, name, link)


# --- parts of the page ------------------------------------------------------------------------


def _signs_in_elsewhere(request: Request) -> bool:
    """Return whether users without a password can sign in: by a reverse proxy or an identity provider."""
    settings = request.app.state.settings
    return settings.oidc is not None or settings.trusted_header is not None


async def _list(request: Request, context: RequestContext, refused: RefusedForm | None = None) -> Response:
    """Return the page of all users. ``refused``: the form that was sent, and why; its values are shown
    again."""
    user_list = await context.run(lambda control: control.do(ListUsers()).items)
    return page(
        request,
        context.principal,
        "users.html",
        users=user_list,
        limits=limits_in_words,
        signs_in_elsewhere=_signs_in_elsewhere(request),
        roles=list(Role),
        **form_variables(refused, {"role": str(Role.SUBMITTER), "link": "1"}),
    )


async def _user_page(
    request: Request, context: RequestContext, name: str, refused: RefusedForm | None = None
) -> Response:
    """Return the page of a user, whose form has the present rights, or those of the form that was refused."""

    def read(control: Control) -> tuple[User, Sequence[Session], Sequence[Token]]:
        control.require(Role.ADMIN, "manage users")
        user = control.do(ShowUser(name=name))
        return user, control.do(ListSessions(name=name)).items, control.do(ListTokens(owner=name)).items

    shown_user, sessions, tokens = await context.run(read)
    return page(
        request,
        context.principal,
        "user.html",
        user=shown_user,
        sessions=sessions,
        tokens=tokens,
        path=_path(name),
        limits=limits_in_words,
        signs_in_elsewhere=_signs_in_elsewhere(request),
        roles=list(Role),
        **form_variables(refused, fields_of(shown_user.rights)),
    )


def _link_page(request: Request, context: RequestContext, name: str, link: PasswordLink) -> Response:
    """Return the page that shows a link that sets a password. It is not shown again."""
    secret = NewSecret(
        title=f"Password link for {name}",
        secret=f"{base_url(request)}{link.path}",
        about=f"With this link {name} sets a password. It is valid once, for a day, and shown only here.",
        back=_path(name),
        label=f"Back to {name}",
    )
    return secret_page(request, context, secret)


def _path(name: str) -> str:
    return f"{USERS}/{segment(name)}"


_add_action = partial(add_action, router, USERS)
_add_action("disable", ChangeUser, "{name} is disabled: sessions and tokens are void", disabled=True)
_add_action("enable", ChangeUser, "{name} is enabled", disabled=False)
_add_action(
    "sessions", EndSessions, lambda name, result: f"{counted(result.ended, 'session')} of {name} ended"
)
_add_action("delete", DeleteUser, "{name} is deleted with all tokens", removes=True)
