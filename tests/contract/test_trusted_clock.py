"""A clock that is far ahead deletes nothing that is to be kept, whichever process has it."""

import pytest

from spinney.features.stats.history_sql import KEPT
from spinney.model.outcomes import Outcome
from spinney.model.rights.actor import Actor
from spinney.model.settings.webhooks import Webhook
from spinney.model.trusted_clock import AHEAD_US, PROBATION_US, TrustedClock
from spinney.store.contract import SubmissionKey
from spinney.store.parts import Store

from .words import Site, submission

ANN = Actor(by="ann", call="c-1")
HOUR, DAY, MONTH = 3_600, 86_400, 31 * 86_400


def observe(site: Site, store: Store | None = None) -> TrustedClock:
    return (store or site.store).retention.observe_clock(now_us=site.now)


# --- what is kept -----------------------------------------------------------------------------


def test_given_a_new_store_then_the_first_look_is_trusted(site: Site) -> None:
    assert site.store.retention.clock() is None

    assert observe(site) == TrustedClock(trusted_us=site.now)


@pytest.mark.parametrize("seconds", [1, 59, 60, HOUR])
def test_given_a_clock_that_goes_on_then_it_is_trusted_and_each_minute_is_kept(
    site: Site, seconds: int
) -> None:
    began = observe(site).trusted_us
    site.clock.forward(seconds)

    assert observe(site) == TrustedClock(trusted_us=site.now)
    kept = TrustedClock(trusted_us=site.now if seconds >= 60 else began)
    assert site.store.retention.clock() == kept


def test_given_a_jump_then_a_day_passes_before_the_clock_is_trusted(site: Site) -> None:
    began = observe(site).trusted_us
    jumped = site.clock.forward(MONTH)
    assert observe(site) == TrustedClock(trusted_us=began, jumped_us=jumped)

    site.clock.forward(DAY - 1)
    assert observe(site) == TrustedClock(trusted_us=began, jumped_us=jumped) == site.store.retention.clock()
    site.clock.forward(1)

    assert observe(site) == TrustedClock(trusted_us=jumped + PROBATION_US) == site.store.retention.clock()


def test_given_a_jump_when_another_leader_has_the_right_time_then_it_is_forgotten(site: Site) -> None:
    observe(site)
    site.clock.forward(MONTH)
    observe(site)
    site.clock.forward(1 - MONTH)

    assert observe(site) == TrustedClock(trusted_us=site.now)
    site.clock.forward(MONTH)
    assert observe(site).jumped_us == site.now, "its day begins anew"


def test_given_a_jump_when_an_operator_confirms_the_clock_then_it_is_trusted_at_once(site: Site) -> None:
    observe(site)
    site.clock.forward(MONTH)
    observe(site)

    site.store.retention.confirm_clock(now_us=site.now)

    assert site.store.retention.clock() == observe(site) == TrustedClock(trusted_us=site.now)


def test_given_a_host_that_is_behind_when_an_operator_confirms_its_clock_then_the_leader_is_still_trusted(
    site: Site,
) -> None:
    observe(site)

    site.store.retention.confirm_clock(now_us=site.now - 2 * HOUR * 1_000_000)

    site.clock.forward(60)
    assert observe(site) == TrustedClock(trusted_us=site.now)


def test_given_a_wrong_clock_that_was_trusted_then_the_right_one_is_trusted_until_it_has_caught_up(
    site: Site,
) -> None:
    wrong_us = site.now + MONTH * 1_000_000
    site.store.retention.confirm_clock(now_us=wrong_us)
    site.store.retention.confirm_clock(now_us=site.now)

    for _ in range(3):
        assert observe(site) == TrustedClock(trusted_us=wrong_us)
        site.clock.forward(MONTH / 3)

    site.clock.forward(60)
    assert observe(site) == TrustedClock(trusted_us=site.now)
    site.clock.forward(2 * HOUR)
    assert observe(site).jumped_us == site.now


# --- what it guards ---------------------------------------------------------------------------


def test_given_a_leader_that_is_ahead_then_the_history_of_the_charts_stays(site: Site) -> None:
    site.submit(n=1)
    history = site.store.throughput_history
    history.record(now_us=site.now)
    last = {width_s: site.now // 1_000_000 // width_s for width_s in KEPT}

    site.clock.forward(MONTH)
    history.record(now_us=site.now)

    assert all(history.by_slice(width_s, 0, last[width_s], []) for width_s in KEPT)
    assert site.store.retention.clock() == TrustedClock(
        trusted_us=site.now - MONTH * 1_000_000, jumped_us=site.now
    )

    site.clock.forward(DAY)
    history.record(now_us=site.now)
    assert not any(history.by_slice(width_s, 0, last[width_s], []) for width_s in KEPT)


def test_the_charts_alone_keep_the_clock_trusted(site: Site) -> None:
    for _ in range(3):  # until the next walk, which may begin more than an hour after the last one
        site.store.throughput_history.record(now_us=site.now)
        site.clock.forward(AHEAD_US / 1e6)

    assert observe(site).jumped_us is None


def test_given_a_process_that_is_ahead_then_a_submission_is_still_taken_once(site: Site) -> None:
    key = SubmissionKey(owner="ann", key="k1", digest="d1")
    first = site.store.submit([submission("one")], now_us=site.now, once=key)
    observe(site)
    ahead_us = site.now + MONTH * 1_000_000

    site.store.sweep(now_us=ahead_us)

    for now_us in (ahead_us, site.now):
        again = site.store.submit([submission("one")], now_us=now_us, once=key)
        assert (again.repeated, list(again.ids)) == (True, list(first.ids))


def test_given_a_process_that_is_ahead_then_no_delivery_is_lost(site: Site) -> None:
    site.store.webhooks.add(
        Webhook(name="hook", url="https://example.org/", events=("failed",)), "secret", ANN, now_us=site.now
    )
    site.record(site.run(site.submit_one()), Outcome.ERROR)
    observe(site)
    ahead_us = site.now + MONTH * 1_000_000

    site.store.sweep(now_us=ahead_us)
    site.store.webhooks.remove_expired(now_us=ahead_us)

    assert len(site.store.webhooks.deliveries("hook")) == 1
    site.clock.forward(MONTH)
    site.store.retention.confirm_clock(now_us=site.now)
    site.store.webhooks.remove_expired(now_us=site.now)
    assert site.store.webhooks.deliveries("hook") == []


def test_given_a_process_that_is_ahead_then_a_cause_of_failures_is_still_the_old_one(site: Site) -> None:
    job = site.submit_one()
    site.record(site.run(job), Outcome.ERROR)
    (first,) = site.store.failures.groups().items
    site.retry(job)
    observe(site)

    for _ in range(2):
        site.store.sweep(now_us=site.now + MONTH * 1_000_000)

    site.clock.forward(1)
    site.record(site.run(job), Outcome.ERROR)
    assert [group.first_us for group in site.store.failures.groups().items] == [first.first_us]
