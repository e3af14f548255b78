"""Which server a command asks, if it asks one: ``--server`` and its token, or the environment.

Of the places that are named the more exact counts: an option before a variable, and of two variables the server's.
"""

import os
from contextvars import ContextVar
from dataclasses import dataclass

from spinney.model.errors import UsageError
from spinney.terminal import applications
from spinney.terminal.command_index import COMMAND_MODULES, LOCAL_COMMANDS

URL_VARIABLE, TOKEN_VARIABLE, FILE_VARIABLE = "SPINNEY_SERVER", "SPINNEY_TOKEN", "SPINNEY_TOKEN_FILE"
OPTIONS = ("--server", "--token-file")
"""They stand before the command, each with a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A server, and where the token is with which it is asked."""

    url: str
    token_file: str | None
    named: bool
    """By an option, not by a variable."""


_ENDPOINT: ContextVar[Endpoint | None] = ContextVar("endpoint", default=None)


def choose(url: str | None, token_file: str | None, command: str | None) -> None:
    """What the command that follows goes by. Raises UsageError for a command that no server does."""
    endpoint_url = url or os.environ.get(URL_VARIABLE) or None
    if endpoint_url is None:
        if token_file is not None:
            raise UsageError("--token-file needs a server; name it with --server URL")
        _ENDPOINT.set(None)
        return
    endpoint = Endpoint(
        url=endpoint_url,
        token_file=token_file or os.environ.get(FILE_VARIABLE) or None,
        named=url is not None,
    )
    if command is not None and (
        command in LOCAL_COMMANDS or not (command in COMMAND_MODULES or applications.is_served(command))
    ):
        raise UsageError(
            f"'spinney {command}' works directly on a store, not through a server; {_without(endpoint)}"
        )
    _ENDPOINT.set(endpoint)


def server(store: str | None) -> Endpoint | None:
    """The server to ask; None: the store at hand is meant, which ``store`` may name. Raises UsageError where both are
    named."""
    endpoint = _ENDPOINT.get()
    if endpoint is None or store is None:
        return endpoint
    if endpoint.named:
        raise UsageError("--server and --store exclude each other; give only one of them")
    return None


def require_local(store: str | None) -> None:
    """Raise UsageError where a server is to be asked."""
    endpoint = server(store)
    if endpoint is not None:
        raise UsageError(
            f"this command works directly on a store, not through a server; {_without(endpoint)}"
        )


def _without(endpoint: Endpoint) -> str:
    if endpoint.named:
        return "leave out --server, on a host that has the store"
    return f"unset {URL_VARIABLE}, on a host that has the store"


def require_not_internal(internal: bool) -> None:
    """Raise UsageError for ``--internal``, which a server does for nobody."""
    if internal:
        raise UsageError(
            "--internal works directly on a store, not through a server, which accepts no jobs of "
            "internal types; leave it out"
        )
