"""Figures: what stands where, who has the slots, how fast it goes, how long stages wait and run."""

from collections import Counter
from typing import Any

import pytest

from spinney.model.access import AccessScope
from spinney.model.jobs import ClaimRequest, Filter, SlotRequest
from spinney.model.operators.stats import QueueStats, StageStats, Stats
from spinney.model.outcomes import Outcome
from spinney.model.settings.queues import QueueSpec
from spinney.model.states import State

from .behind import duration_samples
from .everything import TYPES, fill
from .words import SECOND_US, Site, kind


def stats(site: Site, window_s: float = 60) -> Stats:
    return site.store.statistics.stats(window_s=window_s, now_us=site.now)


def of_queue(site: Site, name: str, window_s: float = 60) -> QueueStats:
    (queue,) = (q for q in stats(site, window_s).queues if q.queue == name)
    return queue


def of_stage(site: Site, type_: str = "one", stage: str = "work", window_s: float = 60) -> StageStats:
    (statistics,) = (s for s in stats(site, window_s).stages if (s.type, s.stage) == (type_, stage))
    return statistics


def run_one(site: Site, seconds: float, outcome: Outcome = Outcome.OK, **fields: Any) -> None:
    """Claim one job and let it run so long."""
    lease = site.claim_one()
    began = site.now
    site.start(lease)
    site.clock.forward(seconds)
    site.record(lease, outcome, started_us=began, ended_us=site.now, **fields)


def test_what_stands_where_is_what_the_lists_say(site: Site) -> None:
    made = fill(site)
    statistics = stats(site)

    assert dict(statistics.states) == dict(site.store.counts(Filter()))
    jobs = [site.job(made[name]) for name in made]
    for state, of in (
        ("pending", "pending"),
        ("scheduled", "scheduled"),
        ("waiting", "waiting"),
        ("held", "held"),
        ("failed", "failed"),
    ):
        wanted = Counter(job.queue for job in jobs if job.state == state)
        assert {q.queue: getattr(q, of) for q in statistics.queues if getattr(q, of)} == wanted, state
    wanted = Counter((job.type, job.stage) for job in jobs if job.state is State.PENDING)
    assert {(s.type, s.stage): s.pending for s in statistics.stages if s.pending} == wanted
    assert [(s.type, s.stage) for s in statistics.stages] == [
        (spec.name, stage.name) for spec in site.store.types().values() for stage in spec.stages
    ]
    assert {q.queue: q.limit for q in statistics.queues}["narrow"] == 1
    assert {t.name for t in TYPES} <= {s.type for s in statistics.stages}


def test_a_slot_that_was_given_work_ahead_is_occupied_once(site: Site) -> None:
    node = site.node("oak", slots=4)
    site.submit(n=6, share="ann")
    site.submit(n=6, share="ben")
    want = ClaimRequest(
        node_id=node.id, slots=[SlotRequest(s, 4, 1e9, True) for s in (0, 1)], lanes=site.lanes(run_us=1000.0)
    )

    leases = site.flush_and_claim([], want).leases

    assert len(leases) == 8
    statistics = stats(site)
    (oak,) = statistics.nodes
    assert (oak.node, oak.state, oak.slots, oak.running, oak.leases) == ("oak", "active", 4, 2, 8)
    assert of_queue(site, "default").running == 2
    assert of_stage(site).running == 2
    shares = {(s.queue, s.share): s.running for s in statistics.shares}
    wanted: dict[tuple[str, str | None], set[int]] = {}
    for lease in leases:
        wanted.setdefault(("default", site.job(lease.job_id).share), set()).add(lease.slot)
    assert shares == {share: len(slots) for share, slots in wanted.items()}


def test_shares_are_called_by_name_or_by_the_job_that_began_them(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="row", order="fifo")])
    site.submit(n=1, share="ann")
    (first, _) = site.submit(n=2)
    site.submit(n=1, queue="row")

    site.claim()

    assert [(s.queue, s.share, s.running) for s in stats(site).shares] == [
        ("default", str(first), 2),
        ("default", "ann", 1),
        ("row", None, 1),
    ]


def test_rates_are_of_the_window(site: Site) -> None:
    site.submit(n=12)
    site.submit(n=6, queue="net")
    node = site.here
    for lease in site.claim(node):
        site.pass_(lease)
    assert of_queue(site, "default").rate * stats(site).window_s == pytest.approx(12)
    assert stats(site).rate * stats(site).window_s == pytest.approx(18)

    site.clock.forward(100)
    site.submit(n=5, queue="net")
    for lease in site.claim(node):
        site.pass_(lease)

    statistics = stats(site)
    assert 60 <= statistics.window_s < 70
    assert of_queue(site, "default").rate == 0
    assert of_queue(site, "net").rate == pytest.approx(5 / statistics.window_s)
    assert of_stage(site).ended == 5
    assert of_stage(site, window_s=300).ended == 23


def test_failures_are_counted_and_what_never_ran_is_not(site: Site) -> None:
    site.submit("tenacious", n=4)
    ok, bad, back, late = site.claim(slots=4)
    site.start(ok, bad, late)
    site.pass_(ok)
    site.record(bad, Outcome.ERROR, message="no")
    site.record(back, Outcome.RETURNED, started_us=0)
    site.record(late, Outcome.TIMEOUT)

    statistics = of_stage(site, "tenacious")

    assert (statistics.ended, statistics.failures) == (3, 2)
    assert statistics.rate == pytest.approx(3 / stats(site).window_s)


