"""Program stages: a program of any language, started by a worker, one attempt at a time.

It is started from an argument list in the job's folder, in a session of its own, without input. It
finds its parameters as JSON in the file that ``SPINNEY_PARAMS`` names, plain ones up to 4 kB also
as ``SPINNEY_PARAM_<NAME>``, and may leave the stage's value as JSON in the file that
``SPINNEY_RESULT`` names. Its exit code is its outcome: 0 ok, 75 defer (EX_TEMPFAIL of sysexits.h),
anything else an error, unless the stage's own table says otherwise.
"""

import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import orjson

from spinney.define.params.environment import same_variable, variable
from spinney.model.attempts.signals import Defer, Fail, Finish, Hold, NotApplicable, Warn
from spinney.model.errors import SpinneyError
from spinney.model.outcomes import Outcome
from spinney.model.types import StageSpec
from spinney.node.worker.result_rows import RESULT_BYTES, BadResult
from spinney.node.worker.sync import OWN

_GIVEN, _RESULT = "{}.params.json", "{}.result.json"
_UNREADABLE = "the result file of the program {}; have it write JSON into the file that SPINNEY_RESULT names"
_PLAIN_BYTES = 4096
_EXIT_CODES: Mapping[int, str] = {0: Outcome.OK, 75: Outcome.DEFER}


class ProgramFailed(SpinneyError):
    """A program ended with a code that means an error; its output says why."""


class CannotStart(SpinneyError):
    """A program cannot be started; install it, or mend its name or permissions."""


class Handle(Protocol):
    """What is needed of ``spinney.define.job.Job``."""

    @property
    def id(self) -> int: ...
    @property
    def type(self) -> str: ...
    @property
    def stage(self) -> str: ...
    @property
    def attempt(self) -> int: ...
    @property
    def fence(self) -> int: ...
    @property
    def folder(self) -> Path: ...


class ProgramRunner:
    """Runs one program stage; called like the runner of a function's stage."""

    def __init__(self, spec: StageSpec, pass_fds: Sequence[int]) -> None:
        """``pass_fds``: descriptors that the program inherits (the node's lock file)."""
        self._spec, self._pass_fds = spec, pass_fds

    def __call__(self, params: str, job: Handle) -> Any:
        """The stage's value. Raises what the exit code means: a Signal, or an exception."""
        own = job.folder / OWN
        own.mkdir(mode=0o700, exist_ok=True)
        for left in (*own.glob(_GIVEN.format("*")), *own.glob(_RESULT.format("*"))):
            _remove(left)  # by an attempt that was killed
        attempt = f"{job.stage}.{job.fence}"
        given, result = own / _GIVEN.format(attempt), own / _RESULT.format(attempt)
        given.write_bytes(params.encode())
        try:
            code = self._run(job, _environment(job, params, given, result))
            return self._meaning(code, job, result)
        finally:
            _remove(given)
            _remove(result)

    def _run(self, job: Handle, env: Mapping[str, str]) -> int:
        try:
            process = subprocess.Popen(
                self._spec.program,
                cwd=job.folder,
                env=env,
                stdin=subprocess.DEVNULL,
                pass_fds=self._pass_fds,
                # Scripts that signal their own group must not hit the worker.
                start_new_session=True,
            )
        except OSError as error:
            raise CannotStart(_why(self._spec.program[0], error)) from error
        try:
            return process.wait()
        except BaseException:
            # The worker is being ended, and the program has been told too. It has its grace: wait,
            # so that it is not left without a parent that knows it.
            process.wait()
            raise

    def _meaning(self, code: int, job: Handle, result: Path) -> Any:
        name = Path(self._spec.program[0]).name
        if code < 0:
            raise ProgramFailed(
                f"{name} was killed by {signal.Signals(-code).name}; see 'spinney logs {job.id}'"
            )
        said = f"{name} exited with code {code}"
        match self._spec.exit_codes.get(code) or _EXIT_CODES.get(code, Outcome.ERROR):
            case Outcome.OK:
                return _value(result)
            case Outcome.WARNING:
                raise Warn(said, value=_value(result))
            case Outcome.FINISH:
                raise Finish(said, value=_value(result))
            case Outcome.NOT_APPLICABLE:
                raise NotApplicable(said)
            case Outcome.DEFER:
                raise Defer(message=said)
            case Outcome.HOLD:
                raise Hold(said)
        raise Fail(f"{said}; see 'spinney logs {job.id}'", code=code or None)


def _environment(job: Handle, params: str, given: Path, result: Path) -> dict[str, str]:
    return {
        **os.environ,
        **_plain(orjson.loads(params)),
        "SPINNEY_PARAMS": str(given),
        "SPINNEY_RESULT": str(result),
        "SPINNEY_JOB": str(job.id),
        "SPINNEY_TYPE": job.type,
        "SPINNEY_STAGE": job.stage,
        "SPINNEY_ATTEMPT": str(job.attempt),
        "SPINNEY_FENCE": str(job.fence),
    }


def _plain(params: Mapping[str, Any]) -> dict[str, str]:
    """Those parameters that an environment can hold: not null, no lists or objects, short, no NUL.

    Raises Fail when two of them mean one variable: what is submitted by the bare schema of a type may have such names.
    """
    same = same_variable(params)
    if same is not None:
        raise Fail(f"{same}; rename one of them and submit again", retryable=False)
    found = {}
    for name, value in params.items():
        if value is None or isinstance(value, list | dict):
            continue
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
        if len(text.encode()) <= _PLAIN_BYTES and "\0" not in text:
            found[variable(name)] = text
    return found


def _value(result: Path) -> Any:
    text = _read(result)
    if text is None:
        return None
    if len(text) > RESULT_BYTES:
        raise BadResult(
            f"the result file of the program is longer than {RESULT_BYTES} bytes; "
            f"leave large things in the job's folder and only name them in the result"
        )
    if not text.strip():
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadResult(
            f"the result file of the program is no JSON ({error}); write one JSON value"
        ) from error


def _read(result: Path) -> bytes | None:
    """What the program left, one byte more than allowed at most; None when it left nothing. It may
    have left anything: whatever is no plain file is refused, without waiting for it."""
    try:
        fd = os.open(result, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadResult(_UNREADABLE.format(f"cannot be opened ({error.strerror})")) from error
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise BadResult(_UNREADABLE.format("is no plain file"))
        return os.read(fd, RESULT_BYTES + 1)
    finally:
        os.close(fd)


def _remove(left: Path) -> None:
    """Whatever the program has made of it."""
    try:
        left.unlink(missing_ok=True)
    except IsADirectoryError:
        shutil.rmtree(left, ignore_errors=True)


def _why(program: str, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"there is no program {program!r} on this node; install it, or give its full path"
    if isinstance(error, PermissionError):
        return f"the program {program!r} may not be executed; mend its permissions (chmod +x)"
    return f"the program {program!r} cannot be started: {error.strerror or error}; mend it or its first line"
