"""One-time links: the first admin's, and those with which people set a password.

The secret of a link is in the address of one request only: it is put into a cookie of ten minutes, and the
browser is redirected to the same page without it, so that neither a history nor a log nor the next page
contains it. The link is used up by the form, not by opening the page: mail programs open links to look at
them.
"""

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from spinney.features.accounts import sign_in_forms
from spinney.features.accounts.sign_in_page import PAGE as SIGN_IN_PAGE
from spinney.model.errors import BadLogin, SpinneyError, UsageError
from spinney.model.rights.accounts import Link
from spinney.web.identity.cookies import LINK_COOKIE
from spinney.web.long_requests.bodies import SmallBody

router = APIRouter(include_in_schema=False)
WELCOME = "/welcome"


@router.get(WELCOME)
async def show(request: Request, link: str | None = None) -> Response:
    """Show the form that the link is for: a new password, or the name and password of the first admin."""
    cookies = await sign_in_forms.identity(request).cookies()
    if link is not None:
        answer = RedirectResponse(WELCOME, 303)
        cookies.set_short(answer, LINK_COOKIE, link[:200])
        # Only here: forms of a page with this policy are sent with the header "Origin: null".
        answer.headers["Referrer-Policy"] = "no-referrer"
        return answer
    try:
        link_ = await sign_in_forms.sign_in_flow(request).link(
            request, _secret(cookies.short(request.cookies, LINK_COOKIE))
        )
    except BadLogin as error:
        return await _over(request, error)
    return await sign_in_forms.anonymous_page(request, _template(link_), user=link_.user, name="")


@router.post(WELCOME, dependencies=[SmallBody])
async def accept(request: Request) -> Response:
    """Use the link up, sign the user in, and lead to the first page. With two different passwords the form is
    shown again, and the link stays valid."""
    cookies = await sign_in_forms.identity(request).cookies()
    sign_in_flow = sign_in_forms.sign_in_flow(request)
    fields = await sign_in_forms.fields(request)
    name, password = fields.get("name", "").strip(), fields.get("password", "")
    try:
        await sign_in_forms.require_form_token(request)
        secret = _secret(cookies.short(request.cookies, LINK_COOKIE))
        link_ = await sign_in_flow.link(request, secret)
    except SpinneyError as error:
        return await _over(request, error)
    try:
        if password != fields.get("again"):
            raise UsageError("the two passwords differ; write the same one twice")
        signed_in = await sign_in_flow.accept(request, secret, name, password)
    except BadLogin as error:  # the link was used by another request in between
        return await _over(request, error)
    except SpinneyError as error:
        shown = name[:100] if name.isprintable() else ""
        return await sign_in_forms.refused_page(request, _template(link_), error, user=link_.user, name=shown)
    answer = sign_in_forms.start_session(cookies, signed_in, sign_in_forms.HOME)
    cookies.clear(answer, LINK_COOKIE)
    return answer


def _secret(value: object) -> str:
    """Return the secret from the cookie. Raises BadLogin when it is missing or too old."""
    if not isinstance(value, str):
        raise BadLogin(
            "open the link again: this page is good for ten minutes, in the browser that opened it"
        )
    return value


def _template(link: Link) -> str:
    """Return the template of the form for this link."""
    return "first_admin.html" if link.user is None else "new_password.html"


async def _over(request: Request, error: SpinneyError) -> Response:
    """Return the page for signing in, with the reason why the link cannot be used."""
    return await sign_in_forms.refused_page(
        request,
        SIGN_IN_PAGE,
        error,
        name="",
        next=sign_in_forms.HOME,
        nobody=False,
        provider=None,
        provider_path="",
    )
