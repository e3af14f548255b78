"""The ingest service, on a node that dies where a test says so.

``INGEST_DEATHS`` is a folder. While a file ``TYPE.STAGE.begun`` or ``TYPE.STAGE.ended`` is in it, the first attempt
that comes to that point removes it and kills its node: guard, supervisor, all workers. The former are stopped before
they are killed, so that it is as if the power went. *begun*: the stage before is recorded, and nothing of this one is
done. *ended*: all of it is done, and nothing is recorded. At ``TYPE.STAGE.killed`` the worker alone is killed when the
stage begins, as by a system that runs out of memory.
"""

import functools
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from spinney.apps.ingest import app

__all__ = ["app"]


def _mortal(point: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def stage(*args: Any, **kwargs: Any) -> Any:
        _die_at(f"{point}.begun")
        _die_at(f"{point}.killed", lambda: os.kill(os.getpid(), signal.SIGKILL))
        try:
            return function(*args, **kwargs)
        finally:
            _die_at(f"{point}.ended")

    return stage


def _die() -> None:
    me = psutil.Process()
    supervisor = me.parent()
    assert supervisor is not None
    guard = supervisor.parent()
    assert guard is not None
    for process in (guard, supervisor):
        process.suspend()
    workers = [process for process in supervisor.children(recursive=True) if process.pid != me.pid]
    # The supervisor last but me: with it I may be gone.
    for process in (*workers, guard, supervisor, me):
        with suppress(psutil.NoSuchProcess):
            process.kill()


def _die_at(point: str, die: Callable[[], None] = _die) -> None:
    with suppress(FileNotFoundError):
        Path(os.environ["INGEST_DEATHS"], point).unlink()
        die()


for _kind in app.types.values():
    for _name, _stage in _kind._stages.items():
        assert _stage.function is not None
        _kind._stages[_name] = replace(_stage, function=_mortal(f"{_kind.name}.{_name}", _stage.function))
