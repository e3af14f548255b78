"""Whoever wants to know is told, and the working folder is cleared."""

import shutil
from typing import Any

from spinney import Job, Warn
from spinney.apps.ingest.application import outbox
from spinney.apps.ingest.deposits.orders import ObjectOrder
from spinney.apps.ingest.objects.work import Work, work
from spinney.apps.ingest.objects.work_places import clear


def notify(job: Job, order: ObjectOrder) -> None:
    """The callback is a job of its own, born when this stage is recorded."""
    at = work(job, order)
    if at.profile.callback is not None:
        callback = at.profile.callback
        job.submit(
            outbox.webhook, url=callback.url, secret=callback.secret, body=_told(at), delivery=_delivery(at)
        )
    clear(at)
    if at.folder != job.folder:
        shutil.rmtree(at.folder, ignore_errors=True)
    done = job.results["processing"]
    if not done["own"]:
        # At the last stage, whose message stays with the job.
        raise Warn(
            f"nothing changed: {done['ark']} had all of this as version {done['version']}; no other was made"
        )


def _delivery(at: Work) -> str:
    """The same for the same version, whose receivers may drop what comes twice."""
    return f"{at.order.jid}.{at.job.results['processing']['version']}"


def _told(at: Work) -> dict[str, Any]:
    done, recorded = at.job.results["processing"], at.job.results["recording"]
    return {
        "event": "deposited",
        "batch": at.order.bid,
        "job": at.order.jid,
        "profile": at.profile.name,
        "context": at.profile.context,
        "ark": done["ark"],
        "version": done["version"],
        "local_ids": done["local_ids"],
        "title": done["what"],
        "files": recorded["files"],
        "bytes": recorded["bytes"],
        "update": at.order.update,
        "changed": done["own"],
    }
