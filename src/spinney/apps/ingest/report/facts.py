"""The data of a report: a batch, and the results of its objects.

They are collected by ``batches.batch_reports`` from jobs and inventory; nothing in this package looks anything up.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Kind(StrEnum):
    """How much of a report is sent by mail, as set in the profile."""

    BRIEF = "brief"
    """The summary and the first failures."""
    ATTACHED = "attached"
    """The same, with ``completed.json`` and ``failed.json`` attached."""
    VERBOSE = "verbose"
    """All objects in the text, up to the maximum length of a mail."""
    SUPPRESSED = "suppressed"
    """No mail is sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFacts:
    """The data of a batch at the time of its report."""

    bid: str
    """The name of the batch: ``bid-…``."""
    job: int
    """The id of its job."""
    profile: str
    submitter: str
    collections: tuple[str, ...] = ()
    payload: str = ""
    """The name of the file that was submitted."""
    accepted: datetime
    """When it was accepted, in UTC."""
    reported: datetime
    """When this report was first made, in UTC; kept after a crash, since it is the date of the mail."""
    number: int
    """1 for the first report; later ones are updates."""
    fault: str | None = None
    """Why the batch failed as a whole (a manifest that cannot be read), with the line."""
    link: str | None = None
    """The URL of its page."""
    warnings: tuple[str, ...] = ()
    """The first warnings about its manifest, with their lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectEnd:
    """How one object of a batch has ended, or how far it is, for a report."""

    jid: str
    """``jid-…``; the same for all tries of the object, so that reports can be compared by it."""
    job: int
    state: str
    """The state of its job."""
    local_ids: tuple[str, ...] = ()
    ark: str | None = None
    version: int | None = None
    """The version that was made, or the existing one of an unchanged object."""
    unchanged: bool = False
    """Whether the content was stored already, so that no version was made."""
    title: str | None = None
    passed: str | None = None
    """The last stage that was successful."""
    stage: str | None = None
    """The stage at which it failed, or is now."""
    message: str | None = None
    """The message of its job, which says why it failed."""
    warnings: int = 0
    """The number of stages that passed with a warning; its job shows which."""
    link: str | None = None
    files: int = 0
    bytes: int = 0
    """Files and bytes of its depositor in the version."""
    system_files: int = 0
    system_bytes: int = 0
    """Files and bytes of the service's own metadata in the version."""
    verified: int = 0
    """How many digests the depositor gave that were verified."""

    @property
    def label(self) -> str:
        """The name by which its depositor knows it."""
        return next((name for name in (*self.local_ids, self.title, self.ark) if name), self.jid)
