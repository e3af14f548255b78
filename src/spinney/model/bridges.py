"""Bridges to the databases of other systems, and their links.

A bridge is a process that claims entries of another system's database, submits a job for each, and writes
back what becomes of the job. A link is made before the job is submitted and deleted when the entry is
finished, so that a bridge that dies in between can go on with it (``spinney.bridges``,
``spinney.features.bridges``)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeStatus:
    """A bridge, as it last reported."""

    name: str
    system: str
    """The kind of the other system, as ``disbatch``."""
    seen_us: int
    """When the bridge last reported, in microseconds since 1970 UTC."""
    links: int
    """Entries that are claimed and not finished."""
    behind: int
    """Links whose job has changed and whose entry does not show it yet."""
    behind_since_us: int | None
    """Since when the oldest of them is behind."""
    trouble: str | None
    """Its last trouble."""
    trouble_us: int | None
    """When that trouble was reported, in microseconds since 1970 UTC."""
    in_trouble: bool
    """Whether that trouble still lasts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What binds an entry of the other system to its job."""

    entry: str
    claim: str
    """Names one taking of the entry."""
    job_id: int | None
    """The job of the entry; None: it has none yet."""
    position: str
    """What of the job has been passed on; empty: nothing."""
