"""How a worker is told to end by a signal, and dies of it."""

import os
import signal
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn


class Terminated(BaseException):
    """TERM: raised in the midst of user code, so that its ``finally`` and ``with`` get their turn."""


def on_term(what: Callable[[], None]) -> None:
    """Have ``what`` called in the main thread when this process, and no fork of it, gets TERM."""
    own = os.getpid()

    def handler(number: int, frame: FrameType | None) -> Any:
        if os.getpid() != own:
            die_of(number)
        what()

    signal.signal(signal.SIGTERM, handler)


def raise_terminated() -> None:
    """For ``on_term`` of a worker whose main thread runs user code."""
    raise Terminated


def die_of(number: int) -> NoReturn:
    """End by this signal, so that whoever waits for this process sees why."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)
