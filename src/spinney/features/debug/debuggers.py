"""The debugger of a stage: pdb of the standard library, or another module with the same functions."""

import inspect
import os
import pdb
from collections.abc import Callable
from types import FrameType, ModuleType, TracebackType
from typing import Any

from spinney.host.imports import import_by_name
from spinney.model.errors import UsageError

PDB = "pdb"
"""The name of the debugger that needs no import."""


class Debugger:
    """Opens at an exception, at ``breakpoint()`` in the user's code, and on request at a function's first
    line.

    Creating one sets ``PYTHONBREAKPOINT`` for this process and what it starts, by which ``breakpoint()``
    opens the same debugger (PEP 553).
    """

    def __init__(self, name: str) -> None:
        """Load a module with ``post_mortem``, ``runcall`` and ``set_trace``, by its ``name``. Raises
        UsageError for another."""
        self._module = pdb if name == PDB else _imported(name)
        os.environ["PYTHONBREAKPOINT"] = f"{name}.set_trace"

    def step_into(self, function: Callable[..., Any] | None, call: Callable[[], Any]) -> Any:
        """Call ``call``, stop at the first line of ``function``, and return what ``call`` returns.

        Only pdb can wait for the function; another debugger stops where it does by itself: at the first line
        that it sees. ``function`` None: the stage is a program, and the debugger stops in what starts it. Raises
        BdbQuit when the debugger is left before the end.
        """
        raised: list[BaseException] = []

        def watched() -> Any:
            try:
                return call()
            # ``runcall`` takes BdbQuit for the end of the call, and adds its own frames to the others.
            except BaseException as error:  # noqa: BLE001
                raised.append(error)

        if self._module is not pdb or function is None:
            value = self._module.runcall(watched)
        else:
            value = _FunctionDebugger(inspect.unwrap(function)).runcall(watched)
        if raised:
            raise raised[0]
        return value

    def post_mortem(self, traceback: TracebackType | None) -> None:
        """Open at the frame where an exception was raised."""
        self._module.post_mortem(traceback)


class _FunctionDebugger(pdb.Pdb):
    """Lets all code pass until that of one function begins, and then stops as pdb does.

    The stage is called through the engine's runner, whose frames a user does not want to step through.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._code = getattr(function, "__code__", None)
        self._begun = self._code is None

    def user_call(self, frame: FrameType, argument_list: None) -> None:
        """Stop at a call only once the function has begun."""
        if self._begun:
            super().user_call(frame, argument_list)

    def user_line(self, frame: FrameType) -> None:
        """Begin when a line of the function is reached, and stop from then on."""
        self._begun = self._begun or frame.f_code is self._code
        if self._begun:
            super().user_line(frame)

    def user_return(self, frame: FrameType, return_value: Any) -> None:
        """Stop at a return only once the function has begun."""
        if self._begun:
            super().user_return(frame, return_value)

    def user_exception(self, frame: FrameType, exc_info: Any) -> None:
        """Stop at an exception only once the function has begun."""
        if self._begun:
            super().user_exception(frame, exc_info)


def _imported(name: str) -> ModuleType:
    """Return the module of that name. Raises UsageError when it lacks a function of a debugger."""
    module = import_by_name(name)
    missing = [
        function for function in ("post_mortem", "runcall", "set_trace") if not hasattr(module, function)
    ]
    if missing:
        raise UsageError(
            f"the module {name!r} is no debugger: it has no {missing[0]}(); name pdb, ipdb or pudb"
        )
    return module
