"""The submission of payloads: each is received, checked, and made a batch.

The payload is copied to ``incoming/<bid>/<name>`` and synced, then (where the profile holds its batches) the
reason is written to ``held/<bid>``, then the batch's job is submitted under the key ``<bid>``, for ever. If
it is refused, both are removed again; if it is killed before the job exists, they stay, and ``sweep`` removes
them after a day.

It has three steps, so that a payload that takes hours to arrive occupies no thread and no connection of a
server: ``expect`` checks what can be known before, the caller writes into the ``Arrival``, and ``accept``
makes the batch. ``submit`` does all three for a payload that can be read here.
"""

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Self

from spinney.apps.ingest import manifests
from spinney.apps.ingest.batches import held_batches
from spinney.apps.ingest.config.profiles import Profile
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.deposits import orders
from spinney.apps.ingest.deposits.orders import BatchOrder
from spinney.apps.ingest.deposits.states import BatchState
from spinney.apps.ingest.manifests import About, PayloadKind
from spinney.apps.ingest.report import Kind
from spinney.apps.ingest.verbs.lookup import batch_of, find_profile
from spinney.apps.ingest.verbs.service import BATCH, Service, introduce, refused
from spinney.apps.ingest.verbs.submission import Submit
from spinney.errors import CommitUncertain, NoSuchJob, Refused, SpinneyError, UsageError, listed
from spinney.files import copies, disk_space
from spinney.files.digests import Sums
from spinney.files.paths import shown
from spinney.jobs import Options, State
from spinney.operations import Role, SubmissionKey, SubmitResult, authorized

_SHA256 = "sha256"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A batch that was accepted: its payload and its job are durable."""

    bid: str
    job: int
    kind: PayloadKind
    size_bytes: int
    state: BatchState
    held: str | None
    """Why its profile holds it on submission; None: it does not."""
    repeated: bool = False
    """Whether the same was submitted before under the same key: this is the batch that was made then."""

    def answer(self) -> dict[str, Any]:
        """Return the answer to the submission. A repetition gets the answer of the first."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "repeated"}


