"""What stands before every route: the Host is ours, the address means one thing, bodies are bounded, pages protected.

The Host is checked on loopback, too: else any page in a browser on this machine could reach the server under a name
of its own that leads here (DNS rebinding).

Answers are kept by nobody (``no-store``) unless they say otherwise, as files do that bear a digest in their address.
A fault of the server's own ends here: it is logged once, and its answer is as bare as all others.
"""

import logging
import re
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import ExitStack
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI, Request
from starlette.requests import ClientDisconnect

from spinney.server import request_target
from spinney.server.connections import CLOSE
from spinney.web.bodies import KEY, LONG_S, PLAIN, Body, BodyRefused, Message, Receive
from spinney.web.long_responses import ResponseAborted
from spinney.web.problems import of_error, of_status
from spinney.web.quotas import QUOTA_STACK, Quotas
from spinney.web.settings import ServerSettings

log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

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
"""Of every answer that has not one of its own."""
ONLY_HTTPS = (b"strict-transport-security", b"max-age=31536000")
_CLOSE = {"Connection": "close"}
_SECURE = re.compile(rb";\s*secure\s*(;|$)", re.IGNORECASE)
_NO_HOST = re.compile(r"[@/\\?#\s]")


def add_to(app: FastAPI, settings: ServerSettings, quotas: Quotas, *, long_s: float = LONG_S) -> None:
    """Before all that is in ``app`` already. ``long_s``: a body that has been coming for so long is a long one."""
    app.add_middleware(RequestGuard, settings=settings, quotas=quotas, long_s=long_s)


class RequestGuard:
    """ASGI, without the layers of BaseHTTPMiddleware: event streams pass as they are."""

    def __init__(self, app: App, settings: ServerSettings, quotas: Quotas, long_s: float) -> None:
        self._app, self._settings, self._quotas, self._long_s = app, settings, quotas, long_s
        self._headers = (*HEADERS, ONLY_HTTPS) if settings.https else HEADERS
        self._hosts = {_name(host) for host in (settings.host, *settings.hosts)}
        if settings.url is not None:
            self._hosts.add(urlsplit(settings.url).hostname or "")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        announced = headers.get(b"content-length", b"")
        body = scope[KEY] = Body(
            receive,
            announced=int(announced) if announced.isdigit() else None,
            most=self._settings.body_max_bytes,
            patience_s=self._settings.body_patience_s,
            coding=headers.get(b"content-encoding", PLAIN.encode()).decode("latin-1"),
            instance=scope["path"],
            long=_LongBody(scope, self._quotas),
            long_s=self._long_s,
        )
        begun = False
        quota_stack = scope[QUOTA_STACK] = ExitStack()

        async def guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                if body.failed is not None and not begun:
                    # What the route made of a body that was cut off is nobody's answer.
                    raise body.failed
                begun = True
                there = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *map(self._secured, message["headers"]),
                    *((n, v) for n, v in self._headers if n not in there),
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
            pass  # in the middle of a body: nobody is there to be answered, and it is no fault
        except Exception as error:
            if begun:
                raise  # who serves logs it, and closes the connection: the answer is cut off
            # Here, and not outside of everything: there it would be logged a second time, and its answer unprotected.
            told = scope["app"].exception_handlers.get(Exception)
            answer = (
                of_error(error, instance=scope["path"]) if told is None else await told(Request(scope), error)
            )
            await answer(scope, receive, guarded)
        finally:
            quota_stack.close()

    def _secured(self, header: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
        """Return the header; any cookie gets the attribute ``Secure`` where the session's cookie has it."""
        name, value = header
        if not self._settings.secure or name.lower() != b"set-cookie" or _SECURE.search(value):
            return header
        return name, value + b"; Secure"

    def _refusal(self, scope: Scope) -> App | None:
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if len(hosts) > 1:
            return of_status(400, "the request has two Host headers; send one", headers=_CLOSE)
        if not self._is_ours(hosts[0].decode("latin-1") if hosts else "", scope):
            sentence = (
                "this server does not answer for that host; use its own name, or add it to hosts of [server]"
            )
            return of_status(421, sentence, headers=_CLOSE)
        fault = request_target.fault(scope.get("raw_path") or b"", scope["query_string"])
        return None if fault is None else of_status(400, fault)

    def _is_ours(self, host: str, scope: Scope) -> bool:
        client = scope.get("client")
        if client is not None and str(client[0]).startswith("uid:"):
            return True  # who can open the socket is no page in a browser
        name = _name(host)
        if name in self._hosts or name == "localhost":
            return bool(name)
        try:
            found = ip_address(name)
        except ValueError:
            return False
        server = scope.get("server")
        return found.is_loopback or (server is not None and str(server[0]) == str(found))


class _LongBody:
    """What is done while a body has been coming for long: whoever sends it still may, and has a place among all."""

    def __init__(self, scope: Scope, quotas: Quotas) -> None:
        self._scope, self._quotas, self._counted = scope, quotas, False

    async def __call__(self) -> None:
        """Raises Unidentified, Forbidden, TooMany."""
        principal_refresh = self._scope.get("state", {}).get("principal_refresh")
        principal = None if principal_refresh is None else await principal_refresh.principal()
        if not self._counted:
            address = self._quotas.address(Request(self._scope))
            place = self._quotas.uploads.place(None if principal is None else principal.name, address)
            self._scope[QUOTA_STACK].enter_context(place)
            self._counted = True


async def _close(scope: Scope, receive: Receive) -> None:
    """Close the connection; returns when it is closed."""
    if CLOSE in scope:
        scope[CLOSE]()
        while (await receive())["type"] != "http.disconnect":
            pass


def _name(host: str) -> str:
    """The name of a Host header, without the port and in small letters; empty: it is none."""
    if _NO_HOST.search(host):
        return ""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""
