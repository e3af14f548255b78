"""What should tick: nodes, schedules, counters."""

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import orjson

from spinney.features.doctor.sql.rule import (
    GRACE_US,
    JOBS,
    CheckContext,
    Facts,
    Paged,
    RepairContext,
    Rule,
    Walk,
    Whole,
)
from spinney.features.schedules import sql as schedules
from spinney.features.webhooks import sql as webhooks
from spinney.model.errors import SpinneyError, UsageError
from spinney.model.fleet import DEAD_SLACK_US, LEASE_MAX_S, presumed_dead
from spinney.model.settings.schedules import Schedule
from spinney.scheduling import recurrence
from spinney.store.sql.recover import leadership
from spinney.store.sql.registry import nodes

LATE_US = 10 * GRACE_US
"""A schedule whose next time is longer past is looked after by nobody."""
RUNS = 100
"""So many of a schedule's latest times are looked through for gaps."""
_SCHEDULES = Walk("schedules", ("name",), rows=20)


# --- schedules --------------------------------------------------------------------------------


def _with_gaps(look: CheckContext, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    gaps = {facts["name"]: _gap(look, facts) for facts in found}
    return [{"name": name, "gap": gap} for name, gap in gaps.items() if gap is not None]


def _unreadable(look: CheckContext, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    wrong = []
    for facts in found:
        try:
            _read(facts)
        except UNREADABLE as error:
            wrong.append({"name": facts["name"], "why": str(error)})
    return wrong


UNREADABLE = (SpinneyError, AttributeError, TypeError, ValueError)
"""What comes of a description that a newer version or a hand in the file wrote."""


def _read(facts: Facts) -> Schedule:
    return Schedule.from_json(facts["name"], orjson.loads(facts["spec"]))


def _ahead(look: CheckContext, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those whose next time is not the first that lies ahead, by any clock that goes nearly right."""
    wrong = []
    for facts in found:
        try:
            first_us = recurrence.next_us(_read(facts), look.now_us + LATE_US)
            if first_us is not None and first_us < facts["next_us"]:
                moment = datetime.fromtimestamp(facts["next_us"] / 1e6, UTC).isoformat(timespec="seconds")
                wrong.append({"name": facts["name"], "until": moment})
        except UNREADABLE:
            continue  # which is told, or another host knows its zone
    return wrong


def _go_back(mend: RepairContext, facts: Facts) -> None:
    spec = mend.tx.value("select spec from schedules where name = ?", (facts["name"],))
    next_us = recurrence.next_us(_read({"name": facts["name"], "spec": spec}), mend.now_us)
    mend.tx.run("update schedules set next_us = ? where name = ?", (next_us, facts["name"]))


def _gap(look: CheckContext, facts: Facts) -> str | None:
    """The first time of which nothing is known although it lies between two that were decided.

    Only since the schedule has had its present cron expression or interval; what was missed as a run says
    nothing of its single times.
    """
    try:
        schedule = _read(facts)
    except UNREADABLE:
        return None  # which is told
    # What was decided under a clock that ran ahead says nothing of the times before it.
    found = look.tx.all(
        "select nominal_us, outcome from schedule_runs where schedule = ? and nominal_us >= ? "
        "and nominal_us < coalesce(?, nominal_us + 1) order by nominal_us desc limit ?",
        (schedule.name, schedule.anchor_us or 0, facts["next_us"], RUNS),
    )
    decided: list[tuple[int, str]] = list(reversed(found))
    if facts["next_us"] is not None:
        decided.append((facts["next_us"], "next"))
    try:
        for (at_us, outcome), (then_us, _) in pairwise(decided):
            due_us = None if outcome == "missed" else recurrence.next_us(schedule, at_us)
            if due_us is not None and due_us < then_us:
                return recurrence.in_zone(schedule, due_us).isoformat()
    except UsageError:
        return None  # its zone is not known here; a node where it is makes its jobs
    return None


def _late(facts: Facts) -> str:
    since = datetime.fromtimestamp(facts["next_us"] / 1e6, UTC).isoformat(timespec="seconds")
    return f"schedule {facts['name']} has been due since {since} and nobody made its job; is no node at work?"


# --- counters ---------------------------------------------------------------------------------

_TOPS = {
    "job": "select max(n) from (select max(id) n from jobs union all select max(last_id) from staging) t",
    "fence": "select max(fence) from leases",
    "lane": "select max(id) from lanes",
    "share": "select max(id) from shares",
    "node": "select max(id) from nodes",
    "hold": "select max(id) from holds",
    "registry": "select 0",
    "lift": "select 0",
    "lift_swept": "select 0",
    "hold_sweep": "select 0",
    "home": "select max(id) from homes",
    "fetch": "select max(id) from fetches",
    "removed": "select 0",
    "webhook": "select max(id) from webhooks",
    "webhook_event": "select max(seq) from webhook_events",
}
"""Counters, and the highest number of each that was used."""


def _behind(look: CheckContext) -> list[Facts]:
    values = dict(look.tx.all("select name, value from counters"))
    found: list[Facts] = []
    for name, sql in _TOPS.items():
        used = look.tx.value(sql) or 0
        if name not in values or values[name] < used:
            found.append({"name": name, "value": values.get(name), "used": used})
    return found


def _highest(look: CheckContext, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [max(found, key=lambda facts: facts["fence"])]


def _count_on(mend: RepairContext, facts: Facts) -> None:
    mend.tx.run(
        "insert into counters (name, value) values (?, ?) on conflict (name) do update set value = excluded.value",
        (facts["name"], facts["used"]),
    )


def _raise_fence(mend: RepairContext, facts: Facts) -> None:
    mend.tx.run(
        "update counters set value = ? where name = 'fence' and value < ?", (facts["fence"], facts["fence"])
    )


_FENCE = "(select value from counters where name = 'fence')"


def _fences(name: str, walk: Walk, column: str) -> Paged:
    return Paged(
        name=name,
        about=f"No fence in {walk.table} is above the counter of fences.",
        walk=walk,
        where=f"page.{column} > {_FENCE}",
        columns=(f"page.{column} as fence",),
        row_filter=_highest,
        subject="counter fence",
        sentence="attempt {fence} was given a number above the counter of fences, so that the same will be given "
        "again: a late owner would not be refused",
        offer="raises the counter to {fence}",
        mend=_raise_fence,
    )


# --- who leads --------------------------------------------------------------------------


def _unkept(look: CheckContext) -> list[Facts]:
    """The node that is said to lead has not beaten for long, or is not there any more, although there are
    others that should have noticed."""
    row = look.tx.one(
        "select c.node_id, n.name, n.seen_us, n.lease_s from leadership c left join nodes n on n.id = c.node_id "
        "where c.name = ? and c.node_id is not null",
        (leadership.MAINTENANCE,),
    )
    if row is None:
        return []
    keeper_id, name, seen_us, lease_s = row
    if seen_us is None:
        lease_s = 0.0  # its row is gone: nobody has to wait for it
    elif not presumed_dead(seen_us, lease_s, look.now_us):
        return []
    others = [
        node
        for node in nodes.all_nodes(look.tx)
        if node.id != keeper_id
        and node.state == "active"
        and not node.is_external_worker
        and node.seen_us >= look.now_us - GRACE_US
        and presumed_dead(node.started_us, lease_s, look.now_us)
    ]
    return [{"node": name or f"number {keeper_id}", "others": len(others)}] if others else []


def _give_up_house(mend: RepairContext, _: Facts) -> None:
    mend.tx.run("delete from leadership where name = ?", (leadership.MAINTENANCE,))


# --- what goes on by itself, and with whose rights --------------------------------------------


def _webhooks_without_rights(look: CheckContext) -> list[Facts]:
    return [{"name": name, "why": why} for name, why in webhooks.without_rights(look.tx, look.now_us)]


def _schedules_without_rights(look: CheckContext) -> list[Facts]:
    found = schedules.without_rights(look.tx, look.registry, look.now_us)
    return [{"name": name, "why": why} for name, why in found]


_LEASE_S = f"coalesce(p.lease_s, page.lease_s, {LEASE_MAX_S})"
"""The lease period by which a node, or an external worker (``p``), is judged."""


RULES: tuple[Rule, ...] = (
    Whole(
        name="webhook-without-rights",
        about="Who made a webhook may have it still.",
        find=_webhooks_without_rights,
        subject="webhook {name}",
        sentence="webhook {name} is sent nothing: {why} (spinney webhook resume {name}); if nobody wants it: spinney "
        "webhook remove {name}",
    ),
    Whole(
        name="schedule-without-rights",
        about="Who made a schedule may make its jobs still.",
        find=_schedules_without_rights,
        subject="schedule {name}",
        sentence="schedule {name} makes no jobs: {why} (spinney schedule resume {name}); if nobody wants it: spinney "
        "schedule drop {name}",
    ),
    Whole(
        name="counter-behind",
        about="A counter is at or above the highest number that was used.",
        find=_behind,
        subject="counter {name}",
        sentence=lambda facts: (
            f"the counter {facts['name']} is "
            f"{'missing' if facts['value'] is None else 'at ' + str(facts['value'])}, but number {facts['used']} was "
            f"used; numbers would be given twice"
        ),
        offer="sets it to {used}",
        mend=_count_on,
    ),
    _fences("fence-ahead-in-attempts", Walk("attempts", ("job_id", "fence")), "fence"),
    _fences("fence-ahead-in-jobs", JOBS, "final_fence"),
    Paged(
        name="node-silent",
        about="A node that has not left has beaten within its lease.",
        walk=Walk("nodes", ("id",)),
        join="left join external_workers p on p.node_id = page.id",
        where=f"page.state <> 'left' and page.seen_us < ? - {_LEASE_S} * 1000000",
        binds=lambda look: (look.now_us, look.now_us - DEAD_SLACK_US),
        columns=(
            "page.name",
            "page.host",
            "cast((? - page.seen_us) / 1000000 as bigint) as silent_s",
            "(select count(*) from leases l where l.node_id = page.id) as leases",
            f"{_LEASE_S} as lease_s",
        ),
        subject="node {name}",
        sentence="node {name} on {host} has not beaten for {silent_s} seconds (by the clocks of both hosts; its lease "
        "is {lease_s:g} seconds) and has {leases} leases; it is probably dead, and any other node that runs takes its "
        "work back. If there is none and you know that it is dead: spinney doctor --repair --dead {name}",
    ),
    Whole(
        name="leader-silent",
        about="The leader beats.",
        find=_unkept,
        subject="maintenance",
        sentence="node {node}, which leads, does not beat, and none of the {others} others has taken over; "
        "scheduled jobs are late, and dead nodes are not recovered",
        offer="lets another node lead",
        mend=_give_up_house,
    ),
    Paged(
        name="schedule-overdue",
        about="The next time of a schedule lies ahead.",
        walk=_SCHEDULES,
        where="page.paused = 0 and page.next_us < ?",
        binds=lambda look: (look.now_us - LATE_US,),
        columns=("page.next_us",),
        subject="schedule {name}",
        sentence=_late,
    ),
    Paged(
        name="schedule-unreadable",
        about="What a schedule is to do can be read.",
        walk=_SCHEDULES,
        where="1 = 1",
        columns=("page.spec",),
        row_filter=_unreadable,
        subject="schedule {name}",
        sentence="what schedule {name} is to do cannot be read ({why}), so that it makes no jobs; put it anew (spinney "
        "schedule add {name} … --replace), or drop it (spinney schedule drop {name})",
    ),
    Paged(
        name="schedule-ahead",
        about="The next time of a schedule is the first that lies ahead.",
        walk=_SCHEDULES,
        where="page.next_us > ?",
        binds=lambda look: (look.now_us,),
        columns=("page.spec", "page.next_us"),
        row_filter=_ahead,
        subject="schedule {name}",
        sentence="schedule {name} makes nothing before {until}, although times of it come earlier: the clock of a host "
        "ran ahead (see that all hosts keep the time), or the zone's rules were changed",
        offer="lets it go on with the first time that lies ahead; times that have their job get no second one",
        mend=_go_back,
    ),
    Paged(
        name="schedule-gap",
        about="Of every time of a schedule it is known what became of it.",
        walk=_SCHEDULES,
        where="1 = 1",
        columns=("page.spec", "page.next_us"),
        row_filter=_with_gaps,
        subject="schedule {name}",
        sentence="schedule {name} should have made a job at {gap}, and nothing is known of that time; if it is still "
        "wanted: spinney schedule run {name}",
    ),
    Paged(
        name="schedule-run-without-job",
        about="The job that a schedule made is there, unless retention has removed it.",
        walk=Walk("schedule_runs", ("schedule", "nominal_us")),
        join="left join jobs on jobs.id = page.job_id",
        where="page.outcome = 'submitted' and jobs.id is null "
        "and coalesce(page.job_id, 2147483648000) > (select value from counters where name = 'removed')",
        columns=("page.job_id",),
        subject="schedule {schedule}",
        sentence="schedule {schedule} made job {job_id}, but there is no such job; if its work is still wanted: "
        "spinney schedule run {schedule}",
    ),
)
