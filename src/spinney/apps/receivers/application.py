"""The application: its job types and queues. The stages are in ``uploads`` and ``detections``."""

from typing import Annotated

from pydantic import Field

from spinney import Spinney
from spinney.apps.receivers import settings
from spinney.errors import UsageError
from spinney.reports import MailSettings, Outbox

app = Spinney()
MADE = "made"
"""In the job's folder: all that the stages make. ``raw``: what was taken apart; ``aside``: what is no good; ``files``:
the lists for the subjobs."""

Receiver = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
"""The name of a receiver. It becomes part of paths, and a word of the command that fetches, so it is neither a path nor
an option."""
NORMAL = app.queue("receivers-normal")
"""Uploads: they may be large, and take long."""
PRIORITY = app.queue("receivers-priority")
"""What attached receivers bring, often and little at a time. Give each queue slots of its own: nodes with
``--active``."""

uploads = app.pipeline(
    "receivers.upload", queue=NORMAL, children="settled", description="Detect in an archive of raw files"
)
imports = app.pipeline(
    "receivers.import",
    submit="internal",
    queue=NORMAL,
    children="settled",
    description="Detect in files of this host",
)
"""Internal, as its jobs read whatever path they name."""
syncs = app.pipeline(
    "receivers.sync",
    submit="internal",
    queue=PRIORITY,
    children="settled",
    description="Fetch and detect from an attached receiver",
)
detections = app.pipeline(
    "receivers.detect", submit="internal", description="Detect in new files of one receiver"
)
reruns = app.pipeline(
    "receivers.rerun", submit="operator", queue=NORMAL, description="Detect sessions of one receiver afresh"
)
exports = app.pipeline(
    "receivers.export", submit="operator", queue=NORMAL, description="Export and plot one receiver again"
)
ARRIVALS = (uploads, imports, syncs)
"""Types whose jobs bring files."""
TYPES = tuple(kind.name for kind in (*ARRIVALS, detections, reruns, exports))


def mail_settings() -> MailSettings:
    """Return the mail server's settings, read at each try. Raises UsageError where there are none."""
    mail = settings.load().mail
    if mail is None:
        raise UsageError("receivers.toml has no [mail]; name the server, and retry")
    return MailSettings(host=mail.host, port=mail.port, security=mail.security)


outbox = Outbox(app, mail=mail_settings)
