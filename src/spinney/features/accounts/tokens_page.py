"""The pages of tokens: the caller's own, and for admins those of other users and of machines.

Both use one template and the same commands. The secret of a new token is shown on the page that follows the
form, which no redirect leads to: it exists in that answer only.
"""

from collections.abc import Sequence

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.commands.control import Control
from spinney.features.accounts.commands import ListTokens, ListUsers, MakeToken, RevokeToken, ShowUser
from spinney.features.accounts.rights_form import limits_in_words, rights_if_entered
from spinney.model.access import Role
from spinney.model.errors import NoSuch
from spinney.model.rights.accounts import NewToken, Token
from spinney.web.pages.forms import (
    FORM_ERRORS,
    Form,
    FormFields,
    NewSecret,
    RefusedForm,
    add_action,
    base_url,
    form_variables,
    secret_page,
)
from spinney.web.pages.page_responses import page
from spinney.web.request_context import Authenticated, RequestContext

router = APIRouter(include_in_schema=False)

TOKENS, OWN = "/tokens", "/account/tokens"


@router.get(TOKENS)
async def tokens(request: Request, context: Authenticated) -> Response:
    """Show all tokens, of users and of machines."""
    return await _all(request, context)


@router.get(OWN)
async def own(request: Request, context: Authenticated) -> Response:
    """Show the tokens of the caller, who may create and revoke them here."""
    return await _own(request, context)


@router.post(TOKENS)
async def make(request: Request, context: Authenticated, form: Form) -> Response:
    """Create a token of a machine, or of a user."""
    try:
        created = await context.run(lambda control: _make(control, form, form.maybe("owner")))
    except FORM_ERRORS as error:
        return await _all(request, context, RefusedForm(form=form, error=error))
    return _created_page(request, context, created, TOKENS)


@router.post(OWN)
async def make_own(request: Request, context: Authenticated, form: Form) -> Response:
    """Create a token that acts in the caller's name."""
    try:
        created = await context.run(lambda control: _make(control, form, context.principal.name))
    except FORM_ERRORS as error:
        return await _own(request, context, RefusedForm(form=form, error=error))
    return _created_page(request, context, created, OWN)


for _path in (TOKENS, OWN):
    add_action(
        router,
        _path,
        "revoke",
        RevokeToken,
        lambda name, token: f"Token {token.name} is revoked",
        at_list=True,
    )


# --- parts of the page ------------------------------------------------------------------------


async def _all(request: Request, context: RequestContext, refused: RefusedForm | None = None) -> Response:
    """Return the page of all tokens. ``refused``: the form that was sent, and why; its values are shown
    again."""

    def read(control: Control) -> tuple[Sequence[Token], list[str]]:
        control.require(Role.ADMIN, "manage tokens of others")
        users = control.do(ListUsers()).items
        return control.do(ListTokens()).items, [user.name for user in users if not user.disabled]

    listed, owners = await context.run(read)
    return _page(request, context, listed, owners=owners, path=TOKENS, refused=refused)


async def _own(request: Request, context: RequestContext, refused: RefusedForm | None = None) -> Response:
    """Return the page of the caller's tokens. A caller who is no user of the store (a machine's token, for
    example) has none."""

    def read(control: Control) -> Sequence[Token] | None:
        try:
            control.do(ShowUser(name=context.principal.name))
        except NoSuch:
            return None
        return control.do(ListTokens(owner=context.principal.name)).items

    return _page(request, context, await context.run(read), owners=[], path=OWN, refused=refused)


def _page(
    request: Request,
    context: RequestContext,
    listed: Sequence[Token] | None,
    *,
    owners: Sequence[str],
    path: str,
    refused: RefusedForm | None,
) -> Response:
    """Return a page with these tokens, valid ones first. ``listed`` None: the caller is no user and can have none."""
    most = context.principal.rights
    return page(
        request,
        context.principal,
        "tokens.html",
        owners=owners,
        own=path == OWN,
        path=path,
        tokens=None if listed is None else sorted(listed, key=_order),
        limits=limits_in_words,
        roles=[role for role in Role if most.permits(role)],
        **form_variables(refused),
    )


def _order(token: Token) -> tuple[bool, str, str]:
    """Return the key by which tokens are sorted: revoked ones last, then by owner and name."""
    return token.revoked_us is not None, token.owner or "", token.name


def _make(control: Control, form: FormFields, owner: str | None) -> NewToken:
    """Create the token that a form describes. Without a role it gets the rights of its owner."""
    return control.do(
        MakeToken(
            name=form.text("name"),
            owner=owner,
            rights=rights_if_entered(form),
            expires=form.moment("expires"),
            reason=form.maybe("reason"),
        )
    )


def _created_page(request: Request, context: RequestContext, created: NewToken, back: str) -> Response:
    """Return the page that shows the secret of a new token, once, with an example of its use."""
    secret = NewSecret(
        title=f"Token {created.token.name}",
        secret=created.secret,
        back=back,
        label="Back to tokens",
        about=f"The token acts as {created.token.acts_as}. It is shown only once: copy it now.",
        example=f"curl -H 'Authorization: Bearer {created.secret}' {base_url(request)}/api/v1/me",
    )
    return secret_page(request, context, secret)
