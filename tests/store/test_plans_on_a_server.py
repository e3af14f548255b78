"""How statements are planned that come again and again on one connection to PostgreSQL."""

import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import psycopg
import pytest

from contract.words import ONE, kind, submission
from servers import postgres_schema, postgres_url
from spinney.model.jobs import ClaimRequest, Filter, LaneRequest, Lease, NodeInfo, Record, SlotRequest
from spinney.model.outcomes import Outcome
from spinney.model.settings.webhooks import Webhook
from spinney.model.states import State
from spinney.store.sql import SqlStore, open_store
from spinney.store.sql.read import state_counts
from spinney.store.sql.read.filter_queries import union_parts

FAILED, CANCELLED, ENOUGH = 20_000, 3, 12
"""``ENOUGH``: so often has a statement come that the driver has it prepared, and the server knows it."""


@pytest.fixture
def store() -> Iterator[SqlStore]:
    """With very many failed jobs and few cancelled ones."""
    with postgres_schema() as url, closing(open_store(url)) as made:
        made.create()
        made.register([ONE], [])
        made.submit([submission(n=FAILED + CANCELLED)], now_us=1)
        with made.database.write() as tx:
            tx.run("delete from ready")
            tx.run(
                "update jobs set state = case when id <= ? then 'cancelled' else 'failed' end", (CANCELLED,)
            )
            tx.run(
                "insert into inactive_jobs (job_id, state, since_us, priority) select id, state, 1, 50 from jobs"
            )
            tx.run("analyze jobs, inactive_jobs")
        yield made


def test_what_is_asked_again_and_again_is_planned_for_what_is_asked(store: SqlStore) -> None:
    """A plan for any state would walk all jobs for the few that are cancelled."""
    few = Filter(states=(State.CANCELLED,), stage="work")

    for _ in range(ENOUGH):
        assert store.counts(few) == {State.CANCELLED: CANCELLED}

    with store.database.look() as tx:
        (plans,) = tx.all(
            "select generic_plans, custom_plans from pg_prepared_statements "
            "where statement like '%inactive_jobs narrow cross join jobs%'"
        )
    assert plans[0] == 0
    assert plans[1] > 0


def test_the_index_is_entered_once_for_each_job_of_a_list(store: SqlStore) -> None:
    """With the list twice it is entered for each pair of its items: a million times for a thousand jobs."""
    with store.database.look() as tx:
        (part,) = union_parts(tx.all, Filter(ids=tuple(range(1, 501)), superseded=True))
        plan = tx.column(f"explain select {part.key} from {part.source} where {part.where}", part.args)

    (entered,) = (line for line in plan if "Index Cond" in line and "(id = " in line)
    assert entered.count("ANY") == 1


@pytest.mark.parametrize("job_filter", [Filter(), Filter(type=ONE.name)])
def test_jobs_of_calls_that_are_being_written_are_counted_from_the_calls(
    store: SqlStore, job_filter: Filter
) -> None:
    """Mostly there are none: beginning with all jobs would read each of them, to find this out."""
    queries: list[tuple[str, Sequence[Any]]] = []
    with store.database.look() as tx:

        def run_query(sql: str, args: Sequence[Any] = ()) -> list[Any]:
            queries.append((sql, args))
            return tx.all(sql, args)

        assert state_counts.counts(run_query, job_filter) == store.counts(job_filter)
        plans = [tx.column(f"explain {sql}", args) for sql, args in queries if "staging s" in sql]

    assert plans
    for plan in plans:
        (at,) = (n for n, line in enumerate(plan) if " on jobs" in line)
        assert "Index Cond: ((id >= s.first_id) AND (id <= s.last_id))" in plan[at + 1]


def test_what_is_written_is_planned_once(store: SqlStore) -> None:
    for _ in range(ENOUGH):
        store.submit([submission()], now_us=2)

    with store.database.write() as tx:
        plans = tx.all(
            "select generic_plans, custom_plans from pg_prepared_statements "
            "where statement like 'with n as (update counters%'"
        )
    assert [(generic > 0, custom) for generic, custom in plans] == [(True, 0)]


STAGES = kind("stages", "first", "second", "third")
SHARES, EACH = 100, 40
NODE = {"id": 0, "name": "n", "boot_id": "", "host": "", "pid": 0, "slots": 2, "state": "active"}


