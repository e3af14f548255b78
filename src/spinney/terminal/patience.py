"""Waits for a store that stops answering for a while, for commands that look at it again and again.

A client of a server does so by itself (``remote``); here are the same rules for the store itself.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from spinney.model.errors import StoreUnavailable
from spinney.terminal.output import display

if TYPE_CHECKING:
    from spinney.commands import Performs, Returns

T = TypeVar("T")

OUTAGE_LIMIT_S = 60.0
"""For how many seconds a store that has answered before may be away, for example because its database is restarted."""
AGAIN_S = 0.5
"""The pause between two tries to reach the store, in seconds."""


class PatientPerformer:
    """Performs queries, and repeats one while a store that has answered before does not answer.

    Each outage is announced once on stderr. A client of a server waits by itself: what it raises has taken it as long
    as this limit, and is not repeated.
    """

    def __init__(self, performer: "Performs", *, answered: bool = False) -> None:
        """``answered``: whether the store has answered before."""
        self._performer, self._answered = performer, answered
        self.poll_s = performer.poll_s

    def do(self, command: "Returns[T]", *, tell: Callable[[Any], None] | None = None) -> T:
        """Return the answer of a command that may be performed twice. Raises StoreUnavailable when the store has never
        answered or is away for ``OUTAGE_LIMIT_S``, and what the command raises."""
        return self.repeated(lambda: self._performer.do(command, tell=tell))

    def repeated(self, call: Callable[[], T]) -> T:
        """Return what ``call`` returns, which may read from the store without a command; as ``do``."""
        begun_s, announced = time.monotonic(), False
        while True:
            try:
                answer = call()
            except StoreUnavailable as away:
                if not self._answered or time.monotonic() - begun_s >= OUTAGE_LIMIT_S:
                    raise
                if not announced:
                    announced = True
                    typer.echo(f"spinney: {display.safe(str(away))}; waiting for it", err=True)
                time.sleep(AGAIN_S)
            else:
                self._answered = True
                return answer
