"""Ctrl-C, at whatever moment it comes: the command ends with 130, and without a traceback.

A ``KeyboardInterrupt`` can only be caught while a command runs. While modules are loaded before that, and
while the interpreter ends, it would become a traceback; there is nothing to put back then, so the process
ends at once. This module is loaded before anything else, and loads little.

Python drops exceptions that are raised in finalizers and in ``sys.unraisablehook``. An interrupt that falls
there would be lost, and the user would press the keys again in vain: a timer then repeats it a millisecond
later.
"""

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

INTERRUPTED = 130
"""The exit code, as shells have it for a program that ended by SIGINT: 128 and the number of the signal."""
_AGAIN_S = 0.001
"""How soon an interrupt that Python dropped is raised again, in seconds."""


class Interrupts:
    """What SIGINT does in this process. A command runs within ``with interrupts:``, where the signal raises
    KeyboardInterrupt; outside of that it ends the process at once with 130."""

    def __init__(self) -> None:
        self._raised = False
        self.received = False
        """One has come while the command ran. A library may have made another error of it."""

    def take_over(self) -> None:
        """Decide from now on what SIGINT does; one that is ignored (``nohup``, a script's ``&``) stays ignored."""
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            return
        signal.signal(signal.SIGINT, self._interrupt)
        signal.signal(signal.SIGALRM, self._interrupt)
        sys.unraisablehook = self._unraisable

    def __enter__(self) -> None:
        self._raised = True

    def __exit__(self, *_: object) -> None:
        self._raised = False

    def _interrupt(self, number: int, frame: "FrameType | None") -> None:
        """Handle SIGINT, or the SIGALRM that repeats it: raise KeyboardInterrupt while a command runs, else
        end the process."""
        if not self._raised:
            os._exit(INTERRUPTED)
        self.received = True
        if self._is_in_hook(frame):
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
        else:
            raise KeyboardInterrupt

    def _unraisable(self, lost: "sys.UnraisableHookArgs") -> None:
        """Have KeyboardInterrupt raised once more, outside of the finalizer in which Python has dropped it; report any
        other lost exception as Python does."""
        if isinstance(lost.exc_value, KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
        else:
            sys.__unraisablehook__(lost)

    def _is_in_hook(self, frame: "FrameType | None") -> bool:
        """Return whether ``_unraisable`` is running below this frame: Python drops what is raised there for good."""
        while frame is not None and frame.f_code is not Interrupts._unraisable.__code__:
            frame = frame.f_back
        return frame is not None


interrupts = Interrupts()
"""The handler of this process; ``spinney.cli.main`` installs it before anything else is imported."""
