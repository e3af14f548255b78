"""The doctor: for every rule a store that is damaged so, told exactly, mended, healthy, and at work again.

Damage is done behind the store's back, by SQLite itself, as bugs and hands in the file would do it.
"""

import sqlite3
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from long_tests import LONG, long_alone
from spinney.features.doctor.checks import Violation
from spinney.features.doctor.sql import integrity
from spinney.features.doctor.sql import rule as rules
from spinney.features.holds import sql as hold_store
from spinney.model.access import ALL_RIGHTS, Rights, Role
from spinney.model.errors import DuplicateKey, Refused
from spinney.model.fleet import OVER
from spinney.model.jobs import Submission
from spinney.model.outcomes import Outcome
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Scope
from spinney.model.settings.inboxes import Drop, Inbox, Kind, Upload
from spinney.model.settings.schedules import Schedule
from spinney.model.settings.webhooks import Webhook
from spinney.model.states import State
from spinney.store.parts import Store
from spinney.store.sql.connection.sqlite import SqliteDatabase
from spinney.store.sql.schema import metadata
from spinney.store.sql.schema.statements import COUNTERS
from spinney.store.sql.session import Session

from .behind import damage, rows, sql_store, sqlite_file
from .conftest import sqlite_alone
from .everything import fill
from .words import Clock, Node, Site, kind

ANN = Actor(by="ann", call="c-1")
NOBODY = 999_999
MANY = 100_000 if LONG else 30_000
"""Jobs that do not fit into memory as objects, or pages."""


class Patient(Site):
    """A site whose database can be damaged, and whose nodes beat whenever the doctor looks."""

    def damage(self, sql: str, *args: Any) -> None:
        damage(self.store, sql, *args)

    def unguard_audit(self) -> None:
        with sql_store(self.store).database.write() as tx:
            if isinstance(sql_store(self.store).database, SqliteDatabase):
                tx.run("drop trigger audit_stays")
                tx.run("create trigger audit_stays before insert on audit when false begin select 1; end")
            else:
                tx.run("alter table audit disable trigger all")

    def forget(self) -> None:
        """What was damaged behind its back must be read anew."""
        self.damage("update counters set value = value + 1 where name = 'registry'")

    @property
    def path(self) -> Path:
        return sqlite_file(self.store)

    def beat(self) -> None:
        for node in self.store.nodes():
            self.store.beat(node.id, now_us=self.now)

    def examine(self, *only: str, deep: bool = False) -> list[Violation]:
        self.beat()
        return list(self.store.doctor.examine(only or None, deep=deep, now_us=self.now))

    def repair(self, violation: Violation) -> bool:
        return self.store.doctor.repair(violation, ANN, now_us=self.now)


@pytest.fixture
def patient(site: Site) -> Patient:
    return Patient(site.store, site.clock)


Finish = Callable[[], None]


@dataclass(frozen=True)
class Case:
    """A damage, and what must be so when it was mended."""

    subject: str
    finish: Finish = lambda: None


CASES: dict[str, Callable[[Patient], Case]] = {}


def case(name: str) -> Callable[[Callable[[Patient], Case]], None]:
    def enter(damage: Callable[[Patient], Case]) -> None:
        CASES[name] = damage

    return enter


def completes(patient: Patient, *jobs: int) -> Finish:
    def finish() -> None:
        patient.sweep()
        patient.drain()
        assert patient.states(jobs) == [State.COMPLETED] * len(jobs)

    return finish


# --- a job's own row --------------------------------------------------------------------------


@case("stage-missing")
def _(patient: Patient) -> Case:
    job = patient.submit_one("three")
    patient.damage("update jobs set stage = null where id = ?", job)
    return Case(f"job {job}", completes(patient, job))


@case("stage-missing, and all stages have passed")
def _(patient: Patient) -> Case:
    job = patient.submit_one()
    patient.record(patient.run(job), Outcome.HOLD)
    patient.damage("update attempts set outcome = 'ok' where job_id = ?", job)
    patient.damage("update jobs set stage = null where id = ?", job)
    return Case(f"job {job}", completes(patient, job))


@case("stage-vanished")
def _(patient: Patient) -> Case:
    patient.knows(kind("t", "first", "second"))
    job = patient.submit_one("t")
    patient.knows(kind("t", "second"))

    def finish() -> None:
        assert patient.state(job) is State.HELD
        patient.knows(kind("t", "first", "second"))
        patient.release(job)
        completes(patient, job)()

    return Case(f"job {job}", finish)


@case("settled-without-time")
def _(patient: Patient) -> Case:
    job = patient.submit_one()
    patient.drain()
    settled_us = patient.job(job).settled_us
    patient.damage("update jobs set settled_us = null where id = ?", job)

    def finish() -> None:
        assert patient.job(job).settled_us == settled_us

    return Case(f"job {job}", finish)


@case("final-attempt-of-open-job")
def _(patient: Patient) -> Case:
    job, other = patient.submit_one("three"), patient.submit_one(priority=99)
    patient.pass_(patient.run(job))
    fence = patient.run(job).fence
    patient.damage(
        "update jobs set final_fence = ?, final_attempt = 1, final_began_us = 1, final_ended_us = 2 where id = ?",
        fence - 1,
        job,
    )
    # Its history has that attempt already, so the row is simply wrong.
    patient.damage("delete from attempts where job_id = ?", job)
    patient.damage("update jobs set node_id = 1 where id = ?", job)

    def finish() -> None:
        assert [a.outcome for a in patient.store.attempts(job)] == ["ok", None]
        completes(patient, other)()

    return Case(f"job {job}", finish)


# --- ready ------------------------------------------------------------------------------------

READY = "insert into ready (lane, priority, share, position, job_id) select 1, 50, share, lineage, ? from jobs limit 1"


@case("ready-without-job")
def _(patient: Patient) -> Case:
    job = patient.submit_one()
    patient.damage(
        "insert into ready (lane, priority, share, position, job_id) values (1, 50, 7, 'x', ?)", NOBODY
    )
    return Case(f"job {NOBODY}", completes(patient, job))


@case("ready-but-not-pending")
def _(patient: Patient) -> Case:
    job = patient.submit_one()
    patient.fail(patient.run(job))
    patient.damage(READY, job)

    def finish() -> None:
        assert patient.claim() == []
        patient.retry(job)
        completes(patient, job)()

    return Case(f"job {job}", finish)


@case("ready-but-hidden")
def _(patient: Patient) -> Case:
    lease = patient.run(patient.submit_one("parent"))
    born = patient.spawn(lease, n=2)
    lane = patient.submit_one()
    patient.damage(
        "insert into ready select (select lane from ready), 50, share, lineage, id from jobs where id = ?",
        born[0],
    )

    def finish() -> None:
        patient.pass_(lease)
        completes(patient, lease.job_id, *born, lane)()

    return Case(f"job {born[0]}", finish)


@case("ready-and-leased")
def _(patient: Patient) -> Case:
    job = patient.submit_one()
    patient.damage("create table kept as select * from ready")
    lease = patient.run(job)
    patient.damage("insert into ready select * from kept")
    patient.damage("drop table kept")

    def finish() -> None:
        assert patient.claim() == []
        patient.pass_(lease)
        assert patient.state(job) is State.COMPLETED

    return Case(f"job {job}", finish)


@case("ready-elsewhere")
def _(patient: Patient) -> Case:
    job = patient.submit_one()
    patient.damage("update ready set priority = 10")
    return Case(f"job {job}", completes(patient, job))


