"""Checks that a page of this server made a request, because a browser sends cookies whoever made it (CSRF).

Two proofs are needed. The browser does not say that another site made the request (``Sec-Fetch-Site``, ``Origin``;
another port of the same host is another site), and the request contains what only pages of this server know: the hidden
field ``csrf``, or the header ``X-CSRF-Token``. The API takes the header alone, because its routes read their bodies
themselves.
"""

import hmac
from urllib.parse import urlsplit

from fastapi import Request
from starlette.datastructures import Headers

from spinney.model.errors import Forbidden
from spinney.web.media_types import body_type
from spinney.web.settings import ServerSettings

HEADER, FIELD = "x-csrf-token", "csrf"
SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Methods that change nothing."""
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
_FOREIGN = "the request comes from another site, and nothing was done; open the page here and do it there"
_NO_PROOF = "the form is out of date, and nothing was done; load the page again and repeat it"


async def require_ours(request: Request, proof: str, settings: ServerSettings) -> None:
    """Raise Forbidden unless a page of this server made the request. ``proof``: what ``Cookies.proof`` returns for the
    caller. Reads the form of a page; Starlette keeps it for the route."""
    require_same_site(request.headers, settings)
    token = request.headers.get(HEADER) or await _field(request)
    if not hmac.compare_digest(token.encode("utf-8", "surrogatepass"), proof.encode()):
        raise Forbidden(_NO_PROOF)


def require_same_site(headers: Headers, settings: ServerSettings) -> None:
    """Raise Forbidden when the browser says that another site made the request. Programs send neither header, and
    pass."""
    site = headers.get("sec-fetch-site", "none")
    if site not in ("same-origin", "none"):
        raise Forbidden(_FOREIGN)
    origin = headers.get("origin")
    # A browser that keeps to itself where people come from says "null" to us, too; no page can write Sec-Fetch-Site.
    if origin is None or (origin == "null" and site == "same-origin"):
        return
    ours = {headers.get("host", "")}
    if settings.url is not None:  # a proxy may have put its own name into Host
        ours.add(urlsplit(settings.url).netloc)
    if urlsplit(origin).netloc not in ours - {""}:
        raise Forbidden(_FOREIGN)


async def _field(request: Request) -> str:
    """Return the proof in a page's form; empty for other bodies, and for the API, whose routes read their
    bodies themselves."""
    if body_type(request) not in _FORMS or request.url.path.startswith("/api/"):
        return ""
    token = (await request.form()).get(FIELD)  # kept by the request, for the route
    return token if isinstance(token, str) else ""
