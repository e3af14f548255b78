"""Uploads to inboxes: whoever may submit an inbox's jobs may upload files to it, in as many requests as it
takes.

The steps of an upload, and what a crash between them leaves, are described in
``spinney.folders.upload_folder``. Its job is submitted in the uploader's name, whatever ``submitter`` the
inbox has, and is checked as any other submission of the uploader is, when the upload begins and when its last
bytes are here.

The calls in order: ``begin``; then ``open`` at ``received``, write, ``seal`` and close, as often as it takes;
and ``finish`` when ``seal`` says that all bytes are here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import orjson

from spinney.define.params.schema import checker
from spinney.features.files import folder_writes
from spinney.features.inboxes.arrival_rows import submission_of
from spinney.features.inboxes.sql import paused_words
from spinney.folders import folders, upload_steps
from spinney.folders.upload_folder import OpenUpload, UploadFolder
from spinney.folders.upload_pieces import described, piece_of
from spinney.model.access import Role
from spinney.model.errors import NoSuch, NoSuchJob, Refused, UsageError
from spinney.model.jobs import Submission
from spinney.model.settings.inboxes import Drop, Inbox, Kind, Upload
from spinney.model.types import INTERNAL, TypeSpec, known_type, passed_queues
from spinney.service.service import ASK, Service
from spinney.service.submit_rights import authorized
from spinney.web.files import spool


class InboxUploads(Service):
    """Begins and continues uploads of one user, who sees no upload of others. ``root``: the folder root
    of the jobs."""

    def begin(self, root: Path, upload: Upload, *, is_here: bool = False) -> Upload:
        """Begin an upload, or return the one of the same file that was interrupted.

        The id and the user of ``upload`` are filled in. ``is_here``: its bytes are on the disk of the
        root already.

        Raises NoSuch, UsageError (the name), Refused (a paused inbox, bytes that came before, too
        many uploads), DiskFull, and what submitting a job of the inbox raises.
        """
        upload = replace(upload, by=self.by)
        _require_name(upload.name)
        inbox, submission = self._may(upload)
        checker(known_type(self.store.types(), inbox.type))(orjson.loads(submission.params[0]))
        folder_writes.require_local_folder(self.store, root, None)
        if inbox.paused:
            raise Refused(paused_words(inbox.name))
        if upload.announced is not None:
            duplicate = self.store.inboxes.job_with(inbox.name, upload.announced)
            if duplicate.reason is not None:
                raise Refused(self._duplicate_text(duplicate.reason, duplicate.job_id))
        return UploadFolder(root).begin(upload, is_here=is_here)

    def require_may(self, inbox: str) -> Inbox:
        """Return an inbox to which the caller may upload. Raises NoSuch, and what submitting a job of
        the inbox raises."""
        return self._may(Upload(id="", inbox=inbox, name="file", size=0, by=self.by))[0]

    def names(self, type_: str) -> list[str]:
        """Return the names of the inboxes for jobs of a type that exist for the caller."""
        if not self.rights.permits(Role.SUBMITTER):
            return []
        types, inboxes = self.store.types(), self.store.inboxes.all()
        return [inbox.name for inbox in inboxes if inbox.type == type_ and self._is_visible(inbox, types)]

    def find(self, root: Path, inbox: str, upload_id: str) -> Upload:
        """Return an upload as it is now. Raises NoSuch, also for an upload of another user or to
        another inbox."""
        self.require(Role.SUBMITTER, "upload files to inboxes")
        upload = UploadFolder(root).get(upload_id, self.by)
        if upload.inbox != inbox:
            raise NoSuch(f"{self.by} has no upload {upload_id[:40]!r} to inbox {inbox!r}; begin a new one")
        return self._shown(upload)

    def opened(self, root: Path, inbox: str) -> list[Upload]:
        """Return the caller's open uploads to an inbox, which can be resumed."""
        return [upload for upload in UploadFolder(root).opened_by(self.by) if upload.inbox == inbox]

    def withdraw(self, root: Path, inbox: str, upload_id: str) -> Upload:
        """Remove an open upload with what has come of it, and return it.

        Raises NoSuch, StoreUnavailable (another request is writing to it) and Refused: it has its
        job, or was rejected.
        """
        self.find(root, inbox, upload_id)
        opened = UploadFolder(root).locked(upload_id, self.by)
        if isinstance(opened, Upload):
            reason = self._shown(opened).reason or f"it became job {opened.job_id}; cancel that job instead"
            raise Refused(f"{opened.name!r} cannot be withdrawn any more: {reason}")
        with opened:
            upload = opened.upload
            if upload.sha256 is not None and self.store.inboxes.of_upload(upload) is not None:
                raise Refused(
                    f"{upload.name!r} is becoming a job, which is shown in a minute; cancel that job instead"
                )
            opened.discard()
        return upload

    def open(self, root: Path, inbox: str, upload_id: str, offset: int) -> OpenUpload | Upload:
        """Return an upload to continue at this offset, which the caller closes; or the finished
        upload, when it is done.

        Rights are checked again: they may have changed since it began. Raises NoSuch,
        StoreUnavailable (another request is writing to it), DiskFull, and Refused: it was rejected,
        or it continues at another offset.
        """
        self.find(root, inbox, upload_id)
        folder_writes.require_local_folder(self.store, root, None)
        opened = UploadFolder(root).locked(upload_id, self.by)
        if isinstance(opened, Upload):
            return self._answer(opened)
        try:
            self._may(opened.upload)
            opened.require_at(offset)
            folders.require_room(root, f"the upload of {opened.upload.name!r} cannot continue now: ")
        except BaseException:
            opened.close()
            raise
        return opened

    def finish(self, opened: OpenUpload) -> Upload:
        """Make the job of an upload that has all its bytes (``seal``), and return the upload with it.

        Raises Refused when it is rejected, for bytes that came before or that are not those
        announced; and as ``begin``: then it stays, and may be finished later.
        """
        upload = opened.upload
        if upload.announced is not None and upload.announced != upload.sha256:
            why = (
                f"its bytes have the SHA-256 {upload.sha256}, not the one that was announced; upload it again"
            )
            return self._answer(opened.settle(None, why))
        _, submission = self._may(upload)
        drop = _drop(upload, self.clock())
        arrival = self.store.inboxes.accept_upload(upload, drop, submission, now_us=self.clock())
        do = partial(upload_steps.call, self.store)
        done = upload_steps.finish(do, opened, arrival, now_us=self.clock())
        self.wake_nodes()
        return self._answer(done)

    def send_file(self, root: Path, inbox: str, file: Path, *, name: str | None = None) -> Iterator[Upload]:
        """Upload a file of this host, and yield how far it is after each piece, until it has its job.

        An interrupted upload of the same file is resumed. Raises as ``begin``, ``open`` and
        ``finish``.
        """
        upload = self.begin(root, described(inbox, file, name))
        with file.open("rb") as source:
            while not upload.is_done:
                opened = self.open(root, upload.inbox, upload.id, upload.received)
                if isinstance(opened, Upload):
                    upload = opened
                else:
                    with opened:
                        opened.write(piece_of(source, upload))
                        upload = self.finish(opened) if opened.seal() else opened.upload
                yield upload

    # --- rights ---------------------------------------------------------------------------------

    def _inbox(self, name: str, types: Mapping[str, TypeSpec]) -> Inbox:
        """Return an inbox by name. Raises NoSuch without similar names: a submitter may not list inboxes, and an inbox
        whose jobs the caller could not see does not exist for the caller."""
        self.require(Role.SUBMITTER, "upload files to inboxes")
        for inbox in self.store.inboxes.all():
            if inbox.name == name and self._is_visible(inbox, types):
                return inbox
        raise NoSuch(f"there is no inbox {name[:100]!r}; {ASK} for its name")

    def _is_visible(self, inbox: Inbox, types: Mapping[str, TypeSpec]) -> bool:
        """Return whether the inbox names neither a collection nor a queue beyond the caller's limits. One without a
        collection is visible: the jobs of an upload come into the caller's own."""
        within, collection = self.rights.within, inbox.options.get("collection")
        if within.collections is not None and collection not in (None, *within.collections):
            return False
        passed = passed_queues(known_type(types, inbox.type), inbox.options.get("queue"))
        return within.queues is None or passed <= set(within.queues)

    def _may(self, upload: Upload) -> tuple[Inbox, Submission]:
        """Return the inbox of an upload, and the submission of its job with what rights fill in. Raises what
        ``authorized`` raises."""
        types = self.store.types()
        inbox = self._inbox(upload.inbox, types)
        spec = known_type(types, inbox.type)
        if spec.submit == INTERNAL:
            # The inbox answers for the parameters, but stages of such jobs trust what they find in their folders.
            self.require(Role.OPERATOR, f"upload files for {spec.name!r} jobs")
        submission = submission_of(inbox, _drop(upload, self.clock()), spec, submitter=self.by)
        (submission,) = authorized(self, [submission], types, internal=True)
        return inbox, submission

    def _answer(self, upload: Upload) -> Upload:
        """Return an upload that has its job. Raises Refused for one that was rejected."""
        if upload.reason is not None:
            raise Refused(self._duplicate_text(upload.reason, upload.job_id))
        return upload

    def _shown(self, upload: Upload) -> Upload:
        """Return an upload without the job that has its bytes already, where the caller may not see
        that job."""
        if upload.reason is None or self._may_see(upload.job_id):
            return upload
        return replace(upload, job_id=None, reason=self._duplicate_text(upload.reason, upload.job_id))

    def _duplicate_text(self, reason: str, job_id: int | None) -> str:
        """Return why bytes are refused, without the number of a job that the caller may not see."""
        if self._may_see(job_id):
            return reason
        return f"its bytes came before, and became a job that {self.by} may not see; {ASK}"

    def _may_see(self, job_id: int | None) -> bool:
        """Return whether the caller may learn of this job, or whether there is none."""
        if job_id is None or self.rights.everywhere:
            return True
        try:
            self.require_within(self.store.job(job_id))
        except NoSuchJob:
            return False
        return True


def _drop(upload: Upload, now_us: int) -> Drop:
    """Return an upload as a drop of its user."""
    return Drop(
        name=upload.name,
        kind=Kind.FILE,
        size=upload.size,
        identity=upload.identity,
        owner=upload.by,
        dropped_us=now_us,
        sha256=upload.sha256,
    )


def _require_name(name: str) -> None:
    """Raise UsageError for a name that no file in the folder of the job can have."""
    spool.checked(name)
    if "/" in name or name.startswith("-"):
        raise UsageError(
            f"{name[:100]!r} is no name of a file: it has a '/' in it, or begins with '-', which programs take for an "
            f"option; name it as in 'card.zip'"
        )
