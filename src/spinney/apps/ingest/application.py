"""The application: its job types and queues. The stages are in ``batches``, ``objects``, ``access`` and ``upkeep``."""

from typing import TYPE_CHECKING, get_args

from spinney import Spinney
from spinney.apps.ingest.config import profiles, settings
from spinney.apps.ingest.deposits import priorities
from spinney.apps.ingest.deposits.orders import Stage
from spinney.apps.settings_tables import require_mail_settings
from spinney.errors import UsageError
from spinney.jobs import INTERNAL, State
from spinney.reports import MailSettings, Outbox

if TYPE_CHECKING:
    import httpx

_ADVICE = "have it added, with its port, to the hosts of the profile if it may be reached"

app = Spinney(submit=INTERNAL)
"""People submit payloads and request packages through ``verbs`` and ``access``, which check their permissions."""

STAGES: tuple[str, ...] = get_args(Stage)
"""The stages of an object, in their order."""


def passed(state: State, stage: str | None) -> str | None:
    """Return the last stage that was successful for an object whose job is in this state at this stage; None: none
    was."""
    if stage is None:
        return STAGES[-1] if state is State.COMPLETED else None
    before = STAGES.index(stage) if stage in STAGES else 0
    return STAGES[before - 1] if before else None


def queue_of(stage: str) -> str:
    """Return the queue of a stage: each stage of an object has its own, so that operators can limit it."""
    return f"ingest-{stage}"


def _mail_settings() -> MailSettings:
    config = settings.load()
    return require_mail_settings(config.mail, settings.FILE, attachments=config.outgoing)


def _callback_transport() -> "httpx.BaseTransport":
    """Return the transport of one callback. As downloads, it reaches public addresses and the hosts that profiles
    allow. Raises OSError while settings or a profile cannot be read."""
    from spinney.safe_http import SafeTransport  # with httpx, which only a call needs

    try:
        config = settings.load()
        hosts = frozenset[str]().union(
            *(profiles.load(config, name).hosts for name in profiles.names_of(config))
        )
    except UsageError as error:
        raise OSError(f"no host can be looked up now: {error}") from None  # an OSError is tried again
    return SafeTransport(hosts=hosts, advice=_ADVICE)


batches = app.pipeline(
    "ingest.batch",
    queue=app.queue("ingest"),
    priority=priorities.FIRST,
    children="settled",
    subject="{order.name} · {order.bid}",
    description="Deposit a payload: a job an object, and a report",
)
for _stage in STAGES:
    app.queue(
        queue_of(_stage), limit="50%" if _stage == "downloading" else None
    )  # what waits for others' servers
objects = app.pipeline(
    "ingest.object",
    queue=queue_of(STAGES[0]),
    subject="{order.payload.name} · {order.jid}",
    description="Deposit one object: fetch, identify, store, record it",
)
outbox = Outbox(app, mail=_mail_settings, transport=_callback_transport, priority=priorities.FIRST)
