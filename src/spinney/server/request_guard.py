"""Checks before every route: the Host is the server's, the address is unambiguous, bodies are bounded, pages protected.

The Host is checked on loopback, too: else any web page in a browser on this machine could reach the server under a host
name of its own that resolves to this address (DNS rebinding).

Answers are not cached (``no-store``) unless they have another header, as files with a digest in their address do. An
unexpected error in the server ends here: it is logged once, and its answer has the same headers as all others."""

import logging
import re
from contextlib import ExitStack
from ipaddress import ip_address
from urllib.parse import unquote_to_bytes, urlsplit

from fastapi import FastAPI, Request
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spinney.server.connections import CLOSE
from spinney.web.long_requests.bodies import KEY, LONG_S, PLAIN, Body, BodyRefused
from spinney.web.long_requests.long_responses import ResponseAborted
from spinney.web.long_requests.quotas import QUOTA_STACK, Quotas
from spinney.web.problems import of_error, of_status
from spinney.web.settings import ServerSettings

log = logging.getLogger(__name__)

HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        b"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"cache-control", b"no-store"),
)
"""Headers of every answer that does not set them itself."""
ONLY_HTTPS = (b"strict-transport-security", b"max-age=31536000")
_CLOSE = {"Connection": "close"}
_SECURE = re.compile(rb";\s*secure\s*(;|$)", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BROKEN = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_ENCODED = "write it percent-encoded, in UTF-8"
_NO_HOST = re.compile(r"[@/\\?#\s]")


def add_to(app: FastAPI, settings: ServerSettings, quotas: Quotas, *, long_s: float = LONG_S) -> None:
    """Add the guard in front of all that ``app`` already has. ``long_s``: after so many seconds a body counts as
    long."""
    app.add_middleware(RequestGuard, settings=settings, quotas=quotas, long_s=long_s)


class RequestGuard:
    """ASGI middleware without the layers of BaseHTTPMiddleware, so that event streams pass unbuffered.

    For each request it checks Host and target, puts a ``Body`` and a stack for quotas into the scope, adds
    headers to the answer, and ends what a route leaves open: refused bodies, aborted responses, clients that
    have gone, unexpected errors. The stack is closed in any case."""

    def __init__(self, app: ASGIApp, settings: ServerSettings, quotas: Quotas, long_s: float) -> None:
        self._app, self._settings, self._quotas, self._long_s = app, settings, quotas, long_s
        self._headers = (*HEADERS, ONLY_HTTPS) if settings.https else HEADERS
        self._hosts = {_name(host) for host in (settings.host, *settings.hosts)}
        if settings.url is not None:
            self._hosts.add(urlsplit(settings.url).hostname or "")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = scope[KEY] = self._body(scope, receive)
        begun = False
        quota_stack = scope[QUOTA_STACK] = ExitStack()

        async def guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                if body.failed is not None and not begun:
                    # The route's answer to an incomplete body must not be sent.
                    raise body.failed
                begun = True
                present = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *map(self._secured, message["headers"]),
                    *((n, v) for n, v in self._headers if n not in present),
                ]
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, guarded)
            return
        try:
            await self._app(scope, body.receive, guarded)
        except BodyRefused as unfit:
            if begun:
                return
            body.failed = None
            unfit.answer.headers.update(_CLOSE)
            await unfit.answer(scope, receive, guarded)
        except ResponseAborted as error:
            log.info("an answer at %s breaks off: %s", ascii(scope["path"]), error)
            await _close(scope, receive)
        except ClientDisconnect:
            pass  # in the middle of a body: nobody waits for an answer, and it is no error
        except Exception as error:
            if begun:
                raise  # uvicorn logs it and closes the connection: the answer is incomplete
            # The error is answered here and not in the outermost layer, which would log it again and answer without
            # headers.
            answer = await _error_response(scope, error)
            await answer(scope, receive, guarded)
        finally:
            quota_stack.close()

    def _body(self, scope: Scope, receive: Receive) -> Body:
        """Return the body of a request, bounded by the settings. A route may raise or lower the bound before the body
        is read."""
        headers = dict(scope["headers"])
        announced = headers.get(b"content-length", b"")
        return Body(
            receive,
            announced=int(announced) if announced.isdigit() else None,
            most=self._settings.body_max_bytes,
            patience_s=self._settings.body_patience_s,
            coding=headers.get(b"content-encoding", PLAIN.encode()).decode("latin-1"),
            instance=scope["path"],
            long=_LongBody(scope, self._quotas),
            long_s=self._long_s,
        )

    def _secured(self, header: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
        """Return the header; any cookie gets the attribute ``Secure`` where the session's cookie has it."""
        name, value = header
        if not self._settings.secure or name.lower() != b"set-cookie" or _SECURE.search(value):
            return header
        return name, value + b"; Secure"

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        """Return the response that refuses a request because of its Host or its target; None: it may pass."""
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if len(hosts) > 1:
            return of_status(400, "the request has two Host headers; send one", headers=_CLOSE)
        if not self._serves_host(hosts[0].decode("latin-1") if hosts else "", scope):
            sentence = (
                "this server does not answer for that host; use its own name, or add it to hosts of [server]"
            )
            return of_status(421, sentence, headers=_CLOSE)
        fault = target_fault(scope.get("raw_path") or b"", scope["query_string"])
        return None if fault is None else of_status(400, fault)

    def _serves_host(self, host: str, scope: Scope) -> bool:
        """Return whether the server answers for this Host: its own names and addresses, and loopback. Over the Unix
        socket every Host is accepted, since no page in a browser can open the socket."""
        client = scope.get("client")
        if client is not None and str(client[0]).startswith("uid:"):
            return True  # no page in a browser can open the socket
        name = _name(host)
        if name in self._hosts or name == "localhost":
            return bool(name)
        try:
            address = ip_address(name)
        except ValueError:
            return False
        server = scope.get("server")
        return address.is_loopback or (server is not None and str(server[0]) == str(address))


class _LongBody:
    """Checks a body that takes long: its sender must still have the rights, and it counts against the limits,
    as the sender's and as one from its address."""

    def __init__(self, scope: Scope, quotas: Quotas) -> None:
        self._scope, self._quotas, self._counted = scope, quotas, False

    async def __call__(self) -> None:
        """Check the sender, and count the body once. Raises Unidentified, Forbidden, TooMany."""
        principal_refresh = self._scope.get("state", {}).get("principal_refresh")
        principal = None if principal_refresh is None else await principal_refresh.principal()
        if not self._counted:
            address = self._quotas.address(Request(self._scope))
            place = self._quotas.uploads.place(None if principal is None else principal.name, address)
            self._scope[QUOTA_STACK].enter_context(place)
            self._counted = True


async def _error_response(scope: Scope, error: Exception) -> ASGIApp:
    """Return the answer to an unexpected error, by the application's own handler where it has one."""
    handler = scope["app"].exception_handlers.get(Exception)
    if handler is None:
        return of_error(error, instance=scope["path"])
    response: ASGIApp = await handler(Request(scope), error)
    return response


async def _close(scope: Scope, receive: Receive) -> None:
    """Close the connection; return when it is closed."""
    if CLOSE in scope:
        scope[CLOSE]()
        while (await receive())["type"] != "http.disconnect":
            pass


def _name(host: str) -> str:
    """Return the name of a Host header, without the port and in lower case; empty: it is malformed."""
    if _NO_HOST.search(host):
        return ""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def target_fault(raw_path: bytes, query: bytes) -> str | None:
    """Return why the target of a request is refused, or None. This is checked before anything interprets the target.

    A path with ``..``, however it is encoded, is an attack or a mistake; bytes that are no UTF-8 would silently be
    replaced, and a NUL cannot be stored anywhere."""
    path = _decoded(raw_path)
    if path is None:
        return f"the path of this address is no UTF-8; {_ENCODED}"
    if _CONTROL.search(path):
        return "the path of this address has control characters; leave them out"
    if any(part in (".", "..") for part in path.split("/")):
        return "the path of this address has '.' or '..' as a part; write the whole path"
    query_text = _decoded(query)
    if query_text is None:
        return f"the query of this address is no UTF-8; {_ENCODED}"
    return "the query of this address has a NUL in it; leave it out" if "\0" in query_text else None


def _decoded(raw: bytes) -> str | None:
    """Return what percent-encoded bytes mean as text; None for bytes outside ASCII, broken escapes and invalid
    UTF-8."""
    if not raw.isascii() or _BROKEN.search(raw):
        return None
    try:
        return unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        return None
