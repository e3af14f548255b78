"""Cleaning: once an hour, what nobody needs any more is removed.

    home/access/TOKEN      packages that have expired, and what requests left that ended without one
    home/incoming/BID      payloads of batches that have taken them, or that never came to be, after ``LEFTOVER``
    home/outgoing/KEY      what went with mails of reports that are sent, or have failed for long
    AREA/JID               working folders outside of job folders, of objects that have settled

What an open job needs is never removed; nor, for ``LEFTOVER``, what one that failed would go on with if it were sent
back. That is asked of the store, in which this job must find its own attempt: a node that was started with another
store than the environment names is refused, for there every job would seem to be gone.

What goes is first renamed to ``.gone-NAME``, at once, then removed: cut off in the middle, the next run removes the
rest, and a name is never half there. Names that this service does not give are left alone, and links never followed.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from spinney import Hold, Job
from spinney.apps.ingest.access import packages, tickets
from spinney.apps.ingest.application import app
from spinney.apps.ingest.batches import outgoing_mails
from spinney.apps.ingest.batches.stages import PAYLOAD
from spinney.apps.ingest.config import settings
from spinney.apps.ingest.deposits.orders import BatchOrder, Bid, Jid
from spinney.apps.ingest.objects.work import OWNER
from spinney.errors import NoSuchJob, SpinneyError
from spinney.jobs import SETTLED, Filter, State, job_folder
from spinney.jobs import Job as Found

if TYPE_CHECKING:
    from spinney.operations import Store

LEFTOVER = timedelta(days=7)
GONE = ".gone-"
_PAGE = 1000
_OVER = (State.COMPLETED, State.DELETED)
_BID: TypeAdapter[str] = TypeAdapter(Bid)
_JID: TypeAdapter[str] = TypeAdapter(Jid)

cleanings = app.pipeline(
    "ingest.cleaning",
    queue=app.queue("ingest-cleaning", limit=1),
    keep={"completed": LEFTOVER},
    description="Remove expired packages, and what was left by deposits",
)


@cleanings.stage(max_attempts=3)
def cleaning(job: Job) -> dict[str, int]:
    """Remove what nobody needs; returns how many of each kind."""
    found = settings.load()
    now = datetime.now(UTC)
    with looking(job) as store:
        folders = job.folder.parents[len(Path(job_folder(job.id)).parts) - 1]
        return {
            "packages": _removed(job, found.packages, packages_over(found.packages, store, now)),
            "incoming": _removed(job, found.incoming, incoming_over(found.incoming, store, folders, now)),
            "outgoing": _removed(job, found.outgoing, outgoing_over(found.outgoing, store, now)),
            "areas": sum(_removed(job, area, areas_over(area, store, now)) for area in found.areas.values()),
        }


app.schedule(cleanings, cron="41 * * * *", name="ingest.cleaning", overlap="skip", catch_up="last")


# --- what is over -------------------------------------------------------------------------------


def packages_over(folder: Path, store: "Store", now: datetime) -> Iterator[Path]:
    """Folders of tokens whose package has expired, or whose job has ended without one or is gone."""
    for path in _folders(folder, lambda name: tickets.TOKEN.fullmatch(name) is not None):
        job = _job(store, tickets.job_of(path.name))
        is_known = job is not None and tickets.fits(path.name, job)
        is_open = is_known and job is not None and job.state not in SETTLED
        if not is_known or not (is_open or packages.standing(path, now)):
            yield path


def incoming_over(folder: Path, store: "Store", folders: Path, now: datetime) -> Iterator[Path]:
    """Payloads that lie for long, and that no batch is going to take."""
    old = [p for p in _folders(folder, lambda name: _is(_BID, name)) if _age(p, now) > LEFTOVER]
    if not old:
        return
    needed = set(_untaken(store, folders))
    yield from (path for path in old if path.name not in needed)


def outgoing_over(folder: Path, store: "Store", now: datetime) -> Iterator[Path]:
    """Attachments of mails that are sent or gone, and of those that failed long ago."""
    for path in _folders(folder, lambda name: outgoing_mails.NAME.fullmatch(name) is not None):
        job = _job(store, _owner(path))
        # One whose mail is not there may be yet to come: its report is being recorded.
        over = (
            _age(path, now) > LEFTOVER if job is None else job.state in _OVER or _settled_long_ago(job, now)
        )
        if over:
            yield path


def areas_over(area: Path, store: "Store", now: datetime) -> Iterator[Path]:
    """Working folders of objects that completed or are gone, and of those that failed long ago."""
    for path in _folders(area, lambda name: _is(_JID, name)):
        owner = _owner(path)
        if owner is None:
            if _age(path, now) > LEFTOVER and not any(path.iterdir()):
                yield path  # made, and its maker killed before it wrote whose it is
            continue
        job = _job(store, owner)
        if job is None or job.state in _OVER or _settled_long_ago(job, now):
            yield path


def _untaken(store: "Store", folders: Path) -> Iterator[str]:
    """Batches that may still take their payload: open ones, and those that failed and may be sent back."""
    which = Filter(type="ingest.batch", states=tuple(set(State) - set(_OVER)))
    after = 0
    while page := store.jobs(which, after=after, limit=_PAGE):
        for job in page:
            order = BatchOrder.model_validate(job.params["order"])
            if not (folders / job_folder(job.id) / PAYLOAD / order.name).is_file():
                yield order.bid
        after = page[-1].id


def _owner(path: Path) -> int | None:
    try:
        text = (path / OWNER).read_text("ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    return int(text) if text.isdecimal() else None


# --- looking ------------------------------------------------------------------------------------


@contextmanager
def looking(job: Job) -> Iterator["Store"]:
    """The store that this attempt is of. Raises Hold for another."""
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


def _job(store: "Store", job_id: int | None) -> Found | None:
    try:
        return None if job_id is None else store.job(job_id)
    except NoSuchJob:
        return None


def _folders(folder: Path, ours: Callable[[str], bool]) -> Iterator[Path]:
    """Real folders with a name of ours."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False) and ours(entry.name):
            yield Path(entry.path)


def _is(kind: TypeAdapter[str], name: str) -> bool:
    try:
        kind.validate_python(name)
    except ValidationError:
        return False
    return True


def _age(path: Path, now: datetime) -> timedelta:
    return timedelta(seconds=now.timestamp() - path.lstat().st_mtime)


def _settled_long_ago(job: Found, now: datetime) -> bool:
    if job.state not in SETTLED or job.settled_us is None:
        return False
    return timedelta(seconds=now.timestamp() - job.settled_us / 1e6) > LEFTOVER


# --- removing -----------------------------------------------------------------------------------


def _removed(job: Job, folder: Path, over: Iterator[Path]) -> int:
    finish(folder)
    count = 0
    for path in over:
        job.check_cancelled()
        remove(path)
        count += 1
    return count


def remove(path: Path) -> None:
    """Take a folder away. Raises OSError when it will not go."""
    aside = path.with_name(f"{GONE}{path.name}")
    path.rename(aside)
    shutil.rmtree(aside)


def finish(folder: Path) -> None:
    """Remove the rest of what was being removed when somebody was cut off."""
    for path in _folders(folder, lambda name: name.startswith(GONE)):
        shutil.rmtree(path)
