"""Who may what: every verb of ``control``, as each role, without limits and with, on what is in sight and what is not.

``CASES`` has a line for every public verb of ``Control`` and of its parts; one that has none fails the first test.
"""

import inspect
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from contract.words import LOCKED, ONE, PARENT, THREE, Clock, Site
from new_store import new_store
from spinney.commands import Command
from spinney.commands.control import Control
from spinney.commands.job_filter import JobFilterBody
from spinney.commands.job_queries import (
    CountChildren,
    CountJobs,
    ListAttempts,
    ListChildren,
    ListJobs,
    ShowData,
    ShowJob,
    ShowResults,
    ShowTree,
)
from spinney.define.job.options import Options
from spinney.features.audit.commands import ListAuditCalls, ListAuditEntries, ShowAuditHead, VerifyAudit
from spinney.features.bridges.commands import ForgetBridge, ListBridges
from spinney.features.bulk.commands import PlanBulk, RunBulk
from spinney.features.bulk.service import Bulk
from spinney.features.collections.commands import RelabelJob
from spinney.features.doctor.commands import ExamineStore, ListRules, RepairStore
from spinney.features.doctor.service import Doctor
from spinney.features.explain.commands import ExplainJob, ListObstacles
from spinney.features.failures.commands import ListFailures, ShowFailure
from spinney.features.holds.commands import (
    CountHeld,
    LayHold,
    LiftHold,
    ListHolds,
    ListHoldsOn,
    PlanHold,
    PlanRelease,
    lift_holds,
)
from spinney.features.homes.commands import ListHomes, RehomeJob, ReleaseHome
from spinney.features.inboxes.commands import (
    ListArrivals,
    ListInboxes,
    PauseInbox,
    PutInbox,
    RemoveInbox,
    ScanInbox,
    ShowInbox,
)
from spinney.features.jobs.commands import (
    CancelJob,
    DeleteJob,
    HoldJob,
    MoveJob,
    PrioritiseJob,
    ReleaseJob,
    RerunJob,
    RetryJob,
    RunJobNow,
)
from spinney.features.locks.commands import FreeLock, ListCapacities, ListLocks, SetCapacity, ShowLock
from spinney.features.nodes.commands import DrainNode, ListNodes, ResumeNode, SetSlots
from spinney.features.queues.commands import ChangeQueue, CreateQueue, DeleteQueue, ListQueues, ShowQueue
from spinney.features.retention.commands import (
    ListRetention,
    SetRetention,
    ShowRetentionClock,
    UnsetRetention,
)
from spinney.features.schedules.commands import (
    DropSchedule,
    ListComingTimes,
    ListScheduleRuns,
    ListSchedules,
    PauseSchedule,
    PutSchedule,
    RunSchedule,
    ShowSchedule,
)
from spinney.features.stacks.commands import RequestStacks, ShowStackRequest
from spinney.features.stats.commands import ShowStats
from spinney.features.submission.commands import ListBatches, ListObjects, ShowBatch
from spinney.features.types.commands import ListTypes, ShowType
from spinney.model.access import AccessScope, Rights, Role
from spinney.model.errors import Forbidden, NoSuch, NoSuchJob, Refused, SpinneyError, UsageError
from spinney.model.jobs import Filter
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Scope
from spinney.model.settings.queues import QueueSpec
from spinney.model.settings.schedules import Schedule
from spinney.server.api import COMMANDS
from spinney.service.service import Service
from spinney.store.parts import Store
from spinney.store.sql import open_store

PARTS = {"bulk": Bulk, "doctor": Doctor}
ELSEWHERE = ("queries", "accounts", "sign_in", "webhooks", "external")
"""Features whose rules are their own, and tried in their own tests."""

PLACES = ("alpha", "beta")
"""Collections. Who is limited sees alpha."""
ANN = "ann"
"""Who asks. Jobs are hers, or ben's."""