class Arrival:
    """A payload that is being received. It holds no connection to the store, so that it may take hours to arrive. A
    complete and finished payload is submitted with ``accept``.

    Digests are computed while the bytes pass, since a payload may be larger than memory and should not be read twice.
    """

    def __init__(
        self, settings: Settings, profile: Profile, submission: Submit, submitter: str, key: str | None
    ) -> None:
        self.settings, self.profile, self.key = settings, profile, key
        self.submission, self.submitter = submission, submitter
        self.bid = orders.new_bid()
        self.path = settings.incoming / self.bid / submission.name
        self.size_bytes = 0
        self._digest = submission.expected_digest
        algorithms = {self._digest.algorithm} if self._digest else set()
        self._sums = Sums(algorithms if key is None else algorithms | {_SHA256})
        self._file: BinaryIO | None = None

    @contextmanager
    def receiving(self) -> Iterator[Self]:
        """Make the payload's folder below ``incoming``, and keep its file open within the block. After an error the
        folder is removed again."""
        with self.removed_after_errors():
            self.path.parent.mkdir()
            with self.path.open("xb", buffering=0) as self._file:
                yield self

    def write(self, piece: bytes) -> None:
        """Append the next bytes to the file, and to its digests."""
        assert self._file is not None, "it is written while it is received"
        self._sums.update(piece)
        self.size_bytes += len(piece)
        copies.write_all(self._file, piece)

    @property
    def sha256(self) -> str:
        """The SHA-256 of all that has been written, in hexadecimal; computed only for a submission with a key."""
        return self._sums.values()[_SHA256]

    def copy(self, source: BinaryIO) -> None:
        """Append the content of ``source`` from its position on, which for stdin need not be the beginning. Raises
        Refused when it changed while it was read."""
        start = source.tell() if source.seekable() else 0
        while piece := source.read(copies.CHUNK_BYTES):
            self.write(piece)
        status = os.fstat(source.fileno())
        size_bytes = status.st_size - start
        if stat.S_ISREG(status.st_mode) and size_bytes != self.size_bytes:
            raise Refused(
                f"'{shown(self.path.name)}' has {size_bytes} bytes, and {self.size_bytes} were read: it changes; "
                f"submit it when it is complete"
            )

    def finish(self) -> None:
        """Make the file durable, but not its name: the caller syncs the folder. Raises Refused when it does
        not have the given digest."""
        assert self._file is not None, "it is finished while it is received"
        os.fsync(self._file.fileno())
        with refused():
            self._sums.require(self._digest, self.path.name)

    @contextmanager
    def removed_after_errors(self) -> Iterator[None]:
        """Remove the payload when an error leaves the block; that of a disk which is full or cannot be written becomes
        Refused, for the person."""
        try:
            yield
        except BaseException as error:
            self.forget()
            if (refusal := self._refusal(error)) is not None:
                raise refusal from error
            raise

    def _refusal(self, error: BaseException) -> Refused | None:
        """Return what the person is told about a disk that is full or cannot be written; None: it is another error."""
        if disk_space.is_full(error):
            remedy = "make room, and submit it again"
            return Refused(str(disk_space.no_room(self.settings.incoming, remedy=remedy)))
        if not isinstance(error, OSError):
            return None
        if error.errno == errno.EROFS:
            why, remedy = "its disk is read-only", "check the disk and mount it for writing"
        elif error.errno in (errno.EACCES, errno.EPERM):
            why, remedy = "the rights of its files forbid it", "let the user of this service write there"
        else:
            return None
        return Refused(f"{self.settings.home} cannot be written, since {why}; {remedy}, and submit it again")

    def forget(self) -> None:
        """Remove the payload and its hold file; without effect where they are gone. What a disk does not let go is
        left to ``sweep``."""
        with suppress(OSError):
            held_batches.unhold(self.settings, self.bid)
        shutil.rmtree(self.settings.incoming / self.bid, ignore_errors=True)


def expect(service: Service, submission: Submit, key: str | None = None) -> Arrival:
    """Check a submission before its payload is read, and return the place for the payload.

    ``key``: chosen by the caller, who can repeat the submission under it for a day, as when the answer was
    lost, without making a second batch. No file is made yet. Raises UsageError for an invalid description, a
    profile that does not exist or is not visible, and a home that does not exist; Forbidden.
    """
    submitter = submission.submitter or service.control.by
    profile = find_profile(service, submission.profile)
    submission.require_valid(service.settings)
    _require_reports(service.settings, profile, submission)
    service.settings.require_home()
    introduce(service.store)
    _require_admitted(service, profile, submitter)
    return Arrival(service.settings, profile, submission, submitter, key)


def accept(service: Service, arrival: Arrival) -> Accepted:
    """Submit the batch of a payload that has been received.

    Only this function removes the payload when it is refused: a caller who stops waiting does not know whether the
    batch was made.

    Raises NotAdmitted for a manifest or name that is not admitted, Refused, Forbidden, and CommitUncertain, with the
    batch, when the store did not answer; then the payload stays.
    """
    bid = arrival.bid
    with arrival.removed_after_errors():
        order = _prepare(service, arrival)
    try:
        submitted = _submit(service, arrival, order)
    except CommitUncertain as error:
        raise CommitUncertain(
            f"{error} 'spinney ingest status {bid}' shows whether the batch exists"
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
        size_bytes=arrival.size_bytes,
        state=state,
        held=held,
    )


def submit(service: Service, payload: BinaryIO, submission: Submit, key: str | None = None) -> Accepted:
    """Copy the payload to ``incoming``, and submit the batch. ``key``: see ``expect``.

    Raises what ``expect`` and ``accept`` raise, and Refused for a payload that does not have the given digest. Nothing
    is left behind then, except after CommitUncertain.
    """
    with expect(service, submission, key).receiving() as arrival:
        arrival.copy(payload)
        arrival.finish()
    return accept(service, arrival)


