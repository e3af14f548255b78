"""The application: its job types and queues. The stages are in ``uploads``, ``detections`` and ``failures``.

Types that bring files have the same last stages, and spawn ``receivers.detect``. Users may submit uploads; reruns and
exports take operators; the other types are internal, as they trust the paths and lists that they get."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from pydantic import Field

from spinney import Defer, Spinney
from spinney.apps.receivers import settings
from spinney.apps.settings_tables import require_mail_settings
from spinney.files.disk_space import is_full
from spinney.reports import Outbox

FULL_S = 60.0
"""How long a stage waits while a disk is full before it tries again, in seconds."""
_MAKE_ROOM = "make room, and it continues by itself"

app = Spinney()
MADE = "made"
"""The folder in the job's folder for all that the stages make. ``raw``: what was taken apart; ``aside``: files that
cannot be used; ``files``: the lists for the subjobs."""
BAD_LIST = f"{MADE}/bad_files.txt"
"""The list of files that are no good, in the job's folder: path, tab and reason on each line."""

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
"""Its jobs get their files from the submitter, in the job's folder, or from an inbox."""
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
"""Its jobs are submitted by a poll of the table of attached receivers (``uploads``)."""
detections = app.pipeline(
    "receivers.detect", submit="internal", description="Detect in new files of one receiver"
)
"""The subjobs of those that bring files, one for each receiver. They need their parent: it has the list of
new files."""
reruns = app.pipeline(
    "receivers.rerun", submit="operator", queue=NORMAL, description="Detect sessions of one receiver afresh"
)
"""After a change of the table of tags: it says for old files what would be detected now."""
exports = app.pipeline(
    "receivers.export", submit="operator", queue=NORMAL, description="Export and plot one receiver again"
)
ARRIVALS = (uploads, imports, syncs)
"""Types whose jobs bring files."""
TYPES = tuple(kind.name for kind in (*ARRIVALS, detections, reruns, exports))
"""The names of all types whose failures are shown and mailed."""


@contextmanager
def room_awaited() -> Iterator[None]:
    """Let a stage wait while a disk is full, and try again every ``FULL_S`` seconds: a full disk is no fault of an
    upload, and uses no attempts."""
    try:
        yield
    except OSError as error:
        if not is_full(error):
            raise
        where = f" of {error.filename}" if error.filename else ""
        raise Defer(FULL_S, f"the disk{where} is full; {_MAKE_ROOM}") from error
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_FULL:
            raise
        raise Defer(FULL_S, f"the disk of the receivers' databases is full; {_MAKE_ROOM}") from error


outbox = Outbox(app, mail=lambda: require_mail_settings(settings.load().mail, settings.FILE))
