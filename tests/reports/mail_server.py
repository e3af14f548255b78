"""A real mail server for tests, which misbehaves as it is told."""

import asyncio
import email
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

CUT = "cut"
"""In place of a reply: the connection ends."""


@dataclass
class Received:
    sender: str
    recipients: list[str]
    content: bytes

    @property
    def mail(self) -> EmailMessage:
        message = email.message_from_string(self.content.decode(), policy=policy.default)
        assert isinstance(message, EmailMessage)
        return message


@dataclass
class Behaviour:
    """What it answers, and what it has received."""

    to: dict[str, str] = field(default_factory=dict)
    """By recipient: a reply to RCPT in place of 250."""
    data: list[str] = field(default_factory=list)
    """Replies to the next messages in place of 250, or CUT; the message is kept all the same."""
    sender: str = ""
    """A reply to MAIL in place of 250."""
    received: list[Received] = field(default_factory=list)
    logins: list[tuple[bytes, bytes]] = field(default_factory=list)
    stalls: bool = False
    """It never answers to a message."""

    async def handle_MAIL(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: Any
    ) -> str:
        if self.sender:
            return self.sender
        envelope.mail_from = address
        return "250 OK"

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: Any
    ) -> str:
        reply = self.to.get(address, "")
        if reply == CUT:
            _cut(server)
        if reply:
            return reply
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        content = envelope.content if isinstance(envelope.content, bytes) else b""
        self.received.append(Received(envelope.mail_from or "", list(envelope.rcpt_tos), content))
        if self.stalls:
            await asyncio.Event().wait()
        reply = self.data.pop(0) if self.data else "250 queued as 4711"
        if reply == CUT:
            _cut(server)
        return reply


class Server(Controller):
    """On a port of its own, which it keeps when it comes back."""

    def _trigger_server(self) -> None:
        assert self.server is not None
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


@contextmanager
def mail_server(
    behaviour: Behaviour, *, port: int = 0, tls: ssl.SSLContext | None = None, **more: Any
) -> Iterator[int]:
    """One that listens on 127.0.0.1; gives its port."""

    def login(server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any) -> AuthResult:
        assert isinstance(data, LoginPassword)
        behaviour.logins.append((data.login, data.password))
        return AuthResult(success=data.password == b"right", handled=False)

    if tls is not None:
        more = {"tls_context": tls, "authenticator": login} | more
    server = Server(behaviour, hostname="127.0.0.1", port=port, **more)
    server.start()
    try:
        yield server.port
    finally:
        server.stop()


def free_port() -> int:
    """One where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _cut(server: SMTP) -> None:
    assert server.transport is not None
    server.transport.abort()
