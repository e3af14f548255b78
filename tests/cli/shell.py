"""A command line in a folder of its own, as a user has it."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from new_store import new_store
from spinney.app.application import Spinney
from spinney.app.loader import load_app
from spinney.cli import main
from spinney.folders import folders
from spinney.store.parts import Store
from spinney.store.sql import open_store

JOBS = """
import sys
import time
from pathlib import Path

from spinney import Fail, Job, Spinney

app = Spinney()

@app.job
def double(n: int, name: str = "") -> int:
    return 2 * n

@app.job
def tell(text: str) -> None:
    print(text)
    print("to stderr", file=sys.stderr)

@app.job
def unheard(job: Job) -> None:
    (job.folder / ".spinney").write_text("in the way of the files that take its output")
    print("nobody reads this")

@app.job
def fragile(flag: Path) -> str:
    if not flag.exists():
        raise ValueError("the flag is not up")
    return "mended"

@app.job
def until(flag: Path, job: Job) -> None:
    print("started", flush=True)
    while not flag.exists():
        job.check_cancelled()
        time.sleep(0.01)
    print("done", flush=True)

pipeline = app.pipeline("steps")

@pipeline.stage
def first(flag: Path) -> int:
    return 1

@pipeline.stage
def second(job: Job, flag: Path) -> int:
    if not flag.exists():
        raise Fail("no flag", retryable=False)
    return job.results["first"] + 1

@app.job
def parent(n: int, job: Job) -> None:
    job.spawn_many(double, [{"n": i} for i in range(n)])

app.program("missing", ["no-such-program-anywhere"])
"""


_SHOWN = {"COLUMNS": "200", "TERM": "dumb"}


def _is_own(variable: str) -> bool:
    """Return whether a variable is one of Spinney or its bridges, which a developer may have set."""
    return variable.startswith(("SPINNEY_", "MERRITT_", "DISBATCH_"))


def _ended(words: tuple[str, ...], code: int, out: str, err: str) -> "subprocess.CompletedProcess[str]":
    """Return what a command printed. An internal error, whose sentence may have the text that a test looks for, fails
    the test, with the traceback from the file that the command has left."""
    _, has_file, rest = err.partition("; the traceback is in ")
    if has_file:
        file = Path(rest.rpartition(", please report it")[0])
        text = file.read_text()
        file.unlink()
        pytest.fail(text)
    return subprocess.CompletedProcess(words, code, out, err)


@dataclass(frozen=True)
class Shell:
    """A folder, and ``spinney`` in it."""

    folder: Path

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """A process of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "spinney", *words],
            cwd=self.folder,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment(),
        )

    def first_two_lines(self, *words: str) -> list[str]:
        """The first two lines that a command prints, which is then killed because it does not end by itself."""
        process = self.start(*words)
        try:
            assert process.stdout is not None
            return [process.stdout.readline(), process.stdout.readline()]
        finally:
            process.kill()
            process.communicate()

    def run(self, *words: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        """A process of its own, to its end."""
        process = self.start(*words)
        out, err = process.communicate(stdin, timeout=60)
        return _ended(words, process.returncode, out, err)

    def call(self, *words: str, **more: str) -> "subprocess.CompletedProcess[str]":
        """The same without the half second that starting Python takes: all that ``main`` does, but in
        this process."""
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
        with (
            pytest.MonkeyPatch.context() as patch,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            patch.chdir(self.folder)
            for name in list(filter(_is_own, os.environ)):
                patch.delenv(name)
            for name, value in (_SHOWN | more).items():
                patch.setenv(name, value)
            code = main.run(list(words))
        texts = [stream.buffer.getvalue().decode() for stream in (out, err)]
        return _ended(words, code, *texts)

    def submit_lines(self, lines: str, type_: str, *words: str) -> "subprocess.CompletedProcess[str]":
        """Jobs of a file, in this process."""
        file = self.folder / "submitted.jsonl"
        file.write_text(lines)
        return self.call("submit", type_, "--jobs", str(file), *words)

    def ok(self, *words: str, **more: str) -> str:
        """What it printed; the command must succeed."""
        result = self.call(*words, **more)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def listed(self, *words: str, **more: str) -> list[Any]:
        """The values that a list printed with ``--json``: one a line."""
        return [json.loads(line) for line in self.ok(*words, "--json", **more).splitlines()]

    def refused(self, code: int, *words: str, **more: str) -> str:
        """The sentence on stderr; the command must end with that code, one sentence and no traceback."""
        result = self.call(*words, **more)
        assert result.returncode == code, (result.returncode, result.stdout, result.stderr)
        sentence = result.stderr
        assert sentence.startswith("spinney: "), sentence
        assert sentence.count("\n") == 1, sentence
        assert "Traceback" not in sentence
        return sentence

    def environment(self, **more: str) -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if not _is_own(name)} | _SHOWN | more


def jobs_app(folder: Path) -> Spinney:
    """The application of ``jobs.py`` in that folder, loaded afresh."""
    sys.modules.pop("jobs", None)
    sys.path.insert(0, str(folder))
    try:
        return load_app("jobs:app")
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("jobs", None)


def furnish(folder: Path) -> Shell:
    """Make a store in ``folder`` that knows the types of ``jobs.py``; what ``init`` and a node do."""
    (folder / "jobs.py").write_text(JOBS)
    new_store(folder / "spinney.db", _declare)
    folders.write_token(folder / "spinney.folders", _folder_token())
    return Shell(folder)


def _declare(store: Store) -> None:
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "jobs.py").write_text(JOBS)
        app = jobs_app(Path(place))
    store.register([t.spec for t in app.types.values()], app.queues)


@cache
def _folder_token() -> str:
    """Of all stores that are made of the same."""
    with (
        tempfile.TemporaryDirectory() as place,
        closing(open_store(new_store(Path(place) / "spinney.db"))) as store,
    ):
        return store.facts()["folder_token"]
