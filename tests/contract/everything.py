"""A store with something of everything in it: jobs in every state, trees, needs, locks, keys, cancel requests.

``fill(site)`` makes it in a store that knows nothing yet, and says which job is which; ``filled(url)`` does
so in a database file, for tests of the command line; ``copied(file)`` is quicker, for those to which some minutes make
no difference. The names are stable: tests may rely on ``STANDS`` (which state each has) and add jobs of their own
beside.
"""

import copy
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from process_end import at_process_end
from spinney.model.jobs import Lease
from spinney.model.outcomes import Outcome
from spinney.model.settings.queues import QueueSpec
from spinney.model.states import State
from spinney.model.types import Backoff
from spinney.store.sql.connection.sqlite import SqliteDatabase

from .behind import sql_store
from .words import USUAL, Clock, Site, kind, stage

FRAGILE = kind("fragile", "work", on_lost="orphan")
PATIENT = kind(
    "patient", stage("work", max_attempts=3, backoff=Backoff(base_s=86_400, cap_s=86_400, jitter=0))
)
"""Rests for a day between its attempts."""
LINE = kind("line", "expand", "merge", serial=True, children="settled")
LAYERED = kind("layered", "expand", stage("merge", again=True), "publish")
TYPES = (*USUAL, FRAGILE, PATIENT, LINE, LAYERED)
QUEUES = (QueueSpec(name="narrow", limit=1), QueueSpec(name="urgent"))

_S = State
STANDS: Mapping[str, State] = {
    # alone, and settled
    "completed": _S.COMPLETED,
    "completed three": _S.COMPLETED,
    "failed": _S.FAILED,
    "failed late": _S.FAILED,
    "failed keyed": _S.FAILED,
    "orphaned": _S.ORPHANED,
    "cancelled": _S.CANCELLED,
    "deleted": _S.DELETED,
    "failed for a need": _S.FAILED,
    # trees that have settled
    "done batch": _S.COMPLETED,
    "done child": _S.COMPLETED,
    "bad batch": _S.FAILED,
    "bad batch ok": _S.COMPLETED,
    "bad batch failed": _S.FAILED,
    "bad batch failed too": _S.FAILED,
    "bad batch cancelled": _S.CANCELLED,
    "deep root": _S.FAILED,
    "deep branch": _S.FAILED,
    "deep leaf": _S.FAILED,
    # a tree of which a stage was run again: what it bore before counts no longer
    "rerun parent": _S.HELD,
    "superseded ok": _S.COMPLETED,
    "superseded failed": _S.FAILED,
    # open, and set aside
    "scheduled": _S.SCHEDULED,
    "resting": _S.SCHEDULED,
    "held": _S.HELD,
    "waiting for a need": _S.WAITING,
    "waiting for a lock": _S.WAITING,
    "waiting batch": _S.WAITING,
    "waiting batch ok": _S.COMPLETED,
    "waiting batch failed": _S.FAILED,
    "waiting batch held": _S.HELD,
    "serial root": _S.WAITING,
    "serial first": _S.RUNNING,
    "serial second": _S.WAITING,
    # at work
    "claimed": _S.CLAIMED,
    "running": _S.RUNNING,
    "cancelling": _S.RUNNING,
    "spawning": _S.RUNNING,
    "lock owner": _S.RUNNING,
    # to be claimed
    "pending": _S.PENDING,
    "pending second": _S.PENDING,
    "pending narrow": _S.PENDING,
    "pending urgent": _S.PENDING,
    "pending keyed": _S.PENDING,
}
"""Every job that ``fill`` makes and that people can see, by its name."""


@dataclass(frozen=True)
class Everything:
    """Which job is which."""

    jobs: dict[str, int] = field(default_factory=dict)
    leases: dict[str, Lease] = field(default_factory=dict)
    """Of those at work."""

    def __getitem__(self, name: str) -> int:
        return self.jobs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.jobs)

    def standing(self, *states: State) -> list[int]:
        """The numbers of all that stand in one of these states, ascending."""
        return sorted(job for name, job in self.jobs.items() if STANDS[name] in states)

    def name(self, job_id: int) -> str:
        return next(name for name, job in self.jobs.items() if job == job_id)


