"""Rules about schedules, webhooks and inboxes: the rights with which the first two act for the user who made them, what
the node that looks into an inbox has seen there, and uploads whose file does not come."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import orjson

from spinney.features.doctor.sql.rule import (
    GRACE_US,
    MAYBE_JOB,
    CheckContext,
    Facts,
    Join,
    Paged,
    Repair,
    RepairContext,
    Rule,
    Walk,
    Whole,
)
from spinney.features.schedules import sql as schedules
from spinney.features.webhooks import webhook_rows as webhooks
from spinney.model.settings.inboxes import UPLOAD_HELD_REASON
from spinney.model.settings.schedules import Schedule
from spinney.model.values.unreadable import UNREADABLE
from spinney.scheduling import recurrence

LATE_US = 10 * GRACE_US
"""A schedule whose next time is longer past is served by no node. Nodes and servers finish uploads whose process has
died within a minute, so after this time nothing that could finish them is at work, or the file is lost."""
RUNS = 100
"""How many of the latest times of a schedule are searched for gaps."""
_SCHEDULES = Walk("schedules", ("name",), rows=20, subject="schedule {name}")
"""Schedules, a few on each page: computing the times of a schedule takes long."""


def _schedule(row: Facts) -> Schedule:
    """Return the schedule of a row. Raises one of ``UNREADABLE`` for a specification that cannot be read."""
    return Schedule.from_json(row["name"], orjson.loads(row["spec"]))


def _time(at_us: int) -> str:
    return datetime.fromtimestamp(at_us / 1e6, UTC).isoformat(timespec="seconds")


def _each(
    finding: Callable[[CheckContext, Facts], Facts | None],
) -> Callable[[CheckContext, list[dict[str, Any]]], list[dict[str, Any]]]:
    """Return a filter that applies a function to each schedule. It skips schedules that cannot be read, which
    the rule ``schedule-unreadable`` reports, and those whose time zone this host does not know, which another
    node serves."""

    def row_filter(check: CheckContext, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        wrong = []
        for row in rows:
            try:
                facts = finding(check, row)
            except UNREADABLE:
                continue
            if facts is not None:
                wrong.append({"name": row["name"], **facts})
        return wrong

    return row_filter


def _unreadable(check: CheckContext, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the schedules whose specification cannot be read, with the reason."""
    wrong = []
    for row in rows:
        try:
            _schedule(row)
        except UNREADABLE as error:
            wrong.append({"name": row["name"], "why": str(error)})
    return wrong


def _ahead(check: CheckContext, row: Facts) -> Facts | None:
    """Return the facts when a schedule's next time is later than the first one that lies ahead; else None.
    Ten minutes are allowed for clocks that differ."""
    first_us = recurrence.next_us(_schedule(row), check.now_us + LATE_US)
    return {"until": _time(row["next_us"])} if first_us is not None and first_us < row["next_us"] else None


def _go_back(repair: RepairContext, facts: Facts) -> None:
    """Set the next time of a schedule to the first that lies ahead. Times that already have an outcome keep
    it, so that none gets a second job."""
    spec = repair.tx.value("select spec from schedules where name = ?", (facts["name"],))
    next_us = recurrence.next_us(_schedule({"name": facts["name"], "spec": spec}), repair.now_us)
    repair.tx.run("update schedules set next_us = ? where name = ?", (next_us, facts["name"]))


def _gap(check: CheckContext, row: Facts) -> Facts | None:
    """Look for the first time without an outcome between two that have one.

    Only times since the schedule has had its present cron expression or interval are looked at. Times that
    were missed together have one row, which says nothing of each. Outcomes after ``next_us`` were decided
    under a clock that ran ahead.
    """
    schedule, next_us = _schedule(row), row["next_us"]
    latest = check.tx.all(
        "select nominal_us, outcome from schedule_runs where schedule = ? and nominal_us >= ? "
        "and nominal_us < coalesce(?, nominal_us + 1) order by nominal_us desc limit ?",
        (schedule.name, schedule.anchor_us or 0, next_us, RUNS),
    )
    decided: list[tuple[int, str]] = [*reversed(latest)] + ([] if next_us is None else [(next_us, "next")])
    for (at_us, outcome), (then_us, _) in pairwise(decided):
        due_us = None if outcome == "missed" else recurrence.next_us(schedule, at_us)
        if due_us is not None and due_us < then_us:
            return {"gap": recurrence.in_zone(schedule, due_us).isoformat()}
    return None


def _overdue(check: CheckContext, row: Facts) -> Facts:
    """Return since when a schedule is due, and what may be missing on the host of the node that leads."""
    zone = _schedule(row).zone
    or_zone = (
        "" if zone == "UTC" else f", or does the host of the leading one lack the time zone {zone} (tzdata)"
    )
    return {"since": _time(row["next_us"]), "or_zone": or_zone}


def _with_reason(faults: Iterator[tuple[str, str]]) -> list[Facts]:
    return [{"name": name, "why": why} for name, why in faults]


