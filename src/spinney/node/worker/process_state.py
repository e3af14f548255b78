"""Restore process state that an attempt changed, so that the next one does not find it changed.

Standard streams and the working directory are restored after each attempt (``SavedDescriptors``). The rest is umask,
environment with the time zone, resource limits, Python's recursion limit, timers, signal handlers and the signal mask,
and what cannot be restored: user, groups and root directory. Checking all of them after each attempt would take longer
than a small attempt with all its overhead. So the functions by which Python code changes them are replaced by ones that
record the call (``CallRecorder``), and only after such a call everything is compared and restored. An attempt without
such calls costs the test of one flag. Changes by C code are not detected."""

import functools
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

_CALLS: tuple[tuple[ModuleType, tuple[str, ...]], ...] = (
    (os, ("umask", "putenv", "unsetenv")),  # os.environ goes through the last two
    (os, ("setuid", "seteuid", "setreuid", "setresuid", "setgid", "setegid", "setregid", "setresgid")),
    (os, ("setgroups", "initgroups", "chroot")),
    (resource, ("setrlimit", "prlimit")),
    (sys, ("setrecursionlimit",)),
    (signal, ("signal", "pthread_sigmask", "alarm", "setitimer", "set_wakeup_fd")),
)
_LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
_OFF = (0.0, 0.0)
_FILES_MOST = 500
"""How many more open files than at the start count as a leak, whatever the limit is."""


class CallRecorder:
    """Records that one of the functions was called."""

    __slots__ = ("noted", "variables")

    def __init__(self) -> None:
        self.noted = False
        self.variables: set[str] = set()
        """The environment variables that were set or removed, also those of which ``os.environ`` knows nothing."""

    def watch(self) -> None:
        """Replace the functions in their modules. This must happen before user code is imported, which may keep
        references."""
        for module, names in _CALLS:
            for name in names:
                setattr(module, name, self._noting(getattr(module, name)))

    def _noting(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that notes the call and makes it."""

        @functools.wraps(call)
        def noting(*args: Any, **kwargs: Any) -> Any:
            self.noted = True
            result = call(*args, **kwargs)
            if call.__name__ in ("putenv", "unsetenv"):
                self.variables.add(os.fsdecode(args[0]))
            return result

        return noting


class ProcessState:
    """The process state at the creation of this object, after the application was loaded, whose changes stay."""

    def __init__(self, calls: CallRecorder, *, signals: bool) -> None:
        """``signals``: include signals. Then the main thread must create and restore this, and be the only one that
        runs user code; Python lets other threads change no handler."""
        self.calls, self._signals = calls, signals
        self._umask = os.umask(0o077)
        os.umask(self._umask)
        self.environ, self._variables = os.environ, dict(os.environ)
        self._limits = {number: resource.getrlimit(number) for number in _LIMITS}
        self._recursion_limit = sys.getrecursionlimit()
        self._identity = _identity()
        if signals:
            self._handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
            self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
            self._timers = [timer for timer in _TIMERS if signal.getitimer(timer) == _OFF]
            self._wakeup_fd = signal.set_wakeup_fd(-1)
            signal.set_wakeup_fd(self._wakeup_fd, warn_on_full_buffer=False)
        files, (soft, _) = _open_files(), self._limits[resource.RLIMIT_NOFILE]
        self._most_files = files + _FILES_MOST
        if soft != resource.RLIM_INFINITY:
            self._most_files = min(self._most_files, max(files + 1, (files + soft) // 2))
        calls.noted = False
        calls.variables.clear()

    def restore(self) -> bool:
        """Restore the state; return False when that is impossible, and then this process should run no
        further attempt. It is needed when ``changed`` is true, and harmless otherwise."""
        if _identity() != self._identity:
            return False
        try:
            if self._signals:
                self._restore_signals()
            sys.setrecursionlimit(self._recursion_limit)
            os.umask(self._umask)
            self._restore_environment()
            for number, limits in self._limits.items():
                if resource.getrlimit(number) != limits:
                    resource.setrlimit(number, limits)
        except (OSError, ValueError, TypeError):
            return False
        self.calls.noted = False
        return True

    @property
    def changed(self) -> bool:
        """Return whether user code may have changed any of the recorded state."""
        return self.calls.noted or os.environ is not self.environ

    def leaks_files(self) -> bool:
        """Return whether so many files were left open that the limit may soon be reached, or no further one can be
        opened to count them. They are not closed, because a warm worker is meant to keep an application's
        connections."""
        try:
            return _open_files() > self._most_files
        except OSError:
            return True

    def _restore_signals(self) -> None:
        """Restore handlers, mask, wake-up descriptor, and turn off those timers that were off."""
        for timer in self._timers:
            signal.setitimer(timer, 0.0)
        for number, handler in self._handlers.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
        signal.set_wakeup_fd(self._wakeup_fd, warn_on_full_buffer=False)

    def _restore_environment(self) -> None:
        """Restore the variables, and ``os.environ`` itself where an attempt has replaced that object."""
        os.environ = self.environ  # noqa: B003 - the original object, which is cleared of what is new below
        for name in os.environ.keys() - self._variables.keys():
            del os.environ[name]
        # Programs inherit what was changed past os.environ, by os.putenv and os.unsetenv.
        for name in self.calls.variables - self._variables.keys():
            os.unsetenv(name)
        for name, value in self._variables.items():
            if os.environ.get(name) != value or name in self.calls.variables:
                os.environ[name] = value
        if "TZ" in self.calls.variables:
            time.tzset()  # an attempt may have called it, and then local time does not follow the variable by itself
        self.calls.variables.clear()


class SavedDescriptors:
    """File descriptors 0 to 2 and the working directory, which every attempt of a worker finds the same.

    It saves them at its creation. Restoring them always is cheaper than comparing first: four system calls that change
    nothing, together less than two microseconds."""

    def __init__(self) -> None:
        # Copies, which no attempt closes by mistake. O_PATH: a directory need not be readable.
        self._stdin, self._stdout, self._stderr = os.dup(0), os.dup(1), os.dup(2)
        self._directory = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def restore(self) -> bool:
        """Restore them; return False when that is impossible, as when user code has closed the copies."""
        try:
            os.dup2(self._stdin, 0)
            os.dup2(self._stdout, 1)
            os.dup2(self._stderr, 2)
            os.fchdir(self._directory)
        except OSError:
            return False
        return True


def _identity() -> tuple[object, ...]:
    """Return user, groups and root directory of this process."""
    root = os.stat("/")  # noqa: PTH116 - a third of the time
    return os.getresuid(), os.getresgid(), os.getgroups(), root.st_dev, root.st_ino


def _open_files() -> int:
    """Return how many files this process has open."""
    # The size of this directory is its number of entries since Linux 6.2, in a quarter of the time.
    return os.stat("/proc/self/fd").st_size or len(os.listdir("/proc/self/fd"))  # noqa: PTH116, PTH208