def fill(site: Site) -> Everything:
    """Make one of each. The nodes are called oak, elm (which has died) and here; the submitters are ann and
    ben, the collections alpha and beta. A minute passes between the groups."""
    file = _new_file(site)
    if file is not None and _MADE:
        return _MADE[0].put(file, site)
    site.knows(*TYPES, queues=QUEUES)
    made = Everything()
    for group in (_settled, _settled_trees, _superseded, _set_aside, _at_work, _to_be_claimed):
        group(site, made)
        site.clock.forward(60)
    assert set(made.jobs) == set(STANDS)
    if file is not None:
        _MADE.append(_Copy(file, site, made))
    return made


def _new_file(site: Site) -> str | None:
    """Where the store lies, when it is in a file and as it was made, and the clock has not been moved."""
    database = sql_store(site.store).database
    new = not site.store.types() and site.now == Clock().now_us
    return str(database.path) if new and isinstance(database, SqliteDatabase) else None


class _Copy:
    """A filled store to be put in place of a new one, as if another process had filled that: a twentieth of the
    work."""

    def __init__(self, file: str, site: Site, made: Everything) -> None:
        self._pages = sqlite3.connect(":memory:")
        with closing(sqlite3.connect(file)) as source:
            source.backup(self._pages)
        self._site = copy.deepcopy((made, site.clock.now_us, site._here, site._nodes, site._owner))

    def put(self, file: str, site: Site) -> Everything:
        with closing(sqlite3.connect(file)) as target:
            self._pages.backup(target)
        made, site.clock.now_us, site._here, site._nodes, site._owner = copy.deepcopy(self._site)
        return made


_MADE: list[_Copy] = []
"""At most one; made by the first who asks."""


def filled(url: str) -> Everything:
    """The same in a new database, as of the wall clock's now."""
    from spinney.store.sql import open_store

    clock = Clock()
    clock.now_us = time.time_ns() // 1000 - 6 * 60 * 1_000_000
    store = open_store(url)
    store.create()
    made = fill(Site(store, clock))
    store.close()
    return made


def copied(file: Path) -> Everything:
    """The same in this file, as of when this process first asked for it."""
    made, whole = _once()
    shutil.copyfile(whole, file)
    file.chmod(0o600)
    return copy.deepcopy(made)


@cache
def _once() -> tuple[Everything, Path]:
    folder = tempfile.TemporaryDirectory(prefix="spinney-everything-")
    at_process_end(folder.cleanup)
    file = Path(folder.name) / "spinney.db"
    made = filled(f"sqlite:///{file}")
    assert not file.with_name(f"{file.name}-wal").exists(), "all of it is in the file"
    return made, file


# --- settled -----------------------------------------------------------------------------------


def _settled(site: Site, made: Everything) -> None:
    jobs, by_ann = made.jobs, {"collection": "alpha", "submitter": "ann"}
    jobs["completed"] = site.submit_one(**by_ann)
    site.pass_(site.run(jobs["completed"]), result=1)
    jobs["completed three"] = site.submit_one("three", **by_ann)
    site.drain()
    jobs["failed"] = site.submit_one(**by_ann)
    site.fail(
        site.run(jobs["failed"]),
        message="Disk full: /srv/a",
        error={"type": "OSError", "message": "disk full"},
    )
    jobs["failed late"] = site.submit_one("three", collection="beta", submitter="ben")
    for _ in range(2):
        site.pass_(site.run(jobs["failed late"]))
    site.fail(site.run(jobs["failed late"]), message="no such receiver 17")
    jobs["failed keyed"] = site.submit_one(keys=("once",))
    site.fail(site.run(jobs["failed keyed"]), message="disk full: /srv/b")
    elm = site.node("elm", 2)
    jobs["orphaned"] = site.submit_one("fragile")
    site.run(jobs["orphaned"], elm)
    site.recover(elm)
    jobs["cancelled"] = site.submit_one()
    site.cancel(jobs["cancelled"])
    jobs["deleted"] = site.submit_one()
    site.pass_(site.run(jobs["deleted"]))
    site.delete(jobs["deleted"])
    jobs["failed for a need"] = site.submit_one(needs=(jobs["failed"],))


