"""Which server a command asks, if it asks one: ``--server`` and its token, or the environment.

Of the places that are named the more exact counts: an option before a variable, and of two variables the server's.
"""

import os
from contextvars import ContextVar
from dataclasses import dataclass

from spinney.cli import applications
from spinney.cli.catalogue import HOMES
from spinney.model.errors import UsageError

URL_VARIABLE, TOKEN_VARIABLE, FILE_VARIABLE = "SPINNEY_SERVER", "SPINNEY_TOKEN", "SPINNEY_TOKEN_FILE"
OPTIONS = ("--server", "--token-file")
"""They stand before the command, each with a value."""
AT_HAND = frozenset({"init", "up", "serve", "node", "rehome", "doctor", "store"})
"""Commands that need the store itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A server, and where the token is with which it is asked."""

    url: str
    token_file: str | None
    named: bool
    """By an option, not by a variable."""


_PLACE: ContextVar[Place | None] = ContextVar("place", default=None)


def choose(url: str | None, token_file: str | None, command: str | None) -> None:
    """What the command that follows goes by. Raises UsageError for a command that no server does."""
    found = url or os.environ.get(URL_VARIABLE) or None
    if found is None:
        if token_file is not None:
            raise UsageError("--token-file is for a server; name it with --server URL")
        _PLACE.set(None)
        return
    place = Place(
        url=found, token_file=token_file or os.environ.get(FILE_VARIABLE) or None, named=url is not None
    )
    if command is not None and (
        command in AT_HAND or not (command in HOMES or applications.is_served(command))
    ):
        raise UsageError(
            f"'spinney {command}' works on a store at hand, not through a server; {_without(place)}"
        )
    _PLACE.set(place)


def server(store: str | None) -> Place | None:
    """The server to ask; None: the store at hand is meant, which ``store`` may name. Raises UsageError where both are
    named."""
    place = _PLACE.get()
    if place is None or store is None:
        return place
    if place.named:
        raise UsageError("--server and --store name two places; give one of them")
    return None


def require_at_hand(store: str | None) -> None:
    """Raise UsageError where a server is to be asked."""
    place = server(store)
    if place is not None:
        raise UsageError(f"this works on a store at hand, not through a server; {_without(place)}")


def _without(place: Place) -> str:
    if place.named:
        return "leave out --server, on a host that has the store"
    return f"unset {URL_VARIABLE}, on a host that has the store"
