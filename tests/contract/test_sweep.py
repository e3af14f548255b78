"""Housekeeping: may be called by anybody at any time, twice, or never for a while."""

from collections.abc import Callable
from typing import Any

import pytest

from long_tests import LONG
from spinney.model.errors import Refused
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.outcomes import Outcome
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Scope
from spinney.model.settings.queues import QueueSpec
from spinney.model.states import State
from spinney.store.parts import Store

from .behind import sql_store, sweep_step
from .words import USUAL, Clock, Site, kind, submission

ANN = Actor(by="ann", call="c")
MANY = 1_200 if LONG else 850
"""More than two transactions hold."""


def test_jobs_that_are_due_become_claimable_and_are_counted(site: Site) -> None:
    due = site.submit(n=3, at_us=site.now + 10_000_000)
    later = site.submit_one(at_us=site.now + 20_000_000)
    site.clock.forward(10)

    swept = site.store.sweep(now_us=site.now)

    assert (swept.due, swept.wake_us) == (3, site.now + 10_000_000)
    assert site.states([*due, later]) == [State.PENDING] * 3 + [State.SCHEDULED]


PLACED_AT_ONCE = 100
"""How many jobs one transaction places one by one at most, so that others need not wait for long to write."""


def test_one_step_places_a_bounded_number_of_due_jobs(site: Site) -> None:
    need = site.submit_one("three")
    site.submit(n=2 * PLACED_AT_ONCE, at_us=site.now + 10_000_000, needs=(need,))
    site.clock.forward(10)

    swept = site.store.sweep(now_us=site.now)

    assert (swept.due, swept.more) == (PLACED_AT_ONCE, True)
    site.sweep()
    assert site.count() == {"pending": 1, "waiting": 2 * PLACED_AT_ONCE}


def test_due_jobs_that_only_their_time_has_kept_are_placed_together(site: Site) -> None:
    site.submit_one()  # makes the lane
    site.submit(n=4 * PLACED_AT_ONCE, at_us=site.now + 10_000_000)
    site.clock.forward(10)

    swept = site.store.sweep(now_us=site.now)

    assert (swept.due, swept.more) == (4 * PLACED_AT_ONCE, False)
    assert site.count() == {"pending": 4 * PLACED_AT_ONCE + 1}