RULES: tuple[Rule, ...] = (
    Whole(
        name="webhook-without-rights",
        about="The user who made a webhook still has the right to it.",
        find=lambda check: _with_reason(webhooks.without_rights(check.tx, check.now_us)),
        subject="webhook {name}",
        sentence="webhook {name} is sent nothing: {why} (spinney webhook resume {name}); if nobody wants it: spinney "
        "webhook remove {name}",
    ),
    Whole(
        name="schedule-without-rights",
        about="The user who made a schedule still has the right to submit its jobs.",
        find=lambda check: _with_reason(schedules.without_rights(check.tx, check.registry, check.now_us)),
        subject="schedule {name}",
        sentence="schedule {name} submits no jobs: {why} (spinney schedule resume {name}); if nobody wants it: spinney "
        "schedule drop {name}",
    ),
    Paged(
        name="schedule-overdue",
        about="The next time of a schedule lies ahead.",
        walk=_SCHEDULES,
        where="page.paused = 0 and page.next_us < ?",
        binds=lambda check: (check.now_us - LATE_US,),
        columns=("page.spec", "page.next_us"),
        row_filter=_each(_overdue),
        sentence="schedule {name} has been due since {since}, but no job was submitted; is no node at work{or_zone}?",
    ),
    Paged(
        name="schedule-unreadable",
        about="The specification of a schedule can be read.",
        walk=_SCHEDULES,
        where="1 = 1",
        columns=("page.spec",),
        row_filter=_unreadable,
        sentence="the specification of schedule {name} cannot be read ({why}), so that it submits no jobs; write it "
        "anew (spinney schedule add {name} … --replace), or drop it (spinney schedule drop {name})",
    ),
    Paged(
        name="schedule-ahead",
        about="The next time of a schedule is the first that lies ahead.",
        walk=_SCHEDULES,
        where="page.next_us > ?",
        binds=lambda check: (check.now_us,),
        columns=("page.spec", "page.next_us"),
        row_filter=_each(_ahead),
        sentence="schedule {name} submits nothing before {until}, although it has earlier times: the clock of a host "
        "ran ahead (see that all hosts keep the time), or the rules of the time zone were changed",
        repair=Repair(
            "continues with the first time that lies ahead; times that have their job get no second one",
            _go_back,
        ),
    ),
    Paged(
        name="schedule-gap",
        about="Each past time of a schedule has an outcome.",
        walk=_SCHEDULES,
        where="1 = 1",
        columns=("page.spec", "page.next_us"),
        row_filter=_each(_gap),
        sentence="schedule {name} should have submitted a job at {gap}, but that time has no outcome; if the job is "
        "still wanted: spinney schedule run {name}",
    ),
    Paged(
        name="schedule-run-without-job",
        about="The job that a schedule submitted exists, unless retention has removed it.",
        walk=Walk("schedule_runs", ("schedule", "nominal_us"), subject="schedule {schedule}"),
        join=MAYBE_JOB,
        # The counter is the highest id of a job that retention has removed. A run without a job is reported
        # in any case: it counts as an id that no job has.
        where="page.outcome = 'submitted' and jobs.id is null "
        "and coalesce(page.job_id, 2147483648000) > (select value from counters where name = 'removed')",
        columns=("page.job_id",),
        sentence="schedule {schedule} submitted job {job_id}, but there is no such job; if its work is still wanted: "
        "spinney schedule run {schedule}",
    ),
    Paged(
        name="inbox-stuck",
        about="The folder of each inbox that is not paused exists, and nodes can take what is dropped into it.",
        walk=Walk("inboxes", ("name",), subject="inbox {name}"),
        join=Join("left join nodes on nodes.id = page.node_id"),
        # A problem that was noted by a node which does not run any more may be over.
        where="page.paused = 0 and page.problem is not null and (page.node_id is null or nodes.state = 'active')",
        columns=("page.problem",),
        sentence="inbox {name} does not take what is dropped there: {problem}; what becomes of it: spinney inbox show "
        "{name}",
    ),
    Paged(
        name="inbox-unserved",
        about="A node looks into each inbox that is not paused, where nodes are at work.",
        walk=Walk("inboxes", ("name",), subject="inbox {name}"),
        join=Join("left join nodes on nodes.id = page.node_id and nodes.state = 'active'"),
        # An inbox with a problem that "inbox-stuck" reports is left out. Nodes count that have worked for a while: one
        # that has just started has not looked into its inboxes yet, and a drained one does not look at all.
        where="page.paused = 0 and page.since_us < ? and (page.problem is null or page.node_id is not null) "
        "and nodes.id is null and exists (select 1 from nodes working where working.state = 'active' "
        "and working.seen_us >= ? and working.started_us < ? "
        "and working.id not in (select node_id from external_workers) "
        "and working.name not in (select name from node_settings where drained = 1))",
        binds=lambda check: (check.now_us - GRACE_US,) * 3,
        sentence="nothing that is dropped into inbox {name} is taken, because no running node looks there; mount or "
        "create its folder ('spinney inbox show {name}' names it) on the host of a node, or pause the inbox",
    ),
    Paged(
        name="upload-without-file",
        about="The job of an upload is held for some minutes at most, until its file is in its folder.",
        walk=Walk("holds", ("id",), subject="hold {id}"),
        where="page.scope = 'job' and page.reason = ? and page.since_us < ?",
        binds=lambda check: (UPLOAD_HELD_REASON, check.now_us - LATE_US),
        columns=("page.name",),
        sentence="job {name} is held for the file of an upload, which does not come: start a node or a server that "
        "sees the folder root; if they run, the file is lost: cancel the job, and upload the file again",
    ),
)
