"""Handing a payload in."""

import hashlib
import re
import shutil
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Self, cast

from spinney.apps.ingest import manifests
from spinney.apps.ingest.application import STAGES
from spinney.apps.ingest.batches import held_batches
from spinney.apps.ingest.config.profiles import Profile
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.deposits import orders
from spinney.apps.ingest.deposits.orders import BatchOrder, Description, Stage, Sum
from spinney.apps.ingest.deposits.states import BatchState
from spinney.apps.ingest.files import copies, disk_space
from spinney.apps.ingest.files.digests import Digest
from spinney.apps.ingest.files.paths import NotAdmitted, component, shown
from spinney.apps.ingest.identifiers import arks
from spinney.apps.ingest.manifests import PayloadKind, fields
from spinney.apps.ingest.report import Kind
from spinney.apps.ingest.staff import profile_list
from spinney.apps.ingest.staff.batches import seen
from spinney.apps.ingest.staff.payloads import Incoming
from spinney.apps.ingest.staff.service import BATCH, Service, introduce
from spinney.errors import CommitUncertain, NoSuchJob, Refused, SpinneyError, UsageError, did_you_mean, listed
from spinney.jobs import Options, State, names
from spinney.operations import Role, SubmissionKey, SubmitResult, authorized

_NOTHING = Description()
_RESPONSE = re.compile(r"[a-z][a-z0-9-]{0,19}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deposit:
    """What is said of a payload."""

    name: str
    """Its file name."""
    profile: str
    submitter: str | None = None
    """In whose name; None: of who hands it in."""
    kind: PayloadKind | None = None
    """None: what the manifest says of itself."""
    update: bool = False
    digest: Digest | None = None
    about: Description = _NOTHING
    """Of the object, where the payload is one."""
    response: str = "json"
    notify: tuple[str, ...] = ()
    """Mail addresses that get the reports of this batch, too."""
    fail_at: str | None = None
    """A drill: each object fails once at this stage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A batch that is durable."""

    bid: str
    job: int
    kind: PayloadKind
    size_bytes: int
    state: BatchState
    held: str | None
    """Why it is held as it comes; None: it is not, by its profile."""
    repeated: bool = False
    """The same was handed in before, under the same key: it is the batch that was made then."""


class Arrival:
    """A payload that may come in: ``with`` makes its place below ``incoming`` and keeps its file open.

    Where an error leaves the block, the place is removed again. It knows no store, so that a payload may take hours to
    come. What has come whole, and is finished, is handed over with ``accept``.
    """

    def __init__(self, settings: Settings, profile: Profile, given: Deposit, key: str | None) -> None:
        self.settings, self.profile, self.given, self.key = settings, profile, given, key
        self.bid = orders.new_bid()
        self.file = Incoming(
            settings.incoming / self.bid / given.name, given.digest, known_again=key is not None
        )

    def __enter__(self) -> Self:
        try:
            self.file.path.parent.mkdir()
            self.file.__enter__()
        except BaseException:
            self.forget()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        self.file.__exit__()
        if kind is not None:
            self.forget()
        if disk_space.is_full(error):
            raise self.no_room() from error

    def no_room(self) -> Refused:
        """Why it cannot be handed in now."""
        found = disk_space.no_room(self.settings.incoming, mend="make room, and hand it in again")
        return Refused(str(found))

    def forget(self) -> None:
        """Remove it with all that was written for it."""
        held_batches.unhold(self.settings, self.bid)
        shutil.rmtree(self.settings.incoming / self.bid, ignore_errors=True)


def expect(service: Service, given: Deposit, key: str | None = None) -> Arrival:
    """Return the place for a payload that may be handed in: asked before it is read. ``key``: a word of the caller's,
    under which the same may be handed in again for a day, whatever became of the answer; it makes no second batch.

    Raises UsageError for what cannot be meant, Forbidden.
    """
    given = replace(given, submitter=given.submitter or service.control.by)
    profile = profile_list.profile(service, given.profile)
    _require_meant(service, given)
    _require_told(service.settings, profile, given)
    service.settings.require_home()
    introduce(service.store)
    _require_admitted(service, profile, given)
    return Arrival(service.settings, profile, given, key)


def accept(service: Service, arrival: Arrival) -> Accepted:
    """Submit the batch of a payload that has come in.

    Its place is removed here where it is refused, and by nobody else: whoever waits for this may have gone meanwhile,
    and the batch is there nevertheless.

    Raises NotAdmitted for a manifest or name that is not admitted, Refused, Forbidden, and CommitUncertain, with the
    batch, when the store did not answer; then the payload stays.
    """
    bid = arrival.bid
    try:
        order = _prepared(service, arrival)
    except BaseException as error:
        arrival.forget()
        if disk_space.is_full(error):
            raise arrival.no_room() from error
        raise
    try:
        done = _submitted(service, arrival, order)
    except CommitUncertain as error:
        raise CommitUncertain(
            f"{error} 'spinney ingest status {bid}' tells whether the batch is there"
        ) from error
    except SpinneyError:
        arrival.forget()
        raise
    if done.repeated:
        arrival.forget()
        return _made_before(service, done.ids[0], arrival)
    held = arrival.profile.hold
    state = BatchState.PENDING if held is None and not done.held else BatchState.HELD
    return Accepted(
        bid=bid, job=done.ids[0], kind=order.kind, size_bytes=arrival.file.size_bytes, state=state, held=held
    )


def submit(service: Service, payload: BinaryIO, given: Deposit, key: str | None = None) -> Accepted:
    """Copy the payload to where batches come in, and submit the batch. ``key``: see ``expect``.

    Raises what ``expect`` and ``accept`` raise, and Refused for a payload that is not as was said. Nothing is left
    behind then, unless it is CommitUncertain.
    """
    with expect(service, given, key) as arrival:
        arrival.file.copy(payload)
        arrival.file.finish()
    return accept(service, arrival)


def _prepared(service: Service, arrival: Arrival) -> BatchOrder:
    """What the batch is submitted with, once all that it needs is durable."""
    given, target = arrival.given, arrival.file.path
    for made in (target.parent, target.parent.parent):
        copies.sync_folder(made)
    kind = _kind(target, given)
    if arrival.profile.hold is not None:
        held_batches.hold(service.settings, arrival.bid, arrival.profile.hold)
    accepted = datetime.fromtimestamp(service.control.clock() // 1_000_000, UTC)
    return _order(arrival.bid, kind, given, accepted)


def _require_meant(service: Service, given: Deposit) -> None:
    try:
        component(given.name)
        if given.about.primary_id is not None:
            arks.canonical(given.about.primary_id)
        for what in ("creator", "title", "date"):
            fields.one_line(getattr(given.about, what) or "", what)
    except NotAdmitted as error:
        raise UsageError(str(error)) from None
    names.label("submitter", given.submitter or "")
    for local_id in given.about.local_ids:
        names.label("local id", local_id)
    try:
        orders.require_notified(given.notify)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if not _RESPONSE.fullmatch(given.response):
        raise UsageError(f"'{shown(given.response[:40])}' names no form of a response; write it as json")
    if given.fail_at is None:
        return
    if given.fail_at not in STAGES:
        hint = did_you_mean(given.fail_at, STAGES) or f"; use one of: {', '.join(STAGES)}"
        raise UsageError(f"an object has no stage '{shown(given.fail_at[:40])}'{hint}")
    if not service.settings.test_mode:
        raise UsageError(
            "a failure can be ordered in test mode only; set test_mode = true in the settings of a test"
        )


def _require_told(settings: Settings, profile: Profile, given: Deposit) -> None:
    """Whoever asks for reports must get some."""
    if not given.notify:
        return
    if settings.mail is None:
        raise UsageError("this service sends no mail; leave the notification out")
    if profile.report.kind is Kind.SUPPRESSED:
        raise UsageError(f"the profile {profile.name!r} has no reports sent; leave the notification out")


def _require_admitted(service: Service, profile: Profile, given: Deposit) -> None:
    """Raise Forbidden unless the batch may be submitted: before a long payload is read."""
    control = service.control
    control.require(Role.SUBMITTER, "hand payloads in")
    options = Options(collection=profile.collection, submitter=given.submitter)
    authorized(control, [options.submission(BATCH, ())], service.store.types(), internal=True)


def _kind(target: Path, given: Deposit) -> PayloadKind:
    kind = given.kind
    if kind is None:
        try:
            kind = manifests.kind_of(target)
        except manifests.ManifestRefused as error:
            raise UsageError(
                f"{error}. If it is none, say with --kind what it is: {listed(PayloadKind)}"
            ) from None
    said = [name for name in Description.model_fields if getattr(given.about, name)]
    if kind.is_batch and said:
        raise UsageError(f"{', '.join(said)}: a {kind} says this of each of its objects; write it there")
    return kind


def _order(bid: str, kind: PayloadKind, given: Deposit, accepted: datetime) -> BatchOrder:
    return BatchOrder(
        bid=bid,
        profile=given.profile,
        kind=kind,
        name=given.name,
        submitter=given.submitter or "",
        update=given.update,
        digest=Sum.of(given.digest),
        about=given.about,
        response=given.response,
        notify=given.notify,
        fail_at=cast("Stage | None", given.fail_at),
        accepted=accepted,
    )


def _submitted(service: Service, arrival: Arrival, order: BatchOrder) -> SubmitResult:
    params = {"order": order.model_dump(mode="json", exclude_defaults=True)}
    options = Options(
        collection=arrival.profile.collection, submitter=order.submitter, key=order.bid, forever=True
    )
    once = (
        None
        if arrival.key is None
        else SubmissionKey(owner=service.control.by, key=arrival.key, digest=_whole(arrival))
    )
    return service.control.submit(BATCH, [params], options, once=once, internal=True)


def _whole(arrival: Arrival) -> str:
    """A digest of all that was handed in."""
    return hashlib.sha256(f"ingest.submit\0{arrival.given!r}\0{arrival.file.sha256}".encode()).hexdigest()


def _made_before(service: Service, job_id: int, arrival: Arrival) -> Accepted:
    try:
        job = service.store.job(job_id)
    except NoSuchJob:
        job = None
    if job is None or job.state is State.DELETED:
        raise Refused("the batch that was made under this key has been deleted; choose a new key")
    found = seen(service, job)
    held = held_batches.reason(arrival.settings, found.bid)
    state = found.state if held is None else BatchState.HELD
    return Accepted(
        bid=found.bid,
        job=job_id,
        kind=found.order.kind,
        size_bytes=arrival.file.size_bytes,
        state=state,
        held=held,
        repeated=True,
    )
