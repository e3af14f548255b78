"""What a report is made of: a batch, and what became of each of its objects."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Kind(StrEnum):
    """How much of a report goes by mail; a profile says which."""

    BRIEF = "brief"
    """The summary and the first failures."""
    ATTACHED = "attached"
    """That, with ``completed.json`` and ``failed.json`` attached."""
    VERBOSE = "verbose"
    """All objects in the text, as far as a mail may be long."""
    SUPPRESSED = "suppressed"
    """No mail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFacts:
    """A batch, when it reports."""

    bid: str
    """``bid-…``"""
    job: int
    """The id of its job."""
    profile: str
    submitter: str
    collections: tuple[str, ...] = ()
    payload: str = ""
    """The name of the file that was submitted."""
    accepted: datetime
    """In UTC, as ``reported``."""
    reported: datetime
    """When this report was first made; kept over a crash, for it is the date of the mail."""
    number: int
    """1 for the first report; an update when more."""
    fault: str | None = None
    """Why the batch failed as a whole (a manifest that cannot be read), with the line."""
    link: str | None = None
    """Where a page shows it."""
    warnings: tuple[str, ...] = ()
    """What its manifest was read with a word about, with the line: the first of very many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectEnd:
    """What became of one object."""

    jid: str
    """``jid-…``; the same however often it is tried again, and so what reports are compared by."""
    job: int
    state: str
    """The state of its job."""
    local_ids: tuple[str, ...] = ()
    ark: str | None = None
    version: int | None = None
    """Of the object: the one that it brought, or that stands."""
    unchanged: bool = False
    """The object had all of what came already; no version was made."""
    title: str | None = None
    passed: str | None = None
    """The last stage that was successful."""
    stage: str | None = None
    """The stage at which it failed, or stands."""
    message: str | None = None
    warnings: int = 0
    """Stages that passed with a word; its job shows which."""
    link: str | None = None
    files: int = 0
    bytes: int = 0
    """Of its depositor, as the version has them."""
    system_files: int = 0
    system_bytes: int = 0
    """What the service says of it, stored with it."""
    verified: int = 0
    """Digests that were given and found right."""

    @property
    def label(self) -> str:
        """What its depositor knows it by."""
        return next((name for name in (*self.local_ids, self.title, self.ark) if name), self.jid)
