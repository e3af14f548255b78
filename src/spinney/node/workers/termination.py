"""Termination of a process by a signal."""

import os
import signal
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from types import FrameType
from typing import Any, NoReturn, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Terminated(BaseException):
    """Raised in user code by TERM, so that its ``finally`` and ``with`` run."""


def on_term(action: Callable[[], None]) -> None:
    """Call ``action`` in the main thread when this process gets TERM, but not in its forks."""
    own = os.getpid()

    def handler(number: int, frame: FrameType | None) -> Any:
        if os.getpid() != own:
            die_of(number)
        action()

    signal.signal(signal.SIGTERM, handler)


def raise_terminated() -> None:
    """Raise Terminated; for ``on_term`` in a worker whose main thread runs user code."""
    raise Terminated


def end_process_on_error(call: Callable[P, R]) -> Callable[P, R]:
    """Return ``call`` such that an exception, which only the worker's own code can raise there, ends this process, with
    the traceback in the worker's log. The supervisor notices a death, but not a thread or task that ended before it
    reported its attempt: that would be shown as running for ever."""

    @wraps(call)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return call(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 - as an unhandled exception of the main thread would
            if not isinstance(error, ConnectionError):  # the supervisor is gone
                with suppress(Exception):
                    os.write(2, traceback.format_exc().encode("utf-8", "backslashreplace"))
            os._exit(1)

    return guarded


def signal_name(number: int) -> str:
    """Return the name of a signal. Python names only the first and the last real-time signal: others are ``signal 40``,
    because whoever reports a death must not fail on its cause."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def killed_text(signal_name: str) -> str:
    """Return what became of a process that this signal ended, in words that follow its name."""
    hint = " (if memory ran out, 'dmesg' says so)" if signal_name == "SIGKILL" else ""
    return f"was killed by {signal_name}{hint}"


def die_of(number: int) -> NoReturn:
    """End this process by this signal, so that its parent sees the cause."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)
