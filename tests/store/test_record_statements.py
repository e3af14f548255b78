"""How many statements the record of an attempt takes: on a server each is an exchange of messages, and each write of a
job's row leaves a dead one behind."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from contract.behind import sql_store
from contract.words import USUAL, Clock, Site
from new_store import new_store
from spinney.model.jobs import Record
from spinney.model.outcomes import Outcome
from spinney.model.states import State
from spinney.store.sql import open_store


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with closing(open_store(new_store(tmp_path / "jobs.db"))) as store:
        site = Site(store, Clock())
        site.knows(*USUAL)
        yield site


def statements(site: Site, records: list[Record]) -> list[str]:
    """Record these attempts, and return the statements of the transaction."""
    seen: list[str] = []
    writer, _ = sql_store(site.store).database._open_writer()  # type: ignore[attr-defined]
    writer.set_trace_callback(seen.append)
    site.flush_and_claim(records, site.want(site.here, 0))
    writer.set_trace_callback(None)
    return seen


@pytest.mark.parametrize(
    ("type_", "outcome", "state"),
    [
        ("one", Outcome.ERROR, State.FAILED),
        ("tenacious", Outcome.ERROR, State.SCHEDULED),
        ("one", Outcome.WARNING, State.COMPLETED),
        ("three", Outcome.WARNING, State.PENDING),
    ],
)
def test_a_record_writes_the_row_of_its_job_twice_at_most(
    site: Site, type_: str, outcome: Outcome, state: State
) -> None:
    job = site.submit_one(type_)
    record = site.entry(site.run(job), outcome, message="no")

    written = [sql for sql in statements(site, [record]) if sql.startswith("update jobs")]

    assert 1 <= len(written) <= 2, written
    assert site.state(job) is state


def test_the_node_is_read_once_for_all_jobs_that_keep_their_slots(site: Site) -> None:
    jobs = site.submit("three", n=3)
    records = [site.entry(site.run(job), keep=True) for job in jobs]

    read = [sql for sql in statements(site, records) if sql.startswith("select n.name")]

    assert len(read) == 1, read
    assert [site.job(job).stage for job in jobs] == ["second"] * 3
    assert site.claim() == []


@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.RETURNED])
@pytest.mark.parametrize("type_", ["one", "three"])
def test_jobs_are_recorded_together_while_another_that_is_cancelled_still_runs(
    site: Site, outcome: Outcome, type_: str
) -> None:
    _, (cancelled, *others) = site.family(n=3, child=type_)
    tree, (below,) = site.family(n=1, child=type_)
    others += site.submit(type_, n=2)
    leases = site.claim_by_job()
    site.cancel(cancelled)
    site.cancel(tree, tree=True)
    started_us = 0 if outcome is Outcome.RETURNED else site.now

    ran = statements(site, [site.entry(leases[job], outcome, started_us=started_us) for job in others])

    assert [sql for sql in ran if sql.startswith("delete from leases where job_id =")] == []
    completes = (type_, outcome) == ("one", Outcome.OK)
    assert site.states(others) == [State.COMPLETED if completes else State.PENDING] * 4
    for job in (cancelled, below):
        ran = statements(site, [site.entry(leases[job], outcome, started_us=started_us)])
        assert len([sql for sql in ran if sql.startswith("delete from leases where job_id =")]) == 1
    assert site.states([cancelled, below]) == [State.COMPLETED if completes else State.CANCELLED] * 2


@pytest.mark.parametrize("outcome", [Outcome.ERROR, Outcome.DEFER])
def test_tables_without_rows_of_a_job_are_not_looked_into_for_its_record(
    site: Site, outcome: Outcome
) -> None:
    other = site.run(site.submit_one("batch", priority=1))
    site.store.take_lock(other.job_id, other.fence, "other", "attempt", now_us=site.now)
    site.spawn(other, n=2)
    jobs = site.submit("tenacious", n=3)
    leases = site.claim_by_job()
    site.cancel(other.job_id)

    ran = statements(site, [site.entry(leases[job], outcome, message="no") for job in jobs])

    looks = ("delete from locks", "update staging", "select first_id", "select 1 from cancel_requests")
    assert [sql for sql in ran if sql.startswith(looks)] == []
    assert len(site.store.attempts(jobs[0])) == 1
    ran = statements(site, [site.entry(other)])
    assert {look for look in looks if any(sql.startswith(look) for sql in ran)} >= {looks[0], looks[3]}
    assert site.state(other.job_id) is State.CANCELLED
    assert site.store.locks.all() == []
