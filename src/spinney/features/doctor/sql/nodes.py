"""Rules about nodes that have died, the leader among them, and the counters from which ids come."""

from spinney.features.doctor.sql.rule import (
    GRACE_US,
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
from spinney.model.fleet import DEAD_SLACK_US, LEASE_MAX_S, presumed_dead
from spinney.store.sql.recover import leadership
from spinney.store.sql.registry import nodes

_HIGHEST = {
    "job": "select max(n) from (select max(id) n from jobs union all select max(last_id) from staging) t",
    "fence": "select max(n) from (select max(fence) n from leases union all select max(fence) from attempts "
    "union all select max(final_fence) from jobs) t",
    "lane": "select max(id) from lanes",
    "share": "select max(id) from shares",
    "node": "select max(id) from nodes",
    "hold": "select max(id) from holds",
    "home": "select max(id) from homes",
    "fetch": "select max(id) from fetches",
    "inbox_arrival": "select max(id) from inbox_arrivals",
    "webhook": "select max(id) from webhooks",
    "webhook_event": "select max(seq) from webhook_events",
} | dict.fromkeys(("registry", "watermarks", "lift", "lift_swept", "hold_sweep", "removed"), "select 0")
"""For each counter, the query for the highest number that was used (counters that number nothing start at 0).

A number that is given twice is dangerous above all for fences: the late owner of a lease could write in the
name of the present one.
"""


def _behind(check: CheckContext) -> list[Facts]:
    """Return the counters that are missing, or lower than the highest id that was made from them."""
    values = dict(check.tx.all("select name, value from counters"))
    behind: list[Facts] = []
    # Without the row "turn" writers on a server do not wait for each other. A file has none.
    turn = {"turn": "select 0"} if check.tx.postgresql else {}
    for name, sql in (_HIGHEST | turn).items():
        used = check.tx.value(sql) or 0
        if name not in values:
            behind.append({"name": name, "state": "missing", "used": used})
        elif values[name] < used:
            behind.append({"name": name, "state": f"at {values[name]}", "used": used})
    return behind


def _raise_counter(repair: RepairContext, facts: Facts) -> None:
    repair.tx.run(
        "insert into counters (name, value) values (?, ?) on conflict (name) do update set value = excluded.value",
        (facts["name"], facts["used"]),
    )


def _silent_leader(check: CheckContext) -> list[Facts]:
    """Find a leader that has sent no heartbeat for longer than its lease allows, or is gone, although other
    nodes should have noticed.

    A node counts as one that should have noticed if it is at work, and has run for longer than the leader's
    lease and some slack: a node that has just started still waits for that long before it takes over.
    """
    row = check.tx.one(
        "select c.node_id, n.name, n.seen_us, n.lease_s from leadership c left join nodes n on n.id = c.node_id "
        "where c.name = ? and c.node_id is not null",
        (leadership.MAINTENANCE,),
    )
    if row is None:
        return []
    leader_id, name, seen_us, lease_s = row
    if seen_us is None:
        lease_s = 0.0  # its row is gone: nobody has to wait for it
    elif not presumed_dead(seen_us, lease_s, check.now_us):
        return []
    others = [
        node
        for node in nodes.all_nodes(check.tx)
        if node.id != leader_id
        and node.state == "active"
        and not node.is_external_worker
        and node.seen_us >= check.now_us - GRACE_US
        and presumed_dead(node.started_us, lease_s, check.now_us)
    ]
    return [{"node": name or f"number {leader_id}", "others": len(others)}] if others else []


def _depose(repair: RepairContext, _: Facts) -> None:
    """Delete the leader's row. The next node that finds leadership vacant takes it."""
    repair.tx.run("delete from leadership where name = ?", (leadership.MAINTENANCE,))


_LEASE_S = f"coalesce(p.lease_s, page.lease_s, {LEASE_MAX_S})"
"""The lease period of a node, or of an external worker (``p``), in seconds."""
_SILENT = f"page.seen_us < ? - {_LEASE_S} * 1000000"
_NODES = Walk("nodes", ("id",), subject="node {name}")
_EXTERNAL = Join("left join external_workers p on p.node_id = page.id")

RULES: tuple[Rule, ...] = (
    Whole(
        name="counter-behind",
        about="A counter is at or above the highest number that was used.",
        find=_behind,
        subject="counter {name}",
        sentence="the counter {name} is {state}, but number {used} was used; numbers would be given twice",
        repair=Repair("sets it to {used}", _raise_counter),
    ),
    Paged(
        # There is no repair here: wall clocks of two hosts prove nothing. Other nodes judge by their own
        # clock, or a person does.
        name="node-silent",
        about="A node that has not left has beaten within its lease.",
        walk=_NODES,
        join=_EXTERNAL,
        where=f"page.state <> 'left' and {_SILENT}",
        binds=lambda check: (check.now_us, check.now_us - DEAD_SLACK_US),
        columns=(
            "page.name",
            "page.host",
            "cast((? - page.seen_us) / 1000000 as bigint) as silent_s",
            "(select count(*) from leases l where l.node_id = page.id) as leases",
            f"{_LEASE_S} as lease_s",
        ),
        sentence="node {name} on {host} has sent no heartbeat for {silent_s} (by the clocks of both hosts; its lease "
        "is {lease_s}), with {leases} of its jobs leased; it is probably dead, and any other node that runs takes its "
        "jobs back. If there is none, start this one again, or, if you know that it is dead: spinney doctor --repair "
        "--dead {name}",
    ),
    Paged(
        name="node-degraded",
        about="No trouble that keeps a node from taking jobs lasts for longer than a minute.",
        walk=_NODES,
        join=_EXTERNAL,
        # A silent node cannot say that its trouble is over.
        where=f"page.state <> 'left' and page.degraded_since_us < ? and not ({_SILENT})",
        binds=lambda check: (check.now_us, check.now_us - GRACE_US, check.now_us - DEAD_SLACK_US),
        columns=(
            "page.name",
            "page.host",
            "cast((? - page.degraded_since_us) / 1000000 as bigint) as degraded_s",
            "page.trouble",
        ),
        sentence="node {name} on {host} has been degraded for {degraded_s} and may take no jobs: {trouble}; as soon as "
        "that is remedied, the node goes on by itself",
    ),
    Whole(
        name="leader-silent",
        about="The leader beats.",
        find=_silent_leader,
        subject="maintenance",
        sentence="node {node}, which leads, sends no heartbeat, and no other node ({others} active) has taken over; "
        "scheduled jobs are late, and dead nodes are not recovered",
        repair=Repair("lets another node lead", _depose),
    ),
)
