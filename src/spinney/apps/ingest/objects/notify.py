"""The stage that submits the callback of an object and clears its working folder."""

import shutil
from typing import Any

from spinney import Job, Warn
from spinney.apps.ingest.application import outbox
from spinney.apps.ingest.deposits.orders import ObjectOrder
from spinney.apps.ingest.objects.work import Work, load_work
from spinney.apps.ingest.objects.work_places import clear


def notify(job: Job, order: ObjectOrder) -> None:
    """Submit the callback, a job of its own that is created when this stage is recorded, and clear the
    working folder.

    So the callback is submitted once, however often this stage is interrupted; its delivery is tried by its
    own job. No callback is submitted for an object that another service completes. Warns where nothing had
    changed, because the message of the last stage stays with the job.
    """
    work = load_work(job, order)
    is_ours = order.until is None or order.returns
    if work.profile.callback is not None and is_ours:
        callback = work.profile.callback
        job.submit(
            outbox.webhook,
            url=callback.url,
            secret=callback.secret,
            body=_callback_body(work),
            # The same for the same version, so that receivers can drop duplicates.
            delivery=f"{order.jid}.{job.results['processing']['version']}",
        )
    clear(work)
    if work.folder != job.folder:
        shutil.rmtree(work.folder, ignore_errors=True)
    processed = job.results["processing"]
    if not processed["own"]:
        # At the last stage, whose message stays with the job.
        raise Warn(
            f"nothing changed: {processed['ark']} had all of this as version {processed['version']}; no other was made"
        )


def _callback_body(work: Work) -> dict[str, Any]:
    """Return the JSON object that the callback sends. Receivers rely on its keys."""
    processed, recorded = work.job.results["processing"], work.job.results["recording"]
    return {
        "event": "deposited",
        "batch": work.order.bid,
        "job": work.order.jid,
        "profile": work.profile.name,
        "context": work.profile.context,
        "ark": processed["ark"],
        "version": processed["version"],
        "local_ids": processed["local_ids"],
        "title": processed["what"],
        "files": recorded["files"],
        "bytes": recorded["bytes"],
        "update": work.order.update,
        "changed": processed["own"],
    }
