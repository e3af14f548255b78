"""The nouns of a manifest: its kind, its rows, what is wrong with it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from spinney.apps.ingest.files.digests import Digest
from spinney.apps.ingest.files.paths import NotAdmitted


class PayloadKind(StrEnum):
    """What a depositor may hand in."""

    FILE = "file"
    """An object of one file."""
    CONTAINER = "container"
    """An object packed in a zip or tar."""
    OBJECT_MANIFEST = "object-manifest"
    """An object; a row is one of its files."""
    SINGLE_FILE_BATCH_MANIFEST = "single-file-batch-manifest"
    """Many objects; a row is the only file of one."""
    CONTAINER_BATCH_MANIFEST = "container-batch-manifest"
    """Many objects; a row is the container of one."""
    BATCH_MANIFEST = "batch-manifest"
    """Many objects; a row is the object manifest of one."""

    @property
    def is_manifest(self) -> bool:
        return self not in (PayloadKind.FILE, PayloadKind.CONTAINER)

    @property
    def is_batch(self) -> bool:
        """Whether each row of such a manifest is an object of its own."""
        return self.is_manifest and self is not PayloadKind.OBJECT_MANIFEST


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a batch manifest says of an object. None and empty: nothing."""

    primary_id: str | None = None
    """As it was given; whether it is an ARK is for the identifiers to judge."""
    local_ids: tuple[str, ...] = ()
    creator: str | None = None
    title: str | None = None
    date: str | None = None


NOTHING = About()


Unit = Literal["line", "entry"]
"""What is counted: the entries, in a JSON manifest that is one document and can be parsed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A file of an object or, in a batch manifest, an object."""

    line: int = 0
    """Where it stands, from 1."""
    unit: Unit = field(default="line", compare=False)
    url: str
    """http, https or file, without user name and password. Empty when ``files`` are given."""
    name: str
    """A relative path that leads downward only."""
    digest: Digest | None = None
    size_bytes: int | None = None
    modified: str | None = None
    """As it was given: manifests in use carry many forms, and nothing here goes by it."""
    mime_type: str | None = None
    about: About = NOTHING
    files: tuple["Row", ...] = ()
    """The files of an object that a JSON batch-manifest gives in place of a URL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that keeps a manifest out, or is worth a word."""

    line: int
    """Counted from 1."""
    reason: str
    """One sentence: what is wrong, and what to do."""
    unit: Unit = "line"

    def __str__(self) -> str:
        return f"{self.unit} {self.line}: {self.reason}"


class ManifestRefused(NotAdmitted):
    """The manifest NAME, line N: what is wrong, and what to do."""

    def __init__(self, name: str, problem: Problem) -> None:
        super().__init__(f"manifest '{name}', {problem}")
        self.problem = problem


Report = Callable[[Problem], None]
"""What a parser does with a problem: raise, or note it and return, so that the parser goes on."""


class Warnings:
    """The first so many, and how many there were."""

    MOST = 50

    def __init__(self) -> None:
        self.first: list[Problem] = []
        self.count = 0

    def note(self, warning: Problem) -> None:
        self.count += 1
        if len(self.first) < self.MOST:
            self.first.append(warning)

    def summary(self, most: int) -> str:
        """The first so many as one text."""
        more = f"; and {self.count - most:,} more" if self.count > most else ""
        return "; ".join(str(warning) for warning in self.first[:most]) + more


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A manifest whose header has been judged, with its rows still to be read."""

    kind: PayloadKind
    rows: Iterator[Row]
    """Read as they are asked for, once. Raises `ManifestRefused` at the first that is wrong."""
    warnings: "Warnings"
    """What is worth a word and keeps nothing out: that of the header, and then that of the rows as they are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a look through a whole manifest found."""

    kind: PayloadKind | None
    """None when the header does not tell."""
    rows: int
    """Rows in order. Only meaningful as a total when there are no problems."""
    size_bytes: int
    """The sum of the sizes that are given."""
    sizes_unknown: int
    """Files without a size."""
    problems: tuple[Problem, ...]
    warnings: Warnings
    whole: bool
    """False: the rest was not read, since the header does not tell how, or there were too many problems."""