@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.RETURNED])
def test_no_exchange_walks_a_table_that_a_vacuum_found_empty(outcome: Outcome) -> None:
    """The planner takes such a table for empty for as long as it has the pages that it had then."""
    with postgres_schema() as url, closing(open_store(url)) as store:
        store.create()
        store.register([STAGES], [])
        node = store.join(
            NodeInfo(**NODE, beat=0, started_us=0, seen_us=0, version="", types=()),  # type: ignore[arg-type]
            now_us=1,
        )
        with store.database.write() as tx:  # a webhook, and holds for which each job has to be checked
            for table in ("jobs", "ready", "attempts"):
                # The server's own vacuum may come at any time, and would count what is in them now.
                tx.run(f"alter table {table} set (autovacuum_enabled = off)")
            tx.run(
                "insert into holds (id, scope, name, reason, by, since_us, automatic) "
                "values (1, 'tree', '99999', 'r', 'ann', 1, 0), (2, 'job', '99999', 'r', 'ann', 1, 0)"
            )
            tx.run(
                "insert into webhooks (id, name, spec, secret, mark, by, at_us) values (1, 'w', ?, 's', 'm', 'ann', 1)",
                (json.dumps(Webhook(name="w", url="https://x.example/").to_json()),),
            )
            tx.take("registry")
        _fill(store, EACH // 2)
        while leases := _exchange(store, node, []):
            _exchange(store, node, [Record(x.job_id, x.fence, Outcome.OK, 1, 2) for x in leases])
        _empty(url)

        _fill(store, EACH)
        records: list[Record] = []
        for _ in range(ENOUGH):
            leases = _exchange(store, node, records)
            began_us = 0 if outcome is Outcome.RETURNED else 1
            records = [Record(x.job_id, x.fence, outcome, began_us, 2) for x in leases]
            assert leases

        assert _walks(store) == []


def _fill(store: SqlStore, each: int) -> None:
    store.submit([submission(STAGES.name, n=each, share=f"share {n}") for n in range(SHARES)], now_us=1)


def _exchange(store: SqlStore, node: int, records: list[Record]) -> list[Lease]:
    slots = [SlotRequest(n, 100, 1e5, True) for n in range(2)]
    lanes = {(STAGES.name, stage.name): LaneRequest(run_us=10.0) for stage in STAGES.stages}
    request = ClaimRequest(node_id=node, slots=slots, lanes=lanes)
    return store.flush_and_claim(records, request, now_us=time.time_ns() // 1000).leases


def _empty(url: str) -> None:
    """Delete all jobs, and vacuum the tables as the server does, until it has seen them empty."""
    schema = url.rpartition("schema=")[2]
    with psycopg.connect(postgres_url(), autocommit=True) as connection:
        connection.execute(f"set search_path to {schema}")
        connection.execute("truncate ready, leases")
        connection.execute("insert into ready select 1, 50, n, n::text, n from generate_series(1, 5000) n")
        connection.execute("delete from ready")
        connection.execute("delete from attempts")
        connection.execute("delete from jobs")
        connection.execute("vacuum (truncate off) jobs, ready, attempts")
        sizes = (
            "select relpages > 0, reltuples from pg_class "
            "where oid in ('jobs'::regclass, 'ready'::regclass, 'attempts'::regclass)"
        )
        assert connection.execute(sizes).fetchall() == [(True, 0)] * 3


def _walks(store: SqlStore) -> list[str]:
    """Return the statements of this connection whose plan reads a growing table without a condition on its index."""
    walks = []
    with store.database.write() as tx:
        for name, text, parameters in tx.all(
            "select name, statement, cardinality(parameter_types) from pg_prepared_statements order by name"
        ):
            if text.startswith(("begin", "commit", "set", "select set_config")):
                continue
            nulls = f"({', '.join(['null'] * parameters)})" if parameters else ""
            plan = "\n".join(line for (line,) in tx.all(f'explain execute "{name}"{nulls}'))
            lines = plan.splitlines()
            for line, after in zip(lines, [*lines[1:], ""], strict=True):
                if (
                    re.search(r"Scan (using \w+ )?on (jobs|ready|leases|attempts)\b", line)
                    and "Cond" not in after
                ):
                    walks.append(f"{line.strip()}: {text[:200]}")
    return walks
