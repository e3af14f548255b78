"""Webhooks, their deliveries, and the results of those. Pure data and checks.

When a job settles, the same transaction stores a ``Delivery`` for each webhook that its event fits. A sender
takes those that are due for a while (``DueDelivery``), calls the URL, and stores a ``DeliveryResult``:
delivered, or when to try again, or failed for good. A receiver may get a delivery twice, with the same id.

A webhook reports no more than its creator may see: the limits of the creation are stored with it, and those
of today are looked up when it is sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from spinney.model.access import AccessScope
from spinney.model.errors import BadParameters, NoSuch, UsageError
from spinney.model.states import ENDED
from spinney.model.values import names
from spinney.model.values.networks import is_public

# The longest URL of a webhook, in characters.
URL_MAX = 2000
EVERY = "*"
"""The name of all events."""
BATCH = "batch"
"""The event of a root job with children that has settled in any state."""
PING = "ping"
"""The event of a test; webhooks cannot subscribe to it."""
EVENTS = (*map(str, ENDED), BATCH)
"""The events that a webhook may subscribe to, beside ``*``: that a job has ended in a state, under its name."""
SETTABLE = ("url", "events", "type", "collection", "queue", "roots_only")
"""The fields that may be changed later."""

UNWELL_TRIES = 3
"""How many deliveries in a row that were not accepted, or tries of one, need attention: fewer happen at a restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A webhook: a URL and the events that it is called for. Raises UsageError, BadName, BadParameters for invalid
    fields."""

    name: str
    url: str
    events: tuple[str, ...] = (EVERY,)
    type: str | None = None
    """Only events of jobs of this type; None: of all. The same holds for ``collection`` and ``queue``."""
    collection: str | None = None
    queue: str | None = None
    roots_only: bool = True
    """Only events of batches and single jobs, not of subjobs."""
    within: AccessScope = AccessScope()  # noqa: RUF009 - frozen
    """What its creator was allowed to see at its creation: it never reports other jobs, nor any that the creator may
    not see now."""
    paused: str | None = None
    """Why it is paused; None: it is not."""
    by: str = ""
    at_us: int = 0
    """When the webhook was created, in microseconds since 1970 UTC."""

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
        """Return its settings and its creator's limits, without its secret."""
        within = {"collections": self.within.collections, "queues": self.within.queues}
        fields = {name: getattr(self, name) for name in SETTABLE}
        return {**fields, "events": list(self.events), "within": within}

    @classmethod
    def from_json(cls, name: str, value: Mapping[str, Any], **fields_beside: Any) -> "Webhook":
        """Return the webhook of a value made by ``to_json``. Raises what ``Webhook`` raises, and KeyError, TypeError
        for other values."""
        within = {key: None if names_ is None else tuple(names_) for key, names_ in value["within"].items()}
        fields = {key: value[key] for key in SETTABLE}
        return cls(
            **{**fields, "events": tuple(value["events"])},
            name=name,
            within=AccessScope(**within),
            **fields_beside,
        )


class DeliveryOutcome(StrEnum):
    """The status of a delivery: of one event to one webhook, over all its tries."""

    DUE = "due"
    """It is sent, or tried again, when its time has come."""
    DELIVERED = "delivered"
    FAILED = "failed"
    """It is not tried again unless a person requests it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One event for one webhook, and the status of its delivery."""

    delivery: str
    """Its id, which is the same for every try."""
    seq: int
    """It grows with each event of the store, so that a receiver can order events."""
    webhook: str
    event: str
    batch: bool
    """The job is a root and had children."""
    job_id: int | None
    """The job that settled; None: it is a ping."""
    at_us: int
    """When the job settled."""
    outcome: DeliveryOutcome
    tries: int
    """How often it was tried."""
    next_us: int | None
    """When it is tried next; while it is being sent: when another sender would try, if this one died."""
    tried_us: int | None
    """When it was last tried; None: not yet."""
    status: int | None
    """The HTTP status of the last answer; None: there was none."""
    answer: str | None
    """The beginning of the last answer, or why there was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookHealth:
    """How the latest tries of a webhook went. Only its latest deliveries are looked at."""

    accepted: bool
    """Whether its receiver accepted what was tried last."""
    tried_us: int
    status: int | None
    """The HTTP status of that try; None: there was no answer."""
    answer: str | None
    failing: int
    """How many deliveries were not accepted since the last one that was."""
    tries: int
    """How often one of these was tried at most."""

    @property
    def is_unwell(self) -> bool:
        """Return whether nothing has been accepted for so long that somebody should look."""
        return not self.accepted and max(self.failing, self.tries) >= UNWELL_TRIES


@dataclass(frozen=True, slots=True, kw_only=True)
class DueDelivery:
    """A delivery that belongs to this sender until its ``next_us``."""

    delivery: Delivery
    url: str = field(repr=False)
    secret: str = field(repr=False)
    by: str
    within: AccessScope
    """What the webhook's creator was allowed to see at its creation and may see now: only such jobs are reported."""
    narrowed: bool
    """Whether the creator may see less now than at the creation of the webhook."""
    since_us: int
    """When the first try of the current series was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryResult:
    """The result of one try to deliver an event, with the time of the next one if there is any."""

    outcome: DeliveryOutcome
    next_us: int | None = None
    """When it is tried again, if it is still due."""
    status: int | None = None
    """The HTTP status of the answer; None: there was none."""
    answer: str | None = None
    """The beginning of the answer, or why there was none."""
    sent: bool = True
    """False: nothing was sent, so that the result says nothing about the receiver."""
    gone: bool = False
    """The receiver answered that it wants no more calls: the webhook is paused."""


def no_such_delivery(delivery: str) -> NoSuch:
    """Return the error about a delivery that does not exist, which is also that about one that the caller may not
    see."""
    return NoSuch(
        f"there is no delivery {delivery!r:.80}; 'spinney webhook deliveries NAME' shows those of 30 days"
    )


def require_url(url: str) -> None:
    """Raise ValueError unless ``url`` is valid for a webhook; BadParameters when it has a password, because a
    ValueError's message would show it."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError unless it is a number up to 65535
    except (ValueError, AttributeError, TypeError):
        parts = urlsplit("")
    if "@" in parts.netloc:
        raise BadParameters(
            "the URL of a webhook holds a user or password, which would be logged; leave them out"
        )
    lawful = parts.scheme in ("http", "https") and parts.hostname and url.isascii() and url.isprintable()
    if not lawful or " " in url or len(url) > URL_MAX:
        raise ValueError(
            f"a webhook goes to an absolute http or https URL of up to {URL_MAX} characters; correct it"
        )


def private_host(url: str) -> str | None:
    """Return the host of a URL that names a loopback or private address, to which servers send nothing by default. None
    for other URLs; a name may lead to such an address all the same, which is known only when it is sent to."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return None
    if host == "localhost" or host.endswith(".localhost"):
        return host
    try:
        ip_address(host)
    except ValueError:
        return None
    return None if is_public(host) else host


def shown(url: str) -> str:
    """Return the URL without its query, which may have a token, cut to 200 characters. For logs and messages;
    a URL that was accepted has no password (``require_url``)."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"[:200]


def _require_events(events: Sequence[str]) -> None:
    """Raise UsageError unless there is an event, and all of them are known."""
    unknown = [event for event in events if event not in (*EVENTS, EVERY)]
    if unknown or not events:
        problem = f"{unknown[0]!r:.80} is no event of a webhook" if unknown else "a webhook needs an event"
        raise UsageError(f"{problem}; use some of {', '.join(EVENTS)}, or {EVERY!r} for all")
