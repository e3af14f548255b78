"""Cleanup: an hourly job that removes files which are no longer needed, and releases batches that nothing holds.

    home/access/TOKEN      packages that have expired, and the files of requests that ended without one
    home/incoming/BID      payloads that their batches have taken, or whose batches never existed, after ``LEFTOVER``
    home/outgoing/KEY      attachments of reports' mails that were sent, or failed long ago
    AREA/JID               working folders outside of job folders, of objects that have settled

Files that an open job needs are never removed; nor, for ``LEFTOVER``, those that a failed job would need if it were
requeued. The jobs are looked up in the store, where this job must find its own attempt: a node that was started with
another store than the environment names is refused, for in that store every job would seem to be gone.

A folder is first renamed to ``.gone-NAME``, atomically, then removed: after an interruption the next run removes the
rest, and no folder is ever incomplete under its name. Folders whose names this service does not use are left alone, and
links are never followed.

A batch is released when its first stage has held it and its hold file is gone, as when a release was killed between
these two steps (``held_batches``).
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from spinney import Hold, Job
from spinney.apps.ingest.access import packages, tickets
from spinney.apps.ingest.application import app
from spinney.apps.ingest.batches import held_batches, outgoing_mails
from spinney.apps.ingest.batches.stages import PAYLOAD
from spinney.apps.ingest.config import settings
from spinney.apps.ingest.config.settings import OWNER, Settings
from spinney.apps.ingest.deposits.orders import BID, JID, BatchOrder
from spinney.apps.ingest.deposits.states import READING
from spinney.errors import SpinneyError
from spinney.jobs import SETTLED, Filter, State, job_folder
from spinney.jobs import Job as StoredJob

if TYPE_CHECKING:
    from spinney.operations import Store

LEFTOVER = timedelta(days=7)
GONE = ".gone-"
_FINISHED = (State.COMPLETED, State.DELETED)

cleanings = app.pipeline(
    "ingest.cleaning",
    queue=app.queue("ingest-cleaning", limit=1),
    keep={"completed": LEFTOVER},
    description="Remove expired packages, and what was left by deposits",
)


@cleanings.stage(max_attempts=3)
def cleaning(job: Job) -> dict[str, int]:
    """Remove the folders that are no longer needed, and return how many of each kind, and how many batches were
    ``released``."""
    config = settings.load()
    now = datetime.now(UTC)
    with own_store(job) as store:
        folders = job.folder.parents[len(Path(job_folder(job.id)).parts) - 1]
        return {
            "packages": _remove_all(job, config.packages, expired_packages(config.packages, store, now)),
            "incoming": _remove_all(
                job, config.incoming, abandoned_payloads(config.incoming, store, folders, now)
            ),
            "outgoing": _remove_all(job, config.outgoing, finished_mails(config.outgoing, store, now)),
            "areas": sum(
                _remove_all(job, area, finished_work_folders(area, store, now))
                for area in config.areas.values()
            ),
            "released": release_forgotten(config, store, now),
        }


app.schedule(cleanings, cron="41 * * * *", name="ingest.cleaning", overlap="skip", catch_up="last")


# --- folders that are no longer needed ----------------------------------------------------------


def expired_packages(folder: Path, store: "Store", now: datetime) -> Iterator[Path]:
    """Yield the folders of tokens whose package has expired, or whose job has ended without one or is gone."""
    for path in _folders(folder, tickets.TOKEN.fullmatch):
        job = tickets.find_job(store, tickets.job_of(path.name))
        is_known = job is not None and tickets.fits(path.name, job)
        is_open = is_known and job is not None and job.state not in SETTLED
        if not is_known or not (is_open or packages.valid(path, now)):
            yield path


def abandoned_payloads(folder: Path, store: "Store", folders: Path, now: datetime) -> Iterator[Path]:
    """Yield the old payloads that no batch is going to take."""
    old = [p for p in _folders(folder, BID.fullmatch) if _age(p, now) > LEFTOVER]
    if not old:
        return
    needed = set(_untaken(store, folders))
    yield from (path for path in old if path.name not in needed)


def finished_mails(folder: Path, store: "Store", now: datetime) -> Iterator[Path]:
    """Yield the attachments of mails that were sent or deleted, and of those that failed long ago."""
    for path in _folders(folder, outgoing_mails.NAME.fullmatch):
        job = tickets.find_job(store, _owner(path))
        # A mail that does not exist may still be created: its report is being recorded.
        is_finished = (
            _age(path, now) > LEFTOVER
            if job is None
            else job.state in _FINISHED or _settled_long_ago(job, now)
        )
        if is_finished:
            yield path


def finished_work_folders(area: Path, store: "Store", now: datetime) -> Iterator[Path]:
    """Yield the working folders of objects that completed or were deleted, and of those that failed long ago."""
    for path in _folders(area, JID.fullmatch):
        owner = _owner(path)
        if owner is None:
            if _age(path, now) > LEFTOVER and not any(path.iterdir()):
                yield path  # its job was killed before it wrote its number
            continue
        job = tickets.find_job(store, owner)
        if job is None or job.state in _FINISHED or _settled_long_ago(job, now):
            yield path


def _untaken(store: "Store", folders: Path) -> Iterator[str]:
    """Yield the batches that may still take their payload: open ones, and failed ones that may be requeued."""
    for job, order in _batches(store, tuple(set(State) - set(_FINISHED))):
        if not (folders / job_folder(job.id) / PAYLOAD / order.name).is_file():
            yield order.bid


def _batches(store: "Store", states: tuple[State, ...]) -> Iterator[tuple[StoredJob, BatchOrder]]:
    """Yield the batches in these states, with their orders."""
    from spinney.operations import all_jobs

    for job in all_jobs(store, Filter(type="ingest.batch", states=states)):
        yield job, BatchOrder.model_validate(job.params["order"])


def _owner(path: Path) -> int | None:
    """Return the job that a folder belongs to, as the file ``OWNER`` in it says."""
    try:
        text = (path / OWNER).read_text("ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    return int(text) if text.isdecimal() else None


# --- batches that nothing holds any more ---------------------------------------------------------


def release_forgotten(config: Settings, store: "Store", now: datetime) -> int:
    """Release the batches that their first stage has held and whose hold file is gone, and return their
    number.

    One that a hold of the engine covers is left to whoever ends that. Nothing is released where the folder of
    hold files does not exist, since its disk may not be mounted.
    """
    from spinney.operations import Actor, Order, Verb  # a worker that cleans nothing needs none

    if not config.held.is_dir():  # the disk of the home may not be mounted
        return 0
    count = 0
    for job, order in _batches(store, (State.HELD,)):
        if (
            job.stage == READING  # the stage that holds a batch
            and held_batches.reason(config, order.bid) is None
            and not store.holds.covering(job.id)
        ):
            # Nothing is touched where somebody was quicker.
            step = store.bulk.apply(
                Order(verb=Verb.RELEASE),
                [job.id],
                Actor(by=cleanings.name),
                now_us=int(now.timestamp() * 1e6),
            )
            count += len(step.touched)
    return count


# --- the store and the folders ------------------------------------------------------------------


@contextmanager
def own_store(job: Job) -> Iterator["Store"]:
    """Open the store of this attempt. Raises Hold where the environment names another store."""
    from spinney.operations import open_store  # a worker that cleans nothing needs none

    with closing(open_store(app.settings.store)) as store:
        try:
            fence = store.job(job.id).fence
        except SpinneyError:
            fence = None
        if fence != job.fence:
            raise Hold(
                "the environment names another store than this node was started with, and by that nothing may be "
                "removed; start the nodes with SPINNEY_STORE or spinney.toml, then release this job"
            )
        yield store


def _folders(folder: Path, has_name: Callable[[str], object]) -> Iterator[Path]:
    """Yield the folders whose names ``has_name`` returns something true for, without links."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False) and has_name(entry.name):
            yield Path(entry.path)


