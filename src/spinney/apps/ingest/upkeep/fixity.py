"""Fixity: once a day, objects that have not been read for long are read again and compared with their digests.

A run (``ingest.fixity``) makes a job an object (``ingest.fixity-object``), and tells at its end what they found. A job
an object, not one loop: what kills a worker or never ends (a bad disk, a service that hangs) hits that object alone and
not all behind it in every later run; the lock on an ARK is held while that object is read, not until the run is over;
and what has been read is not read again, whatever dies.

**Who writes what, in this order, and what a crash leaves.** The children are born when ``choosing`` is recorded. Each
reads its object under the lock on the ARK, then enters the result in the inventory; killed in between, it reads again
and enters a second result. When they have settled, ``telling`` finds the damage of which nobody has been told: it
submits the mail under a key of just that list, then writes ``home/damage-told.json``. Killed in between, the same list
gets the same key, and no second mail. Whoever else finds damage enters it in the inventory, and the next run tells it.
A run that was cancelled tells nothing; the next does.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinney import Fail, Job, Warn
from spinney.apps.ingest.admission import admission
from spinney.apps.ingest.application import app, outbox
from spinney.apps.ingest.config import open_resources, settings, storage_targets
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.files import copies
from spinney.apps.ingest.files.paths import NotAdmitted, shown
from spinney.apps.ingest.inventory import Damaged
from spinney.apps.ingest.objects.processing import ark_lock
from spinney.apps.ingest.storage import Storage, Verified
from spinney.errors import UsageError
from spinney.jobs import PRIORITIES

if TYPE_CHECKING:
    from spinney.apps.ingest.inventory import Inventory

PRIORITY = PRIORITIES[-1]
"""Nothing waits for an audit; beside the largest batches, which are as patient, it takes turns."""
DAMAGED_AGAIN = timedelta(hours=12)
"""A damaged object is read again by each run, so that what has been mended is known soon."""
TOLD = "damage-told.json"
NAMED = 5
"""Objects that a message names."""
LISTED = 200
"""Objects that a mail lists."""
_DAMAGED_MAX = 1000
_SHOW_S = 0.5
_KEEP = timedelta(days=90)

audits = app.pipeline(
    "ingest.fixity",
    queue=app.queue("ingest-fixity", limit=2),
    priority=PRIORITY,
    children="settled",
    keep={"completed": _KEEP, "failed": _KEEP, "cancelled": _KEEP},
    description="Read stored objects again, and report damage",
)
readings = app.pipeline(
    "ingest.fixity-object",
    queue="ingest-fixity",
    priority=PRIORITY,
    description="Read one stored object again",
)


@audits.stage(max_attempts=3)
def choosing(job: Job) -> dict[str, Any]:
    """The objects that are due: those that are damaged, those never read, then those read longest ago."""
    with admission():
        found = settings.load()
        chosen = dict(_due(open_resources.inventory(found), found, datetime.now(UTC)))
    job.spawn_many(readings, ({"ark": ark, "storage": storage} for ark, storage in chosen.items()))
    return {"objects": len(chosen)}


@audits.stage(max_attempts=5, again=True)
def telling(job: Job) -> dict[str, Any]:
    """Say what is damaged; to the admins by mail, once for each damage."""
    with admission():
        found = settings.load()
        damaged = open_resources.inventory(found).damaged(_DAMAGED_MAX)
    unread = [child for child in job.children() if child.state != "completed"]
    news = tell(job, found, damaged)
    summary = {"damaged": len(damaged), "news": news, "unread": len(unread)}
    said = []
    if damaged:
        said.append(f"{len(damaged)} objects are damaged: {_some([d.ark for d in damaged])}")
    if unread:
        said.append(
            f"{len(unread)} objects could not be read: {_some([child.params['ark'] for child in unread])}"
        )
    if said:
        raise Warn("; ".join(said), value=summary)
    return summary


@readings.stage(max_attempts=3)
def reading(job: Job, ark: str, storage: str) -> dict[str, Any]:
    """Read every file of every version, and enter what was found."""
    with admission():
        found = settings.load()
    job.lock(ark_lock(ark))  # a version that is being written looks unfinished, not damaged
    inventory = open_resources.inventory(found)
    with admission():
        known = inventory.object(ark)
        expected = max((v.size_bytes for v in known.versions), default=0) if known else 0
        verified = _read(_opened(found, storage), ark, _progress(job, expected))
        inventory.audited(ark, datetime.now(UTC), verified.files, verified.bytes, verified.faults)
    summary = {"files": verified.files, "bytes": verified.bytes, "faults": len(verified.faults)}
    if verified.faults:
        raise Warn(f"{ark} is damaged: {verified.faults[0]}", value=summary)
    return summary


def tell(job: Job, found: Settings, damaged: list[Damaged]) -> int:
    """Mail to the admins what nobody has been told of; returns how many objects that are.

    Damage of an object is the same from the audit that found it first until one finds none.
    """
    if found.mail is None or not found.mail.admins:
        return 0
    path = found.home / TOLD
    before, now = _told(path), {d.ark: d.since.isoformat() for d in damaged}
    news = [d for d in damaged if before.get(d.ark) != now[d.ark]]
    if news:
        name = hashlib.sha256(json.dumps([(d.ark, now[d.ark]) for d in news]).encode()).hexdigest()[:32]
        mail = _mail(found, news, name)
        job.submit(outbox.mail.options(key=f"damage-{name}", forever=True), **mail)
    if now != before:
        copies.write_durably(path, json.dumps(now, indent=1) + "\n")
    return len(news)


# --- what is due --------------------------------------------------------------------------------


def _due(inventory: "Inventory", found: Settings, now: datetime) -> Iterator[tuple[str, str]]:
    """ARK and storage, as many as a run may have."""
    most = found.fixity.objects
    for damaged in inventory.damaged(most // 2):  # however much is damaged, the others are read, too
        known = inventory.object(damaged.ark)
        if known is not None and damaged.audit.when < now - DAMAGED_AGAIN:
            yield damaged.ark, known.versions[-1].storage
            most -= 1
    if most:
        for due in inventory.due_for_fixity(now - timedelta(days=found.fixity.every_days), most):
            yield due.ark, due.storage


# --- one object ---------------------------------------------------------------------------------


def _opened(found: Settings, storage: str) -> Storage:
    """Raises Fail: that a storage is not there says nothing of the objects in it."""
    try:
        return storage_targets.standing(found, storage)
    except (UsageError, OSError) as error:
        raise Fail(str(error)) from error


def _read(storage: Storage, ark: str, between: Callable[[int], None]) -> Verified:
    """What reading it has shown. Raises Fail when the storage itself does not answer."""
    try:
        return storage.verify(ark, between)
    except NotAdmitted as error:  # it is not there, or something else is in its place
        return Verified(files=0, bytes=0, faults=(str(error),))
    except OSError as error:
        raise Fail(
            f"the storage could not be read ({error.strerror or error}); see to it and retry"
        ) from error


def _progress(job: Job, expected: int) -> Callable[[int], None]:
    came, shown_s = 0, time.monotonic()

    def progress(size_bytes: int) -> None:
        nonlocal came, shown_s
        came += size_bytes
        job.check_cancelled()
        if expected and time.monotonic() - shown_s > _SHOW_S:
            shown_s = time.monotonic()
            job.progress(min(0.99, came / expected), f"{came:,} bytes read")

    return progress


# --- who is told --------------------------------------------------------------------------------


def _told(path: Path) -> Mapping[str, str]:
    """ARK to since when, of the damage that has been told."""
    try:
        told = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def _mail(found: Settings, news: list[Damaged], name: str) -> dict[str, Any]:
    assert found.mail is not None
    what = f"{len(news)} stored objects are damaged" if len(news) > 1 else f"{news[0].ark} is damaged"
    lines = [f"{what}.", "", "Reading their files again has shown:", ""]
    for each in news[:LISTED]:
        more = f" (and {len(each.audit.faults) - 1} faults more)" if len(each.audit.faults) > 1 else ""
        lines += [
            f"  {each.ark} in {each.collection}, since {each.since:%Y-%m-%d %H:%M} UTC",
            f"      {shown(each.audit.faults[0])}{more}",
        ]
    if len(news) > LISTED:
        lines.append(f"  … and {len(news) - LISTED:,} more")
    lines += [
        "",
        "Restore them from a copy; the next audit reads them again. All: 'spinney ingest fixity --damaged'.",
    ]
    return {
        "sender": found.mail.sender,
        "to": list(found.mail.admins),
        "subject": what,
        "text": "\n".join(lines) + "\n",
        "message_id": f"<damage-{name}@{found.mail.domain}>",
    }


def _some(arks: list[str]) -> str:
    more = f" and {len(arks) - NAMED:,} more" if len(arks) > NAMED else ""
    return ", ".join(arks[:NAMED]) + more


app.schedule(audits, cron="17 2 * * *", name="ingest.fixity", overlap="skip", catch_up="last")
