"""What the instrumentation of requests needs of a trace, without OpenTelemetry (``tracing`` has that)."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol


class Span(Protocol):
    """The span of a request in a trace, to be ended with the outcome."""

    def end(self, route: str, status: int, principal: str | None) -> None:
        """End the span: ``route`` is the path with its parameters in braces, ``status`` that of the answer
        (0: there was none), ``principal`` the caller's name."""


Spans = Callable[[str, list[tuple[bytes, bytes]]], AbstractContextManager[Span | None]]
"""Begins the span of a request with this method and these headers; it yields None where there is no tracing."""