@case("ready-elsewhere, and where it should be, too")
def _(patient: Patient) -> Case:
    job = patient.submit_one()
    patient.damage("insert into ready select lane, 10, share, position, job_id from ready")
    return Case(f"job {job}", completes(patient, job))


@case("ready-under-hold")
def _(patient: Patient) -> Case:
    job = patient.submit_one()
    patient.damage("create table kept as select * from ready")
    hold = patient.store.holds.lay(Scope.TYPE, "one", "disk full", ANN, now_us=patient.now)
    while patient.store.holds.sweep(now_us=patient.now):
        pass
    assert patient.state(job) is State.HELD
    patient.damage("update jobs set state = 'pending' where id = ?", job)
    patient.damage("delete from inactive_jobs where job_id = ?", job)
    patient.damage("insert into ready select * from kept")
    patient.damage("drop table kept")

    def finish() -> None:
        assert patient.state(job) is State.HELD
        patient.store.holds.lift(hold.id, ANN, now_us=patient.now)
        while patient.store.holds.sweep(now_us=patient.now):
            pass
        completes(patient, job)()

    return Case(f"job {job}", finish)


@case("ready-below-watermark")
def _(patient: Patient) -> Case:
    first, _ = patient.submit(n=2)
    patient.damage(
        "insert into low_watermarks (lane, priority, share, position) select lane, priority, share, position "
        "from ready order by position desc limit 1"
    )
    patient.damage("update counters set value = value + 1 where name = 'watermarks'")
    return Case(f"job {first}", completes(patient, first))


@case("pending-nowhere")
def _(patient: Patient) -> Case:
    job = patient.submit_one()
    patient.damage("delete from ready")
    return Case(f"job {job}", completes(patient, job))


# --- leases -----------------------------------------------------------------------------------

LEASE = (
    "insert into leases (job_id, fence, node_id, slot, lane, share, attempt, plain, claimed_us) "
    "values (?, 1, ?, 60, 1, 0, 1, 1, 1)"
)


@case("lease-without-job")
def _(patient: Patient) -> Case:
    job = patient.submit_one()
    patient.pass_(patient.run(job))
    patient.damage(LEASE, NOBODY, patient.here.id)

    def finish() -> None:
        assert sum(node.leases for node in patient.store.nodes()) == 0

    return Case(f"job {NOBODY}", finish)


@case("lease-of-another-state")
def _(patient: Patient) -> Case:
    job = patient.submit_one()
    patient.fail(patient.run(job))
    patient.damage(LEASE, job, patient.here.id)

    def finish() -> None:
        patient.retry(job)
        completes(patient, job)()

    return Case(f"job {job}", finish)


@case("lease-of-another-lane")
def _(patient: Patient) -> Case:
    job = patient.submit_one()
    lease = patient.run(job)
    patient.damage("update leases set lane = 77")

    def finish() -> None:
        assert patient.pass_(lease).refused
        completes(patient, job)()

    return Case(f"job {job}", finish)


@case("lease-of-another-parent")
def _(patient: Patient) -> Case:
    parent, born = patient.family(n=2)
    lease = patient.run(born[0])
    patient.damage("update leases set parent_id = null")

    def finish() -> None:
        patient.pass_(lease)
        completes(patient, parent, *born)()

    return Case(f"job {born[0]}", finish)


@case("lease-of-left-node")
def _(patient: Patient) -> Case:
    elm = patient.node("elm")
    job = patient.submit_one()
    lease = patient.run(job, elm)
    patient.damage("update nodes set state = 'left', seen_us = 1 where id = ?", elm.id)

    def finish() -> None:
        assert patient.pass_(lease).refused
        assert [a.outcome for a in patient.store.attempts(job)] == ["lost"]
        completes(patient, job)()

    return Case(f"job {job}", finish)


# --- parked -----------------------------------------------------------------------------------


@case("inactive-without-job")
def _(patient: Patient) -> Case:
    patient.damage("insert into inactive_jobs (job_id, state, since_us) values (?, 'failed', 1)", NOBODY)

    def finish() -> None:
        assert patient.count() == {}

    return Case(f"job {NOBODY}", finish)


@case("inactive-otherwise, and it is pending")
def _(patient: Patient) -> Case:
    job = patient.submit_one()
    patient.damage("insert into inactive_jobs (job_id, state, since_us) values (?, 'held', 1)", job)
    return Case(f"job {job}", completes(patient, job))


@case("inactive-otherwise")
def _(patient: Patient) -> Case:
    need = patient.submit_one()
    job = patient.submit_one(needs=(need,))
    patient.damage("update inactive_jobs set state = 'failed' where job_id = ?", job)
    return Case(f"job {job}", completes(patient, need, job))


@case("inactive-otherwise, and it has settled")
def _(patient: Patient) -> Case:
    job = patient.submit_one()
    patient.fail(patient.run(job))
    patient.damage("update inactive_jobs set state = 'held' where job_id = ?", job)

    def finish() -> None:
        assert patient.ids(states=(State.FAILED,)) == [job]
        patient.retry(job)
        completes(patient, job)()

    return Case(f"job {job}", finish)


@case("not-inactive")
def _(patient: Patient) -> Case:
    job = patient.submit_one(at_us=patient.now + 10**9)
    patient.damage("delete from inactive_jobs")

    def finish() -> None:
        assert patient.state(job) is State.SCHEDULED
        patient.clock.forward(1_000)
        completes(patient, job)()

    return Case(f"job {job}", finish)


@case("not-inactive, and held")
def _(patient: Patient) -> Case:
    job = patient.submit_one()
    patient.record(patient.run(job), Outcome.HOLD)
    patient.damage("delete from inactive_jobs")

    def finish() -> None:
        assert patient.state(job) is State.HELD, "somebody wanted it so"
        patient.release(job)
        completes(patient, job)()

    return Case(f"job {job}", finish)


# --- trees ------------------------------------------------------------------------------------


@case("child-without-parent")
def _(patient: Patient) -> Case:
    parent, (child, *_) = patient.family(n=1)
    for table in ("inactive_jobs", "attempts", "children_left"):
        column = "parent_id" if table == "children_left" else "job_id"
        patient.damage(f"delete from {table} where {column} = ?", parent)
    patient.damage("delete from jobs where id = ?", parent)

    def finish() -> None:
        assert patient.job(child).parent_id is None
        completes(patient, child)()

    return Case(f"job {child}", finish)


@case("lineage-wrong")
def _(patient: Patient) -> Case:
    parent, born = patient.family(n=2)
    patient.pass_(patient.run(born[0]))
    patient.damage("update jobs set lineage = 'x', root_id = ? where id = ?", NOBODY, born[0])

    def finish() -> None:
        assert [job.id for job in patient.store.tree(parent)] == [parent, *born]
        completes(patient, parent, *born)()

    return Case(f"job {born[0]}", finish)


@case("child-not-listed, open")
def _(patient: Patient) -> Case:
    parent, born = patient.family(n=2)
    patient.damage("delete from children_left where child_id = ?", born[1])
    return Case(f"job {born[1]}", completes(patient, parent, *born))


@case("child-not-listed, failed")
def _(patient: Patient) -> Case:
    parent, born = patient.family("batch", n=2)
    patient.fail(patient.run(born[0]))
    patient.damage("delete from children_left where child_id = ?", born[0])

    def finish() -> None:
        patient.drain()
        assert patient.states([parent, *born]) == [State.FAILED, State.FAILED, State.COMPLETED]

    return Case(f"job {born[0]}", finish)


