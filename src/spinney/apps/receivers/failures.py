"""Failed jobs of the service, grouped by cause, and the mail to staff about them.

A mail lists all causes that there are. Its key contains a digest of them, so that an hourly job mails once about the
same failures, and again when one more has failed. When all are repaired no mail is sent."""

import hashlib
from collections.abc import Callable, Iterable
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from spinney import Job
from spinney.apps.receivers import settings
from spinney.apps.receivers.application import NORMAL, TYPES, app, outbox
from spinney.errors import counted

if TYPE_CHECKING:
    from spinney.operations import Failure, FailureGroups


def causes(groups: "Callable[[str], FailureGroups]") -> "list[Failure]":
    """Return the causes of failures, the newest first. ``groups`` returns those of the jobs of one type: a
    method of a store, or of queries with the rights of a caller."""
    listed = [failure for name in TYPES for failure in groups(name).items]
    return sorted(listed, key=lambda failure: -failure.last_us)


@app.job(name="receivers.failures", submit="internal", queue=NORMAL, max_attempts=3)
def mail_failures(job: Job) -> int:
    """Mail staff the causes of failures, unless a mail with just these was sent already."""
    mail = settings.load().mail
    if mail is None or not mail.staff:
        return 0
    from spinney.operations import open_store  # other jobs need no store

    with closing(open_store(app.settings.store)) as store:
        listed = causes(lambda name: store.failures.groups(type_=name))
    if not listed:
        return 0
    number = sum(failure.jobs for failure in listed)
    job.submit(
        outbox.mail.options(key=f"receivers.failures:{_mark(listed)}", forever=True),
        sender=mail.sender,
        to=list(mail.staff),
        subject=f"Receivers: {counted(number, 'failed job')}, {counted(len(listed), 'cause')}",
        text="\n\n".join([*map(_paragraph, listed), mail.link("/apps/receivers/failures")]).rstrip() + "\n",
    )
    return number


app.schedule(mail_failures, every="1h", name="receivers.failures")


def _mark(listed: "Iterable[Failure]") -> str:
    """Return a digest of causes that differs when a job fails that had not failed before: the time of a
    cause's last failure is part of it."""
    described = [
        (failure.fingerprint, failure.last_us) for failure in sorted(listed, key=lambda f: f.fingerprint)
    ]
    return hashlib.sha256(repr(described).encode()).hexdigest()[:32]


def _paragraph(failure: "Failure") -> str:
    """Return the paragraph of a mail about one cause, with the command that retries its jobs."""
    last = datetime.fromtimestamp(failure.last_us / 1_000_000, UTC)
    return (
        f"{failure.jobs} x {failure.type}, {failure.stage}: {failure.exception}: {failure.message}\n"
        f"last at {last:%Y-%m-%d %H:%M} UTC; 'spinney retry --failure {failure.fingerprint}' when it is mended"
    )
