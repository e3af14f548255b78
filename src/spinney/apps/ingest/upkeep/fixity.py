"""Fixity: a daily job reads the objects that have not been read for long, and compares them with their digests.

A run (``ingest.fixity``) makes one job for each object (``ingest.fixity-object``), and reports the damage at its end.
It is one job for each object, not one loop, so that an error that kills a worker or never ends (a bad disk, a service
that hangs) affects that object alone and not all behind it in every later run; so that the lock on an ARK is held while
that object is read, not until the run is over; and so that objects that were read are not read again after a crash.

**Who writes what, in this order, and what a crash leaves.** The children are created when ``choosing`` is recorded.
Each reads its object under the lock on the ARK, then enters the result in the inventory; if it is killed in between, it
reads again and enters a second result. When they have settled, ``reporting`` lists the damage that has not been
reported: it submits the mail under a key of just that list, then writes ``home/damage-reported.json``. If it is killed
in between, the same list gets the same key, and there is no second mail. Damage that other code finds is entered in the
inventory, and the next run reports it. A run that was cancelled reports nothing; the next does.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinney import Fail, Job, Warn
from spinney.apps.ingest.admission import admission
from spinney.apps.ingest.application import app, outbox
from spinney.apps.ingest.byte_progress import byte_progress
from spinney.apps.ingest.config import open_resources, settings
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.inventory import Damaged
from spinney.apps.ingest.objects import recorded_files
from spinney.apps.ingest.objects.processing import ark_lock
from spinney.apps.ingest.storage import Storage
from spinney.errors import UsageError, counted
from spinney.files import copies
from spinney.files.paths import NotAdmitted, shown
from spinney.jobs import PRIORITIES, LockTaken

if TYPE_CHECKING:
    from spinney.apps.ingest.inventory.inventory import Inventory

PRIORITY = PRIORITIES[-1]
"""The last priority, since nothing waits for an audit; it takes turns with the largest batches, which have the same."""
REPORTED = "damage-reported.json"
NAMED = 5
"""How many objects a message names."""
LISTED = 200
"""How many objects a mail lists."""
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
    """Choose the objects that are due: those that are damaged, those never read, then those read longest ago; none of a
    storage that is away, since they would be chosen again by every run, before all others. The value: how many
    ``objects`` they are."""
    with admission():
        config = settings.load()
        away: dict[str, str] = {}
        due = dict(_due(open_resources.inventory(config), config, datetime.now(UTC), away))
    job.spawn_many(readings, ({"ark": ark, "storage": storage} for ark, storage in due.items()))
    value = {"objects": len(due)}
    if away:
        reasons = "; ".join(f"'{name}' ({reason})" for name, reason in away.items())
        raise Warn(f"objects of storages that cannot be opened are not read: {reasons}", value=value)
    return value


@audits.stage(max_attempts=5, again=True)
def reporting(job: Job) -> dict[str, Any]:
    """Report the damage; to the admins by mail, once for each damage. The value: how many objects are ``damaged``, how
    many of them were reported now (``news``), and how many could not be read (``unread``)."""
    with admission():
        config = settings.load()
        inventory = open_resources.inventory(config)
        damaged_since = inventory.damaged_since()
    unread = [child for child in job.children() if child.state != "completed"]
    new_damage = report_new_damage(job, config, inventory, damaged_since)
    summary = {"damaged": len(damaged_since), "news": new_damage, "unread": len(unread)}
    messages = []
    if damaged_since:
        are = "is" if len(damaged_since) == 1 else "are"
        messages.append(
            f"{counted(len(damaged_since), 'object')} {are} damaged: {_first_arks([*damaged_since])}"
        )
    if unread:
        arks = [child.params["ark"] for child in unread]
        messages.append(f"{counted(len(arks), 'object')} could not be read: {_first_arks(arks)}")
    if messages:
        raise Warn("; ".join(messages), value=summary)
    return summary


@readings.stage(max_attempts=3)
def reading(job: Job, ark: str, storage: str) -> dict[str, Any]:
    """Read every file of every version, compare what is sound with the inventory (an object that was restored from an
    older copy is sound, and lacks versions), and enter the result there. The value: ``files``, ``bytes``, and the
    number of ``faults``.

    An object that is being written stays due for the next run: it may be held for any time before it is recorded, and
    while this run waited for it, there would be no other.
    """
    with admission():
        config = settings.load()
    try:
        job.lock(ark_lock(ark))  # a version that is being written looks unfinished, not damaged
    except LockTaken as error:
        raise Warn(
            f"{ark} is being written; the next run reads it", value={"files": 0, "bytes": 0, "faults": 0}
        ) from error
    inventory = open_resources.inventory(config)
    with admission():
        object_ = inventory.object(ark)
        expected = max((v.size_bytes for v in object_.versions), default=0) if object_ else 0
        opened_storage = _open_storage(config, storage)
        with _reachable():
            verified = opened_storage.verify(ark, byte_progress(job, expected))
            faults = list(verified.faults)
            if object_ is not None and not faults:
                faults = list(recorded_files.differences(opened_storage, inventory, object_))
        inventory.audited(ark, datetime.now(UTC), verified.files, verified.bytes, faults)
    summary = {"files": verified.files, "bytes": verified.bytes, "faults": len(faults)}
    if faults:
        raise Warn(f"{ark} is damaged: {faults[0]}", value=summary)
    return summary


def report_new_damage(
    job: Job, config: Settings, inventory: "Inventory", damaged_since: Mapping[str, datetime]
) -> int:
    """Mail the damage that has not been reported to the admins, and return the number of its objects.

    ``damaged_since``: since when each damaged object is damaged, by ARK. It has all of them, however many: one that is
    left out would never be reported. Damage of an object counts as the same from the audit that found it first until an
    audit finds none. The mail counts all objects, and lists the first ``LISTED`` of them with their faults.
    """
    if config.mail is None or not config.mail.admins:
        return 0
    path = config.home / REPORTED
    reported = _reported_damage(path)
    current = {ark: since.isoformat() for ark, since in damaged_since.items()}
    new_damage = [ark for ark in current if reported.get(ark) != current[ark]]
    if new_damage:
        content = json.dumps([(ark, current[ark]) for ark in new_damage])
        name = hashlib.sha256(content.encode()).hexdigest()[:32]
        with admission():
            listed = inventory.damaged(LISTED, arks=new_damage[:LISTED])
        mail = _mail(config, new_damage, listed, name)
        job.submit(outbox.mail.options(key=f"damage-{name}", forever=True), **mail)
    if current != reported:
        copies.write_durably(path, json.dumps(current, indent=1) + "\n")
    return len(new_damage)


# --- due objects --------------------------------------------------------------------------------


def _why_away(config: Settings, storage: str) -> str | None:
    """Return why a storage cannot be opened now; None: it can."""
    try:
        open_resources.check_storage(config, storage)
    except (UsageError, NotAdmitted, OSError) as error:
        return str(error)
    return None


def _due(
    inventory: "Inventory", config: Settings, now: datetime, away: dict[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield ARK and storage of the due objects, up to the limit of a run. Adds the storages that cannot be opened to
    ``away``, each with the reason."""
    most, why_away = config.fixity.objects, cache(partial(_why_away, config))

    def readable(query: Callable[[Collection[str]], dict[str, str]]) -> dict[str, str]:
        """Return ARK and storage of the objects that a query returns when it leaves out the storages that are away."""
        while True:
            due = query(away)
            new = {name: reason for name in set(due.values()) if (reason := why_away(name)) is not None}
            if not new:
                return due
            away.update(new)

    # Each run reads damaged objects again, to notice a repair. However many there are, the others are read too.
    damaged = readable(lambda outside: inventory.damaged_for_fixity(most // 2, outside=outside))
    yield from damaged.items()
    before = now - timedelta(days=config.fixity.every_days)
    if left := most - len(damaged):
        yield from readable(lambda outside: inventory.due_for_fixity(before, left, outside=outside)).items()


# --- one object ---------------------------------------------------------------------------------


def _open_storage(config: Settings, storage: str) -> Storage:
    """Open a storage. Raises Fail where it is not there, which does not mean that its objects are damaged."""
    try:
        return open_resources.storage(config, storage)
    except (UsageError, OSError) as error:
        raise Fail(str(error)) from error


@contextmanager
def _reachable() -> Iterator[None]:
    """Raise Fail when the storage itself does not answer."""
    try:
        yield
    except OSError as error:
        raise Fail(
            f"the storage could not be read ({error.strerror or error}); repair it and retry"
        ) from error


# --- the mail to the admins ---------------------------------------------------------------------


def _reported_damage(path: Path) -> Mapping[str, str]:
    """Return the damage that has been reported: by ARK, since when."""
    try:
        reported = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return reported if isinstance(reported, dict) else {}


def _mail(config: Settings, new_damage: list[str], listed: list[Damaged], name: str) -> dict[str, Any]:
    """Return the parameters of the mail to the admins about objects with new damage, of which the first are ``listed``
    with their faults. ``name`` makes its Message-ID, the same for the same damage."""
    assert config.mail is not None
    subject = (
        f"{len(new_damage)} stored objects are damaged"
        if len(new_damage) > 1
        else f"{new_damage[0]} is damaged"
    )
    lines = [f"{subject}.", "", "Reading their files again has shown:", ""]
    for damage in listed:
        more = f" (and {len(damage.faults) - 1} faults more)" if len(damage.faults) > 1 else ""
        lines += [
            f"  {damage.ark} in {damage.collection}, since {damage.since:%Y-%m-%d %H:%M} UTC",
            f"      {shown(damage.faults[0])}{more}",
        ]
    if len(new_damage) > LISTED:
        lines.append(f"  … and {len(new_damage) - LISTED:,} more")
    lines += [
        "",
        "Restore them from a copy; the next audit reads them again. All: 'spinney ingest fixity --damaged'.",
    ]
    return {
        "sender": config.mail.sender,
        "to": list(config.mail.admins),
        "subject": subject,
        "text": "\n".join(lines) + "\n",
        "message_id": f"<damage-{name}@{config.mail.domain}>",
    }


def _first_arks(arks: list[str]) -> str:
    """Return the first ARKs for a message, and how many more there are."""
    more = f" and {len(arks) - NAMED:,} more" if len(arks) > NAMED else ""
    return ", ".join(arks[:NAMED]) + more


app.schedule(audits, cron="17 2 * * *", name="ingest.fixity", overlap="skip", catch_up="last")