@case("child-listed-wrongly")
def _(patient: Patient) -> Case:
    parent, born = patient.family(n=2)
    patient.pass_(patient.run(born[0]))
    patient.damage("insert into children_left (parent_id, bad, child_id) values (?, 0, ?)", parent, born[0])
    return Case(f"job {parent}", completes(patient, parent, *born))


@case("child-listed-wrongly, and it is not its child")
def _(patient: Patient) -> Case:
    parent, born = patient.family(n=1)
    patient.pass_(patient.run(born[0]), patient.run(patient.submit_one(priority=1)))
    other = patient.family(n=1)[1][0]
    parent = patient.job(other).parent_id or 0
    patient.damage("insert into children_left (parent_id, bad, child_id) values (?, 1, ?)", parent, born[0])
    return Case(f"job {parent}", completes(patient, parent, other))


# --- waiting ----------------------------------------------------------------------------------


def settle_behind_its_back(patient: Patient, job: int) -> None:
    patient.damage(
        "update jobs set state = 'completed', stage = null, settled_us = ? where id = ?", patient.now, job
    )
    patient.damage("delete from ready where job_id = ?", job)


@case("waits-for-nothing")
def _(patient: Patient) -> Case:
    need = patient.submit_one()
    job = patient.submit_one(needs=(need,))
    patient.damage("update inactive_jobs set waits_for = 'godot'")
    return Case(f"job {job}", completes(patient, need, job))


@case("stuck-for-children")
def _(patient: Patient) -> Case:
    parent, (child, *_) = patient.family(n=1)
    settle_behind_its_back(patient, child)
    patient.damage("delete from children_left")
    return Case(f"job {parent}", completes(patient, parent))


@case("stuck-for-needs")
def _(patient: Patient) -> Case:
    need = patient.submit_one()
    job = patient.submit_one(needs=(need,))
    settle_behind_its_back(patient, need)
    return Case(f"job {job}", completes(patient, job))


@case("stuck-for-needs, and it is gone")
def _(patient: Patient) -> Case:
    need = patient.submit_one()
    job = patient.submit_one(needs=(need,))
    patient.damage("delete from jobs where id = ?", need)
    patient.damage("delete from ready where job_id = ?", need)

    def finish() -> None:
        assert patient.state(job) is State.FAILED, "a need that was never completed cannot be taken for met"

    return Case(f"job {job}", finish)


@case("stuck-for-lock")
def _(patient: Patient) -> Case:
    owner = patient.submit_one("locked", {"serno": "1"})
    lease = patient.run(owner)
    job = patient.submit_one("locked", {"serno": "1"})
    assert patient.claim() == []
    patient.damage("delete from locks")
    patient.clock.forward(120)

    def finish() -> None:
        patient.pass_(lease)
        completes(patient, owner, job)()

    return Case(f"job {job}", finish)


SERIAL = kind("line", "expand", serial=True, children="settled")


@case("stuck-in-line")
def _(patient: Patient) -> Case:
    patient.knows(SERIAL)
    root, born = patient.family("line", n=3)
    settle_behind_its_back(patient, born[0])
    patient.damage("delete from children_left where child_id = ?", born[0])
    patient.damage("delete from serial_order where job_id = ?", born[0])
    return Case(f"job {born[1]}", completes(patient, root, *born[1:]))


@case("stuck-in-line, and it is not in line")
def _(patient: Patient) -> Case:
    patient.knows(SERIAL)
    root, born = patient.family("line", n=3)
    patient.damage("delete from serial_order where job_id = ?", born[2])
    return Case(f"job {born[2]}", completes(patient, root, *born))


@case("line-entry-stale")
def _(patient: Patient) -> Case:
    patient.knows(SERIAL)
    root, born = patient.family("line", n=3)
    patient.damage("create table kept as select * from serial_order where job_id = ?", born[0])
    patient.pass_(patient.run(born[0]))
    patient.damage("insert into serial_order select * from kept")
    patient.damage("drop table kept")

    def finish() -> None:
        assert [job for job, _ in patient.drain()] == born[1:]
        completes(patient, root, *born)()

    return Case(f"job {born[0]}", finish)


@case("scheduled-without-time")
def _(patient: Patient) -> Case:
    job = patient.submit_one("tenacious")
    patient.record(patient.run(job), Outcome.ERROR)
    patient.damage("update inactive_jobs set wake_us = null")
    return Case(f"job {job}", completes(patient, job))


@case("overdue")
def _(patient: Patient) -> Case:
    job = patient.submit_one(at_us=patient.now + 1)
    patient.clock.forward(120)
    return Case(f"job {job}", completes(patient, job))


@case("held-without-hold")
def _(patient: Patient) -> Case:
    job = patient.submit_one()
    patient.store.holds.lay(Scope.QUEUE, "default", "disk full", ANN, now_us=patient.now)
    while patient.store.holds.sweep(now_us=patient.now):
        pass
    patient.damage("delete from holds")
    patient.forget()
    return Case(f"job {job}", completes(patient, job))


@case("lock-of-nobody")
def _(patient: Patient) -> Case:
    job, done = patient.submit_one("locked", {"serno": "1"}), patient.submit_one(priority=1)
    patient.pass_(patient.run(done))
    patient.damage(
        "insert into locks (name, job_id, fence, since_us) values ('receiver:1', ?, null, 1)", done
    )
    assert patient.claim() == []
    return Case("lock receiver:1", completes(patient, job))


@case("lock-of-nobody, and the attempt has ended")
def _(patient: Patient) -> Case:
    job, other = (
        patient.submit_one("locked", {"serno": "1"}),
        patient.submit_one(priority=1, at_us=patient.now + 10**9),
    )
    patient.damage("insert into locks (name, job_id, fence, since_us) values ('receiver:1', ?, 5, 1)", other)
    assert patient.claim() == []
    return Case("lock receiver:1", completes(patient, job))


# --- leftovers --------------------------------------------------------------------------------


@case("attempts-of-no-job")
def _(patient: Patient) -> Case:
    job = patient.submit_one()
    patient.fail(patient.run(job))
    patient.damage(
        "insert into attempts select ?, fence, stage, attempt, outcome, node_id, started_us, ended_us, "
        "code, message, error, result, superseded from attempts",
        NOBODY,
    )
    return Case(f"job {NOBODY}")


@case("data-of-no-job")
def _(patient: Patient) -> Case:
    patient.damage("insert into data values (?, 'a', '1'), (?, 'b', '1')", NOBODY, NOBODY)
    return Case(f"job {NOBODY}")


@case("needs-of-no-job")
def _(patient: Patient) -> Case:
    need = patient.submit_one()
    patient.damage("insert into needs values (?, ?)", NOBODY, need)
    return Case(f"job {NOBODY}", completes(patient, need))


@case("progress-of-no-job")
def _(patient: Patient) -> Case:
    patient.damage("insert into progress values (?, 1, 0.5, 'half')", NOBODY)
    return Case(f"job {NOBODY}")


@case("met-needs-of-no-job")
def _(patient: Patient) -> Case:
    patient.damage("insert into met_needs values (?, 1)", NOBODY)
    return Case(f"job {NOBODY}")


