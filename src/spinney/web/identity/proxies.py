"""What a reverse proxy says: which user it has signed in, and the address of the client. It is believed from
``trusted_proxies`` alone."""

from ipaddress import ip_address

from starlette.requests import HTTPConnection

from spinney.model.errors import BadName, Forbidden
from spinney.model.rights.accounts import user_name
from spinney.model.values.networks import unmapped
from spinney.web.settings import ServerSettings

_PASSED_ON = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")


def address(request: HTTPConnection, settings: ServerSettings) -> str | None:
    """Return the IP address of the client: the last in X-Forwarded-For that is no trusted proxy, or the peer of the
    connection. An IPv4 address is returned as such, also where the server listens on ``::``. None over the Unix
    socket."""
    host = None if request.client is None else request.client.host
    if host is None or host.startswith("uid:"):
        return None
    passed = [part.strip() for line in request.headers.getlist("x-forwarded-for") for part in line.split(",")]
    while settings.trusts(host) and passed:
        before = passed.pop()
        if not _is_address(before):
            break
        host = before
    return unmapped(host)


def ignored(request: HTTPConnection, settings: ServerSettings) -> bool:
    """Return whether the request has an X-Forwarded-For that is ignored, because no trusted proxy has sent it."""
    host = None if request.client is None else request.client.host
    over_tcp = host is not None and not host.startswith("uid:")
    return over_tcp and "x-forwarded-for" in request.headers and not settings.trusts(host)


def user(request: HTTPConnection, settings: ServerSettings) -> str | None:
    """Return the user whom a trusted proxy names; None when it names none, or the peer is no trusted proxy. Raises
    Forbidden for a name that cannot be a user's, and for more than one."""
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
            "what the proxy sends is not valid as the name of a user; have it send the user's name"
        ) from None


def passed_on(request: HTTPConnection) -> bool:
    """Return whether the request has a header that proxies add."""
    return any(name in request.headers for name in _PASSED_ON)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
