"""What a job's end means to Disbatch: a status, and output."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from spinney.bridges.disbatch.database import Status
from spinney.bridges.foreign import Report
from spinney.errors import Refused
from spinney.jobs import PASSED, State

NOT_STARTED = "Unable to start"
"""What the releases write to stdout of a task that cannot be started."""
NOT_COMPLETED = "Unable to complete"
"""The same of a task whose plugin raised an error."""
_ENDED: Mapping[State, Status] = {State.CANCELLED: Status.CANCELLED, State.ORPHANED: Status.ORPHANED}


class Result(NamedTuple):
    """The end of a task, as it is written to Disbatch's database."""

    status: int
    stdout: str
    stderr: str
    more: Mapping[str, Any]
    """Other fields that a program gave: ``cmdExit``, ``cmdErr``."""


def result(report: Report) -> Result:
    """Return the end of a task.

    A job that was cancelled, orphaned or deleted has the status of that. One that failed has the code of its error
    where that is greater than 1, else 2. If the job completed, what the last stage returned counts when it is an object
    with ``status``, as a plugin's answer is: a positive number, else the task has failed. Output comes from it, too,
    where it has text there; else it is what the attempts wrote, one after the other."""
    job = report.job
    if job is None:
        return Result(Status.CANCELLED, "", "the job was deleted", {})
    stdout, stderr = (_written(report, stream) for stream in ("stdout", "stderr"))
    if job.state in _ENDED:
        return Result(_ENDED[job.state], stdout, stderr + _line(job.message), {})
    if job.state is not State.COMPLETED:
        code = job.code if isinstance(job.code, int) and job.code > Status.SUCCEEDED else int(Status.FAILED)
        return Result(code, stdout or NOT_COMPLETED, stderr + _line(job.message), {})
    answer = _answer(report)
    if not isinstance(answer, Mapping) or "status" not in answer:
        return Result(Status.SUCCEEDED, stdout, stderr, {})
    status = answer["status"]
    if not isinstance(status, int) or isinstance(status, bool) or not 1 <= status < 2**31:
        return Result(
            Status.FAILED, stdout or NOT_COMPLETED, f"{stderr}the plugin returned the status {status!r}\n", {}
        )
    output = {name: answer[name] for name in ("stdout", "stderr") if isinstance(answer.get(name), str)}
    more: dict[str, Any] = {}
    if isinstance(answer.get("cmdExit"), int):
        more["cmdExit"] = max(-3, min(255, answer["cmdExit"]))
    if isinstance(answer.get("cmdErr"), str):
        more["cmdErr"] = answer["cmdErr"][:1000]
    return Result(status, output.get("stdout", stdout), output.get("stderr", stderr), more)


def _answer(report: Report) -> Any:
    """Return what the last stage returned; None: nothing, whatever earlier stages returned."""
    stages = [each.stage for each in report.attempts if each.outcome in PASSED and not each.superseded]
    return report.results().get(stages[-1]) if stages else None


def _written(report: Report, stream: str) -> str:
    """Return what all attempts wrote to one stream, as text; bytes that are not UTF-8 become U+FFFD."""
    return b"".join(_pieces(report, stream)).decode("utf-8", "replace")


def _pieces(report: Report, stream: str) -> Iterator[bytes]:
    """Yield what the attempts wrote. A sentence stands in the place of what cannot be read, because a folder that stays
    unreadable would hold back this result, and with it all others, for ever."""
    for attempt in report.attempts:
        try:
            yield from report.output(attempt, stream)
        except Refused as error:
            yield f"[output cannot be read: {error}]\n".encode()


def _line(message: str | None) -> str:
    """Return a message as a line; nothing for none."""
    return f"{message}\n" if message else ""