@case("key-of-settled-job")
def _(patient: Patient) -> Case:
    job = patient.submit_one(keys=("k",))
    patient.drain()
    patient.damage("insert into keys values (0, 'k', ?, 0)", job)

    def finish() -> None:
        completes(patient, patient.submit_one(keys=("k",)))()

    return Case(f"job {job}", finish)


@case("key-of-no-job")
def _(patient: Patient) -> Case:
    patient.damage("insert into keys values (0, 'k', ?, 0)", NOBODY)

    def finish() -> None:
        completes(patient, patient.submit_one(keys=("k",)))()

    return Case(f"job {NOBODY}", finish)


@case("key-not-taken")
def _(patient: Patient) -> Case:
    job = patient.submit_one(keys=("k",))
    patient.damage("delete from keys")

    def finish() -> None:
        with pytest.raises(DuplicateKey):
            patient.submit_one(keys=("k",))
        completes(patient, job)()

    return Case(f"job {job}", finish)


@case("call-abandoned")
def _(patient: Patient) -> Case:
    jobs = patient.submit(n=5_000)
    patient.damage("delete from ready")
    patient.damage("insert into staging values (?, ?, ?, 0, null, null, 1)", jobs[0], jobs[-1], jobs[0])

    def finish() -> None:
        assert patient.count() == {}

    return Case(f"jobs {jobs[0]} to {jobs[-1]}", finish)


@case("call-abandoned, and it was accepted")
def _(patient: Patient) -> Case:
    jobs = patient.submit(n=5_000)
    patient.damage("delete from ready")
    patient.damage("insert into staging values (?, ?, ?, 1, null, null, 1)", jobs[0], jobs[-1], jobs[0])

    def finish() -> None:
        assert patient.count() == {"pending": 5_000}
        assert len(patient.claim(slots=64)) == 64

    return Case(f"jobs {jobs[0]} to {jobs[-1]}", finish)


@case("call-abandoned, and its attempt has ended")
def _(patient: Patient) -> Case:
    return _of_an_ended_attempt(patient, patient.spawn)


@case("call-abandoned, and the attempt that submitted it has ended")
def _(patient: Patient) -> Case:
    return _of_an_ended_attempt(patient, patient.submit_from)


def _of_an_ended_attempt(patient: Patient, bear: Callable[..., list[int]]) -> Case:
    lease = patient.run(patient.submit_one("parent"))
    born = bear(lease, n=2)
    patient.damage("create table kept as select * from staging")
    patient.fail(lease)
    patient.damage("delete from staging")
    patient.damage("insert into staging select * from kept")
    patient.damage("drop table kept")

    def finish() -> None:
        assert patient.children(lease.job_id) == []
        assert patient.count() == {"failed": 1}

    return Case(f"jobs {born[0]} to {born[1]}", finish)


WISH = "insert into cancel_requests (job_id, lineage, tree, \"by\", at_us) values (?, ?, ?, 'ann', 1)"


@case("cancel-request-of-no-job")
def _(patient: Patient) -> Case:
    patient.damage(WISH, NOBODY, f"{NOBODY:012d}", 1)

    def finish() -> None:
        completes(patient, patient.submit_one())()

    return Case(f"job {NOBODY}", finish)


@case("cancel-request-of-settled-job")
def _(patient: Patient) -> Case:
    parent, born = patient.family("batch", n=1)
    patient.drain(failing=born)
    patient.damage(WISH, parent, f"{parent:012d}", 1)
    patient.clock.forward(120)

    def finish() -> None:
        patient.retry(parent)
        completes(patient, parent, *born)()

    return Case(f"job {parent}", finish)


@case("folder-of-living-job-to-go")
def _(patient: Patient) -> Case:
    job = patient.submit_one()
    patient.damage("insert into deleted_folders (job_id, at_us) values (?, 1)", job)

    def finish() -> None:
        assert list(patient.store.deleted_folders(10)) == []
        completes(patient, job)()

    return Case(f"job {job}", finish)


@case("removal-of-no-tree")
def _(patient: Patient) -> Case:
    patient.damage("insert into removals values (?, '', 1)", NOBODY)
    return Case(f"job {NOBODY}")


@case("hold-on-no-job")
def _(patient: Patient) -> Case:
    job = patient.submit_one()
    hold = patient.store.holds.lay(Scope.JOB, str(job), "look", ANN, now_us=patient.now)
    patient.damage("update holds set name = ?", str(NOBODY))
    patient.damage("delete from inactive_jobs")
    patient.damage("update jobs set state = 'completed', stage = null, settled_us = 1")
    patient.forget()

    def finish() -> None:
        assert patient.store.holds.all() == []

    return Case(f"hold {hold.id}", finish)


# --- clockwork --------------------------------------------------------------------------------


@case("counter-behind")
def _(patient: Patient) -> Case:
    jobs = patient.submit(n=3)
    patient.damage("update counters set value = 1 where name = 'job'")

    def finish() -> None:
        completes(patient, patient.submit_one(), *jobs)()

    return Case("counter job", finish)


@case("counter-behind, and it is missing")
def _(patient: Patient) -> Case:
    leases = [patient.run(job) for job in patient.submit(n=2)]
    patient.damage("delete from counters where name = 'fence'")

    def finish() -> None:
        patient.pass_(*leases)
        completes(patient, patient.submit_one())()
        assert patient.store.attempts(3)[-1].fence == leases[-1].fence + 1

    return Case("counter fence", finish)


@case("leader-silent")
def _(patient: Patient) -> Case:
    elm, oak = patient.node("elm"), patient.node("oak")
    patient.store.elect_leader(elm.id, now_us=patient.now)
    patient.clock.forward(61)
    patient.damage("delete from nodes where id = ?", elm.id)
    patient._nodes.pop(elm.id)

    def finish() -> None:
        assert patient.store.elect_leader(oak.id, now_us=patient.now).leader == oak.id

    return Case("maintenance", finish)


@case("counter-behind, of completed jobs")
def _(patient: Patient) -> Case:
    jobs = patient.submit(n=3)
    patient.drain()
    patient.damage("update counters set value = 1 where name = 'fence'")
    return Case("counter fence", lambda: completes(patient, patient.submit_one(), *jobs)())


@case("counter-behind, of failed attempts")
def _(patient: Patient) -> Case:
    jobs = patient.submit(n=3)
    patient.drain(failing=jobs)
    patient.damage("update counters set value = 1 where name = 'fence'")
    return Case("counter fence", lambda: completes(patient, patient.submit_one())())


@case("schedule-ahead")
def _(patient: Patient) -> Case:
    """A clock that ran a year ahead for a moment, as one that is set by hand does."""
    patient.store.schedules.put(
        Schedule(name="hourly", type="one", every_s=3600, overlap="allow"),
        ANN,
        now_us=patient.now,
    )
    while patient.store.schedules.tick(now_us=patient.now + 366 * 86_400 * 10**6):
        pass
    patient.drain()

    def finish() -> None:
        for _ in range(2):
            patient.clock.forward(3600)
            while patient.store.schedules.tick(now_us=patient.now):
                pass
        made = [run.job_id for run in patient.store.schedules.runs("hourly") if run.outcome == "submitted"]
        assert len(made) == 2, (
            "the one of next year, and the second of these hours: the first is told as missed"
        )
        patient.drain()

    return Case("schedule hourly", finish)


# --- what was cut off -------------------------------------------------------------------------


