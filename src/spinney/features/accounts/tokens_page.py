"""Tokens: one's own, for everybody; and those of others and of machines, for admins."""

from collections.abc import Mapping, Sequence

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.control import Control
from spinney.features.accounts.commands import ListTokens, ListUsers, MakeToken, RevokeToken, ShowUser
from spinney.model.access import Role
from spinney.model.errors import NoSuch
from spinney.model.rights.accounts import NewToken, Token
from spinney.web.pages.forms import FORM_ERRORS, Form, FormFields, run_and_redirect, sentence
from spinney.web.pages.rendering import page
from spinney.web.pages.rights_forms import NewSecret, limits_in_words, rights_if_said
from spinney.web.request_context import Authenticated, RequestContext

router = APIRouter(include_in_schema=False)

TOKENS, OWN = "/tokens", "/account/tokens"


@router.get(TOKENS, summary="Tokens")
async def tokens(request: Request, context: Authenticated) -> Response:
    """All, of users and of machines."""
    return await _all(request, context)


@router.get(OWN, summary="Your tokens")
async def own(request: Request, context: Authenticated) -> Response:
    """Of who asks."""
    return await _own(request, context)


@router.post(TOKENS, summary="Make a token")
async def make(request: Request, context: Authenticated, form: Form) -> Response:
    """Of a machine, or in a user's name."""
    try:
        made = await context.run(lambda control: _made(control, form, form.maybe("owner")))
    except FORM_ERRORS as error:
        return await _all(request, context, said=form.said, wrong=sentence(error), status=422)
    return _told(request, context, made, TOKENS)


@router.post(OWN, summary="Make a token of your own")
async def make_own(request: Request, context: Authenticated, form: Form) -> Response:
    """It acts in the name of who asks."""
    try:
        made = await context.run(lambda control: _made(control, form, context.principal.name))
    except FORM_ERRORS as error:
        return await _own(request, context, said=form.said, wrong=sentence(error), status=422)
    return _told(request, context, made, OWN)


@router.post(f"{TOKENS}/{{token}}/revoke", summary="Revoke a token")
async def revoke(context: Authenticated, token: str, form: Form) -> Response:
    """For good."""
    return await _revoked(context, token, form, TOKENS)


@router.post(f"{OWN}/{{token}}/revoke", summary="Revoke a token of your own")
async def revoke_own(context: Authenticated, token: str, form: Form) -> Response:
    """For good."""
    return await _revoked(context, token, form, OWN)


# --- steps ------------------------------------------------------------------------------------


async def _all(
    request: Request,
    context: RequestContext,
    *,
    said: Mapping[str, str] | None = None,
    wrong: str = "",
    status: int = 200,
) -> Response:
    def read(control: Control) -> tuple[Sequence[Token], list[str]]:
        control.require(Role.ADMIN, "manage tokens of others")
        users = control.do(ListUsers()).items
        return control.do(ListTokens()).items, [user.name for user in users if not user.disabled]

    found, owners = await context.run(read)
    return _page(
        request, context, found, owners=owners, own=False, path=TOKENS, said=said, wrong=wrong, status=status
    )


async def _own(
    request: Request,
    context: RequestContext,
    *,
    said: Mapping[str, str] | None = None,
    wrong: str = "",
    status: int = 200,
) -> Response:
    def read(control: Control) -> Sequence[Token] | None:
        try:
            control.do(ShowUser(name=context.principal.name))
        except NoSuch:
            return None
        return control.do(ListTokens(owner=context.principal.name)).items

    found = await context.run(read)
    return _page(
        request, context, found, owners=[], own=True, path=OWN, said=said, wrong=wrong, status=status
    )


def _page(
    request: Request,
    context: RequestContext,
    found: Sequence[Token] | None,
    *,
    owners: Sequence[str],
    own: bool,
    path: str,
    said: Mapping[str, str] | None,
    wrong: str,
    status: int,
) -> Response:
    most = context.principal.rights
    return page(
        request,
        context.principal,
        "tokens.html",
        status=status,
        owners=owners,
        own=own,
        path=path,
        tokens=None if found is None else sorted(found, key=_order),
        limits=limits_in_words,
        roles=[role for role in Role if most.permits(role)],
        said=said or {},
        wrong=wrong,
    )


def _order(token: Token) -> tuple[bool, str, str]:
    """Those that are good first."""
    return token.revoked_us is not None, token.owner or "", token.name


def _made(control: Control, form: FormFields, owner: str | None) -> NewToken:
    rights = rights_if_said(form)
    return control.do(
        MakeToken(
            name=form.text("name"),
            owner=owner,
            rights=rights,
            expires=form.moment("expires"),
            reason=form.maybe("reason"),
        )
    )


def _told(request: Request, context: RequestContext, made: NewToken, back: str) -> Response:
    base = request.app.state.settings.url or f"{request.url.scheme}://{request.url.netloc}"
    told = NewSecret(
        title=f"Token {made.token.name}",
        secret=made.secret,
        back=back,
        label="Back to tokens",
        about=f"The token acts as {made.token.acts_as}. It is shown only once: copy it now.",
        example=f"curl -H 'Authorization: Bearer {made.secret}' {base.rstrip('/')}/api/v1/me",
    )
    return page(request, context.principal, "secret.html", secret=told)


async def _revoked(context: RequestContext, token: str, form: FormFields, back: str) -> Response:
    return await run_and_redirect(
        context,
        back,
        lambda control: control.do(RevokeToken(token=token, reason=form.maybe("reason"))),
        lambda found: f"Token {found.name} is revoked",
    )
