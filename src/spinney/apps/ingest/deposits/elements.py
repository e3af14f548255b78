"""The elements of an object: the data of its job that staff see, from the store, at any stage."""

from dataclasses import dataclass
from pathlib import Path

from spinney.apps.ingest.application import passed
from spinney.apps.ingest.config import profiles
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.deposits.orders import ObjectOrder, Payload
from spinney.apps.ingest.fetching.urls import shown_text
from spinney.errors import UsageError
from spinney.jobs import Attempt, Job, Outcome, job_folder
from spinney.operations import Store

_AGAIN = frozenset({Outcome.ERROR, Outcome.TIMEOUT, Outcome.DIED, Outcome.LOST})
"""The outcomes of an attempt after which another attempt of the same stage counts as a retry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Elements:
    """The state of one object of a batch: its job, its current stage, and the last one that it has passed."""

    jid: str
    job: int
    bid: str
    batch: int | None
    """The job of its batch."""
    state: str
    stage: str | None
    """The current stage; None: all are done."""
    passed: str | None
    """The last stage that was successful."""
    message: str | None
    profile: str
    collection: str | None
    submitter: str
    mode: str
    """``add`` or ``update``."""
    priority: int
    payload: str
    """``file``, ``container`` or ``object-manifest``."""
    name: str
    url: str | None
    """The URL without a query, which may be a signature; None: the batch has the payload in its folder."""
    digest_type: str | None
    digest_value: str | None
    local_ids: tuple[str, ...]
    ark: str | None
    """The primary id: given, found by a local id, or minted."""
    version: int | None
    """The version of the object, once it is stored."""
    unchanged: bool
    """Whether that version had the same content already, so that no other was made."""
    creator: str | None
    title: str | None
    date: str | None
    needed_bytes: int | None
    """The space that it needs, once it is estimated."""
    unsized_files: int | None
    """How many files are not included, since their size is unknown."""
    resource: str
    """The lock with which space is promised."""
    folder: str | None
    """The working folder; None: it is in an area that is no longer in the settings."""
    retries: int
    """How often a stage was tried again after it had failed or was interrupted."""
    response: str


def elements(store: Store, settings: Settings, folders: Path, job: Job) -> Elements:
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
    return Elements(
        jid=order.jid,
        job=job.id,
        bid=order.bid,
        batch=job.parent_id,
        state=str(job.state),
        stage=job.stage,
        passed=passed(job.state, job.stage),
        message=job.message,
        profile=order.profile,
        collection=job.collection,
        submitter=order.submitter,
        mode=mode(update=order.update),
        priority=job.priority,
        payload=str(payload.kind),
        name=payload.name,
        url=_url(payload),
        digest_type=None if payload.digest is None else payload.digest.algorithm,
        digest_value=None if payload.digest is None else payload.digest.value,
        local_ids=tuple(stored.get("local_ids", about.local_ids)),
        ark=stored.get("ark") or data.get("ark") or data.get("minted") or about.primary_id,
        version=stored.get("version"),
        unchanged=not stored.get("own", True),
        creator=stored.get("who") or about.creator,
        title=stored.get("what") or about.title,
        date=stored.get("when") or about.date,
        needed_bytes=estimated.get("bytes"),
        unsized_files=estimated.get("unknown"),
        resource=(results.get("provisioning") or {}).get("lock") or promises(settings, folders, area),
        folder=_folder(settings, folders, job, area, order.jid),
        retries=retries(store.attempts(job.id)),
        response=order.response,
    )


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