@case("sweep-unfinished, released")
def _(patient: Patient) -> Case:
    """More jobs than one step looks at, of which another hold still covers the first."""
    stays = patient.submit_one(collection="d")
    jobs = patient.submit(n=2 * hold_store.STEP + 2, collection="c")
    holds = patient.store.holds
    hold = holds.lay(Scope.COLLECTION, "c", "disk swap", ANN, now_us=patient.now)
    holds.lay(Scope.COLLECTION, "d", "disk swap", ANN, now_us=patient.now)
    while holds.sweep(now_us=patient.now):
        pass
    holds.lift(hold.id, ANN, now_us=patient.now)
    patient.clock.forward(2)

    def finish() -> None:
        assert patient.count() == {"pending": len(jobs), "held": 1}
        assert patient.state(stays) is State.HELD

    return Case("holds", finish)


@case("sweep-unfinished, laid")
def _(patient: Patient) -> Case:
    job = patient.submit_one()
    hold = patient.store.holds.lay(Scope.QUEUE, "default", "disk swap", ANN, now_us=patient.now)
    patient.clock.forward(2)

    def finish() -> None:
        assert patient.state(job) is State.HELD
        patient.store.holds.lift(hold.id, ANN, now_us=patient.now)
        while patient.store.holds.sweep(now_us=patient.now):
            pass
        completes(patient, job)()

    return Case("holds", finish)


# --- what nobody can repair -------------------------------------------------------------------

LASTING_DAMAGES: dict[str, Callable[[Patient], str]] = {}
"""The damages that only a person can repair; each function does one and returns its subject."""


def lasting_damage(name: str) -> Callable[[Callable[[Patient], str]], None]:
    def enter(damage: Callable[[Patient], str]) -> None:
        LASTING_DAMAGES[name] = damage

    return enter


@lasting_damage("state-unknown")
def _(patient: Patient) -> str:
    job = patient.submit_one()
    patient.drain()
    patient.damage("update jobs set state = 'lost'")
    return f"job {job}"


@lasting_damage("type-unknown")
def _(patient: Patient) -> str:
    job = patient.submit_one()
    patient.damage("delete from types where name = 'one'")
    patient.forget()
    return f"job {job}"


@lasting_damage("schedule-overdue")
def _(patient: Patient) -> str:
    patient.store.schedules.put(Schedule(name="hourly", type="one", every_s=60), ANN, now_us=patient.now)
    patient.clock.forward(1_200)
    return "schedule hourly"


@lasting_damage("schedule-unreadable")
def _(patient: Patient) -> str:
    patient.store.schedules.put(Schedule(name="hourly", type="one", every_s=60), ANN, now_us=patient.now)
    patient.damage("update schedules set spec = replace(spec, 'skip', 'a policy of a newer version')")
    return "schedule hourly"


@lasting_damage("schedule-gap")
def _(patient: Patient) -> str:
    patient.store.schedules.put(
        Schedule(name="hourly", type="one", every_s=60, overlap="allow"),
        ANN,
        now_us=patient.now,
    )
    for _ in range(5):
        patient.clock.forward(60)
        while patient.store.schedules.tick(now_us=patient.now):
            pass
    patient.damage(
        "delete from schedule_runs where nominal_us = "
        "(select nominal_us from schedule_runs order by nominal_us limit 1 offset 2)"
    )
    return "schedule hourly"


@lasting_damage("schedule-run-without-job")
def _(patient: Patient) -> str:
    patient.store.schedules.put(Schedule(name="hourly", type="one", every_s=60), ANN, now_us=patient.now)
    patient.clock.forward(60)
    patient.store.schedules.tick(now_us=patient.now)
    for table, column in (("jobs", "id"), ("data", "job_id"), ("ready", "job_id")):
        patient.damage(f"delete from {table} where {column} = 1")
    return "schedule hourly"


@lasting_damage("cancel-unfinished")
def _(patient: Patient) -> str:
    """The tree is as a command leaves it that was killed after the first of its steps."""
    parent, _ = patient.family(n=3)
    patient.damage(
        'insert into cancel_requests (job_id, lineage, tree, "by", reason, at_us) select id, '
        "lineage, 1, 'ann', null, ? "
        "from jobs where id = ?",
        patient.now,
        parent,
    )
    patient.clock.forward(61)
    return f"job {parent}"


def _somebody_who_goes(patient: Patient) -> Actor:
    patient.store.accounts.add("root", ALL_RIGHTS, None, ANN, now_us=patient.now)
    patient.store.accounts.add("ben", Rights(role=Role.OPERATOR), None, ANN, now_us=patient.now)
    return Actor(by="ben", call="c", account="ben")


@lasting_damage("webhook-without-rights")
def _(patient: Patient) -> str:
    ben = _somebody_who_goes(patient)
    patient.store.webhooks.add(
        Webhook(name="w", url="https://example.org/"), "secret", ben, now_us=patient.now
    )
    assert patient.examine() == []
    patient.store.accounts.delete("ben", ANN, now_us=patient.now)
    return "webhook w"


@lasting_damage("schedule-without-rights")
def _(patient: Patient) -> str:
    schedule = Schedule(name="hourly", type="one", every_s=60)
    patient.store.schedules.put(schedule, _somebody_who_goes(patient), now_us=patient.now)
    assert patient.examine() == []
    patient.store.accounts.disable("ben", ANN, disabled=True, now_us=patient.now)
    return "schedule hourly"


@lasting_damage("inbox-stuck")
def _(patient: Patient) -> str:
    inbox = Inbox(name="cards", folder="/srv/cards", type="one")
    patient.store.inboxes.put(inbox, ANN, now_us=patient.now)
    here = patient.here.id
    patient.store.inboxes.serve("cards", here, now_us=patient.now)
    for problem in ("the disk is full", None):
        patient.store.inboxes.report("cards", here, problem)
        assert [v.rule for v in patient.examine()] == ([] if problem is None else ["inbox-stuck"])
    patient.store.inboxes.serve("cards", here, leave=True, problem="it is gone", now_us=patient.now)
    patient.store.inboxes.pause("cards", ANN, paused=True, now_us=patient.now)
    assert patient.examine() == []
    patient.store.inboxes.pause("cards", ANN, paused=False, now_us=patient.now)
    patient.store.inboxes.serve("cards", here, now_us=patient.now)
    patient.store.inboxes.serve("cards", here, leave=True, problem="it is gone", now_us=patient.now)
    return "inbox cards"


@lasting_damage("inbox-unserved")
def _(patient: Patient) -> str:
    """Its folder is on a share that is not mounted, or was misspelt: no node has looked there, and none notes why."""
    patient.store.inboxes.put(Inbox(name="cards", folder="/srv/cards", type="one"), ANN, now_us=patient.now)
    here = patient.here
    patient.store.inboxes.serve("cards", here.id, now_us=patient.now)
    patient.clock.forward(61)
    assert patient.examine() == []
    patient.store.inboxes.serve("cards", here.id, leave=True, now_us=patient.now)
    patient.clock.forward(61)
    patient.store.fleet.drain(here.name, ANN, now_us=patient.now)
    assert patient.examine() == []
    patient.store.fleet.resume(here.name, ANN, now_us=patient.now)
    patient.clock.forward(61)
    return "inbox cards"


