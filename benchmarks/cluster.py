"""Several nodes on one store, limits and shares under load, and what a server's upkeep leaves behind."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import psycopg

from benchmarks.claims import claim_us, finished, pending
from benchmarks.place import Site, percentile, site
from benchmarks.throughput import JOBS, ROWS
from spinney.model.jobs import ClaimRequest, LaneRequest, NodeInfo, Record, SlotRequest, Submission
from spinney.model.outcomes import Outcome
from spinney.model.settings.queues import QueueSpec

SHARES = 1_000
MILLION = 1_000_000
BATCH = 600


def two_nodes() -> Mapping[str, float]:
    """The drain of ``throughput`` by two nodes of one slot each."""
    with site() as here, here.node(slots=1, name="one"), here.node(slots=1, name="two"):
        app = here.app()
        app.submit_many("noop", ROWS[:2000])
        here.wait_settled()
        rates = [_drained(here, lambda: app.submit_many("noop", ROWS)) for _ in range(3)]
        app.close()
    return {"jobs/s": percentile(rates, 0.5)}


def limit_and_shares() -> Mapping[str, float]:
    """The drain with a queue limit and 1,000 shares, as a part of that without either."""

    def shared(here: Site) -> None:
        params = [f'{{"text":"{n:036d}"}}' for n in range(JOBS // SHARES)]
        submissions = [Submission(type="noop", share=f"s{n}", params=params) for n in range(SHARES)]
        here.store.submit(submissions, now_us=time.time_ns() // 1000)

    rates = {}
    for name, limit, submit in (
        ("without", None, lambda here: here.app().submit_many("noop", ROWS)),
        ("with", 2, shared),
    ):
        with site() as here:
            here.store.register([], [QueueSpec(name="default", limit=limit)])
            with here.node(slots=2):
                here.app().submit_many("noop", ROWS[:2000])
                here.wait_settled()
                rates[name] = percentile([_drained(here, partial(submit, here)) for _ in range(3)], 0.5)
    without, limited = rates["without"], rates["with"]
    return {"without, jobs/s": without, "with, jobs/s": limited, "part": limited / without}


def flat_beside_finished() -> Mapping[str, float]:
    """The cost of a claim beside 5,000,000 finished jobs."""
    claims_us = {}
    for name, prepare in (
        ("1,000 pending", lambda s: pending(s, 1_000)),
        ("5,000,000 finished", lambda s: ([finished(s, MILLION) for _ in range(5)], pending(s, 1_000))[1]),
    ):
        with site() as here:
            prepare(here)
            claims_us[name] = claim_us(here)
    base = claims_us["1,000 pending"]
    return {"us": base, "beside 5,000,000 finished: times": claims_us["5,000,000 finished"] / base}


def held_open() -> Mapping[str, float]:
    """What a claim of a batch costs after a million jobs have passed, while another transaction is open all the
    time, and after it has ended. On a server only: a file keeps what a reader needs in its journal."""
    with site() as here:
        if here.server is None:
            return {}
        here.store.submit([Submission(type="noop", params=["{}"] * (MILLION + 100_000))], now_us=1)
        cycle = _cycles(here)
        before = percentile([next(cycle) for _ in range(40)][10:], 0.5)
        with _open_transaction(here.server):
            for _ in range(MILLION // BATCH):
                last = next(cycle)
            during = percentile([next(cycle) for _ in range(10)], 0.5)
        ended = time.monotonic()
        while (last := next(cycle)) > 1.2 * before and time.monotonic() < ended + 120:
            pass
        back_s = time.monotonic() - ended
    return {
        f"batch of {BATCH}, ms": before / 1e3,
        "after a million: times": during / before,
        "back after, s": back_s,
        "then: times": last / before,
    }


def dead_rows() -> Mapping[str, float]:
    """What 300,000 jobs leave behind in the two hot tables, as a part of them, and in ``jobs``."""
    with site() as here:
        if here.server is None:
            return {}
        with here.node(slots=2):
            app = here.app()
            for _ in range(3):
                app.submit_many("noop", ROWS)
                here.wait_settled()
            app.close()
        with psycopg.connect(here.server, autocommit=True) as connection:
            connection.execute("create extension if not exists pgstattuple")
            dead = {
                table: connection.execute(
                    "select dead_tuple_count from pgstattuple(%s)", (f"{here.schema}.{table}",)
                ).fetchone()[0]  # type: ignore[index]
                for table in ("ready", "leases", "jobs")
            }
    return {
        "ready and leases, %": 100 * (dead["ready"] + dead["leases"]) / (3 * JOBS),
        "jobs, %": 100 * dead["jobs"] / (3 * JOBS),
    }


# --- helping ----------------------------------------------------------------------------------


def _drained(here: Site, submit: Callable[[], object]) -> float:
    """Jobs a second of what is submitted, from the first start to the last settlement."""
    with here.store.database.look() as tx:
        after = tx.value("select value from counters where name = 'job'")
    submit()
    here.wait_settled()
    return here.rate(after)


def _cycles(here: Site) -> Iterator[float]:
    """Batches recorded and claimed, as a node does it; µs of each."""
    node = NodeInfo(
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
    )
    node_id = here.store.join(node, now_us=1)
    slots = [SlotRequest(n, BATCH // 2, 1e9, True) for n in range(2)]
    want = ClaimRequest(node_id=node_id, slots=slots, lanes={("noop", "noop"): LaneRequest(run_us=10.0)})
    records: list[Record] = []
    while True:
        begun = time.perf_counter()
        answer = here.store.flush_and_claim(records, want, now_us=2)
        taken = (time.perf_counter() - begun) * 1e6
        if not answer.leases:
            raise RuntimeError("nothing to claim: no figure")
        records = [Record(lease.job_id, lease.fence, Outcome.OK, 1, 2) for lease in answer.leases]
        yield taken


@contextmanager
def _open_transaction(server: str) -> Iterator[None]:
    """What a report or a dump does: one snapshot, kept."""
    with psycopg.connect(server) as connection:
        connection.execute("set transaction isolation level repeatable read")
        connection.execute("select count(*) from pg_class")
        yield