def test_due_jobs_are_placed_together_as_they_are_one_by_one(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs of every kind, some of which more keeps than their time."""
    site.knows(
        *USUAL,
        kind("line", "expand", "merge", serial=True),
        queues=[
            QueueSpec(name="fifo", order="fifo"),
            QueueSpec(name="lifo", order="lifo"),
            QueueSpec(name="stopped"),
        ],
    )
    later: dict[str, Any] = {"at_us": site.now + 10_000_000}
    need = site.submit_one("three")
    for priority in (60, 50):
        for queue in ("fifo", "lifo", "stopped", "default"):
            site.submit(n=2, queue=queue, priority=priority, share="s", **later)
    site.submit(n=2, keys=("a", "b"), **later)
    site.submit(n=2, needs=(need,), **later)
    for top in ("batch", "line"):
        lease = site.run(site.submit_one(top, priority=0))
        born = site.spawn_all(lease, *(submission(**later) for _ in range(4)))
        site.pass_(lease)
        site.store.bulk.apply(Order(verb=Verb.MOVE, queue="fifo"), born[:1], ANN, now_us=site.now)
        site.store.bulk.apply(Order(verb=Verb.HOLD, reason="x"), born[1:2], ANN, now_us=site.now)
        site.cancel(born[2])
    site.store.holds.lay(Scope.QUEUE, "stopped", "x", ANN, now_us=site.now)
    site.clock.forward(10)

    def swept(least: int) -> list[Any]:
        monkeypatch.setattr(sweep_step, "PLAIN_LEAST", least)
        with site.store.bulk.trial():
            site.sweep()
            with sql_store(site.store).session.look() as tx:
                return [
                    tx.all(f"select {columns} from {table} order by 1, 2, 3, 4")
                    for table, columns in (
                        ("jobs", "id, state, queue, at_us, stage, share"),
                        ("inactive_jobs", "job_id, state, since_us, waits_for, wake_us, reason, priority"),
                        ("ready", "lane, priority, share, position, job_id"),
                        ("serial_order", "root_id, lineage, job_id, 1"),
                    )
                ]

    for queue in ("fifo", "lifo", "stopped", "default"):
        site.submit_one(queue=queue)  # makes the lane

    together, one_by_one = swept(1), swept(1_000)

    assert together == one_by_one
    assert len(together[2]) > 15


def test_one_record_places_a_bounded_number_of_jobs_that_needed_its_job(site: Site) -> None:
    need = site.submit_one()
    site.submit(n=2 * PLACED_AT_ONCE, needs=(need,))

    site.pass_(site.run(need))

    assert 0 < site.count()["pending"] <= PLACED_AT_ONCE
    site.sweep()
    assert site.count() == {"completed": 1, "pending": 2 * PLACED_AT_ONCE}


def test_one_claim_lets_a_bounded_number_of_jobs_wait_for_a_lock(site: Site) -> None:
    site.submit("locked", *[{"serno": 1}] * (3 * PLACED_AT_ONCE))
    site.claim_one()

    answer = site.flush_and_claim([], site.want(site.here, 1))

    assert answer.claim_again
    assert 0 < site.count()["waiting"] <= PLACED_AT_ONCE


def test_with_nothing_to_do_nothing_is_done(site: Site) -> None:
    job = site.submit_one()

    swept = site.store.sweep(now_us=site.now)

    assert (swept.due, swept.more, swept.wake_us) == (0, False, None)
    assert site.state(job) is State.PENDING


def test_it_waits_for_the_right_to_write_once_where_no_call_is_written_in_steps(site: Site) -> None:
    written: list[float] = []
    sql_store(site.store).session.measure_writes(lambda *seconds: written.append(sum(seconds)))
    site.submit_one(at_us=site.now + 1)
    written.clear()

    site.later(1)

    assert len(written) == 1
    assert site.count() == {"pending": 1}


def test_a_step_is_bounded_and_says_when_there_is_more(site: Site) -> None:
    site.submit(n=25, at_us=site.now + 1)
    site.clock.forward(1)

    steps = []
    for _ in range(30):
        swept = site.store.sweep(now_us=site.now, limit=10)
        steps.append(swept.due)
        if not swept.more:
            break

    assert sum(steps) == 25
    assert max(steps) <= 10
    assert site.count() == {"pending": 25}


def test_two_processes_may_sweep_at_once(site: Site, clock: Clock, open_another: Callable[[], Store]) -> None:
    site.submit(n=5, at_us=site.now + 1)
    site.clock.forward(1)
    other = Site(open_another(), clock)

    due = site.store.sweep(now_us=site.now).due + other.store.sweep(now_us=site.now).due

    assert due == 5
    assert site.count() == {"pending": 5}


def test_a_due_retry_is_claimable_after_the_sweep(site: Site) -> None:
    job = site.submit_one("tenacious")
    site.record(site.run(job), Outcome.ERROR)
    site.clock.forward(1)

    site.sweep()

    assert (site.state(job), site.job(job).wake_us) == (State.PENDING, None)


def test_a_job_for_later_that_is_due_goes_by_its_priority(site: Site) -> None:
    urgent = site.submit_one(priority=1, at_us=site.now + 1_000_000)
    usual = site.submit_one(priority=50)
    site.later(1)

    assert [site.claim_one().job_id for _ in range(2)] == [urgent, usual]


# --- stages that have vanished --------------------------------------------------------------


@pytest.mark.parametrize("where", ["pending", "scheduled"])
def test_a_job_whose_next_stage_has_vanished_is_held_with_the_reason(site: Site, where: str) -> None:
    site.knows(kind("t", "first", "second"))
    job = site.submit_one("t", at_us=site.now + 1_000_000 if where == "scheduled" else None)

    site.knows(kind("t", "second"))
    site.later(1)
    site.sweep()

    held = site.job(job)
    assert held.state is State.HELD
    assert "first" in (held.message or "")
    assert site.claim() == []


def test_a_job_whose_type_lost_another_stage_goes_on(site: Site) -> None:
    site.knows(kind("t", "first", "second", "third"))
    job = site.submit_one("t")
    site.pass_(site.run(job))

    site.knows(kind("t", "second", "third"))
    site.sweep()

    assert [name for _, name in site.drain()] == ["second", "third"]
    assert site.state(job) is State.COMPLETED


def test_a_job_held_for_a_vanished_stage_goes_on_when_it_is_back_and_released(site: Site) -> None:
    site.knows(kind("t", "first", "second"))
    job = site.submit_one("t")
    site.knows(kind("t", "second"))
    site.sweep()
    assert site.state(job) is State.HELD

    site.knows(kind("t", "first", "second"))
    site.release(job)

    assert [name for _, name in site.drain()] == ["first", "second"]
    assert site.state(job) is State.COMPLETED


def test_a_job_whose_stage_is_still_missing_is_not_released(site: Site) -> None:
    site.knows(kind("t", "first", "second"))
    job = site.submit_one("t")
    site.knows(kind("t", "second"))
    site.sweep()

    with pytest.raises(
        Refused, match="job type 't' has no stage 'first' any more; start a node whose application"
    ):
        site.release(job)

    assert site.state(job) is State.HELD


def test_one_whose_stage_is_gone_for_good_goes_on_when_it_is_cancelled_and_retried(site: Site) -> None:
    site.knows(kind("t", "first", "second", "third"))
    job = site.submit_one("t")
    site.pass_(site.run(job))
    site.knows(kind("t", "first", "third"))
    site.sweep()
    with pytest.raises(Refused, match=r"or cancel it .* and retry it, which continues with the first stage"):
        site.release(job)

    site.cancel(job)
    site.retry(job)

    assert [name for _, name in site.drain()] == ["third"]
    assert site.state(job) is State.COMPLETED


def test_nor_is_one_with_a_hold_of_its_own(site: Site) -> None:
    site.knows(kind("t", "first", "second"))
    job = site.submit_one("t")
    hold = site.store.holds.lay(Scope.JOB, str(job), "look", Actor(by="ann", call="c1"), now_us=site.now)
    site.knows(kind("t", "second"))
    site.sweep()

    with pytest.raises(Refused, match="job type 't' has no stage 'first' any more"):
        site.release(job)

    assert [left.id for left in site.store.holds.all()] == [hold.id]
    assert site.state(job) is State.HELD


def test_many_jobs_of_a_vanished_stage_are_held_in_steps(site: Site) -> None:
    site.knows(kind("t", "first", "second"))
    site.submit("t", n=MANY)

    site.knows(kind("t", "second"))
    site.sweep()

    assert site.count() == {"held": MANY}


def test_a_running_attempt_of_a_vanished_stage_is_left_to_end(site: Site) -> None:
    site.knows(kind("t", "first", "second"))
    lease = site.run(site.submit_one("t"))

    site.knows(kind("t", "second"))
    site.sweep()
    assert site.state(lease.job_id) is State.RUNNING
    site.pass_(lease)

    assert site.job(lease.job_id).stage == "second"


def test_a_job_of_a_type_that_no_running_node_knows_is_never_touched(site: Site) -> None:
    job = site.submit_one()

    for _ in range(3):
        site.later(86_400)

    assert site.state(job) is State.PENDING
