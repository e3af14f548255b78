"""What a server watches where no node may be."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.words import Clock, Site, kind, stage, submission
from new_store import new_store
from spinney.model.errors import UsageError
from spinney.model.external import ExternalWorker
from spinney.model.jobs import ClaimRequest, LaneRequest, SlotRequest
from spinney.model.outcomes import Outcome
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Scope
from spinney.model.settings.schedules import Schedule
from spinney.model.states import State
from spinney.model.trusted_clock import TrustedClock
from spinney.model.types import Isolation
from spinney.scheduling import cron
from spinney.server.maintenance import ServerMaintenance
from spinney.store.contract import SubmissionKey
from spinney.store.parts import Store
from spinney.store.sql import open_store
from spinney.web.store_pool import StorePool

EAR = ("talk", "listen")
ANN = Actor(by="ann", call="1")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    store = open_store(new_store(tmp_path / "x.db"))
    made = Site(store, Clock())
    made.knows(kind("talk", stage("listen", isolation=Isolation.EXTERNAL, max_attempts=2, timeout_s=500.0)))
    yield made
    store.close()


class Watcher:
    """A server's watch, with clocks moved by hand."""

    def __init__(self, site: Site) -> None:
        self.site, self.wakeups, self.monotonic = site, 0, 0.0
        stores = StorePool(lambda: site.store, threads=1)
        self.watching = ServerMaintenance(
            stores, now_us=lambda: site.now, wake_nodes=self._woken, monotonic=lambda: self.monotonic
        )

    def _woken(self, store: Store) -> None:
        self.wakeups += 1

    def look(self, later_s: float = 0.0) -> None:
        self.monotonic += later_s
        self.site.clock.forward(later_s)
        self.watching.look(self.site.store)


@pytest.fixture
def watcher(site: Site) -> Watcher:
    return Watcher(site)


def join(site: Site, lease_s: float = 60.0) -> ExternalWorker:
    external_worker = ExternalWorker(
        id=0, name="ear", owner="ann", join_count=0, slots=1, lease_s=lease_s, lanes=(EAR,)
    )
    return site.store.external_workers.join(external_worker, ANN, version="1", now_us=site.now)


def begin(site: Site) -> tuple[int, ExternalWorker]:
    job_id, external_worker = site.submit_one("talk"), join(site)
    want = ClaimRequest(
        node_id=external_worker.id, slots=[SlotRequest(0, 1, 0.0, True)], lanes={EAR: LaneRequest()}
    )
    site.start(*site.store.flush_and_claim([], want, now_us=site.now).leases)
    return job_id, external_worker


def test_a_party_that_is_silent_for_its_lease_loses_what_it_had(site: Site, watcher: Watcher) -> None:
    job_id, _ = begin(site)
    watcher.look()
    watcher.look(60)
    assert len(site.store.external_workers.all()) == 1
    watcher.look(1)
    assert site.store.external_workers.all() == []
    assert site.store.job(job_id).state is State.PENDING
    assert watcher.wakeups == 1


def test_a_party_that_is_heard_of_keeps_it(site: Site, watcher: Watcher) -> None:
    _, external_worker = begin(site)
    for _ in range(5):
        watcher.look(50)
        site.store.beat(external_worker.id, now_us=site.now)
    watcher.look(50)
    assert len(site.store.external_workers.leases(external_worker.id)) == 1


def test_a_time_limit_counts_for_a_party_that_is_heard_of(site: Site, watcher: Watcher) -> None:
    job_id, external_worker = begin(site)
    for _ in range(10):
        watcher.look(50)
        site.store.beat(external_worker.id, now_us=site.now)
    assert site.store.attempts(job_id)[0].outcome is Outcome.TIMEOUT


def test_nodes_are_none_of_its_business(site: Site, watcher: Watcher) -> None:
    node = site.node("oak")
    watcher.look()
    watcher.look(1_000)
    assert [n.id for n in site.store.nodes()] == [node.id]


