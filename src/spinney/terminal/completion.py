"""What a shell offers for the value of an option or argument: names that the store knows.

Names come from users, and shells and their scripts evaluate what they are given. So only words are offered that mean
themselves in every shell, written as they are; others have to be typed. Nothing is offered through a server, since a
shell does not wait for one.
"""

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import typer

from spinney.model.errors import SpinneyError
from spinney.model.states import SETTLED, State

Offered = Callable[[typer.Context, str], list[str]]

_PLAIN = re.compile(r"\w[\w.:@%+=,/-]*")
"""Letters, digits and signs that mean nothing to bash, zsh or fish; no option and no expansion begins so."""


def states(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the states in which jobs can be for the command on the line."""
    from spinney.model.operators.bulk_orders import ALLOWED_STATES, Verb

    possible = {verb.value: ALLOWED_STATES[verb] for verb in Verb} | {"keep": SETTLED}
    return _fitting(possible.get(ctx.command.name or "", frozenset(State)), incomplete)


def stages(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the stages of the job type on the line, or of all types if the line names none."""
    return _names_of(ctx, incomplete, "stage", type=_option_value(ctx, "type"))


def queues(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the queues that the store knows."""
    from spinney.model.types import DEFAULT_QUEUE

    return _names_of(ctx, incomplete, "queue", default=DEFAULT_QUEUE)


def lock_owners(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the numbers of the jobs that have the lock on the line."""
    return _names_of(ctx, incomplete, "lock's owner", lock=_option_value(ctx, "name"))


def _of(kind: str) -> Offered:
    """Return a function for ``autocompletion=`` that offers the names of this kind, one of
    ``store.completion_names``."""

    def offered(ctx: typer.Context, incomplete: str) -> list[str]:
        return _names_of(ctx, incomplete, kind)

    return offered


def _words(*words: str) -> Offered:
    """Return a function for ``autocompletion=`` that offers these words."""

    def offered(ctx: typer.Context, incomplete: str) -> list[str]:
        return _fitting(words, incomplete)

    return offered


periods = _words("forever", "declared")
"""Offers the periods of ``keep`` that are words."""
limits = _words("none", "declared")
"""Offers the limits of ``queue`` that are words."""
of_any_node = _words("any", "declared")
"""Offers what ``queue --nodes`` takes."""
types = _of("type")
collections = _of("collection")
submitters = _of("submitter")
nodes = _of("node")
nodes_there = _of("node that has not left")
hosts = _of("host with folders")
schedules = _of("schedule")
active_schedules = _of("schedule that goes on")
paused_schedules = _of("schedule that rests")
inboxes = _of("inbox")
locks = _of("lock")
holds = _of("hold")
users = _of("user")
webhooks = _of("webhook")
failures = _of("failure")


def _names_of(ctx: typer.Context, incomplete: str, kind: str, **criteria: str | None) -> list[str]:
    """Return the names of this kind that the store knows and that begin with ``incomplete``; none through a
    server, and none where the store cannot be read, because there is no place for an error."""
    from spinney.config import settings
    from spinney.store.completion_names import names
    from spinney.terminal import endpoint

    try:
        if endpoint.server(_option_value(ctx, "store")) is not None:
            return []  # a shell does not wait for a server
        config = settings(_option_value(ctx, "store"), environment=os.environ, directory=Path.cwd())
        return _fitting(names(config.store, kind, incomplete, **criteria), incomplete)
    except (SpinneyError, OSError):
        return []


def _fitting(words: Iterable[str], incomplete: str) -> list[str]:
    """Return the words that begin with ``incomplete`` and mean themselves in every shell, sorted."""
    return sorted({str(word) for word in words if word.startswith(incomplete) and _PLAIN.fullmatch(word)})


def _option_value(ctx: typer.Context, option: str) -> str | None:
    """Return the value of an option that stands before the word that is completed; None: it has none."""
    value = ctx.params.get(option)
    return value if isinstance(value, str) else None
