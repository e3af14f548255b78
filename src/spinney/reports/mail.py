"""The stage that sends a mail: it tracks the recipients who have received it and decides the outcome of its
job.

All that must outlast an attempt is in one entry of ``job.data`` (``Progress``), which is written before the
first try and after each one. Waiting is done by deferring, which uses up no attempt, so the attempts of the
stage are used up only by crashes and timeouts. While the server is away, the whole stage is put to sleep
(``lane``), and one mail tries whether it is back.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from email.utils import make_msgid
from pathlib import Path
from typing import Any, NoReturn

from spinney.define.job import Job
from spinney.model.attempts.signals import Defer, Fail, Hold, Warn
from spinney.model.errors import UsageError
from spinney.model.values.hints import first_of
from spinney.model.values.paths import job_folder
from spinney.reports import mail_attachments, mail_message, retry_times, smtp
from spinney.reports.addresses import RECIPIENTS_MAX
from spinney.reports.mail_attachments import Attachment, CannotAttach
from spinney.reports.mail_message import File, Mail
from spinney.reports.printable import printable
from spinney.reports.settings import DAY_S, MailSettings

ENTRY = "mail"
"""The name of the entry of ``job.data``."""
_NAMED = 5
"""How many recipients a message of the job names; others are counted."""


@dataclass(slots=True, kw_only=True)
class Progress:
    """The progress of a mail, kept as an entry of ``job.data``."""

    message_id: str
    """The Message-ID, the same in every copy of the mail."""
    date: str
    """The Date, in ISO 8601, the same in every copy."""
    since: float | None
    """When the retry period began, in seconds since 1970; None: it begins with the next try, after a retry or
    rerun by an operator."""
    delivered: list[str] = field(default_factory=list)
    """Recipients for whom the server has taken the mail."""
    refused: dict[str, str] = field(default_factory=dict)
    """Recipients that the server refused permanently, each with the server's reply."""
    reply: str = ""
    """The server's last answer to the mail itself."""


def send(
    job: Job,
    mail: Mail,
    attachments: Sequence[Attachment],
    *,
    message_id: str | None,
    date: datetime | None,
    settings: Callable[[], MailSettings],
    clock: Callable[[], float],
) -> dict[str, Any]:
    """Send the mail to the recipients who have not received it yet, and return the result of the stage: the
    Message-ID, how many recipients have received the mail, and the server's last reply.

    ``message_id`` and ``date``: those that the submission names; None: they are made at the first try. Raises
    Defer while the server is away (for all mail) or does not accept this mail yet; Warn when some recipients
    were refused permanently; Fail when all were, or when the retry period is over; Hold when the settings are
    unusable.
    """
    if not 1 <= len(mail.recipients) <= RECIPIENTS_MAX:
        limit = f"a mail goes to 1 to {RECIPIENTS_MAX} addresses, not {len(mail.recipients)}"
        raise Fail(f"{limit}; submit it again, as several mails if necessary", retryable=False)
    try:
        server_settings = settings()
        credentials = server_settings.credentials(os.environ)
    except UsageError as error:
        raise Hold(f"{error}; then release this job") from None
    progress = _load_progress(job, mail, message_id, date, clock())
    pending = [r for r in mail.recipients if r not in progress.delivered and r not in progress.refused]
    later: dict[str, str] = {}
    if pending:
        try:
            sent = smtp.deliver(
                server_settings,
                credentials,
                sender=mail.sender.addr_spec,
                recipients=pending,
                message=mail_message.build_message(
                    mail,
                    _files(job, attachments, server_settings),
                    message_id=progress.message_id,
                    date=datetime.fromisoformat(progress.date),
                ),
                utf8=mail.needs_utf8,
            )
        except smtp.MailServerUnavailable as away:
            _wait(job, progress, server_settings, clock(), str(away), lane=True)
        progress.delivered += sent.delivered
        progress.refused |= sent.refused
        progress.reply = sent.reply or progress.reply
        later = sent.later
        _keep(job, progress)
    if later:
        why = f"the mail server put it off for {_named_replies(later)}"
        _wait(job, progress, server_settings, clock(), why, lane=False)
    return _finish(job, progress)


