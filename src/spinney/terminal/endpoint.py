"""Decides which server a command works through, if any: ``--server`` and its token, or the environment.

The more exact of two places counts: an option before a variable, and of two variables that of the server. So
``--store`` on a line goes to that store although ``SPINNEY_SERVER`` is set, and only two options contradict
each other. The choice is a context variable, because the options stand before the command and many functions
below it ask.
"""

import os
from contextvars import ContextVar
from dataclasses import dataclass

from spinney.model.errors import UsageError
from spinney.terminal import applications
from spinney.terminal.command_index import COMMAND_MODULES, LOCAL_COMMANDS

URL_VARIABLE, TOKEN_VARIABLE, FILE_VARIABLE = "SPINNEY_SERVER", "SPINNEY_TOKEN", "SPINNEY_TOKEN_FILE"
OPTIONS = ("--server", "--token-file")
"""The options that stand before the command, each with a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A server, and where the token for it is."""

    url: str
    token_file: str | None
    """The file that has the token; None: the token is in the environment, or none is needed."""
    named: bool
    """Whether the server was named by an option, and not by a variable."""


_ENDPOINT: ContextVar[Endpoint | None] = ContextVar("endpoint", default=None)
"""The server of the line that is being run; None: a store."""


def choose(url: str | None, token_file: str | None, command: str | None) -> None:
    """Set the server for the command that follows.

    ``url`` and ``token_file`` are the values of the options; None: not given, so that the environment counts.
    ``command``: the command's name, which is refused here if it works on a store alone, or is that of a
    package without routes; None: it is not known yet. Raises UsageError for these, and for a token file
    without a server.
    """
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
    """Return the server to use; None: a store is meant, which ``store`` (the option) may name. Raises UsageError when
    both are named by options."""
    endpoint = _ENDPOINT.get()
    if endpoint is None or store is None:
        return endpoint
    if endpoint.named:
        raise UsageError("--server and --store exclude each other; give only one of them")
    return None


def require_local(store: str | None) -> None:
    """Raise UsageError when the command would work through a server."""
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
    """Raise UsageError for ``--internal``, which no server accepts."""
    if internal:
        raise UsageError(
            "--internal works directly on a store, not through a server, which accepts no jobs of "
            "internal types; leave it out"
        )
