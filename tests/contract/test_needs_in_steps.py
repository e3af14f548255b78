"""A job that very many need: they hear of it in steps, whatever is done to it meanwhile, and by whom."""

from collections.abc import Callable

import pytest

import job_verbs
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.operators.bulk_runs import BulkStep
from spinney.model.rights.actor import Actor
from spinney.model.states import State
from spinney.store.parts import Store

from .words import Site

ANN = Actor(by="ann", call="c-1")
MANY = 700
"""More than any one transaction tells."""


def apply(site: Site, verb: Verb, *job_ids: int) -> BulkStep:
    """One transaction of a verb."""
    return site.store.bulk.apply(Order(verb=verb, reason="because"), job_ids, ANN, now_us=site.now)


def needed_by_many(site: Site) -> tuple[int, list[int]]:
    need = site.submit_one(priority=0)
    return need, site.submit(n=MANY, needs=(need,))


def fail_for_all(site: Site, need: int) -> None:
    site.fail(site.run(need))
    site.sweep()


# --- deleted before all have heard of it ------------------------------------------------------


def delete_at_once(site: Site, job_id: int) -> None:
    assert site.delete(job_id) == {job_id}


def delete_by_steps(site: Site, job_id: int) -> None:
    todo = [job_id]
    for _ in range(100):
        todo = list(apply(site, Verb.DELETE, *todo).unfinished)
        if not todo:
            return
    raise AssertionError("the deletion does not end")


DELETE: dict[str, Callable[[Site, int], None]] = {"alone": delete_at_once, "in bulk": delete_by_steps}


@pytest.mark.parametrize("how", DELETE)
def test_who_needs_a_job_that_completed_goes_on_although_it_is_deleted(site: Site, how: str) -> None:
    need, needers = needed_by_many(site)
    site.pass_(site.run(need))
    assert site.count(states=(State.WAITING,)) != {}, "not all have heard of it yet"

    DELETE[how](site, need)

    site.sweep()
    assert site.state(need) is State.DELETED
    assert site.count(states=(State.PENDING,)) == {"pending": MANY}
    assert {job for job, _ in site.drain()} == set(needers)


@pytest.mark.parametrize("how", DELETE)
def test_who_needs_a_child_that_completed_goes_on_although_its_tree_is_deleted(site: Site, how: str) -> None:
    root, (child, other) = site.family("batch", n=2)
    needers = site.submit(n=MANY, needs=(child,), priority=99)
    leases = site.claim_by_job(lanes=[("one", "work")])
    site.pass_(leases[child], leases[other])
    site.pass_(site.run(root))
    assert site.state(root) is State.COMPLETED
    assert site.count(states=(State.WAITING,)) != {}, "not all have heard of it yet"

    if how == "alone":
        assert site.delete(root) == {root, child, other}
    else:
        delete_by_steps(site, root)

    site.sweep()
    assert site.states([root, child, other]) == [State.DELETED] * 3
    assert {job for job, _ in site.drain()} == set(needers)
    assert site.count(states=(State.WAITING, State.FAILED)) == {}


@pytest.mark.parametrize("how", DELETE)
def test_who_needs_a_job_that_failed_fails_although_it_is_deleted(site: Site, how: str) -> None:
    need, needers = needed_by_many(site)
    site.fail(site.run(need))
    assert site.count(states=(State.WAITING,)) != {}, "not all have heard of it yet"

    DELETE[how](site, need)

    site.sweep()
    assert set(site.states(needers)) == {State.FAILED}


def test_who_needs_a_held_job_fails_when_it_is_deleted(site: Site) -> None:
    need, needers = needed_by_many(site)
    apply(site, Verb.HOLD, need)

    delete_at_once(site, need)

    site.sweep()
    assert set(site.states(needers)) == {State.FAILED}


def test_a_deletion_that_was_cut_off_is_asked_for_again(
    site: Site, open_another: Callable[[], Store]
) -> None:
    need, needers = needed_by_many(site)
    site.pass_(site.run(need))
    assert list(apply(site, Verb.DELETE, need).unfinished) == [need]

    other = Site(open_another(), site.clock)
    delete_at_once(other, need)

    other.sweep()
    assert {job for job, _ in site.drain()} == set(needers)


def test_what_thousands_needed_is_deleted_in_steps(site: Site) -> None:
    need = site.submit_one(priority=0)
    later = site.submit(n=2_500, needs=(need,), at_us=site.now + 10**12)
    site.pass_(site.run(need))
    site.sweep()

    step = apply(site, Verb.DELETE, need)

    assert (list(step.touched), list(step.unfinished)) == ([], [need])
    assert site.state(need) is State.COMPLETED
    delete_by_steps(site, need)
    site.clock.forward(10**6)
    site.sweep()
    assert site.count(states=(State.PENDING,)) == {"pending": len(later)}


# --- opened again -----------------------------------------------------------------------------


def test_those_that_failed_because_of_it_are_opened_with_it_in_steps(site: Site) -> None:
    need, needers = needed_by_many(site)
    fail_for_all(site, need)

    step = apply(site, Verb.RETRY, need)

    assert 0 < len(step.reopened) < MANY
    site.sweep()
    assert set(site.states(needers)) == {State.WAITING}
    assert {job for job, _ in site.drain()} == {need, *needers}


