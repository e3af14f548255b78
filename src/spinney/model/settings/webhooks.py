"""Webhooks: who is told of which jobs, and what became of the telling. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from spinney.model.access import AccessScope
from spinney.model.errors import BadParameters, UsageError
from spinney.model.states import State
from spinney.model.values import names

URL_MAX = 2000
EVERY = "*"
"""All events."""
BATCH = "batch"
"""A job at the top that has children, however it ended."""
PING = "ping"
"""What a test sends; nobody asks for it."""
STATES = (State.COMPLETED, State.FAILED, State.CANCELLED, State.ORPHANED)
"""In which of them a job settles, and is told of by their names."""
EVENTS = (*map(str, STATES), BATCH)
"""What may be asked for, beside ``*``."""
SETTABLE = ("url", "events", "type", "collection", "queue", "roots_only")
"""What may be set otherwise later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """Who is told what. Raises UsageError, BadName, BadParameters for what cannot be meant."""

    name: str
    url: str
    events: tuple[str, ...] = (EVERY,)
    type: str | None = None
    """Only of jobs of this type; None: of all. So with ``collection`` and ``queue``."""
    collection: str | None = None
    queue: str | None = None
    roots_only: bool = True
    """Of batches and single jobs, not of subjobs."""
    within: AccessScope = AccessScope()  # noqa: RUF009 - frozen
    """What its maker might see when he made it: it never tells of anything else, nor of what he may not see now."""
    paused: str | None = None
    """Why it is told nothing for now."""
    by: str = ""
    at_us: int = 0
    """When it was made."""

    def __post_init__(self) -> None:
        names.name("webhook", self.name)
        _require_events(self.events)
        for kind, name in (("job type", self.type), ("queue", self.queue)):
            if name is not None:
                names.name(kind, name)
        if self.collection is not None:
            names.label("collection", self.collection)
        if not isinstance(self.roots_only, bool):
            raise UsageError(f"roots_only is true or false, not {self.roots_only!r}")
        try:
            require_url(self.url)
        except ValueError as error:
            raise UsageError(str(error)) from None

    def to_json(self) -> dict[str, Any]:
        """What it is set to, and what its maker may see; not its secret, which is no part of it."""
        return {
            "url": self.url,
            "events": list(self.events),
            "type": self.type,
            "collection": self.collection,
            "queue": self.queue,
            "roots_only": self.roots_only,
            "within": {"collections": self.within.collections, "queues": self.within.queues},
        }

    @classmethod
    def from_json(cls, name: str, found: Mapping[str, Any], **more: Any) -> "Webhook":
        """The same, read back. Raises what ``Webhook`` raises, and KeyError, TypeError for what is none."""
        within = {key: None if names_ is None else tuple(names_) for key, names_ in found["within"].items()}
        fields = {key: found[key] for key in SETTABLE}
        return cls(
            **{**fields, "events": tuple(found["events"])}, name=name, within=AccessScope(**within), **more
        )


class DeliveryOutcome(StrEnum):
    """How a delivery stands."""

    DUE = "due"
    """It is sent, or tried again, as soon as its time has come."""
    DELIVERED = "delivered"
    FAILED = "failed"
    """It is not tried again, unless somebody asks for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One event for one webhook, and what came of it."""

    delivery: str
    """Its id, the same however often it is sent."""
    seq: int
    """Grows with each event of the store; a receiver orders by it."""
    webhook: str
    event: str
    batch: bool
    """The job had children, and nothing above it."""
    job_id: int | None
    """None: a ping."""
    at_us: int
    """When the job settled."""
    outcome: DeliveryOutcome
    tries: int
    next_us: int | None
    """When it is tried next; while it is being sent: when somebody else would, if this sender died."""
    tried_us: int | None
    status: int | None
    """The HTTP status of the last answer; None: there was none."""
    answer: str | None
    """The beginning of the last answer, or why there was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DueDelivery:
    """A delivery that is this sender's until its ``next_us``."""

    delivery: Delivery
    url: str = field(repr=False)
    secret: str = field(repr=False)
    by: str
    within: AccessScope
    """What the webhook's maker might see when he made it, and may see now: nothing else is told."""
    narrowed: bool
    """Whether the maker may see less now than when he made the webhook."""
    since_us: int
    """When the first try of this term was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryResult:
    """What a try brought."""

    outcome: DeliveryOutcome
    next_us: int | None = None
    """When it is tried again, while it is due."""
    status: int | None = None
    answer: str | None = None
    sent: bool = True
    """False: nothing went out, which says nothing of the receiver."""
    gone: bool = False
    """The receiver wants no more of these: the webhook is paused."""


def require_url(url: str) -> None:
    """Raise ValueError unless ``url`` may be one of a webhook; BadParameters when it holds a password: what says so
    must not show it, as refusals of a value do."""
    try:
        parts = urlsplit(url)
    except (ValueError, AttributeError, TypeError):
        parts = urlsplit("")
    if "@" in parts.netloc:
        raise BadParameters(
            "the URL of a webhook holds a user or password, which would be logged; leave them out"
        )
    lawful = parts.scheme in ("http", "https") and parts.hostname and url.isascii() and url.isprintable()
    if not lawful or " " in url or len(url) > URL_MAX:
        raise ValueError(
            f"a webhook goes to an absolute http or https URL of up to {URL_MAX} characters; mend it"
        )


def shown(url: str) -> str:
    """The URL without its query, in which there may be a token."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"[:200]


def _require_events(events: Sequence[str]) -> None:
    unknown = [event for event in events if event not in (*EVENTS, EVERY)]
    if unknown or not events:
        what = (
            f"{unknown[0]!r:.80} is no event of a webhook"
            if unknown
            else "a webhook without events tells nothing"
        )
        raise UsageError(f"{what}; use some of {', '.join(EVENTS)}, or {EVERY!r} for all")
