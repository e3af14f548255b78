"""What a reverse proxy says: whom it has signed in, and from where he came. Believed from ``trusted_proxies`` alone."""

from ipaddress import ip_address

from starlette.requests import HTTPConnection

from spinney.model.errors import BadName, Forbidden
from spinney.model.rights.accounts import user_name
from spinney.web.settings import ServerSettings

_PASSED_ON = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")


def address(request: HTTPConnection, settings: ServerSettings) -> str | None:
    """The IP address of who asks: the last in X-Forwarded-For that is no proxy of ours. None: over the Unix socket."""
    host = None if request.client is None else request.client.host
    if host is None or host.startswith("uid:"):
        return None
    passed = [part.strip() for line in request.headers.getlist("x-forwarded-for") for part in line.split(",")]
    while settings.trusts(host) and passed:
        before = passed.pop()
        if not _is_address(before):
            break
        host = before
    return host


def ignored(request: HTTPConnection, settings: ServerSettings) -> bool:
    """Whether the request was passed on by somebody whose word does not count."""
    host = None if request.client is None else request.client.host
    over_tcp = host is not None and not host.startswith("uid:")
    return over_tcp and "x-forwarded-for" in request.headers and not settings.trusts(host)


def user(request: HTTPConnection, settings: ServerSettings) -> str | None:
    """Whom a proxy names; None: nobody, or it is no proxy of ours. Raises Forbidden for what names nobody."""
    if settings.trusted_header is None or request.client is None or not settings.trusts(request.client.host):
        return None
    names = request.headers.getlist(settings.trusted_header)
    if not names or names == [""]:
        return None
    if len(names) > 1:
        raise Forbidden(
            f"the proxy names {len(names)} users at once; have it replace the header, not add to it"
        )
    try:
        return user_name(names[0].encode("latin-1").decode())
    except (BadName, UnicodeError):
        raise Forbidden(
            "the proxy names somebody who cannot be a user here; have it send the user's name"
        ) from None


def passed_on(request: HTTPConnection) -> bool:
    """Whether somebody has passed this request on for somebody else."""
    return any(name in request.headers for name in _PASSED_ON)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
