"""What a claim costs beside a million rows of every kind: it must be the same as beside none.

Measured on the store alone, without a node: one job is claimed and recorded in each transaction,
and the median of many is taken. The rows around are put there by SQL, because only their presence
matters.
"""

import time
from collections.abc import Callable, Mapping

from benchmarks.place import Site, percentile, site
from spinney.model.jobs import ClaimRequest, LaneRequest, NodeInfo, Record, SlotRequest, Submission
from spinney.model.outcomes import Outcome
from spinney.model.types import StageSpec, TypeSpec

MILLION = 1_000_000
ROUNDS = 400


def flat_claims() -> Mapping[str, float]:
    """Return the µs of one claim with its record for the first case, and each other case as a multiple of it."""
    cases: dict[str, Callable[[Site], None]] = {
        "1,000 pending": lambda s: pending(s, 1_000),
        "1,000,000 pending": lambda s: pending(s, MILLION),
        "1,000,000 finished": lambda s: (finished(s, MILLION), pending(s, 1_000))[0],
        "100,000 shares": lambda s: pending(s, 100_000, shares=100_000),
        "1,000,000 waiting for a lock": lambda s: (_parked(s, "waiting", "lock:x"), pending(s, 1_000))[0],
        "1,000,000 held": lambda s: (_parked(s, "held", None), pending(s, 1_000))[0],
        "1,000,000 of unknown type": lambda s: (_unknown(s), pending(s, 1_000))[0],
    }
    figures: dict[str, float] = {}
    with site() as here:
        # The first statements of a process cost more than all later ones.
        pending(here, 1_000)
        claim_us(here)
    for name, prepare in cases.items():
        with site() as here:
            prepare(here)
            cost = claim_us(here)
        if not figures:
            figures[f"{name}: us"] = base = cost
        else:
            figures[f"{name}: times"] = cost / base
    return figures


def claim_us(here: Site) -> float:
    node = here.store.join(
        NodeInfo(
            id=0,
            name="bench",
            boot_id="",
            host="",
            pid=0,
            slots=2,
            state="active",
            beat=0,
            started_us=0,
            seen_us=0,
            version="",
            types=(),
        ),
        now_us=1,
    )
    want = ClaimRequest(
        node_id=node, slots=[SlotRequest(0, 1, 1e5, True)], lanes={("noop", "noop"): LaneRequest()}
    )
    records: list[Record] = []
    taken = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        answer = here.store.flush_and_claim(records, want, now_us=2)
        taken.append((time.perf_counter() - begun) * 1e6)
        if not answer.leases:
            raise RuntimeError("nothing to claim: no figure")
        records = [Record(lease.job_id, lease.fence, Outcome.OK, 1, 2) for lease in answer.leases]
    here.store.flush_and_claim(records, None, now_us=3)
    return percentile(taken[10:], 0.5)


def pending(here: Site, count: int, shares: int = 1) -> None:
    here.store.submit([Submission(type="noop", params=['{"text":"x"}'] * count)], now_us=1)
    if shares > 1:
        with here.store.database.write() as tx:
            tx.run("update jobs set share = id % ?", (shares,))
            tx.run("delete from ready")
            tx.run(
                "insert into ready (lane, priority, share, position, job_id) select l.id, priority, share, lineage, "
                "jobs.id from jobs join lanes l on l.type = jobs.type"
            )


_MANY = "with recursive n(i) as (select 1 union all select i + 1 from n where i < ?) "


def _rows(here: Site, state: str, count: int = MILLION) -> int:
    """So many rows of jobs; returns the first id."""
    with here.store.database.write() as tx:
        first = tx.take("job", count)
        tx.run(
            _MANY
            + "insert into jobs (id, type, state, stage, queue, priority, share, lineage, root_id, params, "
            "created_us) select ? + i - 1, 'noop', ?, 'noop', 'default', 50, ?, printf('%012d', ? + i - 1), ? + i - 1, "
            "'{}', 1 from n",
            (count, first, state, first, first, first),
        )
    return first


def finished(here: Site, count: int) -> None:
    first = _rows(here, "completed", count)
    with here.store.database.write() as tx:
        tx.run(
            _MANY
            + "insert into attempts (job_id, fence, stage, attempt, outcome, node_id, started_us, ended_us) "
            "select ? + i - 1, i, 'noop', 1, 'ok', 1, 1, 2 from n",
            (count, first),
        )


def _parked(here: Site, state: str, waits_for: str | None) -> None:
    first = _rows(here, state)
    with here.store.database.write() as tx:
        tx.run(
            _MANY + "insert into inactive_jobs (job_id, state, since_us, waits_for, priority) "
            "select ? + i - 1, ?, 1, ?, 50 from n",
            (MILLION, first, state, waits_for),
        )
        if waits_for:
            tx.run("insert into locks (name, job_id, since_us) values ('x', ?, 1)", (first,))


def _unknown(here: Site) -> None:
    here.store.register([TypeSpec(name="elsewhere", stages=(StageSpec(name="run"),))], [])
    for _ in range(10):
        here.store.submit([Submission(type="elsewhere", params=["{}"] * (MILLION // 10))], now_us=1)