def _age(path: Path, now: datetime) -> timedelta:
    """Return how long ago a file or folder was last changed; for one that is gone meanwhile no time at all, so that
    nothing is to be removed."""
    try:
        return timedelta(seconds=now.timestamp() - path.lstat().st_mtime)
    except FileNotFoundError:
        return timedelta()


def _settled_long_ago(job: StoredJob, now: datetime) -> bool:
    """Return whether a job reached its final state longer ago than ``LEFTOVER``."""
    if job.state not in SETTLED or job.settled_us is None:
        return False
    return timedelta(seconds=now.timestamp() - job.settled_us / 1e6) > LEFTOVER


# --- removal ------------------------------------------------------------------------------------


def _remove_all(job: Job, folder: Path, paths: Iterator[Path]) -> int:
    """Remove these folders, after those whose removal was interrupted, and return their number."""
    finish_removals(folder)
    count = 0
    for path in paths:
        job.check_cancelled()
        remove(path)
        count += 1
    return count


def remove(path: Path) -> None:
    """Remove a folder, so that it is never incomplete under its name. Raises OSError when that fails;
    ``finish_removals`` removes what is left then."""
    aside = path.with_name(f"{GONE}{path.name}")
    path.rename(aside)
    shutil.rmtree(aside)


def finish_removals(folder: Path) -> None:
    """Remove the rest of the folders whose removal was interrupted."""
    for path in _folders(folder, lambda name: name.startswith(GONE)):
        shutil.rmtree(path)
