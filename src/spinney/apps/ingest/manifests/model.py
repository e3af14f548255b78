"""The data types of manifests: kinds, rows, problems.

They are the same for both forms of manifests, so that the stages of a deposit do not know which form was
submitted.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

from spinney.files.digests import Digest
from spinney.files.paths import NotAdmitted


class PayloadKind(StrEnum):
    """The kinds of payloads that a depositor may submit."""

    FILE = "file"
    """An object of one file."""
    CONTAINER = "container"
    """An object in a zip or tar."""
    OBJECT_MANIFEST = "object-manifest"
    """One object; each row is one of its files."""
    SINGLE_FILE_BATCH_MANIFEST = "single-file-batch-manifest"
    """Many objects; each row is the only file of one."""
    CONTAINER_BATCH_MANIFEST = "container-batch-manifest"
    """Many objects; each row is the container of one."""
    BATCH_MANIFEST = "batch-manifest"
    """Many objects; each row is the object manifest of one."""

    @property
    def is_manifest(self) -> bool:
        """Whether the payload lists what is to be deposited, rather than being it."""
        return self not in (PayloadKind.FILE, PayloadKind.CONTAINER)

    @property
    def is_batch(self) -> bool:
        """Whether each row of such a manifest is an object of its own."""
        return self in _OF_ROWS

    @property
    def of_rows(self) -> "PayloadKind":
        """The kind of each row's payload in such a manifest; of another payload its own kind."""
        return _OF_ROWS.get(self, self)


_OF_ROWS = {
    PayloadKind.SINGLE_FILE_BATCH_MANIFEST: PayloadKind.FILE,
    PayloadKind.CONTAINER_BATCH_MANIFEST: PayloadKind.CONTAINER,
    PayloadKind.BATCH_MANIFEST: PayloadKind.OBJECT_MANIFEST,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """A depositor's description of an object; None and empty values were not given. The parameters of jobs have it
    (``deposits.orders``), so that a new field needs a default."""

    primary_id: str | None = None
    """As it was given; whether it is an ARK is checked elsewhere."""
    local_ids: tuple[str, ...] = ()
    creator: str | None = None
    title: str | None = None
    date: str | None = None


NOTHING = About()


Unit = Literal["line", "entry"]
"""What the number of a problem counts: entries in a JSON manifest that is one document, else lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A file of an object or, in a batch manifest, an object."""

    line: int = 0
    """Its line or entry, from 1."""
    url: str
    """http, https or file, without user name and password. Empty when ``files`` are given."""
    name: str
    """A relative path that leads downward only."""
    digest: Digest | None = None
    size_bytes: int | None = None
    modified: str | None = None
    """The date of the last change as it was given; many formats are in use, and it is not parsed here."""
    mime_type: str | None = None
    about: About = NOTHING
    files: tuple["Row", ...] = ()
    """The files of an object that a JSON batch-manifest lists in place of a URL."""


DESCRIBED = ("name", "size_bytes", "digest", "mime_type", "modified")
"""The fields of a row that the payload of an object has, too (``deposits.orders``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An error or a warning about a manifest."""

    line: int
    """The line or entry, from 1."""
    reason: str
    """One sentence with the error and what to do."""
    unit: Unit = "line"

    def __str__(self) -> str:
        return f"{self.unit} {self.line}: {self.reason}"


class LineRefused(NotAdmitted):
    """A refusal within a parser that knows its line; ``ManifestRefused`` names the manifest, too."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


class ManifestRefused(NotAdmitted):
    """A manifest is refused; the message names the manifest, the line, the error and what to do."""

    def __init__(self, name: str, problem: Problem) -> None:
        super().__init__(f"manifest '{name}', {problem}")
        self.problem = problem


class Warnings:
    """The first warnings about a manifest, and the number of all."""

    MOST = 50
    """How many warnings are kept; the others are only counted."""

    def __init__(self) -> None:
        self.first: list[Problem] = []
        self.count = 0

    def note(self, warning: Problem) -> None:
        """Count a warning, and keep it if it is one of the first ``MOST``."""
        self.count += 1
        if len(self.first) < self.MOST:
            self.first.append(warning)

    def summary(self, most: int) -> str:
        """Return the first ``most`` warnings as one text."""
        more = f"; and {self.count - most:,} more" if self.count > most else ""
        return "; ".join(str(warning) for warning in self.first[:most]) + more


@dataclass(frozen=True, slots=True, kw_only=True)
class Problems:
    """Takes the problems and the warnings that a parser finds."""

    report: Callable[[Problem], None]
    """Raises, or notes the problem and returns, so that the parser continues."""
    note: Callable[[Problem], None]
    """Notes a warning."""
    unit: Unit = "line"

    def refuse(self, line: int, reason: str | NotAdmitted) -> None:
        """Report an error on this line. Returns only where ``report`` does not raise."""
        self.report(Problem(line=line, reason=str(reason), unit=self.unit))

    def warn(self, line: int, reason: str) -> None:
        """Note a deviation that was read all the same."""
        self.note(Problem(line=line, reason=reason, unit=self.unit))


class Parsed(NamedTuple):
    """A manifest whose header a parser has read."""

    kind: PayloadKind
    rows: Iterator[Row]
    """Read lazily."""
    unit: Unit
    """What ``Row.line`` counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The result of checking a whole manifest."""

    kind: PayloadKind | None
    """The kind that the header names; None when it names none."""
    rows: int
    """The number of valid rows, which is the total only when there are no problems."""
    size_bytes: int
    """The sum of the given sizes."""
    sizes_unknown: int
    """The number of files without a size."""
    problems: tuple[Problem, ...]
    warnings: Warnings
    whole: bool
    """False: the rest was not read, since the header is invalid, or there were too many problems."""
