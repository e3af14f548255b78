"""How long reading takes beside a million finished jobs: people look at a store while it works.

The rows are put there by SQL; what is timed is the call of the store that a command makes.
"""

import time
from collections.abc import Callable, Mapping

from benchmarks.place import Site, site
from spinney.model.jobs import Filter, Submission
from spinney.model.states import State
from spinney.store.parts import Store

COMPLETED, PENDING, FAILED, HELD, WAITING = 1_000_000, 100_000, 20_000, 10_000, 10_000
ASIDE = FAILED + HELD + WAITING
CHILDREN = 200_000
"""Of the first job; the last tenth of them did not complete."""
ROUNDS = 7
NOW_US = 1_700_001_140_000_000
"""When the last of them was submitted."""


def reading() -> Mapping[str, float]:
    """The slowest of some calls, in ms, the first with nothing read before."""
    with site() as here:
        fill(here)
        return {f"{name}, ms": _slowest_ms(here.store, call) for name, call in CALLS.items()}


def _slowest_ms(store: Store, call: Callable[[Store], object]) -> float:
    taken = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        call(store)
        taken.append((time.perf_counter() - begun) * 1e3)
    return max(taken)


def _list(**which: object) -> Callable[[Store], object]:
    newest = bool(which.pop("newest", True))
    return lambda store: store.jobs(Filter(**which), limit=50, newest=newest)  # type: ignore[arg-type]


def _count(**which: object) -> Callable[[Store], object]:
    return lambda store: store.counts(Filter(**which))  # type: ignore[arg-type]


_TREE = "000000000001"
CALLS: Mapping[str, Callable[[Store], object]] = {
    "list": _list(),
    "list --oldest": _list(newest=False),
    **{f"list --state {state}": _list(states=(state,)) for state in State},
    "list --state pending --oldest": _list(states=(State.PENDING,), newest=False),
    "list --state failed --state held": _list(states=(State.FAILED, State.HELD)),
    "list --state failed --type, a common one": _list(states=(State.FAILED,), type="noop"),
    "list --state failed --type, a rare one": _list(states=(State.FAILED,), type="stamp"),
    "list --state pending --queue, a rare one": _list(states=(State.PENDING,), queue="narrow"),
    "list --state pending --collection, a rare one": _list(states=(State.PENDING,), collection="lone"),
    "list --type, a common one": _list(type="noop"),
    "list --type, a rare one": _list(type="stamp"),
    "list --type, one without jobs": _list(type="none"),
    "list --queue, a common one": _list(queue="default"),
    "list --queue, a rare one": _list(queue="narrow"),
    "list --stage, a common one": _list(stage="noop"),
    "list --stage, a rare one": _list(stage="stamp"),
    "list --collection, a common one": _list(collection="c0"),
    "list --collection, a rare one": _list(collection="lone"),
    "list --submitter, a common one": _list(submitter="ann"),
    "list --submitter, a rare one": _list(submitter="zoe"),
    "list --submitter, a common one, --type, a rare one": _list(submitter="ann", type="stamp"),
    "list --root, of a big tree": _list(root_id=1),
    "list --root, of a small tree": _list(root_id=500_000),
    "list --parent, of a big tree": _list(parent_id=1),
    "list --parent --state failed": _list(parent_id=1, states=(State.FAILED,)),
    "list --message, one that none has": _list(message="nobody said this"),
    "list --node, one that ran nothing": _list(node="nobody"),
    "list, of a time in which none was made": _list(created_before_us=1),
    "list --roots": _list(roots_only=True),
    "list --roots --oldest": _list(roots_only=True, newest=False),
    "list --count": _count(),
    "list --count --type": _count(type="noop"),
    "list --count --queue": _count(queue="default"),
    "list --count --collection": _count(collection="c0"),
    "list --count --submitter": _count(submitter="ann"),
    "list --count --state failed": _count(states=(State.FAILED,)),
    "list --count --roots": _count(roots_only=True),
    "list --count --root, of a big tree": _count(root_id=1),
    "show, its children counted": _count(parent_id=1),
    "wait, its tree counted": _count(below=_TREE),
    "show": lambda store: (store.job(500_000), store.attempts(500_000), store.results(500_000)),
    "tree of 1,000": lambda store: store.tree(1, limit=1_000),
    "stats": lambda store: store.statistics.stats(window_s=60, now_us=NOW_US),
    "failures": lambda store: store.failures.groups(limit=100),
    "explain": lambda store: store.explainer.explain(COMPLETED + ASIDE + 1, now_us=NOW_US),
    "children, 1,000": lambda store: store.children(1, after=100_000, limit=1_000),
}