@dataclass(frozen=True, kw_only=True)
class There:
    """What stands in one place, by what it is."""

    place: str
    jobs: dict[str, int]
    """``WHO STATE`` to the job."""
    holds: dict[str, int]
    """``WHO SCOPE`` to the hold."""

    @property
    def which(self) -> Filter:
        return Filter(collection=self.place)


Call = Callable[[Control, There], Any]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One verb, in one use."""

    call: Call
    least: Role
    """Who may at least, without limits."""
    limited: type[SpinneyError] | None = None
    """What becomes of it in sight for somebody with limits; None: he may."""
    outside: type[SpinneyError] | None = NoSuchJob
    """What becomes of it out of sight for somebody with limits; None: it has no place, and he may."""
    stops: type[SpinneyError] | None = None
    """It is allowed, but cannot be done as things are here."""


def of_job(command: type[Command], state: str, **more: Any) -> dict[str, Case]:
    """A verb on somebody's job; on her own where submitters may do it."""

    def on(who: str) -> Call:
        return lambda control, there: control.do(command(job=there.jobs[f"{who} {state}"], **more))

    verb = command.__name__
    own = (
        {f"{verb} her own": Case(call=on(ANN), least=Role.SUBMITTER)}
        if command.role is Role.SUBMITTER
        else {}
    )
    return own | {verb: Case(call=on("ben" if own else ANN), least=Role.OPERATOR)}


def run(control: Control, order: Order, which: Filter | None = None, *ids: int) -> None:
    """A bulk verb, which must do something."""
    report = control.part(Bulk).run(control.part(Bulk).plan(order, which, ids))
    if not report.touched:
        raise NoSuchJob(0) if not report.refused else NotReached(str(report.refused))


class NotReached(SpinneyError):
    """Refused in the report."""


def some(value: Any) -> None:
    if not value:
        raise NoSuchJob(0)


HOLD = Order(verb=Verb.HOLD, reason="look at it")
RERUN = Order(verb=Verb.RERUN)


def laying(scope: Scope, name: str) -> Call:
    return lambda control, there: control.do(LayHold(scope=scope, name=name, reason="x"))


def doing(command: Command) -> Call:
    return lambda control, there: control.do(command)


def on_job(command: type[Command], whose: str) -> Call:
    return lambda control, there: control.do(command(job=there.jobs[whose]))


def fingerprint(control: Control, job: int) -> str:
    """Of what failed in this job: in both places of the same."""
    return control.store.failures.of([job])[job].fingerprint


def of_ann(there: There) -> JobFilterBody:
    return JobFilterBody(submitter=ANN, collection=there.place)


def put_schedule(control: Control, there: There, name: str, *, replace: bool = False) -> Schedule:
    options = {"collection": there.place}
    return control.do(PutSchedule(name=name, type="one", every_s=60, options=options, replace=replace))


