"""Program stages: a worker starts a program of any language, one attempt at a time.

It is started from an argument list in the job's folder, in a session of its own, without input. Its parameters are JSON
in the file that ``SPINNEY_PARAMS`` names, plain ones up to 4 kB also in ``SPINNEY_PARAM_<NAME>``, and it may write the
stage's result as JSON into the file that ``SPINNEY_RESULT`` names. Its exit code is its outcome: 0 ok, 75 defer
(EX_TEMPFAIL of sysexits.h), anything else an error, unless the stage's own table says otherwise."""

import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from spinney.define.job import Job
from spinney.define.params.environment import same_variable, variable
from spinney.define.params.redaction import REDACT_NOTHING, Redactor
from spinney.files import trees
from spinney.model.attempts.signals import Defer, Fail, Finish, Hold, NotApplicable, Warn
from spinney.model.errors import SpinneyError
from spinney.model.outcomes import Outcome
from spinney.model.types import StageSpec
from spinney.model.values.paths import OWN
from spinney.node.worker.failure_frames import SUFFIX
from spinney.node.worker.result_rows import RESULT_BYTES, BadResult
from spinney.node.workers.termination import killed_text, signal_name
from spinney.postmortem.programs import SECRETS, VARIABLE
from spinney.tracing import current
from spinney.tracing.traceparents import VARIABLE as TRACE_VARIABLE

_PARAMS, _RESULT = "{}.params.json", "{}.result.json"
"""The names of the two files, for ``<stage>.<fence>``. Both are in the engine's own directory of the job's
folder."""
_SECRETS = "{}.secrets.params.json"
"""The name of a third file, with what the frames of the program must not show. No user reads it (``job_folder``)."""
_UNREADABLE = "the result file of the program {}; have it write JSON into the file that SPINNEY_RESULT names"
_PLAIN_BYTES = 4096
"""A longer parameter is only in the file: environments are limited, and one that is too large keeps the
program from starting."""
_EXIT_CODES: Mapping[int, str] = {0: Outcome.OK, 75: Outcome.DEFER}
"""What exit codes mean where the stage's own table has no entry; all others are errors."""


class ProgramFailed(SpinneyError):
    """A program ended with a code that means an error; its output says why."""


class CannotStart(SpinneyError):
    """A program cannot be started; install it, or correct its name or permissions."""


class ProgramRunner:
    """Runs one program stage; it is called like the runner of a function's stage."""

    def __init__(
        self,
        spec: StageSpec,
        pass_fds: Sequence[int],
        redactor: Callable[[str], Redactor] = lambda params: REDACT_NOTHING,
        *,
        keeps_frames: bool = True,
    ) -> None:
        """``pass_fds``: descriptors that the program inherits (the node's lock file). ``redactor`` returns what hides
        the secrets of a job with these parameters. ``keeps_frames``: whether the program may keep its frames."""
        self._spec, self._pass_fds, self._redactor = spec, pass_fds, redactor
        self._keeps_frames = keeps_frames

    def __call__(self, params: str, job: Job) -> Any:
        """Return the stage's result. Raises a Signal or an exception by the exit code."""
        own = job.folder / OWN
        own.mkdir(mode=0o700, exist_ok=True)
        frames = own / f"{job.stage}.{job.fence}.{SUFFIX}"
        for file in (*own.glob(_PARAMS.format("*")), *own.glob(_RESULT.format("*"))):
            _remove(file)  # by an attempt that was killed
        attempt = f"{job.stage}.{job.fence}"
        params_file, result = own / _PARAMS.format(attempt), own / _RESULT.format(attempt)
        secrets_file, redactor = own / _SECRETS.format(attempt), self._redactor(params)
        environment = _environment(job, params, params_file, result)
        for name in (VARIABLE, SECRETS):  # of a stage that has started this node
            environment.pop(name, None)
        params_file.write_bytes(params.encode())
        try:
            # Where all must be hidden, nothing could be said to the program that would hide it.
            keeps_frames = self._keeps_frames and not redactor.hides_all
            if keeps_frames:
                environment[VARIABLE] = str(frames)
            if keeps_frames and redactor is not REDACT_NOTHING:
                secrets_file.write_bytes(orjson.dumps([sorted(redactor.names), redactor.texts]))
                environment[SECRETS] = str(secrets_file)
            return self._meaning(self._run(job, environment), job, result)
        finally:
            for file in (params_file, secrets_file, result):
                _remove(file)

    def _run(self, job: Job, env: Mapping[str, str]) -> int:
        """Start the program, wait for its end, and return its exit code; a negative one is the number of the
        signal that ended it. Raises CannotStart."""
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
            raise CannotStart(_why(self._spec.program[0], job.folder, error)) from error
        try:
            return process.wait()
        except BaseException:
            # The worker is being ended, and the program has got the signal too. Wait during its grace period, so that
            # its parent does not end first.
            process.wait()
            raise

    def _meaning(self, code: int, job: Job, result: Path) -> Any:
        """Return the value of a program that has passed. Raises the signal that its exit code means, and
        ProgramFailed or Fail for an error."""
        name = Path(self._spec.program[0]).name
        if code < 0:
            raise ProgramFailed(f"{name} {killed_text(signal_name(-code))}; see 'spinney logs {job.id}'")
        exit_message = f"{name} exited with code {code}"
        match self._spec.exit_codes.get(code) or _EXIT_CODES.get(code, Outcome.ERROR):
            case Outcome.OK:
                return _value(result)
            case Outcome.WARNING:
                raise Warn(exit_message, value=_value(result))
            case Outcome.FINISH:
                raise Finish(exit_message, value=_value(result))
            case Outcome.NOT_APPLICABLE:
                raise NotApplicable(exit_message)
            case Outcome.DEFER:
                raise Defer(message=exit_message)
            case Outcome.HOLD:
                raise Hold(exit_message)
        raise Fail(f"{exit_message}; see 'spinney logs {job.id}'", code=code or None)