def test_what_is_due_becomes_claimable_where_no_node_is(site: Site, watcher: Watcher) -> None:
    job_id = site.submit_one("talk", at_us=site.now + 10_000_000)
    watcher.look(5)
    assert site.store.job(job_id).state is State.SCHEDULED
    watcher.look(6)
    assert site.store.job(job_id).state is State.PENDING
    assert watcher.wakeups == 1


def test_where_a_node_is_that_is_left_to_it(site: Site, watcher: Watcher) -> None:
    site.node("oak")
    job_id = site.submit_one("talk", at_us=site.now + 1_000_000)
    watcher.look(5)
    assert site.store.job(job_id).state is State.SCHEDULED
    # And when nothing has been heard of that node for long, it is not
    watcher.look(60)
    assert site.store.job(job_id).state is State.PENDING


def test_a_schedule_that_cannot_be_computed_keeps_no_other_work_from_being_done(
    site: Site, watcher: Watcher, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Given a schedule in a time zone that this host does not have, when it is due together with a job, then the
    schedule is logged, and the job becomes claimable in the same round."""
    put = site.store.schedules.put
    put(Schedule(name="abroad", type="talk", cron="0 * * * *", zone="Europe/Berlin"), ANN, now_us=site.now)
    put(Schedule(name="here", type="talk", cron="0 * * * *"), ANN, now_us=site.now)
    job_id = site.submit_one("talk", at_us=site.now + 3_600_000_000)

    zone_of = cron.zone_of

    def zone_here(name: str) -> Any:
        if name == "Europe/Berlin":
            raise UsageError(f"there is no time zone {name!r}")
        return zone_of(name)

    monkeypatch.setattr(cron, "zone_of", zone_here)
    watcher.look(3_601)
    assert site.store.job(job_id).state is State.PENDING
    assert [run.outcome for run in site.store.schedules.runs("here", limit=10)] == ["submitted"]
    assert [record.getMessage() for record in caplog.records] == [
        "schedule 'abroad': there is no time zone 'Europe/Berlin'"
    ]


def test_it_looks_while_it_is_entered(tmp_path: Path, site: Site) -> None:
    job_id = site.submit_one("talk", at_us=site.now + 1)
    site.clock.forward(1)
    url = f"sqlite:///{tmp_path}/x.db"

    async def there() -> None:
        stores = StorePool(lambda: open_store(url), threads=1)
        async with (
            stores,
            ServerMaintenance(stores, now_us=lambda: site.now, wake_nodes=lambda store: None, every_s=0.01),
        ):
            give_up = time.monotonic() + 10
            while site.store.job(job_id).state is not State.PENDING:
                assert time.monotonic() < give_up
                await asyncio.sleep(0.01)

    asyncio.run(there())


def test_a_server_without_nodes_finishes_a_sweep_that_was_cut_off(site: Site, watcher: Watcher) -> None:
    job = site.submit_one("talk")
    hold = site.store.holds.lay(Scope.TYPE, "talk", "look", ANN, now_us=site.now)
    while site.store.holds.sweep(now_us=site.now):
        pass
    site.store.holds.lift(hold.id, ANN, now_us=site.now)

    watcher.look(later_s=5.0)

    assert site.state(job) is State.PENDING


def test_given_a_store_in_which_a_node_has_led_then_a_server_alone_still_forgets_what_is_old(
    site: Site, watcher: Watcher
) -> None:
    site.store.throughput_history.record(now_us=site.now)  # as a leader does
    key = SubmissionKey(owner="ann", key="k1", digest="d1")
    (first,) = site.store.submit([submission("talk")], now_us=site.now, once=key).ids

    for _ in range(25):
        watcher.look(later_s=3_600)

    assert site.store.retention.clock() == TrustedClock(trusted_us=site.now)
    (second,) = site.store.submit([submission("talk")], now_us=site.now, once=key).ids
    assert second != first


def test_given_a_server_whose_clock_jumps_then_it_forgets_nothing(site: Site, watcher: Watcher) -> None:
    watcher.look()
    key = SubmissionKey(owner="ann", key="k1", digest="d1")
    site.store.submit([submission("talk")], now_us=site.now, once=key)

    watcher.look(later_s=31 * 86_400)

    assert site.store.submit([submission("talk")], now_us=site.now, once=key).repeated