@lasting_damage("upload-without-file")
def _(patient: Patient) -> str:
    patient.store.inboxes.put(Inbox(name="cards", folder="/srv/cards", type="one"), ANN, now_us=patient.now)
    upload = Upload(id="1", inbox="cards", name="a.zip", size=1, by="ann", sha256="0" * 64)
    drop = Drop(
        name="a.zip",
        kind=Kind.FILE,
        size=1,
        identity=upload.identity,
        owner="ann",
        dropped_us=1,
        sha256=upload.sha256,
    )
    submission = Submission(type="one", params=("{}",))
    patient.store.inboxes.accept_upload(upload, drop, submission, now_us=patient.now)
    patient.clock.forward(599)
    assert patient.examine() == []
    patient.clock.forward(2)
    return "hold 1"


@lasting_damage("audit-broken")
def _(patient: Patient) -> str:
    job = patient.submit_one()
    patient.cancel(job)
    patient.unguard_audit()
    patient.damage("update audit set \"by\" = 'ben'")
    return "audit"


# --- the tests --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_damage_is_told_exactly_mended_and_the_work_goes_on(patient: Patient, name: str) -> None:
    done = CASES[name](patient)
    rule = name.partition(",")[0]

    findings = patient.examine()

    assert {(v.rule, v.subject) for v in findings} == {(rule, done.subject)}, findings
    assert findings[0].sentence
    assert findings[0].repair
    assert patient.examine() == findings, "looking changes nothing"
    before = len(patient.store.audit.entries())
    assert patient.repair(findings[0]) is True
    assert patient.examine() == []
    entries = [entry for entry, _ in patient.store.audit.entries(after=before)]
    assert {(e.by, e.verb, e.call) for e in entries if e.verb == "repair"} == {("ann", "repair", "c-1")}
    assert orjson.loads(entries[0].what) == {"rule": rule, "subject": done.subject, "did": findings[0].repair}
    assert patient.repair(findings[0]) is False, "it looks again before it changes anything"
    done.finish()
    patient.sweep()
    assert patient.examine() == []


def test_each_counter_may_be_missing_and_is_made_again(patient: Patient) -> None:
    is_file = isinstance(sql_store(patient.store).database, SqliteDatabase)
    for name in (*COUNTERS, *(() if is_file else ("turn",))):
        patient.damage("delete from counters where name = ?", name)
        (finding,) = patient.examine()
        assert (finding.rule, finding.subject) == ("counter-behind", f"counter {name}")
        assert patient.repair(finding) is True
    assert patient.examine() == []


@pytest.mark.parametrize("name", sorted(LASTING_DAMAGES))
def test_what_cannot_be_repaired_safely_is_told_with_what_a_person_should_do(
    patient: Patient, name: str
) -> None:
    subject = LASTING_DAMAGES[name](patient)

    findings = patient.examine()

    assert {(v.rule, v.subject, v.repair) for v in findings} == {(name, subject, None)}, findings
    assert patient.repair(findings[0]) is False
    assert patient.examine() == findings


def test_an_inbox_with_the_problem_of_a_dead_node_is_unserved(patient: Patient) -> None:
    patient.store.inboxes.put(Inbox(name="cards", folder="/srv/cards", type="one"), ANN, now_us=patient.now)
    assert patient.here.name == "here", "a node that works, and does not see the folder"
    elm = patient.node("elm")
    patient.store.inboxes.serve("cards", elm.id, now_us=patient.now)
    patient.store.inboxes.report("cards", elm.id, "the disk is full")
    patient.clock.forward(61)
    assert [v.rule for v in patient.examine()] == ["inbox-stuck"]
    patient.damage("update nodes set state = 'left' where id = ?", elm.id)

    assert [(v.rule, v.subject) for v in patient.examine()] == [("inbox-unserved", "inbox cards")]


@pytest.mark.parametrize("event", ["put", "resume", "drain", "leave", "death", "node resume"])
def test_a_node_has_a_minute_to_take_up_an_inbox(patient: Patient, event: str) -> None:
    store, inboxes = patient.store, patient.store.inboxes
    assert patient.here.name == "here", "a node that works, and does not see the folder"
    elm = patient.node("elm")
    inbox = Inbox(name="cards", folder="/srv/cards", type="one")
    if event != "put":
        inboxes.put(inbox, ANN, now_us=patient.now)
        assert inboxes.serve("cards", elm.id, now_us=patient.now)
    if event == "resume":
        inboxes.pause("cards", ANN, paused=True, now_us=patient.now)
        patient.damage("update inboxes set node_id = null")
    if event == "node resume":
        for name in ("here", "elm"):
            store.fleet.drain(name, ANN, now_us=patient.now)
        inboxes.serve("cards", elm.id, leave=True, now_us=patient.now)
    patient.clock.forward(3_600)
    assert patient.examine() == []

    if event == "put":
        inboxes.put(inbox, ANN, now_us=patient.now)
    elif event == "resume":
        inboxes.pause("cards", ANN, paused=False, now_us=patient.now)
    elif event == "drain":
        store.update_node(elm.id, state="draining", now_us=patient.now)
    elif event == "leave":
        inboxes.serve("cards", elm.id, leave=True, now_us=patient.now)
    elif event == "death":
        store.update_node(elm.id, state="left", died=True, now_us=patient.now)
    else:
        store.fleet.resume("here", ANN, now_us=patient.now)

    patient.clock.forward(59)
    assert patient.examine() == []
    patient.clock.forward(2)
    assert [v.rule for v in patient.examine()] == ["inbox-unserved"]


def test_what_a_store_was_made_with_and_has_no_more_is_told(patient: Patient) -> None:
    patient.damage("alter table progress drop column message")
    patient.damage("drop index jobs_by_parent")
    patient.damage(
        "drop trigger audit_keeps"
        + ("" if isinstance(sql_store(patient.store).database, SqliteDatabase) else " on audit")
    )

    findings = patient.examine("schema-incomplete")

    sentences = {finding.subject: finding.sentence for finding in findings}
    assert set(sentences) == {"column progress.message", "index jobs_by_parent", "trigger audit_keeps"}
    assert "restore it from a backup" in sentences["column progress.message"]
    # And what it says makes the others again
    # With its own collation, for connections of later tests have plans that expect it
    collation = "" if isinstance(sql_store(patient.store).database, SqliteDatabase) else ' collate "C"'
    patient.damage(f"alter table progress add column message text{collation}")
    for subject in ("index jobs_by_parent", "trigger audit_keeps"):
        patient.damage(sentences[subject].partition("make it again (")[2].removesuffix(")"))
    assert patient.examine("schema-incomplete") == []


def test_each_index_that_is_missing_is_made_again_as_it_was(patient: Patient) -> None:
    is_file = isinstance(sql_store(patient.store).database, SqliteDatabase)
    definitions = (
        "select name, replace(lower(sql), '\"', '') from sqlite_master where type = 'index' and sql is not null "
        "order by name"
        if is_file
        else "select indexname, indexdef from pg_indexes where schemaname = current_schema() order by indexname"
    )
    before = rows(patient.store, definitions)
    for index in (index for table in metadata.sorted_tables for index in table.indexes):
        patient.damage(f"drop index {index.name}")
    for finding in patient.examine("schema-incomplete"):
        patient.damage(finding.sentence.partition("make it again (")[2].removesuffix(")"))

    assert rows(patient.store, definitions) == before


BELOW = {
    "node-degraded",
    "node-silent",
    "database-damaged",
    "index-damaged",
    "wal-long",
    "schema-incomplete",
    "transaction-open",
    "declaration-unreadable",
    "json-unreadable",
}
"""Those with a test of their own; the last two in test_unreadable."""