def _environment(job: Job, params: str, params_file: Path, result: Path) -> dict[str, str]:
    """Return the program's environment: that of the worker, the short parameters, and what ``SPINNEY_…``
    variables say of the attempt."""
    return {
        **os.environ,
        **_plain(orjson.loads(params)),
        "SPINNEY_PARAMS": str(params_file),
        "SPINNEY_RESULT": str(result),
        "SPINNEY_JOB": str(job.id),
        "SPINNEY_TYPE": job.type,
        "SPINNEY_STAGE": job.stage,
        "SPINNEY_ATTEMPT": str(job.attempt),
        "SPINNEY_FENCE": str(job.fence),
        **_trace(),
    }


def _trace() -> dict[str, str]:
    """Return the variable by which the program joins the trace of its job, where there is one."""
    trace = current.traceparent()
    return {} if trace is None else {TRACE_VARIABLE: trace}


def _plain(params: Mapping[str, Any]) -> dict[str, str]:
    """Return the parameters that an environment can hold: not null, no lists or objects, short, no NUL.

    Raises Fail when two of them have the same variable, which is possible when a type's schema allows any parameters.
    """
    same = same_variable(params)
    if same is not None:
        raise Fail(f"{same}; rename one of them and submit again", retryable=False)
    variables = {}
    for name, value in params.items():
        if value is None or isinstance(value, list | dict):
            continue
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
        if len(text.encode()) <= _PLAIN_BYTES and "\0" not in text:
            variables[variable(name)] = text
    return variables


def _value(result: Path) -> Any:
    """Return the value in the result file; None where the program has written none, or only blanks. Raises
    BadResult for one that is too long or no JSON."""
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
    """Return the result file, at most one byte more than allowed; None when there is none. The program may have put
    anything there: only a plain file is accepted, and nothing is waited for."""
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


def _remove(path: Path) -> None:
    """Remove a file, or a directory that the program has put in its place."""
    try:
        path.unlink(missing_ok=True)
    except IsADirectoryError:
        with suppress(OSError):
            trees.remove(path)


def _why(program: str, folder: Path, error: OSError) -> str:
    """Return why a program cannot be started in its job's folder, and what to do."""
    if isinstance(error, FileNotFoundError):
        if shutil.which(folder / program if "/" in program else program):
            return (
                f"the program {program!r} cannot be started: the interpreter that its first line names, or the loader "
                "of a binary that was built for another system, is not on this node; install it, or correct that line "
                "(one that ends as in files of Windows names no interpreter)"
            )
        return f"there is no program {program!r} on this node; install it, or give its full path"
    if isinstance(error, PermissionError):
        return f"the program {program!r} may not be executed; fix its permissions (chmod +x)"
    return f"the program {program!r} cannot be started: {error.strerror or error}; fix it or its first line"
