"""The application: job types and queues. Their stages are in ``batches``, ``objects``, ``access`` and ``upkeep``."""

from typing import get_args

from spinney import Spinney
from spinney.apps.ingest.batches import callbacks
from spinney.apps.ingest.config import settings
from spinney.apps.ingest.deposits import priorities
from spinney.apps.ingest.deposits.orders import Stage
from spinney.errors import UsageError
from spinney.jobs import INTERNAL
from spinney.reports import MailSettings, Outbox

app = Spinney(submit=INTERNAL)
"""People hand payloads in and ask for packages by ``staff`` and ``access``, which check what they may."""

STAGES: tuple[str, ...] = get_args(Stage)
"""Of an object, in their order."""


def queue_of(stage: str) -> str:
    """Each stage of an object has a queue of its own, so that operators may limit it."""
    return f"ingest-{stage}"


def mail_settings() -> MailSettings:
    """Where mail goes, asked at each try."""
    found = settings.load()
    mail = found.mail
    if mail is None:
        raise UsageError("the ingest settings have no [mail]; name the server and retry")
    return MailSettings(host=mail.host, port=mail.port, security=mail.security, attachments=found.outgoing)


batches = app.pipeline(
    "ingest.batch",
    queue=app.queue("ingest"),
    priority=priorities.FIRST,
    children="settled",
    description="Deposit a payload: a job an object, and a report",
)
for _stage in STAGES:
    app.queue(
        queue_of(_stage), limit="50%" if _stage == "downloading" else None
    )  # what waits for others' servers
objects = app.pipeline(
    "ingest.object",
    queue=queue_of(STAGES[0]),
    description="Deposit one object: fetch, identify, store, record it",
)
outbox = Outbox(app, mail=mail_settings, transport=callbacks.transport, priority=priorities.FIRST)