def test_every_rule_is_tested(store: Store) -> None:
    checks = store.doctor.checks()

    assert {check.rule for check in checks} == {name.partition(",")[0] for name in CASES} | set(
        LASTING_DAMAGES
    ) | BELOW
    assert {check.rule for check in checks if check.repairs} == {name.partition(",")[0] for name in CASES}
    assert len({check.about for check in checks}) == len(checks)
    assert [check.rule for check in checks if check.deep] == ["index-damaged"]


def test_a_store_with_something_of_everything_is_healthy(store: Store, clock: Clock) -> None:
    patient = Patient(store, clock)
    fill(patient)

    assert patient.examine(deep=True) == []

    patient.sweep()
    assert patient.examine() == []
    patient.drain()
    assert patient.examine() == []


def test_it_looks_by_the_rules_that_were_asked_for_alone(patient: Patient) -> None:
    patient.submit_one()
    patient.damage("delete from ready")
    patient.damage("insert into progress values (?, 1, 0.5, 'half')", NOBODY)

    assert [v.rule for v in patient.examine("pending-nowhere")] == ["pending-nowhere"]
    assert patient.examine("overdue") == []


def test_a_violation_that_has_come_right_by_itself_is_left_alone(patient: Patient) -> None:
    patient.submit_one(at_us=patient.now + 1)
    patient.clock.forward(120)
    (violation,) = patient.examine()
    patient.sweep()

    assert patient.repair(violation) is False
    assert patient.store.audit.entries() == []


def test_what_another_has_taken_meanwhile_is_told(patient: Patient) -> None:
    job = patient.submit_one(keys=("k",))
    patient.damage("delete from keys")
    (violation,) = patient.examine()
    other = patient.submit_one(keys=("k",))

    with pytest.raises(Refused, match=f"key 'k' of job {job} is taken by job {other} meanwhile"):
        patient.repair(violation)


def test_a_tree_whose_top_is_gone_becomes_one_of_its_own(patient: Patient) -> None:
    """Given a tree of which the top was lost, with a branch that waits and a leaf that runs."""
    root, (branch, *_) = patient.family(child="parent", n=1)
    lease = patient.run(branch)
    leaves = patient.spawn(lease, n=2)
    patient.pass_(lease)
    running = patient.run(leaves[0])
    for table, column in (
        ("inactive_jobs", "job_id"),
        ("attempts", "job_id"),
        ("children_left", "parent_id"),
        ("jobs", "id"),
    ):
        patient.damage(f"delete from {table} where {column} = ?", root)

    heal(patient)

    assert [job.id for job in patient.store.tree(branch)] == [branch, *leaves]
    assert {patient.job(leaf).root_id for leaf in leaves} == {branch}
    patient.pass_(running)
    completes(patient, branch, *leaves)()


def test_a_pending_child_with_a_wrong_lineage_is_put_in_its_place(patient: Patient) -> None:
    parent, born = patient.family(n=2)
    patient.damage("update jobs set lineage = 'x' where id = ?", born[0])

    heal(patient)

    completes(patient, parent, *born)()


def heal(patient: Patient) -> None:
    for _ in range(10):
        findings = patient.examine()
        if not findings:
            return
        for violation in findings:
            patient.repair(violation)
    raise AssertionError(findings)


@sqlite_alone  # the other refuses values that are no numbers
@pytest.mark.parametrize(
    ("rule", "sql"),
    [
        ("counter-behind", "update counters set value = 'many' where name = 'job'"),
        ("attempts-of-no-job", "update attempts set job_id = x'ff'"),
    ],
)
def test_a_value_that_no_rule_expects_keeps_the_others_neither_from_looking_nor_from_mending(
    patient: Patient, rule: str, sql: str
) -> None:
    patient.fail(patient.run(patient.submit_one()))
    job = patient.submit_one()
    patient.damage("delete from ready")
    patient.damage(sql)

    violations = {v.rule: v for v in patient.examine()}

    assert "pending-nowhere" in violations
    if violations[rule].repair is None:
        assert "could not be checked to its end: the database holds a value" in violations[rule].sentence
    else:
        with pytest.raises(Refused, match="could not be repaired: the database holds a value"):
            patient.repair(violations[rule])
    assert patient.repair(violations["pending-nowhere"])
    assert patient.state(job) is State.PENDING


# --- nodes ------------------------------------------------------------------------------------


def silent(patient: Patient) -> tuple[Node, int]:
    elm = patient.node("elm")
    job = patient.submit_one()
    patient.run(job, elm)
    patient.clock.forward(61)
    return elm, job


def test_a_node_that_does_not_beat_is_told_and_nothing_is_done_without_proof(patient: Patient) -> None:
    _, job = silent(patient)

    (violation,) = patient.store.doctor.examine(now_us=patient.now)

    assert (violation.rule, violation.subject, violation.repair) == ("node-silent", "node elm", None)
    assert "no heartbeat for 61 seconds" in violation.sentence
    assert "with 1 of its jobs leased" in violation.sentence
    assert "spinney doctor --repair --dead elm" in violation.sentence
    assert patient.repair(violation) is False
    assert patient.state(job) is State.RUNNING


def test_an_overdue_schedule_is_told_with_the_time_zone_that_a_leader_may_lack(patient: Patient) -> None:
    for name, zone in (("abroad", "Europe/Berlin"), ("here", "UTC")):
        schedule = Schedule(name=name, type="one", cron="* * * * *", zone=zone)
        patient.store.schedules.put(schedule, ANN, now_us=patient.now)
    patient.clock.forward(1_200)

    abroad, here = patient.store.doctor.examine({"schedule-overdue"}, now_us=patient.now)

    assert "does the host of the leading one lack the time zone Europe/Berlin (tzdata)?" in abroad.sentence
    assert here.sentence.endswith("is no node at work?")


def test_a_node_that_is_degraded_for_more_than_a_minute_is_told(patient: Patient) -> None:
    def findings() -> list[tuple[str, str]]:
        return [(v.rule, v.subject) for v in patient.store.doctor.examine(now_us=patient.now)]

    def beats(trouble: str | None, seconds: int) -> None:
        patient.store.beat(elm.id, trouble=trouble, now_us=patient.now)
        patient.clock.forward(seconds)

    elm = patient.node("elm")
    for trouble, seconds in [("the disk is full", 50), (None, 50), ("the disk is full", 50)]:
        beats(trouble, seconds)
        assert findings() == [], "it recovered within a minute"
    beats("the disk is full, still", 11)

    (violation,) = patient.store.doctor.examine(now_us=patient.now)

    assert (violation.rule, violation.subject, violation.repair) == ("node-degraded", "node elm", None)
    assert (
        "has been degraded for 61 seconds and may take no jobs: the disk is full, still" in violation.sentence
    )
    patient.clock.forward(60)
    assert findings() == [("node-silent", "node elm")]
    beats(f"{OVER} 10:00:00 to 10:01:05 UTC", 1)
    assert findings() == []


def test_a_node_is_told_to_be_silent_when_its_own_lease_is_over(patient: Patient) -> None:
    # Given a keeper with a long lease that beats no more, beside a node with a short one
    elm = patient.node("elm", lease_s=600.0)
    patient.store.elect_leader(elm.id, now_us=patient.now)
    patient.clock.forward(61)
    oak = patient.node("oak", lease_s=15.0)

    def subjects() -> list[str]:
        patient.store.beat(oak.id, now_us=patient.now)
        return [v.subject for v in patient.store.doctor.examine(now_us=patient.now)]

    # When it has been silent for almost as long as its lease, and longer
    patient.clock.forward(560)
    within = subjects()
    patient.clock.forward(100)
    # Then nothing is said before that lease is over
    assert within == []
    assert subjects() == ["node elm", "maintenance"]


