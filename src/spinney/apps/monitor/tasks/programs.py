"""Programs as tasks: what they are called, and what they found.

A program runs in a session of its own with the folder above the tasks as its working directory, as the SNIG scripts
expect. Its output is bounded; what it leaves running in that session is killed when it ends, or when its time is over.

It gets the environment of the node without the variables that may hold passwords, and nothing on stdin."""

import errno
import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from spinney.apps.monitor.inventory.model import Service
from spinney.apps.monitor.tasks import tcl_list
from spinney.apps.monitor.tasks.findings import Finding, Unreadable, error, of_output

OUTPUT_MAX = 1 << 20
"""The most bytes that a program may print; it is killed when it prints more."""
IDENTIFY_S = 10.0
"""The time limit of ``identify``."""
UNSPECIFIED = "<unspecified>"
"""What a program gets in the place of a version where a service has none."""
_INTERPRETERS = {".sh": ("/bin/bash",), ".tcl": ("tclsh",), ".py": (sys.executable,)}
_PRIVATE = re.compile(r"SPINNEY_(STORE|\w*(PASSWORD|SECRET|TOKEN)\w*)|PGPASSWORD")
"""The names of variables in which the node may have passwords, which are no business of a task's."""
_LOOK_S = 0.2  # how often it is seen whether a program has ended that keeps its output open


class ProgramFailed(Exception):
    """A program did not end as a task should. ``code`` and the message become the code and the text of an
    error."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


def command_of(file: Path) -> Sequence[str]:
    """Return the argument list that starts a file: as it is where it is executable and names its interpreter
    by ``#!``, or has an ending that is not known; else by the interpreter for its ending. Raises OSError
    where the file cannot be read."""
    with file.open("rb") as opened:
        names_interpreter = opened.read(2) == b"#!" or file.suffix not in _INTERPRETERS
    if names_interpreter and os.access(file, os.X_OK):
        return (str(file),)
    return (*_INTERPRETERS.get(file.suffix, ()), str(file))


def identify(command: Sequence[str], file: Path) -> tuple[str, str]:
    """Return the name and the description by which a program identifies itself; the description is empty
    where it prints none. Anything on stderr counts as a failure. Raises ProgramFailed."""
    with tempfile.TemporaryFile() as errors:
        output = output_of((*command, "identify"), file.parent.parent, IDENTIFY_S, errors=errors.fileno())
        if errors.tell():
            errors.seek(0)
            text = errors.read(200).decode("utf-8", "replace").strip()
            raise ProgramFailed("not_identified", f"identify printed on stderr: {text}")
    try:
        words = tcl_list.parse(output.strip())
    except tcl_list.MalformedList as problem:
        raise ProgramFailed("not_identified", f"identify printed no Tcl list: {problem}") from None
    if not words or len(words) > 2 or not words[0]:
        raise ProgramFailed("not_identified", "identify must print one line: {name} {description}")
    return words[0], words[1] if len(words) == 2 else ""


def arguments_of(service: Service, scratch: Path, data: Path) -> tuple[str, str, str]:
    """Return the arguments with which a program is run for a service: its record with ``|`` between the
    fields, a folder for the time being (``scratch``), and one that stays (``data``)."""
    version = service.version or UNSPECIFIED
    uri = service.uri.replace("|", "%7C")  # which would end the field
    record = f"{service.gid}|{uri}|{service.uuid}|{service.type}|{version}"
    return record, str(scratch), str(data)


def run(command: Sequence[str], file: Path, *, timeout_s: float) -> Finding:
    """Run a program, and return what it found: an error, too, where it failed, was too slow or printed nonsense.
    ``timeout_s``: seconds after which it is killed.

    Raises OSError when it cannot be started for lack of memory or processes, which is no fault of the service.
    """
    try:
        return of_output(output_of(command, file.parent.parent, timeout_s))
    except ProgramFailed as failure:
        return error(failure.code, str(failure))
    except Unreadable as problem:
        return error("unreadable_result", f"the task {file.name} failed: {problem}")


def output_of(
    command: Sequence[str], folder: Path, timeout_s: float, *, errors: int = subprocess.DEVNULL
) -> str:
    """Run a program in a folder, and return what it printed on stdout; bytes that are not UTF-8 become
    U+FFFD. ``errors``: the descriptor for its stderr.

    Raises ProgramFailed when it cannot be started, is too slow (``task_timeout``), prints too much, or ends
    with another exit code than 0; and OSError when the machine has no memory, processes or descriptors for
    it. In each case what it left running is killed."""
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={name: value for name, value in os.environ.items() if not _PRIVATE.fullmatch(name)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
    except OSError as problem:
        if problem.errno in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE):
            raise  # the machine's trouble, and not the task's
        raise ProgramFailed("not_started", f"the task cannot be started: {problem.strerror}") from None
    try:
        output = _read(process, time.monotonic() + timeout_s, timeout_s)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # also what it left running; the session is all its own
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
    if process.returncode:
        raise ProgramFailed("task_error", f"the task failed with {_ending(process.returncode)}")
    return output.decode("utf-8", "replace")


def _read(process: "subprocess.Popen[bytes]", until_s: float, timeout_s: float) -> bytes:
    """Return the output of a program when it has ended. A process that it left behind may keep the pipe open;
    it is not waited for. Raises ProgramFailed at the time ``until_s`` of the monotonic clock."""
    assert process.stdout is not None
    output = bytearray()
    fd = process.stdout.fileno()
    os.set_blocking(fd, False)
    is_open = True
    with selectors.DefaultSelector() as selector:
        selector.register(fd, selectors.EVENT_READ)
        while True:
            ended = process.poll() is not None
            if is_open and (ended or selector.select(min(_LOOK_S, max(0.0, until_s - time.monotonic())))):
                is_open = _take(fd, output, everything=ended)
            elif not ended:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(min(_LOOK_S, max(0.0, until_s - time.monotonic())))
            if ended:
                return bytes(output)
            if time.monotonic() > until_s:
                raise ProgramFailed("task_timeout", f"the task did not end within {timeout_s:g} s")


def _take(fd: int, output: bytearray, *, everything: bool) -> bool:
    """Add what can be read now to the output, all of it or one piece, and return whether more may come.
    Raises ProgramFailed for too much."""
    while True:
        try:
            part = os.read(fd, 65_536)
        except BlockingIOError:
            return True
        if not part:
            return False
        output += part
        if len(output) > OUTPUT_MAX:
            raise ProgramFailed("too_much_output", f"the task printed more than {OUTPUT_MAX:,} bytes")
        if not everything:
            return True


def _ending(code: int) -> str:
    """Return in words how a process has ended, from its return code."""
    if code > 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"
