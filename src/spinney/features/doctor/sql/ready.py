"""What stands in ``ready``, against the jobs that should: whoever stands there is claimed."""

from typing import Any

from spinney.features.doctor.sql.rule import (
    JOBS,
    READY,
    CheckContext,
    Facts,
    Paged,
    RepairContext,
    Rule,
    in_place,
    only_accepted,
    standing_in_ready,
)
from spinney.store.sql.registry import hold_coverage
from spinney.store.sql.transitions import hold_moves

_LEASED = "exists (select 1 from leases l where l.job_id = page.id)"


def _nowhere(look: CheckContext, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of pending jobs those that are not where they would be looked for, nor anywhere else in ``ready``."""
    missing = _not_in_place(look, found)
    elsewhere = standing_in_ready(look, [facts["id"] for facts in missing])
    return [facts for facts in missing if facts["id"] not in elsewhere]


def _not_in_place(look: CheckContext, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of pending jobs those that are not where they would be looked for. That goes by key; and daily work puts
    nobody anywhere else, so what the examination has found nowhere need not be looked for in all of ``ready``."""
    pending = {
        row.id: row for row in hold_moves.some(look.tx, look.registry, [facts["id"] for facts in found])
    }
    missing = []
    for facts in found:
        keys = hold_moves.keys(look.registry, [pending[facts["id"]]])
        sql = "select job_id from ready where lane = ? and priority = ? and share = ? and position = ?"
        if not keys or look.tx.value(sql, keys[0]) != facts["id"]:
            missing.append(facts)
    return in_place(look, missing)


def _elsewhere(look: CheckContext, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that do not stand in the place that their jobs' rows say."""
    pending = {
        row.id: row for row in hold_moves.some(look.tx, look.registry, [facts["job_id"] for facts in found])
    }
    wrong = []
    for facts in found:
        keys = hold_moves.keys(look.registry, [pending[facts["job_id"]]])
        if not keys or keys[0] != _key(facts):
            wrong.append(facts)
    return wrong


def _key(facts: Facts) -> hold_moves.Key:
    return facts["lane"], facts["priority"], facts["share"], facts["position"]


def _leave(mend: RepairContext, facts: Facts) -> None:
    hold_moves.out_of_ready(mend.tx, [_key(facts)])


def _leave_and_place(mend: RepairContext, facts: Facts) -> None:
    _leave(mend, facts)
    mend.place(facts["job_id"])


def _lower_mark(mend: RepairContext, facts: Facts) -> None:
    lane, priority, share, position = _key(facts)
    mend.registry.watermarks.entered(mend.tx, lane, (priority, share, position))


def _hidden(look: CheckContext, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    accepted = {facts["job_id"] for facts in only_accepted(look, found, "job_id")}
    return [facts for facts in found if facts["job_id"] not in accepted]


def _under_hold(look: CheckContext, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Only holds through which a sweep has been: under the others jobs may stand ready, and are not claimed."""
    holds = look.registry.holds
    if not holds.any:
        return []
    ids = [facts["job_id"] for facts in found]
    over = hold_coverage.among(look.tx, holds, [w for w in holds.wide if w.swept], ids)
    over |= hold_coverage.among_single(look.tx, ids) if holds.jobs else {}
    return [facts | {"hold": str(over[facts["job_id"]])} for facts in found if facts["job_id"] in over]


RULES: tuple[Rule, ...] = (
    Paged(
        name="ready-without-job",
        about="What stands in ready is a job.",
        walk=READY,
        join="left join jobs on jobs.id = page.job_id",
        where="jobs.id is null",
        columns=("page.job_id",),
        sentence="job {job_id} stands ready to be claimed, but there is no such job",
        offer="takes it out of ready",
        mend=_leave,
    ),
    Paged(
        name="ready-but-not-pending",
        about="What stands in ready is pending.",
        walk=READY,
        join="cross join jobs",
        on="jobs.id = page.job_id",
        where="jobs.state <> 'pending'",
        columns=("page.job_id", "jobs.state"),
        sentence="job {job_id} stands ready to be claimed, but is {state}; it would run although it should not",
        offer="takes it out of ready",
        mend=_leave,
    ),
    Paged(
        name="ready-but-hidden",
        about="What stands in ready has been accepted.",
        walk=READY,
        join="cross join jobs",
        on="jobs.id = page.job_id",
        where="jobs.state = 'pending' and exists (select 1 from staging where published <> 1)",
        columns=("page.job_id",),
        row_filter=_hidden,
        sentence="job {job_id} stands ready to be claimed, but the call that made it is not accepted yet",
        offer="takes it out of ready",
        mend=_leave,
    ),
    Paged(
        name="ready-and-leased",
        about="What is leased does not stand in ready.",
        walk=READY,
        join="cross join leases l",
        on="l.job_id = page.job_id",
        where="exists (select 1 from jobs where jobs.id = page.job_id and jobs.state = 'pending')",
        columns=("page.job_id", "l.fence"),
        sentence="job {job_id} is leased (attempt {fence}), but still stands ready: it would be claimed twice",
        offer="takes it out of ready",
        mend=_leave,
    ),
    Paged(
        name="ready-elsewhere",
        about="A job stands in ready in the lane of its queue, type and stage, at its priority, share and position.",
        walk=READY,
        join="cross join jobs",
        on="jobs.id = page.job_id",
        where="jobs.state = 'pending' and jobs.stage is not null "
        "and not exists (select 1 from leases l where l.job_id = jobs.id)",
        columns=("page.job_id", "jobs.queue", "jobs.type", "jobs.stage"),
        row_filter=_elsewhere,
        sentence="job {job_id} stands ready at lane {lane}, priority {priority}, share {share}, position {position}, "
        "which is not its place in queue {queue} for stage {stage} of {type}",
        offer="places it afresh",
        mend=_leave_and_place,
    ),
    Paged(
        name="ready-under-hold",
        about="What a hold covers does not stand in ready, once it was swept.",
        walk=READY,
        join="cross join jobs",
        on="jobs.id = page.job_id",
        where="jobs.state = 'pending' and not exists (select 1 from leases l where l.job_id = jobs.id)",
        columns=("page.job_id",),
        row_filter=_under_hold,
        sentence="job {job_id} stands ready to be claimed under {hold}",
        offer="holds it",
        mend=_leave_and_place,
    ),
    Paged(
        name="ready-below-watermark",
        about="Nothing stands in ready below its lane's low mark, from which claims begin to look.",
        walk=READY,
        join="cross join low_watermarks m",
        on="m.lane = page.lane",
        where="(page.priority, page.share, page.position) < (m.priority, m.share, m.position)",
        columns=("page.job_id",),
        sentence="job {job_id} stands ready below the mark from which its lane is looked through, so that nobody "
        "finds it",
        offer="lowers the mark",
        mend=_lower_mark,
    ),
    Paged(
        name="pending-nowhere",
        about="A pending job stands in ready, or is leased.",
        walk=JOBS,
        where=f"page.state = 'pending' and page.stage is not null and not {_LEASED}",
        row_filter=_nowhere,
        row_filter_again=_not_in_place,
        subject="job {id}",
        sentence="job {id} is pending, but stands nowhere in ready, so that nobody can claim it",
        offer="places it afresh",
        mend=lambda mend, facts: mend.place(facts["id"]),
    ),
)
