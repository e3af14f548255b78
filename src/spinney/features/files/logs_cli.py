"""The command ``logs``: the output of a job's attempts, also while they run.

With ``--follow`` the command asks again and again what is new, and ends when the job has settled. Whether it
has settled is asked before the output is read, so that the last output is not missed. It goes on after the
store was away for a while.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated

import typer

from spinney.commands import Performs
from spinney.commands.job_queries import ListAttempts, ShowJob
from spinney.features.files.job_files import Files, files_of
from spinney.host.standard_streams import has_reader
from spinney.model.attempts import remarks
from spinney.model.errors import UsageError
from spinney.model.jobs import Attempt
from spinney.model.states import SETTLED
from spinney.terminal.connection import open_commands
from spinney.terminal.options.arguments import JobArgument, RawOption, StoreOption, option
from spinney.terminal.output.display import Content, safe, while_read
from spinney.terminal.patience import PatientPerformer

app = typer.Typer()


@app.command()
def logs(
    job: JobArgument,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Follow the output until the job has settled.")
    ] = False,
    stderr: Annotated[bool, typer.Option("--stderr", help="Print only stderr.")] = False,
    stdout: Annotated[bool, typer.Option("--stdout", help="Print only stdout.")] = False,
    attempt: Annotated[
        int | None,
        option(help_="Only this attempt, by its number in 'spinney show'."),
    ] = None,
    raw: RawOption = False,
    store: StoreOption = None,
) -> None:
    """Print the output of a job's attempts, the oldest first."""
    names = [name for name, only in (("stdout", stdout), ("stderr", stderr)) if only] or ["stdout", "stderr"]
    with open_commands(store) as opened:
        performer = PatientPerformer(opened)
        reader = _Reader(files_of(opened, job, store), names, titles=attempt is None, raw=raw)
        while True:
            settled = performer.do(ShowJob(job=job)).state in SETTLED
            attempts = _attempts(performer, job, attempt)
            performer.repeated(partial(reader.print_new, attempts))
            if settled or not (follow and has_reader()):
                break
            time.sleep(performer.poll_s)
    missing = [(a, remark) for a in attempts if (remark := remarks.of(a.message))]
    for a, remark in missing:
        typer.echo(f"spinney: {a.stage}, attempt {a.fence}: {safe(remark)}", err=True)
    if not (reader.printed or missing):
        typer.echo(f"spinney: job {job} has no output{'' if settled else ' yet'}", err=True)


def _attempts(performer: Performs, job: int, fence: int | None) -> Sequence[Attempt]:
    """Return the attempts of the job, or the one with this fence. Raises UsageError when the job does not
    have it."""
    attempts = performer.do(ListAttempts(job=job)).items
    if fence is None:
        return attempts
    chosen = [a for a in attempts if a.fence == fence]
    if not chosen:
        raise UsageError(f"job {job} has no attempt {fence}; 'spinney show {job}' lists them")
    return chosen


class _Reader:
    """Prints output files, each from where it stopped the last time, with a title where the output changes
    over to another file. ``printed``: whether anything has been printed."""

    def __init__(self, files: Files, streams: list[str], *, titles: bool, raw: bool) -> None:
        self._files, self._streams, self._titles = files, streams, titles
        self._raw = raw
        self._contents: dict[str, Content] = {}
        self._at: dict[str, int] = {}
        self._through: set[str] = set()
        """Files of attempts that had ended before they were read to their end."""
        self._title = ""
        self._in_line = False
        """Whether what was printed last did not end with a line feed."""
        self.printed = False

    def print_new(self, attempts: Sequence[Attempt]) -> None:
        """Print what these attempts have written since the last call, attempt by attempt. A file is not read
        again once it was read after the end of its attempt."""
        for attempt in attempts:
            for stream in self._streams:
                name = f"{attempt.stage}.{attempt.fence}.{stream}"
                if name in self._through:
                    continue
                for chunk in while_read(self._new(attempt, stream, name)):
                    self._print(f"== {attempt.stage}, attempt {attempt.fence}, {stream} ==\n", name, chunk)
                if attempt.ended_us is not None:
                    self._through.add(name)
                    self._content(name).write(b"", last=True)
        sys.stdout.flush()

    def _new(self, attempt: Attempt, stream: str, name: str) -> Iterator[bytes]:
        """Yield what is new in one file, and note how far it has been read."""
        for chunk in self._files.output(attempt, stream, start=self._at.get(name, 0)):
            self._at[name] = self._at.get(name, 0) + len(chunk)
            yield chunk

    def _content(self, name: str) -> Content:
        """Return what makes a file's bytes safe for the terminal; it keeps its state between two pieces."""
        return self._contents.setdefault(name, Content(raw=self._raw))

    def _print(self, title: str, name: str, chunk: bytes) -> None:
        if self._titles and title != self._title:
            sys.stdout.write(f"\n{title}" if self._in_line else title)
            sys.stdout.flush()
        self._title, self.printed, self._in_line = title, True, not chunk.endswith(b"\n")
        self._content(name).write(chunk)
