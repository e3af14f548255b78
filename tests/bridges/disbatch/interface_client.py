"""A command interface without a socket, and a client of it."""

from collections.abc import Mapping
from typing import Any

import httpx

from spinney.bridges.disbatch.database import Database
from spinney.bridges.disbatch.interface.application import make_interface
from spinney.bridges.disbatch.interface.settings import InterfaceSettings

DEMO = "Disbatch::Plugin::Demo"
Client = httpx.AsyncClient


def client_of(db: Database, *, host: str = "localhost", headers: Any = None, **settings: Any) -> Client:
    """Return a client of an interface with these settings; errors of the server are raised."""
    app = make_interface(db, InterfaceSettings(**{"plugins": (DEMO,), **settings}))
    transport = httpx.ASGITransport(app=app)
    return Client(transport=transport, base_url=f"http://{host}", headers=headers)


async def ask(
    client: Client, method: str, path: str, body: object = None, form: Mapping[str, str] | None = None
) -> Any:
    """Return the status and the content of a reply. Unlike most clients, this one sends GET with a body, too, as the
    command line of the releases does."""
    content: dict[str, Any] = {} if body is None else {"json": body}
    reply = await client.request(method, path, data=form, **content)
    return reply.status_code, reply.json()
