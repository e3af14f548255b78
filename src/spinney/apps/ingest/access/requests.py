"""Requests for packages: making one, and looking up its state."""

import hashlib
import hmac
import secrets
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import orjson

from spinney.apps.ingest.access import forecast, packages, tickets
from spinney.apps.ingest.access.tickets import TYPE, AccessOrder, Ticket
from spinney.apps.ingest.config import open_resources
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.identifiers import arks
from spinney.apps.ingest.inventory import Object, Version
from spinney.containers.pack import Format
from spinney.errors import DuplicateKey, Refused
from spinney.jobs import SETTLED, Job, Options, State

if TYPE_CHECKING:  # a worker that packs needs neither
    from spinney.operations import Control, Store

SMALL, LARGE = "access-small", "access-large"
_TRIES = 5
"""How often a request is tried that others make at the same moment."""


def request(
    control: "Control",
    settings: Settings,
    ark: str,
    *,
    version: int | None = None,
    format_: Format = Format.ZIP,
    submitter: str | None = None,
) -> Ticket:
    """Request a package of a version of an object (None: the newest), and return its ticket at once. The request
    belongs to the collection of the object, so that the same people can see both.

    The same request again returns the same token, as long as it is open or its package is valid. A request that failed
    or was cancelled is retried under its token; when the package has expired, a new one is made under a new token.

    Raises NotAdmitted for an invalid ARK, Refused for an object that is not in the inventory (or not visible),
    Forbidden, UnknownType before a node has registered the job type in the store.
    """
    object_ = visible_object(control, settings, ark)
    chosen = version_of(object_, version)
    order = AccessOrder(
        ark=object_.ark,
        version=chosen.version,
        created=chosen.created,
        storage=chosen.storage,
        files=chosen.files,
        size_bytes=chosen.size_bytes,
        format=format_,
        secret=secrets.token_hex(16),  # 128 random bits
    )
    queue = SMALL if chosen.size_bytes <= settings.access.small_bytes else LARGE
    options = Options(
        queue=queue,
        submitter=submitter or control.by,
        collection=object_.collection,
        key=_key(control, order, object_.collection),
        forever=True,
    )
    submit = partial(control.submit, TYPE, [{"order": order.model_dump(mode="json")}], internal=True)
    for _ in range(_TRIES):
        try:
            job_id = submit(options).ids[0]
        except DuplicateKey as duplicate:
            job = tickets.find_job(control.store, duplicate.job_id)
            if job is not None and job.type != TYPE:  # somebody saw the key, and used it when it was free
                options = replace(options, key=None, forever=False)
                continue
            job = None if job is None else _reuse(control, settings, job)
        else:
            job = control.store.job(job_id)
        if job is not None:
            return _ticket(control.store, settings, job)
    raise Refused(f"others request {object_.ark} at the same moment; request it again")


def look(control: "Control", settings: Settings, token: str) -> Ticket:
    """Return the ticket of a request.

    Raises Refused for a token that is invalid, whose request was deleted, or whose job the person may not see; the
    message is the same, so that it reveals nothing about the requests of others.
    """
    job_id = tickets.job_of(token)
    is_visible = tickets.find_job(control.queries, job_id) is not None
    job = tickets.find_job(control.store, job_id) if is_visible else None  # with the secret in its parameters
    if job is None or not tickets.fits(token, job):
        raise Refused("there is no request with this token (any more); request the package again")
    return _ticket(control.store, settings, job)


def _key(control: "Control", order: AccessOrder, collection: str) -> str:
    """Return a key that is the same for the same request, and that nobody can predict: keys are shared by all jobs, and
    another person could otherwise submit a job of their own under it."""
    secret = control.store.sign_in.secret("access-key", now_us=control.clock())
    content = orjson.dumps([order.ark, order.version, order.format, collection])
    return f"access-{hmac.digest(secret, content, hashlib.sha256).hex()[:32]}"


def visible_object(control: "Control", settings: Settings, ark: str) -> Object:
    """Return the inventory's entry of an object that the person may see. Raises NotAdmitted for an invalid ARK, Refused
    for an object that is not there, or not visible."""
    object_ = open_resources.inventory(settings).object(arks.canonical(ark))
    within = control.rights.within.collections
    if object_ is None or (within is not None and object_.collection not in within):
        raise Refused(
            f"{arks.canonical(ark)} is not in the inventory; look for it with 'spinney ingest find'"
        )
    return object_


def version_of(object_: Object, number: int | None) -> Version:
    """Return a version of the object (None: the newest). Raises Refused."""
    if number is None:
        return object_.head
    chosen = next((v for v in object_.versions if v.version == number), None)
    if chosen is None:
        existing = ", ".join(str(v.version) for v in object_.versions[-20:])
        raise Refused(f"{object_.ark} has no version {number}; it has: {existing}")
    return chosen


def _reuse(control: "Control", settings: Settings, job: Job) -> Job | None:
    """Return the job of an earlier, equal request, retried if it failed; None: it is of no use, so
    that a new one has to be made.

    A job whose package has expired is deleted here, which frees the key for the new one.
    """
    if job.state is State.DELETED:
        return None
    if job.state not in SETTLED:
        return job
    folder = settings.packages / tickets.token(job.id, tickets.order_of(job))
    if job.state is not State.COMPLETED:
        if not _apply(control, "retry", job):
            return None
        control.wake_nodes()
        return control.store.job(job.id)
    if packages.valid(folder, datetime.now(UTC)) is not None:
        return job
    _apply(control, "delete", job)  # its folder is the nodes' to remove
    return None


def _apply(control: "Control", verb: str, job: Job) -> bool:
    """Apply a verb to a job; return False where it was refused, because another caller with the same request was
    quicker. It does not take the person's rights to that verb: whoever may have the package may have it made again,
    even if another person requested it first."""
    from spinney.operations import Order, Verb

    order = Order(verb=Verb(verb))
    return bool(control.store.bulk.apply(order, [job.id], control.actor(), now_us=control.clock()).touched)


def _ticket(store: "Store", settings: Settings, job: Job) -> Ticket:
    """Return the ticket of a request, with an estimate while it is open."""
    now = datetime.now(UTC)
    package = packages.valid(settings.packages / tickets.token(job.id, tickets.order_of(job)), now)
    soon = None
    if job.state not in SETTLED and job.state is not State.HELD:
        soon = forecast.anticipated(store, job, settings.access.bytes_s, now)
    return tickets.ticket(job, settings, package, soon)
