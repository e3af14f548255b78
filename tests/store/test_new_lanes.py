"""What a new lane costs the store that creates it, and what its cache knows of the lane afterwards."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from contract.behind import sql_store
from contract.words import USUAL, Clock, Site, submission
from new_store import new_store
from spinney.model.errors import UnknownType
from spinney.model.outcomes import Outcome
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Scope
from spinney.model.settings.queues import QueueSpec
from spinney.store.sql import open_store

ANN = Actor(by="ann", call="c", reason="a test")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return new_store(tmp_path / "jobs.db")


@pytest.fixture
def site(url: str) -> Iterator[Site]:
    with closing(open_store(url)) as store:
        made = Site(store, Clock())
        made.knows(*USUAL)
        made.submit_one()
        yield made


def statements(site: Site, prefix: str, queues: int) -> list[str]:
    """The statements of one submission into so many new queues."""
    seen: list[str] = []
    writer = site.store.database._writer  # type: ignore[attr-defined]
    writer.set_trace_callback(seen.append)
    site.submit_all(*[submission(queue=f"{prefix}{n}") for n in range(queues)])
    writer.set_trace_callback(None)
    return seen


def test_each_new_lane_costs_the_same_few_statements_and_nothing_is_read_again(site: Site) -> None:
    one, eleven, many = (len(statements(site, prefix, n)) for prefix, n in [("a", 1), ("b", 11), ("c", 111)])

    assert (many - eleven) / 100 == (eleven - one) / 10
    assert (eleven - one) / 10 <= 10
    assert [sql for sql in statements(site, "d", 20) if "from webhooks" in sql or "from lanes" in sql] == []


def test_jobs_of_new_lanes_are_claimed_by_the_store_that_made_them_and_by_another(
    site: Site, url: str
) -> None:
    site.claim()
    first, second = site.submit_all(submission(queue="first"), submission(queue="second"))

    assert site.claim_one().job_id == first
    with closing(open_store(url)) as other:
        elsewhere = Site(other, site.clock)
        assert elsewhere.claim_one(elsewhere.node("there")).job_id == second


@pytest.mark.parametrize(
    ("scope", "name"), [(Scope.EVERYTHING, ""), (Scope.QUEUE, "new"), (Scope.TYPE, "one")]
)
def test_the_cache_holds_of_a_new_lane_what_another_store_reads(
    site: Site, url: str, scope: Scope, name: str
) -> None:
    # Given a hold, and a stage that was put to sleep
    site.record(site.claim_one(), Outcome.DEFER, delay_s=60.0, lane=True)
    site.knows(queues=[QueueSpec(name="new")])
    site.store.holds.lay(scope, name, "a test", ANN, now_us=site.now)
    # When lanes are created
    session = sql_store(site.store).session
    with session.write() as tx:
        for queue in ("new", "newer"):
            session.registry.lane(tx, queue, "one", "work", 0)
            session.registry.lane(tx, queue, "three", "first", 0)
    # Then the cache is what another store reads
    registry = session.registry
    with closing(open_store(url)) as other, other.session.look():
        read = other.session.registry
    assert (registry.lanes, registry.version) == (read.lanes, read.version)
    assert registry.stopped_lanes == read.stopped_lanes
    sleeping = {lane.queue: lane.asleep_until_us for lane in read.lanes.values() if lane.type == "one"}
    assert sleeping == dict.fromkeys(["default", "new", "newer"], site.now + 60_000_000)


def test_a_lane_that_was_rolled_back_is_made_again(site: Site) -> None:
    with pytest.raises(UnknownType):
        site.submit_all(submission(queue="new"), submission("unknown", queue="new"))

    job = site.submit_one(queue="new")

    assert job in site.claim_by_job()