def fill(here: Site) -> None:
    """A store of some age: finished work of several types, queues and people, a big tree, and what stands."""
    kinds = ("noop", "nap", "doze", "rest", "stamp")
    for kind in kinds:  # for their lanes
        here.store.submit(
            [
                Submission(type=kind),
                Submission(type=kind, queue="net"),
                Submission(type=kind, queue="narrow"),
            ],
            now_us=1,
        )
    total = COMPLETED + PENDING + ASIDE
    with here.store.database.write() as tx:
        for table in ("jobs", "ready"):
            tx.run(f"delete from {table}")
        tx.run("update counters set value = ? where name in ('job', 'fence')", (total,))
        tx.run(_JOBS, {"completed": COMPLETED, "aside": ASIDE, "children": CHILDREN, "total": total})
        tx.run(
            "insert into ready (lane, priority, share, position, job_id) select l.id, 50, j.share, j.lineage, j.id "
            "from jobs j join lanes l on l.queue = j.queue and l.type = j.type where j.state = 'pending'"
        )
        tx.run(
            "insert into inactive_jobs (job_id, state, since_us, waits_for, priority, reason, fingerprint) "
            "select id, state, 1, case state when 'waiting' then 'needs' end, 50, 'ValueError: no. ' || (id % 97), "
            "case state when 'failed' then printf('%016x', id % 97) end from jobs "
            "where state in ('failed', 'held', 'waiting')"
        )
        tx.run(
            "insert into failures (fingerprint, type, stage, exception, message, first_us, last_us) "
            "select fingerprint, 'noop', 'noop', 'ValueError', 'no. #', 1, max(job_id) from inactive_jobs "
            "where fingerprint is not null group by fingerprint"
        )
        tx.run(
            "insert into children_left (parent_id, bad, child_id) select parent_id, state = 'failed', id from jobs "
            "where parent_id is not null and state <> 'completed'"
        )
        tx.run(
            "insert into attempts (job_id, fence, stage, attempt, outcome, node_id, started_us, ended_us, message) "
            "select id, id, stage, 1, 'error', 1, created_us + 40000, created_us + 90000, 'ValueError: no.' "
            "from jobs where state = 'failed'"
        )


_JOBS = """
with recursive n(i) as (select 1 union all select i + 1 from n where i < :total),
-- Every so-many-th of what came before the pending did not complete.
m as (select i, case when i > :completed + :aside then 'pending' when i % 26 <> 7 then 'completed'
    when i / 26 % 4 < 2 then 'failed' when i / 26 % 4 = 2 then 'held' else 'waiting' end as state,
    i > 1 and i <= :children as child from n)
insert into jobs (id, type, state, stage, queue, priority, share, lineage, root_id, parent_id, spawn_stage, params,
    created_us, started_us, settled_us, collection, submitter, node_id, final_fence, final_attempt, final_began_us,
    final_ended_us, final_result)
select i, t.type, state, t.type, case when i % 10007 = 0 then 'narrow' when i % 5 = 0 then 'net' else 'default' end,
    50, case when child then 1 else i - i % 1000 end,
    case when child then '000000000001.' else '' end || printf('%012d', i),
    case when child then 1 else i end, case when child then 1 end, case when child then 'noop' end,
    '{"text":"' || printf('%036d', i) || '"}', 1700000000000000 + i * 1000,
    case when state in ('completed', 'failed') then 1700000000040000 + i * 1000 end,
    case when state in ('completed', 'failed') then 1700000000090000 + i * 1000 end,
    case when i % 20011 = 0 then 'lone' when i % 2 = 0 then 'c' || (i % 4) end,
    case when i % 20021 = 0 then 'zoe' when i % 3 < 2 then 'ann' end,
    case when state in ('completed', 'failed') then 1 end,
    case when state = 'completed' then i end, case when state = 'completed' then 1 end,
    1700000000040000 + i * 1000, 1700000000090000 + i * 1000, case when state = 'completed' and i % 10 = 0 then '7' end
from m join (select 0 as u, 'noop' as type union all select 1, 'nap' union all select 2, 'doze'
    union all select 3, 'rest' union all select 4, 'stamp') t
on t.u = case when i % 30011 = 0 then 4 when i % 100 < 70 then 0 when i % 100 < 90 then 1 when i % 100 < 98 then 2
    else 3 end
"""
