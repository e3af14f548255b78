"""The elements of an object: the data of its job that staff see, from the store, at any stage."""

from pathlib import Path
from typing import Any

from spinney.apps.ingest.application import passed
from spinney.apps.ingest.config import profiles
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.deposits.orders import ObjectOrder, Payload
from spinney.apps.ingest.fetch.urls import shown_text
from spinney.errors import UsageError
from spinney.jobs import Attempt, Job, Outcome, job_folder
from spinney.operations import Store

_AGAIN = frozenset({Outcome.ERROR, Outcome.TIMEOUT, Outcome.DIED, Outcome.LOST})
"""The outcomes of an attempt after which another attempt of the same stage counts as a retry."""


def elements(store: Store, settings: Settings, folders: Path, job: Job) -> dict[str, Any]:
    """Return the elements of an object's job, as of now.

    Values are those that a stage has established, else those that the depositor gave. ``folders``: the folder
    root of the store.
    """
    from spinney.apps.ingest.objects.provisioning import promises  # with all stages
    from spinney.apps.ingest.objects.work import area_of

    order = ObjectOrder.model_validate(job.params["order"])
    results, data = store.results(job.id), store.get_data(job.id)
    estimated, stored = results.get("estimating") or {}, results.get("processing") or {}
    about, payload = order.about, order.payload
    area = area_of(results, _area(settings, order.profile))
    return {
        "jid": order.jid,
        "job": job.id,
        "bid": order.bid,
        "batch": job.parent_id,  # the job of its batch
        "state": job.state,
        "stage": job.stage,  # the current one; None: all are done
        "passed": passed(job.state, job.stage),  # the last stage that was successful
        "message": job.message,
        "profile": order.profile,
        "collection": job.collection,
        "submitter": order.submitter,
        "mode": mode(update=order.update),
        "priority": job.priority,
        "payload": payload.kind,
        "name": payload.name,
        "url": _url(payload),
        "digest_type": payload.digest and payload.digest.algorithm,
        "digest_value": payload.digest and payload.digest.value,
        "local_ids": stored.get("local_ids", about.local_ids),
        # The primary id: given, found by a local id, or minted.
        "ark": stored.get("ark") or data.get("ark") or data.get("minted") or about.primary_id,
        "version": stored.get("version"),
        "unchanged": not stored.get("own", True),  # that version had the same content already
        "creator": stored.get("who") or about.creator,
        "title": stored.get("what") or about.title,
        "date": stored.get("when") or about.date,
        "needed_bytes": estimated.get("bytes"),
        "unsized_files": estimated.get("unknown"),  # files that are not included, since their size is unknown
        # The lock with which space is promised.
        "resource": (results.get("provisioning") or {}).get("lock") or promises(settings, folders, area),
        "folder": _folder(settings, folders, job, area, order.jid),
        "retries": retries(store.attempts(job.id)),
        "response": order.response,
    }


def _url(payload: Payload) -> str | None:
    """Return the URL of a payload for people; ``?…`` stands for a query."""
    if payload.url is None:
        return None
    return shown_text(payload.url if payload.query is None else f"{payload.url}?…")


def mode(*, update: bool) -> str:
    """Return the name of the mode: whether the files of the object's newest version are kept."""
    return "update" if update else "add"


def retries(history: list[Attempt]) -> int:
    """Return how many attempts failed or were interrupted and were followed by another of the same stage."""
    last = {attempt.stage: attempt.fence for attempt in history}
    return sum(attempt.outcome in _AGAIN and attempt.fence < last[attempt.stage] for attempt in history)


def _folder(settings: Settings, folders: Path, job: Job, area: str | None, jid: str) -> str | None:
    """Return the working folder of an object's job; None: its area is no longer in the settings."""
    if area is None:
        return str(folders / job_folder(job.id))
    return str(settings.areas[area] / jid) if area in settings.areas else None


def _area(settings: Settings, profile: str) -> str | None:
    """Return the working area that a profile names; None: it names none, or cannot be read."""
    try:
        return profiles.load(settings, profile).area
    except UsageError:
        return None  # it was removed, or cannot be read now