def test_measures_that_are_too_old_are_dropped(site: Site) -> None:
    site.submit_one()
    site.drain()
    site.later(3600)

    assert of_stage(site, window_s=10**9).ended == 0


def test_times_are_those_of_waiting_for_a_turn_and_of_running(site: Site) -> None:
    site.submit(n=10)
    site.clock.forward(5)
    for n in range(10):
        run_one(site, n + 1)

    statistics = of_stage(site)

    assert statistics.sampled == 10
    assert statistics.run_s == (5.0, 9.0, 10.0)
    # The n-th waited for those before it: 5, 6, 8, 11, …
    assert statistics.wait_s == (5.0 + 10, 5.0 + 36, 5.0 + 45)


def test_one_that_was_to_wait_until_a_time_waits_from_then(site: Site) -> None:
    site.submit_one(at_us=site.now + 100 * SECOND_US)
    site.later(103)
    run_one(site, 1)

    assert of_stage(site).wait_s == (3.0, 3.0, 3.0)


def test_a_later_stage_waits_from_the_end_of_the_stage_before(site: Site) -> None:
    site.submit_one("three")
    site.clock.forward(2)
    run_one(site, 10)
    site.clock.forward(3)
    run_one(site, 20)
    site.clock.forward(4)
    run_one(site, 30)

    waits = [of_stage(site, "three", stage).wait_s for stage in ("first", "second", "third")]
    runs = [of_stage(site, "three", stage).run_s for stage in ("first", "second", "third")]

    assert waits == [(2.0,) * 3, (3.0,) * 3, (4.0,) * 3]
    assert runs == [(10.0,) * 3, (20.0,) * 3, (30.0,) * 3]


def test_a_pause_after_a_failure_is_no_waiting(site: Site) -> None:
    site.submit_one("tenacious")
    run_one(site, 1, Outcome.ERROR, message="no")
    site.later(1000)
    run_one(site, 1)

    statistics = of_stage(site, "tenacious")

    assert statistics.sampled == 2
    assert statistics.wait_s == (0.0, 0.0, 0.0)


def test_attempts_that_ended_at_once_and_ran_alike_have_times_though_one_came_after_a_failure(
    site: Site,
) -> None:
    node = site.node("oak", slots=2)
    site.submit_one("tenacious")
    first = site.claim_one(node)
    site.start(first)
    site.fail(first, retryable=True, message="network")
    site.later(5)
    site.submit_one("tenacious")
    site.start(*site.claim(node))  # both jobs, marked in one call
    site.clock.forward(30)
    site.recover(node)  # it died: both attempts end at one moment

    assert of_stage(site, "tenacious").sampled == 3
    site.store.throughput_history.record(now_us=site.now)


def test_clocks_that_differ_do_not_make_times_negative(site: Site) -> None:
    site.submit_one()
    lease = site.claim_one()
    site.record(lease, Outcome.OK, started_us=site.now - 5 * SECOND_US, ended_us=site.now - 6 * SECOND_US)

    statistics = of_stage(site)

    assert (statistics.wait_s, statistics.run_s) == ((0.0,) * 3, (0.0,) * 3)


def test_the_sample_is_of_what_was_done_last_where_the_earliest_come_first(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LOOKED_AT", "LEAST", "MOST"):
        monkeypatch.setattr(duration_samples, name, 5)
    site.submit(n=40)
    for _ in range(10):
        run_one(site, 100)
    for _ in range(10):
        run_one(site, 1)

    statistics = of_stage(site)

    assert statistics.sampled == 5, "five rows below the first that is to be claimed"
    assert statistics.run_s == (1.0, 1.0, 1.0)


def test_a_stage_that_nobody_ran_has_no_times(site: Site) -> None:
    site.submit_one()

    statistics = of_stage(site)

    assert (statistics.pending, statistics.sampled, statistics.wait_s, statistics.run_s, statistics.rate) == (
        1,
        0,
        None,
        None,
        0.0,
    )


def test_a_stage_that_has_vanished_is_shown_while_jobs_stand_in_it(site: Site) -> None:
    site.knows(kind("fading", "old"))
    job = site.submit_one("fading")
    site.knows(kind("fading", "new"))

    assert [s.stage for s in stats(site).stages if s.type == "fading"] == ["new", "old"]

    site.cancel(job)
    assert [s.stage for s in stats(site).stages if s.type == "fading"] == ["new"]


def test_an_empty_store_has_figures_too(site: Site) -> None:
    statistics = stats(site)

    assert dict(statistics.states) == {}
    assert statistics.rate == 0
    assert [q.queue for q in statistics.queues] == ["default"]
    assert (statistics.shares, statistics.nodes) == ([], [])


def test_of_the_latest_trees_those_that_failed_are_named_whatever_single_jobs_did(site: Site) -> None:
    trees = []
    for _ in range(3):
        trees.append(site.submit_one("parent"))
        lease = site.run(trees[-1])
        children = site.spawn(lease, n=2)
        site.pass_(lease)
        site.drain(failing=children if len(trees) != 2 else ())
    site.drain(failing=site.submit(n=3))

    failed = site.store.statistics.failed_trees
    assert site.state(trees[0]) is State.FAILED
    assert failed(AccessScope(), latest=10) == [trees[2], trees[0]]
    assert failed(AccessScope(), latest=2) == [trees[2]]
    assert failed(AccessScope(queues=("other",)), latest=10) == []
