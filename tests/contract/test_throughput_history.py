"""Figures over time: minutes are rolled up to quarters and hours, again and again without harm, and old ones go."""

from collections.abc import Mapping

from spinney.features.stats.history_sql import HOUR_S, KEPT, MINUTE_S, QUARTER_S, Figures
from spinney.model.outcomes import Outcome
from spinney.model.settings.queues import QueueSpec

from .words import Site, kind


def run_one(site: Site, seconds: float, outcome: Outcome = Outcome.OK) -> None:
    """Let one job run for so long."""
    lease = site.claim_one()
    began = site.now
    site.start(lease)
    site.clock.forward(seconds)
    site.record(lease, outcome, started_us=began, ended_us=site.now, retryable=False)


def to_next(site: Site, width_s: int) -> int:
    """Let the time go on to the beginning of the next slice of this width; return the number of the one before."""
    number = site.now // 1_000_000 // width_s
    site.clock.forward((number + 1) * width_s - site.now / 1e6)
    return number


def record(site: Site) -> None:
    site.store.throughput_history.record(now_us=site.now)


def by_slice(site: Site, width_s: int, queues: tuple[str, ...] | None = None) -> Mapping[int, Figures]:
    history = site.store.throughput_history
    lanes = [lane for lane, *_ in history.lanes(queues=queues)]
    return history.by_slice(width_s, 0, site.now // 1_000_000 // width_s, lanes)


def of_stage(site: Site, width_s: int, queues: tuple[str, ...] | None = None) -> Figures:
    """The figures of the only stage, over all slices."""
    history = site.store.throughput_history
    lanes = [lane for lane, *_ in history.lanes(queues=queues)]
    by_stage = history.by_stage(width_s, 0, site.now // 1_000_000 // width_s, lanes)
    assert [*by_stage] == [("one", "work")]
    return by_stage["one", "work"]


def test_given_attempts_in_two_minutes_then_each_width_has_their_sums(site: Site) -> None:
    site.submit(n=5)
    to_next(site, HOUR_S)
    run_one(site, 10)
    run_one(site, 20, Outcome.ERROR)
    first = to_next(site, MINUTE_S)
    record(site)
    run_one(site, 4)
    second = to_next(site, MINUTE_S)

    for _ in range(2):  # a second leader, or the same again
        record(site)

    minutes = by_slice(site, MINUTE_S)
    assert {n: (f.ended, f.failed) for n, f in minutes.items()} == {first: (2, 1), second: (1, 0)}
    assert (minutes[first].pending, minutes[second].pending) == (3, 2)
    assert minutes[second].run_s == 10, "the median of 10, 20 and 4 s"
    for width_s in (QUARTER_S, HOUR_S):
        (whole,) = by_slice(site, width_s).values()
        assert whole[:3] == (3, 1, 2.5), width_s
        assert whole.run_s is not None


def test_given_a_leader_that_was_away_then_what_it_missed_is_made_up_for(site: Site) -> None:
    site.submit(n=2)
    to_next(site, HOUR_S)
    run_one(site, 1)
    first = to_next(site, MINUTE_S)
    site.clock.forward(8 * MINUTE_S)

    record(site)

    assert by_slice(site, MINUTE_S)[first].ended == 1


def test_given_a_minute_that_was_missed_then_it_has_attempts_and_no_numbers_of_jobs(site: Site) -> None:
    site.submit(n=3)
    to_next(site, HOUR_S)
    run_one(site, 1)
    missed = to_next(site, MINUTE_S)
    looked_at = to_next(site, MINUTE_S)
    record(site)

    minutes = by_slice(site, MINUTE_S)
    assert (minutes[missed].ended, minutes[missed].pending, minutes[missed].running) == (1, None, None)
    assert (minutes[looked_at].ended, minutes[looked_at].pending, minutes[looked_at].running) == (0, 2, 0)
    (hour,) = by_slice(site, HOUR_S).values()
    assert hour.pending == 2, "the average of one count"


def test_given_an_idle_minute_then_it_has_zeros_and_an_outage_has_nothing(site: Site) -> None:
    to_next(site, HOUR_S)
    site.clock.forward(5 * MINUTE_S)
    record(site)

    (idle,) = by_slice(site, MINUTE_S).values()
    assert idle == (0, 0, 0, 0, None, None)


def test_given_lanes_whose_peaks_never_coincided_then_an_hour_does_not_add_them(site: Site) -> None:
    site.knows(kind("one", "work"), queues=[QueueSpec(name="other")])
    to_next(site, HOUR_S)
    for queue in ("default", "other"):
        site.submit(n=4, queue=queue)
        to_next(site, MINUTE_S)
        record(site)
        for _ in range(4):
            run_one(site, 1)

    for width_s in (QUARTER_S, HOUR_S):
        (whole,) = by_slice(site, width_s).values()
        assert whole.pending == 4, width_s
        assert of_stage(site, width_s).pending == 4
        assert [of_stage(site, width_s, (queue,)).pending for queue in ("default", "other")] == [2, 2]


def test_given_queues_then_times_of_one_are_not_those_of_another(site: Site) -> None:
    site.knows(kind("one", "work"), queues=[QueueSpec(name="other")])
    to_next(site, HOUR_S)
    for queue, seconds in (("default", 20), ("other", 2)):
        site.submit(n=1, queue=queue)
        run_one(site, seconds)
    minute = to_next(site, MINUTE_S)
    record(site)

    times = [by_slice(site, MINUTE_S, (queue,))[minute].run_s for queue in ("default", "other")]
    assert times == [20, 2]
    whole = of_stage(site, MINUTE_S)
    assert (whole.ended, whole.run_s) == (2, 11), "the mean of both queues"


def test_given_queues_then_only_their_lanes_count(site: Site) -> None:
    site.knows(kind("one", "work"), queues=[QueueSpec(name="other")])
    site.submit(n=2)
    site.submit(n=3, queue="other")
    to_next(site, MINUTE_S)
    record(site)

    assert [f.pending for f in by_slice(site, MINUTE_S, ("other",)).values()] == [3]
    assert [f.pending for f in by_slice(site, MINUTE_S).values()] == [5]
    assert [of_stage(site, MINUTE_S, queues).pending for queues in (("default",), ("other",), None)] == [
        2,
        3,
        5,
    ]


def test_given_old_slices_then_they_go_with_the_next_record(site: Site) -> None:
    site.submit(n=1)
    to_next(site, HOUR_S)
    record(site)
    assert all(by_slice(site, width_s) for width_s in KEPT)

    site.clock.forward(QUARTER_S * (KEPT[QUARTER_S] + 2))
    site.store.retention.confirm_clock(now_us=site.now)
    record(site)

    assert len(by_slice(site, MINUTE_S)) == 1
    assert len(by_slice(site, QUARTER_S)) == 1
    assert len(by_slice(site, HOUR_S)) == 2
