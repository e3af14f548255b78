"""Asking for a package, and looking what became of it."""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import orjson

from spinney.apps.ingest.access import forecast, packages, tickets
from spinney.apps.ingest.access.archives import Format
from spinney.apps.ingest.access.tickets import TYPE, AccessOrder, Ticket
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.identifiers import arks
from spinney.apps.ingest.inventory import Object, Version, open_inventory
from spinney.errors import DuplicateKey, NoSuchJob, Refused, UnlawfulTransition
from spinney.jobs import SETTLED, Job, Options, State

if TYPE_CHECKING:  # a worker that packs needs neither
    from spinney.operations import Control, Store

SMALL, LARGE = "access-small", "access-large"
_TRIES = 5
"""Of a request that others make at the same moment."""


def request(
    control: "Control",
    settings: Settings,
    ark: str,
    *,
    version: int | None = None,
    format_: Format = Format.ZIP,
    submitter: str | None = None,
) -> Ticket:
    """Ask for a version of an object (None: the newest), and answer at once. The request belongs to the collection of
    the object, so that whoever sees the one sees the other.

    The same request again answers the same token, as long as it is open or its package stands. One that failed or was
    cancelled is tried again under its token; when the package has expired, a new one is made under a new token.

    Raises NotAdmitted for what is no ARK, Refused for what the inventory has not (also when its collection is out of
    sight), Forbidden, UnknownType before a node has brought the job type into the store.
    """
    found = recorded(settings, arks.canonical(ark), control.rights.within.collections)
    chosen = version_of(found, version)
    order = AccessOrder(
        ark=found.ark,
        version=chosen.version,
        created=chosen.created,
        storage=chosen.storage,
        files=chosen.files,
        size_bytes=chosen.size_bytes,
        format=format_,
        secret=tickets.new_secret(),
    )
    queue = SMALL if chosen.size_bytes <= settings.access.small_bytes else LARGE
    options = Options(
        queue=queue,
        submitter=submitter or control.by,
        collection=found.collection,
        key=_key(control, order, found.collection),
        forever=True,
    )
    place = partial(control.submit, TYPE, [{"order": order.model_dump(mode="json")}], internal=True)
    for _ in range(_TRIES):
        try:
            job_id = place(options).ids[0]
        except DuplicateKey as taken:
            if _is_foreign(control, taken.job_id):
                options = replace(options, key=None, forever=False)
                continue
            known = _taken_up(control, settings, taken.job_id)
        else:
            known = control.store.job(job_id)
        if known is not None:
            return _ticket(control.store, settings, known)
    raise Refused(f"others ask for {found.ark} at the same moment; ask again")


def look(store: "Store", settings: Settings, token: str) -> Ticket:
    """What became of a request. Raises Refused for a token that is none, or of which nothing is kept any more."""
    job = _job(store, tickets.job_of(token))
    if job is None or not tickets.fits(token, job):
        raise Refused("there is no request with this token (any more); ask for the package again")
    return _ticket(store, settings, job)


def _key(control: "Control", order: AccessOrder, collection: str) -> str:
    """The same for the same request, and known to nobody beforehand: all jobs share their keys, and whoever could tell
    this one might take it for a job of his own."""
    secret = control.store.sign_in.secret("access-key", now_us=control.clock())
    told = orjson.dumps([order.ark, order.version, order.format, collection])
    return f"access-{hmac.digest(secret, told, hashlib.sha256).hex()[:32]}"


def _is_foreign(control: "Control", job_id: int) -> bool:
    """Whether the key of a request is that of a job that is none: somebody saw it, and took it when it was free."""
    job = _job(control.store, job_id)
    return job is not None and job.type != TYPE


def recorded(settings: Settings, ark: str, within: Sequence[str] | None) -> Object:
    """What the inventory has of an object. Raises Refused for what it has not, or what is out of sight."""
    with open_inventory(settings.inventory) as inventory:
        found = inventory.object(ark)
    if found is None or (within is not None and found.collection not in within):
        raise Refused(f"{ark} is not in the inventory; look for it with 'spinney ingest find'")
    return found


def version_of(found: Object, number: int | None) -> Version:
    """A version of it (None: the newest). Raises Refused."""
    if number is None:
        return found.versions[-1]
    chosen = next((v for v in found.versions if v.version == number), None)
    if chosen is None:
        there = ", ".join(str(v.version) for v in found.versions[-20:])
        raise Refused(f"{found.ark} has no version {number}; it has: {there}")
    return chosen


def _taken_up(control: "Control", settings: Settings, job_id: int) -> Job | None:
    """The job that the same request made before, once it is of use; None: there is none any more, so ask anew."""
    job = _job(control.store, job_id)
    if job is None or job.state is State.DELETED:
        return None
    if job.state not in SETTLED:
        return job
    folder = settings.packages / tickets.token(job.id, tickets.order_of(job))
    try:
        if job.state is not State.COMPLETED:
            # Not the person's verb: whoever may have the package may have it made, whoever asked for it first.
            control.store.retry(job.id, stage=None, by=control.by, now_us=control.clock())
            control.wake_nodes()
            return control.store.job(job.id)
        if packages.standing(folder, datetime.now(UTC)) is not None:
            return job
        control.store.delete(
            job.id, by=control.by, now_us=control.clock()
        )  # its folder is the nodes' to remove
    except (NoSuchJob, Refused, UnlawfulTransition):
        return None  # another who asks for the same was quicker
    return None


def _ticket(store: "Store", settings: Settings, job: Job) -> Ticket:
    now = datetime.now(UTC)
    package = packages.standing(settings.packages / tickets.token(job.id, tickets.order_of(job)), now)
    soon = None
    if job.state not in SETTLED and job.state is not State.HELD:
        soon = forecast.anticipated(store, job, settings.access.bytes_s, now)
    return tickets.ticket(job, settings, package, soon)


def _job(store: "Store", job_id: int | None) -> Job | None:
    try:
        return None if job_id is None else store.job(job_id)
    except NoSuchJob:
        return None
