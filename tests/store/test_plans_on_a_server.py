"""How statements are planned that come again and again on one connection to PostgreSQL."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from contract.words import ONE, submission
from servers import postgres_schema
from spinney.model.jobs import Filter
from spinney.model.states import State
from spinney.store.sql import SqlStore, open_store

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
        (found,) = tx.all(
            "select generic_plans, custom_plans from pg_prepared_statements "
            "where statement like '%inactive_jobs narrow cross join jobs%'"
        )
    assert found[0] == 0
    assert found[1] > 0


def test_what_is_written_is_planned_once(store: SqlStore) -> None:
    for _ in range(ENOUGH):
        store.submit([submission()], now_us=2)

    with store.database.write() as tx:
        found = tx.all(
            "select generic_plans, custom_plans from pg_prepared_statements "
            "where statement like 'with n as (update counters%'"
        )
    assert [(generic > 0, custom) for generic, custom in found] == [(True, 0)]