CASES: dict[str, Case] = {
    # --- submitting -----------------------------------------------------------------------
    "submit": Case(
        call=lambda c, t: c.submit("one", [{}], Options(collection=t.place)),
        least=Role.SUBMITTER,
        outside=Forbidden,
    ),
    "submit_lines": Case(
        call=lambda c, t: c.submit_lines(['{"type": "one"}'], options=Options(collection=t.place)),
        least=Role.SUBMITTER,
        outside=Forbidden,
    ),
    # --- reading --------------------------------------------------------------------------
    "ListJobs": Case(call=lambda c, t: some(c.do(ListJobs(collection=t.place)).items), least=Role.VIEWER),
    "CountJobs": Case(call=lambda c, t: some(c.do(CountJobs(collection=t.place))), least=Role.VIEWER),
    **{
        command.__name__: Case(
            call=lambda c, t, command=command: c.do(command(job=t.jobs["ann failed"])), least=Role.VIEWER
        )
        for command in (
            ShowJob,
            ShowTree,
            ListChildren,
            CountChildren,
            ListAttempts,
            ShowData,
            ShowResults,
            ExplainJob,
        )
    },
    "RequestStacks": Case(
        call=lambda c, t: c.do(RequestStacks(job=t.jobs["ann running"])), least=Role.VIEWER
    ),
    "ShowStackRequest": Case(
        call=lambda c, t: c.do(ShowStackRequest(job=t.jobs["ann failed"], fence=1)), least=Role.VIEWER
    ),
    # --- single jobs ----------------------------------------------------------------------
    **of_job(CancelJob, "pending"),
    **of_job(RetryJob, "failed"),
    **of_job(RerunJob, "completed"),
    **of_job(RunJobNow, "scheduled"),
    **of_job(HoldJob, "pending", reason="x"),
    **of_job(ReleaseJob, "held"),
    **of_job(MoveJob, "pending", queue="typed"),
    **of_job(PrioritiseJob, "pending", priority=3),
    **of_job(DeleteJob, "failed"),
    "ListBridges": Case(
        call=lambda c, t: c.do(ListBridges()), least=Role.VIEWER, limited=Forbidden, outside=Forbidden
    ),
    "ForgetBridge": Case(
        call=lambda c, t: c.do(ForgetBridge(name="none")),
        least=Role.ADMIN,
        limited=Forbidden,
        outside=Forbidden,
        stops=NoSuch,
    ),
    "RelabelJob": Case(
        call=lambda c, t: c.do(RelabelJob(job=t.jobs["ann failed"], collection="elsewhere")),
        least=Role.OPERATOR,
        limited=Forbidden,
        outside=Forbidden,
    ),
    # --- many -----------------------------------------------------------------------------
    "bulk.plan": Case(
        call=lambda c, t: some(c.part(Bulk).plan(HOLD, Filter(submitter=ANN, collection=t.place)).jobs),
        least=Role.SUBMITTER,
        outside=UsageError,
    ),
    "bulk.run": Case(call=lambda c, t: run(c, HOLD, t.which), least=Role.SUBMITTER, outside=UsageError),
    "bulk.run by number": Case(
        call=lambda c, t: run(c, HOLD, None, t.jobs["ann pending"]), least=Role.SUBMITTER, outside=NotReached
    ),
    "bulk.run by another's number": Case(
        call=lambda c, t: run(c, Order(verb=Verb.CANCEL), None, t.jobs["ben pending"]),
        least=Role.OPERATOR,
        outside=NotReached,
    ),
    "bulk.run of an operator's verb": Case(
        call=lambda c, t: run(c, Order(verb=Verb.PRIORITY, priority=3), t.which),
        least=Role.OPERATOR,
        outside=UsageError,
    ),
    "bulk.run into another queue": Case(
        call=lambda c, t: run(c, Order(verb=Verb.MOVE, queue="typed"), t.which),
        least=Role.OPERATOR,
        outside=UsageError,
    ),
    "bulk.plan of stages": Case(
        call=lambda c, t: some(c.part(Bulk).plan(RERUN, t.which, exact=True).stages or ()),
        least=Role.OPERATOR,
        outside=UsageError,
    ),
    "PlanBulk": Case(
        call=lambda c, t: some(c.do(PlanBulk(verb=Verb.HOLD, reason="x", filter=of_ann(t))).jobs),
        least=Role.SUBMITTER,
        outside=UsageError,
    ),
    "RunBulk": Case(
        call=lambda c, t: some(c.do(RunBulk(verb=Verb.HOLD, reason="x", filter=of_ann(t))).touched),
        least=Role.SUBMITTER,
        outside=UsageError,
    ),
    # --- holds ----------------------------------------------------------------------------
    "LayHold": Case(
        call=lambda c, t: c.do(LayHold(scope=Scope.COLLECTION, name=t.place, reason="x")),
        least=Role.OPERATOR,
        outside=Forbidden,
    ),
    "LayHold on her job": Case(
        call=lambda c, t: c.do(LayHold(scope=Scope.JOB, name=str(t.jobs["ann pending"]), reason="x")),
        least=Role.SUBMITTER,
    ),
    "LayHold on her tree": Case(
        call=lambda c, t: c.do(LayHold(scope=Scope.TREE, name=str(t.jobs["ann pending"]), reason="x")),
        least=Role.SUBMITTER,
    ),
    "LayHold on another's job": Case(
        call=lambda c, t: c.do(LayHold(scope=Scope.JOB, name=str(t.jobs["ben pending"]), reason="x")),
        least=Role.OPERATOR,
    ),
    **{
        f"LayHold on {scope}": Case(
            call=laying(scope, name), least=Role.OPERATOR, limited=Forbidden, outside=Forbidden
        )
        for scope, name in (
            (Scope.EVERYTHING, ""),
            (Scope.QUEUE, "typed"),
            (Scope.TYPE, "one"),
            (Scope.SUBMITTER, "ben"),
        )
    },
    "LiftHold": Case(
        call=lambda c, t: c.do(LiftHold(hold=t.holds["ben collection"])), least=Role.OPERATOR, outside=Refused
    ),
    "LiftHold her own": Case(
        call=lambda c, t: c.do(LiftHold(hold=t.holds["ann job"])), least=Role.SUBMITTER, outside=Refused
    ),
    "LiftHold another's on her job": Case(
        call=lambda c, t: c.do(LiftHold(hold=t.holds["ben job"])), least=Role.OPERATOR, outside=Refused
    ),
    "LiftHold of all on a collection": Case(
        call=lambda c, t: lift_holds(c, Scope.COLLECTION, t.place), least=Role.OPERATOR, outside=Forbidden
    ),
    "LiftHold of all on her job": Case(
        call=lambda c, t: lift_holds(c, Scope.JOB, str(t.jobs["ann held"])), least=Role.SUBMITTER
    ),
    "PlanHold": Case(
        call=lambda c, t: c.do(PlanHold(scope=Scope.COLLECTION, name=t.place, reason="x")),
        least=Role.OPERATOR,
        outside=Forbidden,
    ),
    "ListHoldsOn": Case(
        call=lambda c, t: some(c.do(ListHoldsOn(job=t.jobs["ann held"])).items), least=Role.VIEWER
    ),
    "CountHeld": Case(
        call=lambda c, t: c.do(CountHeld(hold=t.holds["ben collection"])), least=Role.VIEWER, outside=Refused
    ),
    "PlanRelease": Case(
        call=lambda c, t: c.do(PlanRelease(hold=t.holds["ben collection"])),
        least=Role.OPERATOR,
        outside=Refused,
    ),
    # --- what serves all ------------------------------------------------------------------
    **{
        name: Case(call=call, least=Role.OPERATOR, limited=Forbidden, outside=Forbidden, stops=stops)
        for name, call, stops in (
            ("ChangeQueue", lambda c, t: c.do(ChangeQueue(name="typed", limit=3)), None),
            ("CreateQueue", lambda c, t: c.do(CreateQueue(name="new")), None),
            ("DrainNode", lambda c, t: c.do(DrainNode(node="here")), None),
            ("ResumeNode", lambda c, t: c.do(ResumeNode(node="here")), Refused),
            ("SetSlots", lambda c, t: c.do(SetSlots(node="here", slots=2)), None),
            ("ListAuditCalls", doing(ListAuditCalls()), None),
            ("ListAuditEntries", doing(ListAuditEntries()), None),
            ("ShowAuditHead", doing(ShowAuditHead()), None),
            ("doctor.examine", lambda c, t: c.part(Doctor).examine(), None),
            ("doctor.repair", lambda c, t: list(c.part(Doctor).repair()), None),
            ("doctor.recover_dead_node", lambda c, t: c.part(Doctor).recover_dead_node("nobody"), Refused),
        )
    },
    "doctor.checks": Case(call=lambda c, t: c.part(Doctor).checks(), least=Role.VIEWER, outside=None),
    "ListQueues": Case(call=lambda c, t: c.do(ListQueues()), least=Role.VIEWER, outside=None),
    "ListRetention": Case(call=lambda c, t: c.do(ListRetention()), least=Role.VIEWER, outside=None),
    "ShowRetentionClock": Case(call=lambda c, t: c.do(ShowRetentionClock()), least=Role.VIEWER, outside=None),
    "ShowQueue": Case(call=lambda c, t: c.do(ShowQueue(name="typed")), least=Role.VIEWER, outside=None),
    **{
        name: Case(call=call, least=Role.ADMIN, limited=Forbidden, outside=Forbidden, stops=stops)
        for name, call, stops in (
            ("ListHomes", doing(ListHomes(host="host")), Refused),
            ("ReleaseHome", doing(ReleaseHome(home=1)), Refused),
            ("RehomeJob", lambda c, t: c.do(RehomeJob(job=t.jobs["ben failed"])), Refused),
            ("ListRules", doing(ListRules()), None),
            ("ExamineStore", doing(ExamineStore()), None),
            ("RepairStore", doing(RepairStore()), None),
        )
    },
    **{
        name: Case(call=call, least=Role.ADMIN, limited=Forbidden, outside=Forbidden)
        for name, call in (
            ("DeleteQueue", lambda c, t: c.do(DeleteQueue(name="typed"))),
            ("SetRetention", lambda c, t: c.do(SetRetention(type="one", state="failed", keep_s=60))),
            ("UnsetRetention", lambda c, t: c.do(UnsetRetention(type="one", state="failed"))),
            ("VerifyAudit", doing(VerifyAudit())),
        )
    },
    # --- inboxes: nodes read and move files for them ----------------------------------------
    **{
        name: Case(call=call, least=least, limited=Forbidden, outside=Forbidden, stops=stops)
        for name, least, call, stops in (
            ("ListInboxes", Role.OPERATOR, doing(ListInboxes()), None),
            ("ShowInbox", Role.OPERATOR, doing(ShowInbox(name="none")), NoSuch),
            ("ListArrivals", Role.OPERATOR, doing(ListArrivals(name="none")), NoSuch),
            ("ScanInbox", Role.OPERATOR, doing(ScanInbox(name="none")), NoSuch),
            ("PutInbox", Role.ADMIN, doing(PutInbox(name="new", folder="/srv/new", type="one")), None),
            ("PauseInbox", Role.ADMIN, doing(PauseInbox(name="none", paused=True)), NoSuch),
            ("RemoveInbox", Role.ADMIN, doing(RemoveInbox(name="none")), NoSuch),
        )
    },
    # --- locks ----------------------------------------------------------------------------
    "FreeLock": Case(
        call=lambda c, t: c.do(FreeLock(name=f"receiver:{t.place}", reason="x")),
        least=Role.OPERATOR,
        outside=Refused,
    ),
    "FreeLock from a job": Case(
        call=lambda c, t: c.do(FreeLock(name=f"receiver:{t.place}", reason="x", job=t.jobs["ben running"])),
        least=Role.OPERATOR,
    ),
    "SetCapacity": Case(
        call=lambda c, t: c.do(SetCapacity(name="x", capacity=2)),
        least=Role.OPERATOR,
        limited=Forbidden,
        outside=Forbidden,
    ),
    **{
        f"{type(command).__name__} {command!r}": Case(call=doing(command), least=Role.VIEWER, outside=None)
        for command in (
            ListNodes(),
            ListHolds(),
            ListHolds(released=True),
            ListLocks(),
            ShowLock(name="x"),
            ListCapacities(),
            ListBatches(),
            ListFailures(),
            ListTypes(),
            ShowType(name="one"),
            ShowStats(),
            ListObstacles(jobs=[1]),
        )
    },
    **{
        command.__name__: Case(call=on_job(command, "ben pending"), least=Role.VIEWER)
        for command in (ShowBatch, ListObjects)
    },
    "ShowFailure": Case(
        call=lambda c, t: c.do(ShowFailure(fingerprint=fingerprint(c, t.jobs["ben failed"]))),
        least=Role.VIEWER,
        outside=None,
    ),
    # --- schedules ------------------------------------------------------------------------
    "PutSchedule": Case(call=lambda c, t: put_schedule(c, t, "new"), least=Role.OPERATOR, outside=Forbidden),
    "PutSchedule in place of one": Case(
        call=lambda c, t: put_schedule(c, t, t.place, replace=True), least=Role.OPERATOR, outside=Forbidden
    ),
    **{
        name: Case(call=call, least=Role.OPERATOR, outside=Refused)
        for name, call in (
            ("PauseSchedule", lambda c, t: c.do(PauseSchedule(name=t.place, paused=True))),
            ("PauseSchedule that goes on", lambda c, t: c.do(PauseSchedule(name=t.place, paused=False))),
            ("DropSchedule", lambda c, t: c.do(DropSchedule(name=t.place))),
            ("RunSchedule", lambda c, t: c.do(RunSchedule(name=t.place))),
        )
    },
    "ListSchedules": Case(call=lambda c, t: c.do(ListSchedules()), least=Role.VIEWER, outside=None),
    **{
        name: Case(call=call, least=Role.VIEWER, outside=Refused)
        for name, call in (
            ("ShowSchedule", lambda c, t: c.do(ShowSchedule(name=t.place))),
            ("ListScheduleRuns", lambda c, t: c.do(ListScheduleRuns(name=t.place))),
            ("ListComingTimes", lambda c, t: c.do(ListComingTimes(name=t.place))),
        )
    },
}

