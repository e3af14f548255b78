"""The outbox: an application makes one, and submits its mails and webhooks as jobs."""

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, Field
from pydantic_core import PydanticCustomError

from spinney.app.application import Spinney
from spinney.define.job import Job
from spinney.define.jobtype import JobType
from spinney.model.settings.webhooks import require_url
from spinney.model.types import DEFAULT_PRIORITY, INTERNAL, Backoff
from spinney.reports import webhooks
from spinney.reports.addresses import mailbox
from spinney.reports.http_post import Transport
from spinney.reports.mail_attachments import Attachment
from spinney.reports.settings import MailSettings, WebhookSettings
from spinney.reports.webhooks import Admit

QUEUE = "outbox"
_LINE_MAX = 500
"""The most characters of a text that becomes a header of a mail."""


def _checked(check: Callable[[str], object]) -> AfterValidator:
    """Make a validator of parameters from ``check``, whose error message is shown unchanged."""

    def checked(text: str) -> str:
        try:
            check(text)
        except ValueError as error:
            raise PydanticCustomError("unfit", "{sentence}", {"sentence": str(error)}) from None
        return text

    return AfterValidator(checked)


def _line(text: str) -> None:
    """Raise ValueError unless the text can be a header: a line break would begin another header, which the
    sender of the text could choose."""
    if not text.isprintable() or len(text) > _LINE_MAX:
        raise ValueError(
            f"{text[:80]!r} is not one line of up to {_LINE_MAX} printable characters; shorten or fix it"
        )


Line = Annotated[str, _checked(_line)]
Mailbox = Annotated[str, _checked(mailbox)]
Mailboxes = list[Mailbox]
MessageId = Annotated[str, Field(pattern=r"^<[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,120}@[A-Za-z0-9.-]{1,120}>$")]
Url = Annotated[str, _checked(require_url)]
SecretName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,60}$")]
DeliveryId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:@-]{1,100}$")]


class Outbox:
    """The queue and the two job types of an application's messages.

    ``mail`` and ``webhook`` are submitted by stages and by the application's own code, never through a server, where
    people could send mail in the name of others. A stage that reports submits under a key of the report
    (``outbox.mail.options(key=…, forever=True)``), so that it is sent once however often the stage runs.
    """

    mail: JobType
    """Takes ``sender, to, subject, text`` and optionally ``cc`` (up to 100 addresses in all), ``html, attachments,
    message_id, in_reply_to, date, auto_submitted``. ``date``: the Date of the mail and the beginning of its retry
    period; by default its first try."""
    webhook: JobType
    """Takes ``url, body`` (a JSON object), ``secret`` (a name) and optionally ``delivery`` (its id for the
    receiver)."""

    def __init__(
        self,
        app: Spinney,
        *,
        mail: Callable[[], MailSettings] = MailSettings.from_environment,
        webhook: Callable[[], WebhookSettings] = WebhookSettings,
        admit: Admit | None = None,
        transport: Transport | None = None,
        limit: int | None = 4,
        priority: int = DEFAULT_PRIORITY,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Declare the queue and the job types in ``app``.

        ``mail``, ``webhook``: make the settings, called at each try. ``admit``, ``transport``: decide which URLs may be
        called; without either, none. A name that is resolved for ``admit`` and again for the request may get two
        answers: only a transport that connects to the address that it has checked (``safe_transport``) protects private
        networks. ``limit``: messages that are sent at once, over all nodes. ``priority``: that of each message, 0 is
        first, 99 last.
        """
        app.queue(QUEUE, limit=limit, order="fifo")
        self.mail = _mail_type(app, mail, clock, priority)
        self.webhook = _webhook_type(app, webhook, clock, admit, transport, priority)


def _mail_type(
    app: Spinney, settings: Callable[[], MailSettings], clock: Callable[[], float], priority: int
) -> JobType:
    """Declare the job type ``reports.mail``, and return it."""
    kind = app.pipeline(
        "reports.mail",
        queue=QUEUE,
        priority=priority,
        submit=INTERNAL,
        description="Send a mail",
        postmortem=False,  # the mail library's variables hold the password
    )

    # Its retry period is kept by deferring. Attempts are used up only by timeouts (a server that drips) and crashes.
    @kind.stage(
        max_attempts=100, backoff=Backoff(base_s=60, factor=4, cap_s=3600), timeout=timedelta(minutes=15)
    )
    def sending(
        job: Job,
        sender: Mailbox,
        to: Mailboxes,
        subject: Line,
        text: str,
        cc: Mailboxes | None = None,
        html: str | None = None,
        attachments: list[Attachment] | None = None,
        message_id: MessageId | None = None,
        in_reply_to: MessageId | None = None,
        date: AwareDatetime | None = None,
        auto_submitted: Literal["auto-generated", "auto-replied", "no"] = "auto-generated",
    ) -> dict[str, Any]:
        from spinney.reports import mail  # with email and smtplib, which only a mail needs
        from spinney.reports.mail_message import Mail

        letter = Mail(
            sender=mailbox(sender),
            to=[mailbox(a) for a in to],
            cc=[mailbox(a) for a in cc or ()],
            subject=subject,
            text=text,
            html=html,
            in_reply_to=in_reply_to,
            auto_submitted=auto_submitted,
        )
        return mail.send(
            job, letter, attachments or (), message_id=message_id, date=date, settings=settings, clock=clock
        )

    return kind


def _webhook_type(
    app: Spinney,
    settings: Callable[[], WebhookSettings],
    clock: Callable[[], float],
    admit: Admit | None,
    transport: Transport | None,
    priority: int,
) -> JobType:
    """Declare the job type ``reports.webhook``, and return it."""
    kind = app.pipeline(
        "reports.webhook", queue=QUEUE, priority=priority, submit=INTERNAL, description="Call a webhook"
    )

    @kind.stage(max_attempts=5, backoff=Backoff(base_s=60, factor=4), timeout=timedelta(minutes=2))
    def calling(
        job: Job, url: Url, body: Mapping[str, Any], secret: SecretName, delivery: DeliveryId | None = None
    ) -> dict[str, Any]:
        return webhooks.call(
            job,
            url,
            body,
            secret=secret,
            delivery=delivery,
            settings=settings,
            clock=clock,
            admit=admit,
            transport=transport,
        )

    return kind
