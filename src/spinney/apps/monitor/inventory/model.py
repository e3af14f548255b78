"""Entities, services and results, as the rest of the application reads them."""

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """The status that a task found. Any other word of a program counts as a warning."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"
    NOT_APPLICABLE = "not_applicable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """Who answers for services, and how mails reach them."""

    eid: int
    """The number by which the monitor and the line protocol know it."""
    description: str
    contact: str = ""
    """Whom mails greet; empty: nobody by name."""
    email: str = ""
    """Where mails go; empty: none are sent."""
    language: str = "en"
    """The tag of the language of its mails and public page."""
    page_key: str = ""
    """The random key in the address of its page without sign-in."""
    services: int = 0
    """How many services it has that are not retired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One network service that is checked, with its address and the entity that answers for it."""

    gid: int
    """The number by which the monitor and its tasks know it."""
    eid: int
    uuid: str
    type: str
    """``WMS``, ``WFS``, ``WMTS``, ``WCS``, ``CSW``, ``HTTP``, …"""
    version: str
    uri: str
    description: str
    entity: str = ""
    """The description of its entity."""
    checked_us: int | None = None
    """The time of its last check; None: it was never checked."""
    retired_us: int | None = None
    """When an import no longer named it; None: it is monitored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one task for one service, as it is written. ``job_id`` and ``task`` identify it: written
    twice, it is stored once."""

    gid: int
    task: str
    status: str
    code: str = ""
    """A word for machines, such as ``timeout``; empty: there is none."""
    info: str = ""
    """What people read; at most ``results.INFO_MAX`` characters are stored."""
    uuid: str = ""
    """The UUID of the service at that time."""
    at_us: int
    """When the task found it, in microseconds since 1970 UTC, as all times here."""
    duration_s: float
    job_id: int = 0
    drops: tuple[str, ...] = ()
    """The tasks whose results this one removes: an error removes those of the tasks behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentStatus:
    """The newest result of one service and task, and how long it has been so."""

    task: str
    status: str
    code: str
    info: str
    uuid: str
    at_us: int
    since_us: int
    """Since when the status is this one."""
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A result in the history of a service, with the status before it. The history has every result;
    ``results.changes`` can leave out those whose status is the one before."""

    gid: int
    task: str
    status: str
    before: str
    """The status before; empty: it is the first result."""
    code: str
    info: str
    at_us: int
    """When the task found it, in microseconds since 1970 UTC."""
    duration_s: float