# --- the table ------------------------------------------------------------------------------


def test_every_verb_has_a_line() -> None:
    verbs = set(_verbs(Control))
    for name, cls in PARTS.items():
        verbs |= {f"{name}.{verb}" for verb in _verbs(cls)}

    commands = {
        command.__name__ for tag, group in COMMANDS.items() if tag not in ELSEWHERE for command in group
    }
    assert {name.split()[0] for name in CASES} == (verbs - {"do"}) | commands


def _verbs(cls: type) -> Iterator[str]:
    of_hand = set(dir(Service))
    for name, _ in inspect.getmembers(cls, inspect.isfunction):
        if not name.startswith("_") and name not in of_hand:
            yield name


@pytest.mark.parametrize("name", CASES)
def test_who_may(name: str, stage: "Stage") -> None:
    case = CASES[name]
    for role in Role:
        for limited, place in ((False, "beta"), (True, "alpha"), (True, "beta")):
            stage.tries(f"{name} as {role}, {limited=}, on {place}", case, role, limited, place)


Standing = tuple[str, int, int]
"""The head of the audit, the number of jobs and that of schedules."""


class Stage:
    """A store with one of each, made anew whenever something was changed in it."""

    def __init__(self, template: Path, there: dict[str, There], standing: Standing, folder: Path) -> None:
        self._template, self._there, self._standing, self._folder = template, there, standing, folder
        self._store: Store | None = None
        self._copies = 0

    def tries(self, what: str, case: Case, role: Role, limited: bool, place: str) -> None:
        store = self.store
        expected = _expected(case, role, limited, place)
        control = ask(store, role, *(PLACES[:1] if limited else ()))
        refused = _refusal(lambda: case.call(control, self._there[place]))
        assert (refused is None) == (expected is None), f"{what}: {refused!r} instead of {expected}"
        is_changed = _standing(store) != self._standing
        if expected is None:
            if is_changed:
                self.close()
            return
        assert isinstance(refused, expected), f"{what}: {refused!r}"
        assert not is_changed, f"{what}: something was changed"

    @property
    def store(self) -> Store:
        if self._store is None:
            self._copies += 1
            copy = self._folder / f"{self._copies}.db"
            shutil.copy(self._template, copy)
            self._store = open_store(f"sqlite:///{copy}")
        return self._store

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None