def test_a_keeper_that_does_not_beat_is_told_once_others_should_have_noticed(patient: Patient) -> None:
    elm = patient.node("elm")
    patient.store.elect_leader(elm.id, now_us=patient.now)
    patient.clock.forward(61)
    oak = patient.node("oak")

    def unkept() -> list[str]:
        patient.store.beat(oak.id, now_us=patient.now)
        return [v.sentence for v in patient.store.doctor.examine({"leader-silent"}, now_us=patient.now)]

    assert unkept() == [], "oak has only just joined"
    patient.clock.forward(61)
    (sentence,) = unkept()
    assert (
        "node elm, which leads, sends no heartbeat, and no other node (1 active) has taken over" in sentence
    )
    patient.store.elect_leader(oak.id, dead=elm.id, now_us=patient.now)
    assert unkept() == []


def test_a_node_that_somebody_declares_dead_is_recovered(patient: Patient) -> None:
    elm, job = silent(patient)

    (dead,) = patient.store.doctor.declare_dead("elm", ANN, now_us=patient.now)
    assert dead.id == elm.id
    assert patient.store.recover(dead.id, None, now_us=patient.now) == [job]

    assert list(patient.store.doctor.examine(now_us=patient.now)) == []
    assert patient.store.beat(elm.id, now_us=patient.now) is False
    (entry, _), *_ = patient.store.audit.entries()
    assert (entry.by, entry.verb, entry.count) == ("ann", "declare dead", 1)
    completes(patient, job)()


def test_a_node_that_beats_cannot_be_declared_dead(patient: Patient) -> None:
    silent(patient)
    patient.beat()

    with pytest.raises(Refused, match="beat less than a minute ago, so it is not dead"):
        patient.store.doctor.declare_dead("elm", ANN, now_us=patient.now)
    with pytest.raises(Refused, match=r"there is no node 'elmm'.*\(did you mean 'elm'\?\)"):
        patient.store.doctor.declare_dead("elmm", ANN, now_us=patient.now)
    assert patient.store.audit.entries() == []


def test_a_recovery_that_is_under_way_is_no_violation(patient: Patient) -> None:
    elm = patient.node("elm")
    patient.run(patient.submit_one(), elm)
    patient.store.update_node(elm.id, state="left", now_us=patient.now)

    assert patient.examine() == []


# --- the file ---------------------------------------------------------------------------------


def overwrite_page_of(patient: Patient, table: str) -> None:
    """Write nonsense over the root page of a table."""
    patient.store.close()
    with closing(sqlite3.connect(patient.path, isolation_level=None)) as database:
        database.execute("pragma wal_checkpoint(truncate)")
        (page,) = database.execute("select rootpage from sqlite_master where name = ?", (table,)).fetchone()
        (size,) = database.execute("pragma page_size").fetchone()
    with patient.path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xab" * size)


def test_subjobs_of_a_stage_that_runs_on_are_no_part_of_a_cancellation_that_was_cut_off(
    patient: Patient,
) -> None:
    parent = patient.submit_one("parent")
    patient.spawn(patient.run(parent), n=2)
    patient.cancel(parent, tree=True)
    patient.clock.forward(70)

    assert patient.examine() == []


@sqlite_alone
def test_a_damaged_page_is_told_and_the_other_rules_still_look(patient: Patient) -> None:
    job = patient.submit_one()
    patient.damage("delete from ready")
    overwrite_page_of(patient, "progress")

    findings = patient.examine()

    by_rule = {v.rule: v for v in findings}
    assert {"database-damaged", "progress-of-no-job", "pending-nowhere"} == set(by_rule)
    assert by_rule["database-damaged"].subject == "table progress"
    assert "restore it from a backup" in by_rule["database-damaged"].sentence
    assert "could not be checked to its end" in by_rule["progress-of-no-job"].sentence
    assert by_rule["pending-nowhere"].subject == f"job {job}"
    assert [v.repair for v in findings if v.rule != "pending-nowhere"] == [None, None]


@sqlite_alone
def test_an_index_that_does_not_fit_its_table_is_told_when_asked_deep(patient: Patient) -> None:
    patient.store.close()
    with closing(sqlite3.connect(patient.path, isolation_level=None)) as database:
        database.execute("pragma writable_schema = on")
        entry = database.execute(
            "select * from sqlite_master where name = 'inactive_jobs_by_state'"
        ).fetchone()
        database.execute("delete from sqlite_master where name = 'inactive_jobs_by_state'")
    patient.damage("insert into inactive_jobs (job_id, state, since_us) values (1, 'failed', 1)")
    with closing(sqlite3.connect(patient.path, isolation_level=None)) as database:
        database.execute("pragma writable_schema = on")
        database.execute("insert into sqlite_master values (?, ?, ?, ?, ?)", entry)

    assert "index-damaged" not in {v.rule for v in patient.examine()}
    (violation,) = patient.examine("index-damaged")

    assert (violation.subject, violation.repair) == ("table inactive_jobs", None)
    assert "missing from index inactive_jobs_by_state" in violation.sentence


@sqlite_alone
def test_a_long_write_ahead_log_says_that_somebody_reads(
    patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(integrity, "WAL_MOST_BYTES", 10)
    patient.submit_one()

    (violation,) = patient.examine()

    assert (violation.rule, violation.repair) == ("wal-long", None)
    assert f"lsof {patient.path}" in violation.sentence


# --- large stores -----------------------------------------------------------------------------


@long_alone
def test_many_jobs_are_examined_in_bounded_memory_and_short_snapshots(
    patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = patient.run(patient.submit_one("batch"))
    texts = ("{}",) * (MANY // 2)
    patient.store.spawn(lease.job_id, lease.fence, [Submission(type="one", params=texts)], now_us=patient.now)
    patient.pass_(lease)
    patient.sweep()
    patient.store.submit([Submission(type="one", params=texts)], now_us=patient.now)
    patient.damage("update jobs set lineage = 'x' where id = ?", MANY - 5)
    snapshots: list[int] = []

    @contextmanager
    def look(session: Session) -> Iterator[Any]:
        with original(session) as tx:
            statistics = Counting(tx)
            yield statistics
        snapshots.append(statistics.most)

    original = Session.look
    monkeypatch.setattr(Session, "look", look)
    tracemalloc.start()
    violations = {(v.rule, v.subject) for v in patient.examine()}
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert violations == {("lineage-wrong", f"job {MANY - 5}"), ("ready-elsewhere", f"job {MANY - 5}")}
    assert max(snapshots) <= rules.PAGE, "no statement gave more than a page"
    assert len(snapshots) > 20 * MANY / rules.PAGE
    assert peak < 50 * 2**20


class Counting:
    """A transaction that remembers how many rows its statements gave at most."""

    def __init__(self, tx: Any) -> None:
        self._tx = tx
        self.most = 0

    def all(self, sql: str, args: Sequence[Any] = ()) -> list[Any]:
        rows: list[Any] = self._tx.all(sql, args)
        self.most = max(self.most, len(rows))
        return rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)
