"""Upkeep: mails to owners whose pages changed, thinning of old results, and harvests of catalogues.

``monitor.mails`` runs every hour and ``monitor.thin`` once a night. ``monitor.harvest`` has no schedule of its own.

A mail is a job that ``send`` submits under a key, and ``record`` notes afterwards up to which result the owner has been
informed. Each step may be repeated after a crash: no mail is lost, and none is submitted twice."""

import time
from dataclasses import asdict
from datetime import UTC, datetime
from html import escape
from typing import Any

from spinney import Defer, Job
from spinney.apps.monitor import settings
from spinney.apps.monitor.application import UPKEEP, app, outbox, tables_awaited
from spinney.apps.monitor.database import database
from spinney.apps.monitor.inventory import entities, results, services
from spinney.apps.monitor.inventory.model import Change, Entity
from spinney.apps.monitor.languages import language
from spinney.apps.monitor.settings import Mail
from spinney.apps.monitor.tasks import task_list

_DAY_US = 86_400_000_000
# The most changes in one mail, which says where it leaves some out; the link in it leads to all.
_LISTED = 100
# The most characters of a service's name and of a result in a mail: each may have thousands, and a job has 1 MiB.
_NAME_MAX, _INFO_MAX = 200, 300
_KEPT_S = 60.0
"""Results wait for two seconds each time that somebody else keeps their table."""

mails = app.pipeline(
    "monitor.mails", queue=UPKEEP, description="Mail owners what changed, at most once a day"
)


@mails.stage(max_attempts=3)
@tables_awaited()
def send(job: Job) -> dict[str, Any]:
    """Submit a mail for each owner whose page changed since the last one. Up to which result is fixed before the first
    is submitted, and part of its key: a stage that runs again submits none twice, and what has been written meanwhile
    is left to the next mail. It is deferred while somebody keeps the table of results."""
    mail = settings.load().mail
    if "range" not in job.data:
        try:
            job.data["range"] = [time.time_ns() // 1000, results.newest_id(database())]
        except results.ResultsKept as error:
            raise Defer(_KEPT_S, str(error)) from error
    now_us, newest_id = job.data["range"]
    eids: list[int] = []
    sent = {"at_us": now_us, "newest_id": newest_id, "eids": eids}
    if mail is None:
        return sent
    for entity in entities.query(database()):
        mailed_us, mailed_id = entities.mailed(database(), entity.eid)
        # A mail of the future was sent by a clock that was wrong.
        if not entity.email or 0 <= now_us - mailed_us < _DAY_US:
            continue
        changes = results.changes(
            database(),
            eid=entity.eid,
            ids=range(mailed_id + 1, newest_id + 1),
            only_changes=True,
            first_ok=False,
            limit=_LISTED + 1,  # one more, to know whether some are left out
        )
        if changes:
            key = f"monitor-mail-{entity.eid}-{mailed_us}-{newest_id}"
            kind = outbox.mail.options(key=key, forever=True)
            job.submit(kind, **_mail(mail, entity, changes))
            eids.append(entity.eid)
    return sent


@mails.stage(max_attempts=5)
@tables_awaited()
def record(job: Job) -> None:
    """Record up to which result the owners have been informed: the next mails contain what has changed since."""
    sent = job.results["send"]
    for eid in sent["eids"]:
        entities.set_mailed(database(), eid, sent["at_us"], sent["newest_id"])


@app.job(name="monitor.thin", queue=UPKEEP, max_attempts=3)
def thin(job: Job) -> int:
    """Remove results that are older than the settings' ``keep_days`` and changed nothing."""
    before_us = time.time_ns() // 1000 - settings.load().keep_days * _DAY_US
    removed = 0
    while number := results.thin(database(), before_us):
        removed += number
        job.check_cancelled()
    return removed


@app.job(name="monitor.harvest", queue=UPKEEP, max_attempts=3)
def harvest(job: Job, url: str) -> dict[str, Any]:
    """Import the services of a catalogue (CSW 2.0.2)."""
    # It needs an HTTP client, which takes a sixth of a worker's start.
    from spinney.apps.monitor import catalogue

    imported = asdict(catalogue.harvest(url))
    return {**imported, "wrong": len(imported["wrong"])}


app.schedule(mails, every="1h", name="monitor.mails")
app.schedule(thin, cron="30 3 * * *", name="monitor.thin")


def _mail(mail: Mail, entity: Entity, changes: list[Change]) -> dict[str, Any]:
    """Return the parameters of a mail: the changes as text and as a table, in the language of the entity. All
    that comes from services and owners is escaped in HTML, and put on one line in the subject."""
    spoken = language(entity.language)
    words = spoken.sentences
    numbers = sorted({change.gid for change in changes})
    named = {s.gid: s.description or s.uri for s in services.by_numbers(database(), numbers)}
    link = f"{mail.url.rstrip('/')}/apps/monitor/of/{entity.page_key}"
    states = spoken.counted(services.counts(database(), entity.eid, tasks=task_list.counted(settings.load())))
    lines = [
        (
            f"{datetime.fromtimestamp(change.at_us / 1_000_000, UTC):%Y-%m-%d %H:%M UTC}",
            named.get(change.gid, f"#{change.gid}")[:_NAME_MAX],
            change.task,
            *(spoken.states.get(status, status) for status in (change.before or "new", change.status)),
            change.info[:_INFO_MAX],
        )
        for change in changes[:_LISTED]
    ]
    left_out = words["newest_only"].format(number=_LISTED) if len(changes) > _LISTED else ""
    text = "\n".join("- {}, {}: {}, {} -> {}. {}".format(*line) for line in lines)
    head = [words[name] for name in ("time", "service", "task", "before", "now", "info")]
    table = "".join(
        f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
        for tag, cells in [("th", head), *(("td", line) for line in lines)]
    )
    greeting = words["greeting" if entity.contact else "greeting_nobody"].format(contact=entity.contact)
    opening = words["opening"].format(entity=entity.description, states=states)
    parts = (greeting, opening, text, left_out, f"{words['all_services']}: {link}")
    noted = f"<p>{escape(left_out)}</p>" if left_out else ""
    name = " ".join(entity.description.split())[:150]
    return {
        "sender": mail.sender,
        "to": [entity.email],
        "subject": words["subject"].format(entity=name, states=states),
        "text": "\n\n".join(part for part in parts if part) + "\n",
        "html": (
            f'<div lang="{spoken.tag}"><p>{escape(greeting)}</p><p>{escape(opening)}</p><table>{table}</table>'
            f'{noted}<p><a href="{escape(link)}">{words["all_services"]}</a></p></div>'
        ),
    }
