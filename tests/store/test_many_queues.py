"""A claim beside very many queues with jobs: it costs what its slots cost, and each queue has its turn."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from contract.words import USUAL, Clock, Site, kind, submission
from new_store import new_store
from spinney.model.jobs import FlushResult, Outcome
from spinney.model.settings.queues import QueueSpec
from spinney.store.sql import open_store
from spinney.store.sql.claim import claims


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with closing(open_store(new_store(tmp_path / "jobs.db"))) as store:
        made = Site(store, Clock())
        made.knows(*USUAL)
        yield made


def fill(site: Site, first: int, last: int, jobs: int = 3) -> None:
    site.submit_all(*[submission(n=jobs, queue=f"q{n:03d}") for n in range(first, last)])


def claim(site: Site, **how: float) -> tuple[FlushResult, int]:
    """The claim of a new node with four slots, and the number of its statements."""
    node = site.node(f"node{site.now}")
    site.clock.forward(1)
    seen: list[str] = []
    writer = site.store.database._writer  # type: ignore[attr-defined]
    writer.set_trace_callback(seen.append)
    result = site.flush_and_claim([], site.want(node, **how))  # type: ignore[arg-type]
    writer.set_trace_callback(None)
    return result, len(seen)


def test_a_claim_sends_as_many_statements_beside_many_queues_as_beside_few(site: Site) -> None:
    fill(site, 0, 8)
    claim(site)
    _, beside_few = claim(site)

    fill(site, 8, 200)
    claim(site)
    result, beside_many = claim(site)

    assert len(result.leases) == 4
    assert result.starved
    assert beside_many <= beside_few


@pytest.mark.parametrize("limit", [3, "75%"])
def test_the_limits_of_many_queues_are_read_together(site: Site, limit: int | str) -> None:
    site.knows(queues=[QueueSpec(name=f"q{n:03d}", limit=limit) for n in range(200)])
    fill(site, 0, 20)
    claim(site, jobs=3, run_us=1.0)
    _, beside_few = claim(site, jobs=3, run_us=1.0)

    fill(site, 20, 200)
    claim(site, jobs=3, run_us=1.0)
    result, beside_many = claim(site, jobs=3, run_us=1.0)

    assert len(result.leases) == 12
    assert beside_many <= beside_few


def test_the_probe_of_a_stage_is_looked_up_once_for_all_its_queues(site: Site) -> None:
    fill(site, 0, 8)
    lease = site.claim_one()
    site.record(lease, Outcome.DEFER, lane=True, delay_s=10.0)
    site.clock.forward(11)
    assert len(claim(site)[0].leases) == 1
    _, beside_few = claim(site)

    fill(site, 8, 200)
    claim(site)
    result, beside_many = claim(site)

    assert (result.leases, beside_many) == ([], beside_few)


def test_each_of_many_queues_has_its_turn_before_one_has_a_second(site: Site) -> None:
    fill(site, 0, 20, jobs=2)

    queues = [job_queue(site, lease.job_id) for _ in range(10) for lease in claim(site)[0].leases]

    assert queues == [f"q{n:03d}" for n in range(20)] * 2
    assert not claim(site)[0].leases


def test_a_claim_is_starved_as_long_as_a_queue_that_was_not_reached_has_jobs(site: Site) -> None:
    fill(site, 0, 5, jobs=1)

    first, _ = claim(site)
    last, _ = claim(site)

    assert (len(first.leases), first.starved) == (4, True)
    assert (len(last.leases), last.starved) == (1, False)


def test_jobs_ahead_come_from_a_bounded_number_of_queues_and_go_on_behind_them(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "QUEUES_AHEAD", 6)
    fill(site, 0, 30, jobs=4)
    names: list[set[str]] = []

    for _ in range(3):
        result, _ = claim(site, jobs=3, run_us=1.0)
        assert result.starved
        names.append({job_queue(site, lease.job_id) for lease in result.leases})

    # Four for the free slots, and those of which jobs are assigned ahead
    assert [len(queues) for queues in names] == [10, 10, 10]
    assert len(set.union(*names)) == 30


def test_a_changed_queue_is_read_without_the_others(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.knows(queues=[QueueSpec(name=f"q{n:03d}", limit=3) for n in range(200)])
    names: list[str] = []
    read = QueueSpec.from_json

    def noted(value: Mapping[str, Any]) -> QueueSpec:
        names.append(value["name"])
        return read(value)

    monkeypatch.setattr(QueueSpec, "from_json", noted)

    site.knows(queues=[QueueSpec(name="q100", limit=4)])

    assert site.store.queue_admin.in_force("q100").limit == 4
    assert site.store.queue_admin.in_force("q101").limit == 3
    assert set(names) <= {"q100"}  # not even that one where this process has read the same row before


def job_queue(site: Site, job_id: int) -> str:
    return site.job(job_id).queue


def test_a_stage_that_has_vanished_is_looked_for_in_all_its_queues_at_once(site: Site) -> None:
    fill(site, 0, 200, jobs=1)
    site.drain()
    site.knows(kind("one", "other"))
    site.sweep()
    seen: list[str] = []
    site.store.database._writer.set_trace_callback(seen.append)  # type: ignore[attr-defined]

    site.sweep()

    assert len([sql for sql in seen if "from ready where lane" in sql]) == 1
