"""What a browser sends by itself proves nothing: a request that changes something has to come from a page of ours.

Two proofs, both needed: the browser does not say that another site made it (``Sec-Fetch-Site``, ``Origin``; a site on
another port of this host is another), and it bears what only our pages know (a hidden field ``csrf``, or the header
``X-CSRF-Token``). The API takes the header alone: its bodies are read by its routes.
"""

import hmac
from urllib.parse import urlsplit

from fastapi import Request
from starlette.datastructures import Headers

from spinney.model.errors import Forbidden
from spinney.web.settings import ServerSettings

HEADER, FIELD = "x-csrf-token", "csrf"
SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Methods that change nothing."""
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
_FOREIGN = "the request comes from another site, and nothing was done; open the page here and do it there"
_NO_PROOF = "the form is out of date, and nothing was done; load the page again and repeat it"


async def require_ours(request: Request, proof: str, settings: ServerSettings) -> None:
    """Raise Forbidden unless a page of ours made this request."""
    require_same_site(request.headers, settings)
    token = request.headers.get(HEADER) or await _field(request)
    if not hmac.compare_digest(token.encode("utf-8", "surrogatepass"), proof.encode()):
        raise Forbidden(_NO_PROOF)


def require_same_site(headers: Headers, settings: ServerSettings) -> None:
    """Raise Forbidden where the browser says that another site made it. What is no browser says nothing."""
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
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in _FORMS or request.url.path.startswith("/api/"):
        return ""
    token = (await request.form()).get(FIELD)  # kept by the request, for the route
    return token if isinstance(token, str) else ""
