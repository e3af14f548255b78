"""Submission of payloads."""

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
from spinney.apps.ingest.staff.batches import batch_of
from spinney.apps.ingest.staff.payloads import Incoming
from spinney.apps.ingest.staff.service import BATCH, Service, introduce
from spinney.errors import CommitUncertain, NoSuchJob, Refused, SpinneyError, UsageError, did_you_mean, listed
from spinney.jobs import Options, State, names
from spinney.operations import Role, SubmissionKey, SubmitResult, authorized

_NOTHING = Description()
_RESPONSE = re.compile(r"[a-z][a-z0-9-]{0,19}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deposit:
    """The description of a payload that is submitted."""

    name: str
    """Its file name."""
    profile: str
    submitter: str | None = None
    """The person in whose name it is submitted; None: the caller."""
    kind: PayloadKind | None = None
    """None: as declared in the manifest."""
    update: bool = False
    digest: Digest | None = None
    about: Description = _NOTHING
    """The description of the object, where the payload is a single one."""
    response: str = "json"
    notify: tuple[str, ...] = ()
    """Mail addresses that get the reports of this batch, too."""
    fail_at: str | None = None
    """For drills: each object fails once at this stage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A batch that is durable."""

    bid: str
    job: int
    kind: PayloadKind
    size_bytes: int
    state: BatchState
    held: str | None
    """Why its profile holds it on submission; None: it does not."""
    repeated: bool = False
    """Whether the same was submitted before under the same key: this is the batch that was made then."""


class Arrival:
    """A payload that is being received: ``with`` makes its folder below ``incoming`` and keeps its file open.

    When an error leaves the block, the folder is removed again. It holds no connection to the store, so that a payload
    may take hours to arrive. A complete and finished payload is submitted with ``accept``.
    """

    def __init__(self, settings: Settings, profile: Profile, deposit: Deposit, key: str | None) -> None:
        self.settings, self.profile, self.deposit, self.key = settings, profile, deposit, key
        self.bid = orders.new_bid()
        self.file = Incoming(
            settings.incoming / self.bid / deposit.name, deposit.digest, recognizable=key is not None
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
        """Return the error for a full disk."""
        error = disk_space.no_room(self.settings.incoming, mend="make room, and hand it in again")
        return Refused(str(error))

    def forget(self) -> None:
        """Remove the payload and its hold file."""
        held_batches.unhold(self.settings, self.bid)
        shutil.rmtree(self.settings.incoming / self.bid, ignore_errors=True)


def expect(service: Service, deposit: Deposit, key: str | None = None) -> Arrival:
    """Check a submission before its payload is read, and return the place for the payload. ``key``: chosen by the
    caller, who can repeat the submission under it for a day, as when the answer was lost, without making a second
    batch.

    Raises UsageError for an invalid description, Forbidden.
    """
    deposit = replace(deposit, submitter=deposit.submitter or service.control.by)
    profile = profile_list.profile(service, deposit.profile)
    _require_valid(service, deposit)
    _require_reports(service.settings, profile, deposit)
    service.settings.require_home()
    introduce(service.store)
    _require_admitted(service, profile, deposit)
    return Arrival(service.settings, profile, deposit, key)


def accept(service: Service, arrival: Arrival) -> Accepted:
    """Submit the batch of a payload that has been received.

    Only this function removes the payload when it is refused: a caller who stops waiting does not know whether the
    batch was made.

    Raises NotAdmitted for a manifest or name that is not admitted, Refused, Forbidden, and CommitUncertain, with the
    batch, when the store did not answer; then the payload stays.
    """
    bid = arrival.bid
    try:
        order = _prepare(service, arrival)
    except BaseException as error:
        arrival.forget()
        if disk_space.is_full(error):
            raise arrival.no_room() from error
        raise
    try:
        submitted = _submit(service, arrival, order)
    except CommitUncertain as error:
        raise CommitUncertain(
            f"{error} 'spinney ingest status {bid}' tells whether the batch is there"
        ) from error
    except SpinneyError:
        arrival.forget()
        raise
    if submitted.repeated:
        arrival.forget()
        return _earlier_batch(service, submitted.ids[0], arrival)
    held = arrival.profile.hold
    state = BatchState.PENDING if held is None and not submitted.held else BatchState.HELD
    return Accepted(
        bid=bid,
        job=submitted.ids[0],
        kind=order.kind,
        size_bytes=arrival.file.size_bytes,
        state=state,
        held=held,
    )


def submit(service: Service, payload: BinaryIO, deposit: Deposit, key: str | None = None) -> Accepted:
    """Copy the payload to ``incoming``, and submit the batch. ``key``: see ``expect``.

    Raises what ``expect`` and ``accept`` raise, and Refused for a payload that does not have the given digest. Nothing
    is left behind then, except after CommitUncertain.
    """
    with expect(service, deposit, key) as arrival:
        arrival.file.copy(payload)
        arrival.file.finish()
    return accept(service, arrival)


def _prepare(service: Service, arrival: Arrival) -> BatchOrder:
    """Make the files of the batch durable, and return its order."""
    deposit, target = arrival.deposit, arrival.file.path
    for folder in (target.parent, target.parent.parent):
        copies.sync_folder(folder)
    kind = _kind(target, deposit)
    if arrival.profile.hold is not None:
        held_batches.hold(service.settings, arrival.bid, arrival.profile.hold)
    accepted = datetime.fromtimestamp(service.control.clock() // 1_000_000, UTC)
    return _order(arrival.bid, kind, deposit, accepted)


def _require_valid(service: Service, deposit: Deposit) -> None:
    try:
        component(deposit.name)
        if deposit.about.primary_id is not None:
            arks.canonical(deposit.about.primary_id)
        for what in ("creator", "title", "date"):
            fields.one_line(getattr(deposit.about, what) or "", what)
    except NotAdmitted as error:
        raise UsageError(str(error)) from None
    names.label("submitter", deposit.submitter or "")
    for local_id in deposit.about.local_ids:
        names.label("local id", local_id)
    try:
        orders.require_notified(deposit.notify)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if not _RESPONSE.fullmatch(deposit.response):
        raise UsageError(f"'{shown(deposit.response[:40])}' names no form of a response; write it as json")
    if deposit.fail_at is None:
        return
    if deposit.fail_at not in STAGES:
        hint = did_you_mean(deposit.fail_at, STAGES) or f"; use one of: {', '.join(STAGES)}"
        raise UsageError(f"an object has no stage '{shown(deposit.fail_at[:40])}'{hint}")
    if not service.settings.test_mode:
        raise UsageError(
            "a failure can be ordered in test mode only; set test_mode = true in the settings of a test"
        )


def _require_reports(settings: Settings, profile: Profile, deposit: Deposit) -> None:
    """Raise UsageError where reports are requested that the service or the profile does not send."""
    if not deposit.notify:
        return
    if settings.mail is None:
        raise UsageError("this service sends no mail; leave the notification out")
    if profile.report.kind is Kind.SUPPRESSED:
        raise UsageError(f"the profile {profile.name!r} has no reports sent; leave the notification out")


def _require_admitted(service: Service, profile: Profile, deposit: Deposit) -> None:
    """Raise Forbidden unless the batch may be submitted, before a long payload is read."""
    control = service.control
    control.require(Role.SUBMITTER, "hand payloads in")
    options = Options(collection=profile.collection, submitter=deposit.submitter)
    authorized(control, [options.submission(BATCH, ())], service.store.types(), internal=True)


def _kind(target: Path, deposit: Deposit) -> PayloadKind:
    kind = deposit.kind
    if kind is None:
        try:
            kind = manifests.kind_of(target)
        except manifests.ManifestRefused as error:
            raise UsageError(
                f"{error}. If it is none, say with --kind what it is: {listed(PayloadKind)}"
            ) from None
    described = [name for name in Description.model_fields if getattr(deposit.about, name)]
    if kind.is_batch and described:
        raise UsageError(f"{', '.join(described)}: a {kind} says this of each of its objects; write it there")
    return kind


def _order(bid: str, kind: PayloadKind, deposit: Deposit, accepted: datetime) -> BatchOrder:
    return BatchOrder(
        bid=bid,
        profile=deposit.profile,
        kind=kind,
        name=deposit.name,
        submitter=deposit.submitter or "",
        update=deposit.update,
        digest=Sum.of(deposit.digest),
        about=deposit.about,
        response=deposit.response,
        notify=deposit.notify,
        fail_at=cast("Stage | None", deposit.fail_at),
        accepted=accepted,
    )


def _submit(service: Service, arrival: Arrival, order: BatchOrder) -> SubmitResult:
    params = {"order": order.model_dump(mode="json", exclude_defaults=True)}
    options = Options(
        collection=arrival.profile.collection, submitter=order.submitter, key=order.bid, forever=True
    )
    once = (
        None
        if arrival.key is None
        else SubmissionKey(owner=service.control.by, key=arrival.key, digest=_submission_digest(arrival))
    )
    return service.control.submit(BATCH, [params], options, once=once, internal=True)


def _submission_digest(arrival: Arrival) -> str:
    """Return a digest of the payload and its description."""
    return hashlib.sha256(f"ingest.submit\0{arrival.deposit!r}\0{arrival.file.sha256}".encode()).hexdigest()


def _earlier_batch(service: Service, job_id: int, arrival: Arrival) -> Accepted:
    try:
        job = service.store.job(job_id)
    except NoSuchJob:
        job = None
    if job is None or job.state is State.DELETED:
        raise Refused("the batch that was made under this key has been deleted; choose a new key")
    batch = batch_of(service, job)
    held = held_batches.reason(arrival.settings, batch.bid)
    state = batch.state if held is None else BatchState.HELD
    return Accepted(
        bid=batch.bid,
        job=job_id,
        kind=batch.order.kind,
        size_bytes=arrival.file.size_bytes,
        state=state,
        held=held,
        repeated=True,
    )