def _load_progress(
    job: Job, mail: Mail, message_id: str | None, date: datetime | None, now: float
) -> Progress:
    """Return the entry of ``job.data``, written before the first try so that every copy has the same
    Message-ID and Date.

    The retry period begins at the Date when that lies in the past: a mail that was written long ago is late
    already.
    """
    entry = job.data.get(ENTRY)
    if entry is None:
        when = (date or datetime.fromtimestamp(now, UTC)).replace(microsecond=0)
        own = message_id or make_msgid(domain=mail.sender.domain)
        progress = Progress(message_id=own, date=when.isoformat(), since=min(when.timestamp(), now))
    else:
        progress = Progress(**entry)
        if progress.since is not None:
            return progress
        progress.since = now
    _keep(job, progress)
    return progress


def _files(job: Job, attachments: Sequence[Attachment], settings: MailSettings) -> list[File]:
    """Read the attachments, which share one limit on their size. Raises Fail for one that cannot be sent."""
    root = settings.attachments or _folder_root(job) if attachments else Path()
    remaining_bytes, files = settings.attachments_max_bytes, list[File]()
    for attachment in attachments:
        try:
            content = mail_attachments.read(root, attachment, most_bytes=remaining_bytes)
        except CannotAttach as error:
            raise Fail(str(error), retryable=False) from None
        remaining_bytes -= len(content)
        files.append(File(name=attachment.shown_name, media_type=attachment.media_type, content=content))
    return files


def _folder_root(job: Job) -> Path:
    """Return the folder that holds the folders of all jobs, as it is seen from the folder of this one."""
    return job.folder.parents[len(Path(job_folder(job.id)).parts) - 1]


def _wait(
    job: Job, progress: Progress, settings: MailSettings, now: float, why: str, *, lane: bool
) -> NoReturn:
    """Raise Defer for another try, or Fail when the retry period is over."""
    age_s = now - (progress.since or now)
    if age_s < settings.give_up_s:
        pause_s = retry_times.by_age_s(age_s, least_s=settings.retry_least_s, most_s=settings.retry_most_s)
        raise Defer(settings.away_s if lane else pause_s, why, lane=lane)
    _reset(job, progress)
    raise Fail(
        f"given up after {age_s / DAY_S:.1f} days: {why}; fix that and retry this job, and it is tried "
        f"for as long again",
        retryable=False,
    )


def _finish(job: Job, progress: Progress) -> dict[str, Any]:
    """Return the result when all recipients have received the mail.

    Raises Warn when some were refused permanently, and Fail when all were; the entry of the job is reset
    then, so that a retry sends to them again.
    """
    summary = {
        "message_id": progress.message_id,
        "delivered": len(progress.delivered),
        "reply": progress.reply,
    }
    if not progress.refused:
        return summary
    replies, refused = _named_replies(progress.refused), len(progress.refused)
    _reset(job, progress)
    if not progress.delivered:
        raise Fail(
            f"the mail server refused it for {replies}; correct what it names and retry this job, or submit the mail "
            f"again",
            retryable=False,
        )
    raise Warn(
        f"{refused} of {refused + len(progress.delivered)} recipients were refused: {replies}; correct the "
        f"addresses and rerun this job, or submit the mail again for them",
        value=summary | {"refused": refused},
    )


def _reset(job: Job, progress: Progress) -> None:
    """Let a rerun of the job try all recipients who have not received the mail, with a whole retry period."""
    progress.refused, progress.since = {}, None
    _keep(job, progress)


def _keep(job: Job, progress: Progress) -> None:
    """Write the progress into the entry of ``job.data``, where the next attempt finds it."""
    job.data[ENTRY] = asdict(progress)


def _named_replies(replies: dict[str, str]) -> str:
    """Return some recipients with the server's reply to each, as text."""
    return first_of((f"{printable(address, 100)} ({reply})" for address, reply in replies.items()), _NAMED)