def _refusal(call: Callable[[], Any]) -> SpinneyError | None:
    try:
        call()
    except SpinneyError as refusal:
        return refusal
    return None


def _expected(case: Case, role: Role, limited: bool, place: str) -> tuple[type[SpinneyError], ...] | None:
    if role.rank < case.least.rank:
        # Where it is out of sight, too, it may be told that it is not there.
        more = (NoSuchJob, Refused) if limited and place == "beta" else ()
        return (Forbidden, NotReached, *more)
    refusal = None if not limited else case.limited if place == "alpha" else case.outside
    expected = refusal or case.stops
    return None if expected is None else (expected,)


def _standing(store: Store) -> Standing:
    jobs = store.job_lists.count(Filter(), most=1000)
    return store.audit.head(), jobs, len(store.schedules.all())


def ask(store: Store, role: Role, *collections: str, **limits: Any) -> Control:
    """Ann with this role, limited to these collections if there are any."""
    within = AccessScope(collections=collections or None)
    rights = Rights(role=role, within=within, **limits)
    return Control(store=store, clock=lambda: Clock().now_us, wake_nodes=lambda: None, by=ANN, rights=rights)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, There], Standing]:
    path = tmp_path_factory.mktemp("rights") / "template.db"
    store = open_store(new_store(path))
    site = Site(store, Clock())
    site.knows(ONE, THREE, LOCKED, PARENT, queues=[QueueSpec(name="typed", type="one")])
    site.run(site.submit_one("locked", {"serno": "1"}))
    ran = {place: _ran(site, place) for place in PLACES}
    there = {place: _stand(site, place, ran[place]) for place in PLACES}
    standing = _standing(store)
    store.close()
    return path, there, standing


