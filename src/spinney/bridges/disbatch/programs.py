"""Programs as plugins, after the contract of release 4.4.

    app = Spinney()
    programs.add_to(app)

A program of the kind ``default`` is called with ``--task FILE --config FILE``, one of the kind ``nomongo`` without the
latter. FILE is ``ID.json`` with the task's document; the program writes ``ID-response.json`` beside it: an object with
``status``, ``stdout`` and ``stderr``. It exits with 0 also when the task has failed. A status of 1 with another exit
code is 2; ``cmdExit`` is the code, or -1 after a signal, -3 when it could not be started."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson

from spinney import Job, Spinney
from spinney.bridges.disbatch.settings import PROGRAM_TYPE

app = Spinney()
FAILED = 2
"""The status of a task whose program did not do its work."""
_NUMBER = re.compile("-?[0-9]{1,18}")
_STATUS_MOST = 2**63 - 1


def run(
    job: Job, program: str, kind: str, task: str, config: str = "", timeout: float = 0.0
) -> dict[str, Any]:
    """Run a program for a task, and return its answer: a status, output, and how the program ended
    (``cmdExit``, ``cmdErr``).

    ``program``: its path. ``kind``: ``default`` or ``nomongo``. ``task``: the document as JSON. ``config``:
    the path of the configuration, for ``default``. ``timeout``: seconds until it is killed, with what it has
    started; 0: never. An answer that it has written until then counts. Whatever goes wrong with the program
    is an answer, too, so that its task is not run twice."""
    number = orjson.loads(task)["_id"]["$oid"]
    file, response = job.folder / f"{number}.json", job.folder / f"{number}-response.json"
    file.write_text(task, encoding="utf-8")
    response.unlink(missing_ok=True)
    words = [program, "--task", str(file), *(["--config", config] if kind == "default" else [])]
    try:
        # A session of its own: what the program has started is killed with it.
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, cwd=job.folder, start_new_session=True)
    except OSError as error:
        why = str(error)
        return {"status": FAILED, "stdout": "Unable to start", "stderr": why, "cmdExit": -3, "cmdErr": why}
    why = ""
    try:
        code = process.wait(timeout or None)
    except subprocess.TimeoutExpired:
        why = f"{program} was killed after its timeout of {timeout:g} s"
        os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
    answer, fault = _answer(response)
    exited: dict[str, Any] = {"cmdExit": code if code >= 0 else -1}
    if code < 0:
        exited |= {"cmdErr": why or f"signal {-code}"}
    if answer is None and why:
        return {"status": FAILED, "stdout": "Unable to complete", "stderr": why, **exited}
    if answer is None:
        reason = f"{program} {fault} (exit code {code})"
        return {"status": FAILED, "stderr": reason, **exited}
    for name, stream in (("stdout", sys.stdout), ("stderr", sys.stderr)):  # a result has 64 KiB at most
        stream.write(answer.pop(name))
    return {**answer, "status": FAILED if code and answer["status"] == 1 else answer["status"], **exited}


def _answer(file: Path) -> tuple[dict[str, Any] | None, str]:
    """Return a program's answer with its output as text; or None, and what the program has done wrong."""
    try:
        answer = json.loads(file.read_bytes().decode("utf-8", "replace"))
    except OSError:
        return None, f"did not write {file.name}, its answer"
    except (ValueError, RecursionError) as error:
        return None, f"wrote no JSON into {file.name}: {error}"
    status = answer.get("status") if isinstance(answer, dict) else None
    if isinstance(status, str) and _NUMBER.fullmatch(status):
        status = int(status)
    if not isinstance(status, int) or abs(status) > _STATUS_MOST:
        return None, f"wrote no object with a number as its status into {file.name}"
    return {"status": status} | {name: _text(answer.get(name)) for name in ("stdout", "stderr")}, ""


def _text(output: Any) -> str:
    """Return what a program gave as output: text as it is, nothing for null, and all else as JSON. Characters
    that UTF-8 does not have become ``?``."""
    if output is None:
        return ""
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    return text.encode(errors="replace").decode()


def add_to(application: Spinney) -> None:
    """Add the job type that runs programs to an application."""
    application.job(name=PROGRAM_TYPE, description="Run a program for a Disbatch task", on_lost="orphan")(run)


add_to(app)