def _settled_trees(site: Site, made: Everything) -> None:
    jobs = made.jobs
    jobs["done batch"], (jobs["done child"],) = site.family("batch", n=1, collection="beta", submitter="ben")
    site.drain()
    jobs["bad batch"], born = site.family("batch", n=4, collection="beta", submitter="ben")
    named = zip(("ok", "failed", "failed too", "cancelled"), born, strict=True)
    jobs.update((f"bad batch {name}", job) for name, job in named)
    site.cancel(jobs["bad batch cancelled"])
    site.drain(failing={jobs["bad batch failed"], jobs["bad batch failed too"]})
    jobs["deep root"], (jobs["deep branch"],) = site.family("batch", n=1, child="layered")
    lease = site.run(jobs["deep branch"])
    (jobs["deep leaf"],) = site.spawn(lease, "three")
    site.pass_(lease)
    site.pass_(site.run(jobs["deep leaf"]))
    site.drain(failing={jobs["deep leaf"]})


def _superseded(site: Site, made: Everything) -> None:
    jobs = made.jobs
    jobs["rerun parent"], (jobs["superseded ok"], jobs["superseded failed"]) = site.family(n=2)
    site.drain(failing={jobs["superseded failed"]})
    site.rerun(jobs["rerun parent"])
    site.record(site.run(jobs["rerun parent"]), Outcome.HOLD, message="look at the list first")


# --- open --------------------------------------------------------------------------------------


def _set_aside(site: Site, made: Everything) -> None:
    jobs, leases = made.jobs, made.leases
    jobs["scheduled"] = site.submit_one(at_us=site.now + 10**12)
    jobs["resting"] = site.submit_one("patient", collection="alpha", submitter="ann")
    site.record(site.run(jobs["resting"]), Outcome.ERROR, message="the server did not answer")
    jobs["held"] = site.submit_one("three", queue="narrow")
    site.record(site.run(jobs["held"]), Outcome.HOLD, message="two receivers have this number")
    jobs["waiting for a need"] = site.submit_one(needs=(jobs["held"],))
    jobs["waiting batch"], (ok, failed, held) = site.family("batch", n=3, collection="alpha", submitter="ben")
    claimed = site.claim_by_job()
    site.pass_(claimed[ok])
    site.fail(claimed[failed])
    site.record(claimed[held], Outcome.HOLD)
    jobs |= {"waiting batch ok": ok, "waiting batch failed": failed, "waiting batch held": held}
    jobs["lock owner"] = site.submit_one("locked", {"serno": "1"})
    leases["lock owner"] = site.run(jobs["lock owner"])
    jobs["waiting for a lock"] = site.submit_one("locked", {"serno": "1"})
    assert site.claim() == []
    jobs["serial root"], (jobs["serial first"], jobs["serial second"]) = site.family("line", n=2)
    leases["serial first"] = site.run(jobs["serial first"])


def _at_work(site: Site, made: Everything) -> None:
    jobs, leases = made.jobs, made.leases
    oak = site.node("oak", 8)
    jobs["claimed"] = site.submit_one()
    leases["claimed"] = site.claim_one(oak)
    jobs["running"] = site.submit_one("three", queue="urgent", collection="alpha", submitter="ann")
    leases["running"] = site.run(jobs["running"], oak)
    jobs["cancelling"] = site.submit_one()
    leases["cancelling"] = site.run(jobs["cancelling"], oak)
    site.cancel(jobs["cancelling"])
    jobs["spawning"] = site.submit_one("parent")
    leases["spawning"] = site.run(jobs["spawning"], oak)
    site.spawn(leases["spawning"], n=2)


def _to_be_claimed(site: Site, made: Everything) -> None:
    jobs = made.jobs
    jobs["pending"] = site.submit_one(collection="beta", submitter="ann")
    jobs["pending second"] = site.submit_one("three")
    site.pass_(_only(site, jobs["pending second"]))
    jobs["pending narrow"] = site.submit_one(queue="narrow", priority=10)
    jobs["pending urgent"] = site.submit_one("three", queue="urgent", collection="alpha", submitter="ben")
    jobs["pending keyed"] = site.submit_one(keys=("taken",))


def _only(site: Site, job_id: int) -> Lease:
    """Claim this job among others by asking for its lane alone."""
    job = site.job(job_id)
    lease = site.claim_one(lanes={(job.type, job.stage or "")})
    assert lease.job_id == job_id
    site.start(lease)
    return lease