def _prepare(service: Service, arrival: Arrival) -> BatchOrder:
    """Make the files of the batch durable, and return its order.

    The hold file is written before the job exists, so that no node can begin with a batch that its profile
    holds. Raises UsageError for a payload whose kind is not known or does not fit its description, OSError.
    """
    target = arrival.path
    for folder in (target.parent, target.parent.parent):
        copies.sync_folder(folder)
    kind = _kind(target, arrival.submission)
    if arrival.profile.hold is not None:
        held_batches.hold(service.settings, arrival.bid, arrival.profile.hold)
    accepted = datetime.fromtimestamp(service.control.clock() // 1_000_000, UTC)
    return arrival.submission.order(arrival.bid, kind, arrival.submitter, accepted)


def _require_reports(settings: Settings, profile: Profile, submission: Submit) -> None:
    """Raise UsageError where reports are requested that the service or the profile does not send."""
    if not submission.notification:
        return
    if settings.mail is None:
        raise UsageError("this service sends no mail; leave the notification out")
    if profile.report.kind is Kind.SUPPRESSED:
        raise UsageError(f"the profile {profile.name!r} has no reports sent; leave the notification out")


def _require_admitted(service: Service, profile: Profile, submitter: str) -> None:
    """Raise Forbidden unless the batch may be submitted, before a long payload is read."""
    control = service.control
    control.require(Role.SUBMITTER, "submit payloads")
    options = Options(collection=profile.collection, submitter=submitter)
    authorized(control, [options.submission(BATCH, ())], service.store.types(), internal=True)


def _kind(target: Path, submission: Submit) -> PayloadKind:
    """Return the kind of the payload: as it was named, else as the manifest declares.

    Raises UsageError where neither says it, and for a description of one object with a manifest of many.
    """
    kind = submission.kind
    if kind is None:
        try:
            kind = manifests.kind_of(target)
        except manifests.ManifestRefused as error:
            raise UsageError(
                f"{error}; if this payload is not meant as a manifest, name its kind with --kind: "
                f"{listed(PayloadKind)}"
            ) from None
    about = submission.about
    described = [field.name for field in fields(About) if getattr(about, field.name)]
    if kind.is_batch and described:
        raise UsageError(f"{', '.join(described)}: a {kind} has this for each of its objects; write it there")
    return kind


def _submit(service: Service, arrival: Arrival, order: BatchOrder) -> SubmitResult:
    """Submit the batch's job, once for a key, whatever becomes of the answer.

    There are two keys: the name of the batch, by which it is found for ever, and the caller's idempotency
    key, if there is one, which belongs to the person and to exactly this payload and description. Raises
    SpinneyError; CommitUncertain where it is unknown whether the job exists.
    """
    params = {"order": order.model_dump(mode="json", exclude_defaults=True)}
    options = Options(
        collection=arrival.profile.collection, submitter=order.submitter, key=order.bid, forever=True
    )
    once = None
    if arrival.key is not None:
        digest = _submission_digest(arrival)
        once = SubmissionKey(owner=service.control.by, key=arrival.key, digest=digest)
    return service.control.submit(BATCH, [params], options, once=once, internal=True)


def _submission_digest(arrival: Arrival) -> str:
    """Return a digest of the payload and its description: another submission under the same idempotency key
    is refused by it."""
    return hashlib.sha256(
        f"ingest.submit\0{arrival.submission.model_dump_json()}\0{arrival.submitter}\0{arrival.sha256}".encode()
    ).hexdigest()


def _earlier_batch(service: Service, job_id: int, arrival: Arrival) -> Accepted:
    """Return the batch that the same submission made before. Raises Refused when it has been deleted."""
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
        size_bytes=arrival.size_bytes,
        state=state,
        held=held,
        repeated=True,
    )