def test_another_goes_on_with_what_is_left_to_be_opened(
    site: Site, open_another: Callable[[], Store]
) -> None:
    need, needers = needed_by_many(site)
    fail_for_all(site, need)
    apply(site, Verb.RETRY, need)

    Site(open_another(), site.clock).sweep()

    assert set(site.states(needers)) == {State.WAITING}


def test_a_job_that_completes_before_all_have_heard_that_it_was_opened(site: Site) -> None:
    need, needers = needed_by_many(site)
    fail_for_all(site, need)
    site.retry(need)
    site.pass_(site.run(need))

    site.sweep()

    assert set(site.states(needers)) == {State.PENDING}


def test_a_job_that_fails_again_before_all_have_heard_that_it_was_opened(site: Site) -> None:
    need, needers = needed_by_many(site)
    fail_for_all(site, need)
    site.retry(need)
    site.fail(site.run(need))

    site.sweep()

    assert set(site.states(needers)) == {State.FAILED}
    assert site.retry(need)
    site.sweep()
    assert {job for job, _ in site.drain()} == {need, *needers}


def test_a_job_that_completes_and_is_deleted_before_all_have_heard_that_it_was_opened(site: Site) -> None:
    need, needers = needed_by_many(site)
    fail_for_all(site, need)
    site.retry(need)
    site.pass_(site.run(need))

    delete_at_once(site, need)

    site.sweep()
    assert {job for job, _ in site.drain()} == set(needers)


def test_who_failed_because_of_another_too_stays_failed_until_that_is_opened(site: Site) -> None:
    one, other = site.submit(n=2, priority=0)
    needers = site.submit(n=MANY, needs=(one, other))
    leases = site.claim_by_job()
    site.fail(leases[one], leases[other])
    site.sweep()

    site.retry(one)
    site.pass_(site.run(one))
    site.sweep()
    assert set(site.states(needers)) == {State.FAILED}

    site.retry(other)
    site.sweep()
    assert {job for job, _ in site.drain()} == {other, *needers}


def test_those_behind_the_many_are_opened_too_and_the_trees_above_them(site: Site) -> None:
    """Given a job that many children need, each of which another job needs, below a strict parent."""
    need = site.submit_one("tenacious", priority=0)
    running = site.run(need)
    parent = site.submit_one("parent")
    lease = site.run(parent)
    born = site.spawn(lease, n=MANY, needs=(need,))
    site.pass_(lease)
    site.sweep()
    behind = [site.submit_one(needs=(child,)) for child in born[::7]]
    last = site.submit_one(needs=(parent,))
    site.fail(running)
    site.sweep()
    everybody = [need, parent, *born, *behind, last]
    assert set(site.states(everybody)) == {State.FAILED}

    site.retry(need)
    site.sweep()

    assert set(site.states(everybody[1:])) == {State.WAITING}
    site.drain()
    site.sweep()
    site.drain()
    assert set(site.states(everybody)) == {State.COMPLETED}


def test_a_line_of_thousands_each_needing_the_one_before_is_opened_from_its_beginning(site: Site) -> None:
    line = [site.submit_one()]
    for _ in range(1_500):
        line.append(site.submit_one(needs=(line[-1],)))
    site.fail(site.run(line[0]))
    site.sweep()
    assert site.count() == {"failed": len(line)}

    site.retry(line[0])
    site.sweep()

    assert site.count() == {"waiting": len(line) - 1, "pending": 1}


# --- some that cannot be opened ---------------------------------------------------------------


def test_a_needer_below_a_cancelled_job_bars_nobody(site: Site) -> None:
    need = site.submit_one("tenacious", priority=0)
    running = site.run(need)
    lease = site.run(site.submit_one("batch"))
    (child,) = site.spawn(lease, needs=(need,))
    (other,) = site.spawn(lease, at_us=site.now + 10**9)
    site.pass_(lease)
    sound = site.submit_one(needs=(need,))
    site.fail(running)
    site.cancel(lease.job_id, tree=True)
    assert site.states([lease.job_id, child, other]) == [State.CANCELLED, State.FAILED, State.CANCELLED]
    assert set(job_verbs.preview(site.store, Order(verb=Verb.RETRY), [need], now_us=site.now)) == {
        need,
        sound,
    }

    touched = site.retry(need)

    assert list(touched.reopened) == [sound]
    assert site.states([lease.job_id, child]) == [State.CANCELLED, State.FAILED]
    assert {job for job, _ in site.drain()} == {need, sound}


def test_a_needer_whose_key_another_has_now_bars_nobody(site: Site) -> None:
    need = site.submit_one(priority=0)
    keyed = site.submit_one(needs=(need,), keys=("k",))
    sound = site.submit_one(needs=(need,))
    site.fail(site.run(need))
    owner = site.submit_one(keys=("k",))

    touched = site.retry(need)

    assert list(touched.reopened) == [sound]
    assert site.state(keyed) is State.FAILED
    assert {job for job, _ in site.drain()} == {need, sound, owner}


def test_none_of_the_many_bars_those_behind_it(site: Site) -> None:
    """Given needers that cannot be opened again, told of it in a later step; housekeeping goes on."""
    need, needers = needed_by_many(site)
    keyed = site.submit_one(needs=(need,), keys=("k",))
    last = site.submit_one(needs=(need,))
    fail_for_all(site, need)
    site.submit_one(keys=("k",))

    site.retry(need)
    site.sweep()

    assert site.state(keyed) is State.FAILED
    assert set(site.states([*needers, last])) == {State.WAITING}
