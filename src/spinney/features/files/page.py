"""What the pages show of a job's files: the output of its attempts, searched or followed, and listings.

Everything is read within bounds, and secrets of the job are redacted; while an attempt runs, the last bytes
are left out as long as they may be the beginning of a secret. A page shows the end of each stream as a
terminal would. While the attempt runs, its script asks again from the byte ``Shown.next`` on, where the
unfinished line begins: so a progress bar is drawn over itself, and no line is lost or shown twice.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spinney.commands.control import Control
from spinney.features.files.content import files_of
from spinney.features.files.job_folder import JobFiles, output_path
from spinney.model.attempts import remarks
from spinney.model.errors import Refused
from spinney.model.homes import DirectoryEntry
from spinney.model.jobs import Attempt
from spinney.model.values.paths import OWN
from spinney.web.pages.stages import current, numbered
from spinney.web.pages.text_formats import terminal_text

STREAMS = ("stdout", "stderr")
TAIL_BYTES = 64 * 2**10
"""How much of the end of a stream is shown."""
PIECE_BYTES = 64 * 2**10
"""How much of a stream one request of the page's script gets."""
UNFINISHED_BYTES = 4096
"""The length in bytes from which on a line is shown without waiting for its end, so that a stream without
line breaks is not sent again and again."""
SEARCHED_BYTES = 20 * 2**20
"""How much of a stream is searched, from its beginning; by default no stream is longer."""
MATCHES = 500
"""The most lines that a search shows, over both streams together."""
LINE_CHARS = 2_000
"""How many characters of a matching line are shown."""
FILES = 500
"""The most entries of a directory that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A part of a stream as a terminal would show it now."""

    text: str
    """All lines that are complete, as text."""
    unfinished: str
    """The last line as it is now: what follows may continue it, or overwrite it as a progress bar does."""
    next: int
    """The byte from which on to ask for what follows: where the unfinished line, in its last state, begins."""
    more: bool = False
    """Whether more may follow: the attempt still runs, or there is more than one piece has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """The end of what an attempt wrote to stdout or stderr."""

    name: str
    """``stdout`` or ``stderr``."""
    size: int
    """How many bytes of the file were read, from its beginning up to the last whole character that may be shown."""
    start: int
    """The first byte that is shown; 0: the whole stream is."""
    shown: Shown
    """The end of it, as a terminal would show it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A line that contains the searched text."""

    stream: str
    number: int
    """The number of the line in its stream, from 1."""
    text: str
    """The line, or its first ``LINE_CHARS`` characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The output of one attempt of a job."""

    attempt: Attempt | None
    """The attempt whose output this is; None: no attempt of the job has begun."""
    attempts: Sequence[Attempt]
    """The attempts that have begun, the last first."""
    streams: Sequence[Stream]
    """The streams to which the attempt has written."""
    numbers: Mapping[int, int] = field(default_factory=dict)
    """The number by which the page names each attempt, by fence."""
    matches: Sequence[Match] | None = None
    """The lines that contain the searched text; None: nothing was searched."""
    trouble: str | None = None
    """Why nothing can be read now, as a sentence, for example because the host that has the folder does not
    answer."""

    @property
    def remark(self) -> str | None:
        """The note on output that is not all that the attempt wrote; None: it is."""
        return remarks.of(self.attempt.message) if self.attempt else None


def output(control: Control, job_id: int, root: Path, *, fence: int | None, search: str) -> Output:
    """Return the output of one attempt. Raises NoSuchJob.

    It is the attempt with this fence; else the one that the page of the job shows (``stages.current``), else
    the last that wrote something. ``search``: the text to look for, without regard to case; empty: nothing is
    searched.
    """
    job, history = control.queries.job(job_id), control.queries.attempts(job_id)
    numbers, of_page = numbered(history), current(job, history)
    attempts = [a for a in history if a.started_us][::-1]
    if not attempts:
        return Output(attempt=None, attempts=(), streams=())
    attempt = next((a for a in attempts if a.fence == fence), of_page or attempts[0])
    try:
        files = files_of(control, job_id, root)
        sizes = {f"{OWN}/{entry.name}": entry.size for entry in files.names(OWN, must=False)}
        if fence is None and of_page is None:
            attempt = next((a for a in attempts if any(output_path(a, s) in sizes for s in STREAMS)), attempt)
        written = [stream for stream in STREAMS if output_path(attempt, stream) in sizes]
        return Output(
            attempt=attempt,
            attempts=attempts,
            numbers=numbers,
            streams=[
                _tail(files, attempt, sizes[output_path(attempt, stream)], stream) for stream in written
            ],
            matches=_matches(files, attempt, written, search) if search else None,
        )
    except Refused as error:
        return Output(attempt=attempt, attempts=attempts, numbers=numbers, streams=(), trouble=str(error))


def more(control: Control, job_id: int, root: Path, *, fence: int, stream: str, start: int) -> Shown:
    """Return what a stream has from the byte ``start`` on, at most ``PIECE_BYTES``. Raises NoSuchJob, and
    Refused for an attempt or stream that the job does not have."""
    attempt = next((a for a in control.queries.attempts(job_id) if a.fence == fence), None)
    if attempt is None or stream not in STREAMS:
        raise Refused(f"job {job_id} has no attempt {fence}; look at its history for those it has")
    files = files_of(control, job_id, root)
    data = files.output_piece(attempt, stream, start, PIECE_BYTES)
    return _shown(data, start, more=attempt.ended_us is None or len(data) == PIECE_BYTES)


def _shown(data: bytes, start: int, *, more: bool) -> Shown:
    """Return how a terminal shows these bytes, which begin at the byte ``start`` of their stream. ``more``:
    others may follow, so that the last line is kept apart."""
    if more:
        data = _whole_characters(data)
        line = data.rfind(b"\n") + 1
        # A terminal overwrites the line at each carriage return, so only what follows the last one is shown. Those
        # at the very end have overwritten nothing yet.
        state = line + data[line:].rstrip(b"\r").rfind(b"\r") + 1
        if len(data) - state <= UNFINISHED_BYTES:
            text, unfinished = (_decoded(part) for part in (data[:line], data[state:]))
            return Shown(text=text, unfinished=unfinished, next=start + state, more=True)
    return Shown(text=_decoded(data), unfinished="", next=start + len(data), more=more)


def _decoded(data: bytes) -> str:
    """Return bytes as a terminal would show them; invalid UTF-8 becomes U+FFFD."""
    return terminal_text(data.decode("utf-8", "replace"))


def listing(control: Control, job_id: int, root: Path, path: str) -> Sequence[DirectoryEntry]:
    """Return the entries of a directory in the job's folder, directories first, then by name; one more than
    ``FILES`` when there are more. The engine's own directory is left out at the top. Raises NoSuchJob,
    Refused."""
    files = files_of(control, job_id, root)
    entries: list[DirectoryEntry] = []
    for entry in files.names(path, must=bool(path)):
        if path or entry.name != OWN:
            entries.append(entry)
        if len(entries) > FILES:
            break
    return sorted(entries, key=lambda entry: (entry.kind != "folder", entry.name))


def _tail(files: JobFiles, attempt: Attempt, size: int, stream: str) -> Stream:
    """Return the end of a stream, at most ``TAIL_BYTES``, from the beginning of a line on, or, in one endless line,
    from some whole character on."""
    start = max(0, size - TAIL_BYTES)
    data = files.output_piece(attempt, stream, start, size - start)
    if start:
        # From the next whole line on or, in one endless line, from some whole character on.
        cut = data.find(b"\n") + 1
        cut = cut or next((i for i in range(min(4, len(data))) if data[i] & 0xC0 != 0x80), 0)
        start, data = start + cut, data[cut:]
    data = _whole_characters(data)
    shown = _shown(data, start, more=attempt.ended_us is None)
    return Stream(name=stream, size=start + len(data), start=start, shown=shown)


def _matches(files: JobFiles, attempt: Attempt, streams: Sequence[str], search: str) -> list[Match]:
    """Return the lines that contain the text, at most ``MATCHES``, those of the first stream first."""
    matches: list[Match] = []
    folded = search.casefold()
    for stream in streams:
        for number, line in enumerate(_lines(files, attempt, stream), 1):
            if folded in line.casefold():
                matches.append(Match(stream=stream, number=number, text=line[:LINE_CHARS]))
                if len(matches) >= MATCHES:
                    return matches
    return matches


def _lines(files: JobFiles, attempt: Attempt, stream: str) -> Iterator[str]:
    """Yield the lines of a stream as a terminal would show them, within its first ``SEARCHED_BYTES``."""
    # Read, and so redacted, before it is split, because a secret may have several lines.
    for line in files.output_piece(attempt, stream, 0, SEARCHED_BYTES).split(b"\n"):
        yield terminal_text(line.decode("utf-8", "replace"))


def _whole_characters(data: bytes) -> bytes:
    """Cut off the beginning of a UTF-8 character at the end; it will be whole when more has been written."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0xC0:
            long = 2 if byte & 0xE0 == 0xC0 else 3 if byte & 0xF0 == 0xE0 else 4
            return data[:-back] if long > back else data
        if byte & 0x80 == 0:
            break
    return data