@pytest.fixture
def stage(template: tuple[Path, dict[str, There], Standing], tmp_path: Path) -> Iterator[Stage]:
    made = Stage(*template, tmp_path)
    yield made
    made.close()


def _ran(site: Site, place: str) -> dict[str, int]:
    jobs: dict[str, int] = {}
    for who in (ANN, "ben"):
        whose: dict[str, Any] = {"collection": place, "submitter": who}
        jobs[f"{who} completed"] = site.submit_one(**whose)
        site.pass_(site.run(jobs[f"{who} completed"]))
        jobs[f"{who} failed"] = site.submit_one(**whose)
        site.fail(site.run(jobs[f"{who} failed"]))
        lock = {"serno": place if who == "ben" else f"{place}-ann"}
        jobs[f"{who} running"] = site.submit_one("locked", lock, **whose)
        site.run(jobs[f"{who} running"])
    return jobs


def _stand(site: Site, place: str, jobs: dict[str, int]) -> There:
    holds: dict[str, int] = {}
    ben = Actor(by="ben", call="x")
    for who in (ANN, "ben"):
        whose: dict[str, Any] = {"collection": place, "submitter": who}
        for state in ("pending", "held", "held by ben"):
            jobs[f"{who} {state}"] = site.submit_one(**whose)
        jobs[f"{who} scheduled"] = site.submit_one(at_us=site.now + 10**12, **whose)
    for name, job, by in (
        ("ann job", "ann held", ANN),
        ("ben job", "ann held by ben", "ben"),
        ("", "ben held", "ben"),
    ):
        laid = site.store.holds.lay(Scope.JOB, str(jobs[job]), "x", Actor(by=by, call="x"), now_us=site.now)
        holds[name] = laid.id
    holds["ben collection"] = site.store.holds.lay(Scope.COLLECTION, place, "x", ben, now_us=site.now).id
    site.store.schedules.put(
        Schedule(name=place, type="one", every_s=60, options={"collection": place}), ben, now_us=site.now
    )
    site.store.retention.set("one", "failed", 3600.0, ben, now_us=site.now)
    return There(place=place, jobs=jobs, holds=holds)
