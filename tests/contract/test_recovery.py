"""A dead node's leases are taken away: what ran was interrupted, what had not begun goes back."""

import pytest

from long_tests import LONG
from spinney.model.jobs import Filter
from spinney.model.outcomes import Outcome
from spinney.model.states import State

from .words import Site, kind

MANY = 1_200 if LONG else 450
"""More than two transactions take back."""


def test_what_ran_goes_back_to_the_queue_as_interrupted(site: Site) -> None:
    node = site.node("dead")
    job = site.submit_one("three")
    site.pass_(site.run(job, node), result=1)
    site.run(job, node)

    assert site.recover(node) == [job]

    back = site.job(job)
    assert (back.state, back.stage) == (State.PENDING, "second")
    assert (back.interruptions, back.attempts) == (1, 0)
    assert site.drain() == [(job, "second"), (job, "third")]


def test_what_had_not_begun_is_handed_back_uncounted(site: Site) -> None:
    node = site.node("dead")
    job = site.submit_one()
    site.claim_one(node)

    assert site.recover(node) == [job]

    back = site.job(job)
    assert (back.state, back.interruptions, back.attempts) == (State.PENDING, 0, 0)
    assert site.claim_one().attempt == 1


def test_who_knows_what_ran_counts_only_that(site: Site) -> None:
    node = site.node("dead")
    ran, marked, neither = site.submit(n=3)
    leases = site.claim_by_job(node)
    site.start(leases[ran], leases[marked])

    recovered = site.recover(node, running={leases[ran].fence: site.now - 5_000_000})

    assert sorted(recovered) == [ran, marked, neither]
    assert [site.job(job).interruptions for job in (ran, marked, neither)] == [1, 0, 0]
    assert site.states([ran, marked, neither]) == [State.PENDING] * 3


def test_who_knows_may_name_what_was_never_marked_as_started(site: Site) -> None:
    node = site.node("dead")
    job = site.submit_one()
    lease = site.claim_one(node)

    site.recover(node, running={lease.fence: site.now})

    assert site.job(job).interruptions == 1


def test_who_knows_that_nothing_ran_counts_nothing(site: Site) -> None:
    node = site.node("dead")
    job = site.submit_one()
    site.run(job, node)

    site.recover(node, running={})

    assert (site.state(job), site.job(job).interruptions) == (State.PENDING, 0)


def test_recovery_touches_no_other_nodes_work(site: Site) -> None:
    dead, alive = site.node("dead"), site.node("alive")
    site.submit(n=4)
    site.start(*site.claim(dead, slots=2))
    leases = site.claim(alive, slots=2)
    site.start(*leases)

    site.recover(dead)

    assert site.states(lease.job_id for lease in leases) == [State.RUNNING] * 2
    assert site.pass_(*leases).refused == []


def test_recovery_may_be_repeated(site: Site) -> None:
    node = site.node("dead")
    job = site.submit_one()
    site.run(job, node)
    site.recover(node)

    assert site.recover(node) == []
    lease = site.run(job)
    assert site.recover(node) == []

    assert site.job(job).interruptions == 1
    assert (site.state(job), site.job(job).fence) == (State.RUNNING, lease.fence)


def test_what_may_not_run_twice_silently_is_orphaned(site: Site) -> None:
    site.knows(kind("fragile", "work", on_lost="orphan"))
    node = site.node("dead")
    ran, waited = site.submit("fragile", n=2)
    leases = site.claim_by_job(node)
    site.start(leases[ran])

    site.recover(node)

    orphan = site.job(ran)
    assert (orphan.state, orphan.settled_us) == (State.ORPHANED, site.now)
    assert orphan.message
    assert site.state(waited) is State.PENDING


def test_a_job_under_which_so_many_nodes_died_is_failed_as_poison(site: Site) -> None:
    site.knows(kind("poison", "work", poison_after=2))
    job = site.submit_one("poison")
    for name in ("first", "second"):
        assert site.state(job) is State.PENDING
        node = site.node(name)
        site.run(job, node)
        site.recover(node)

    failed = site.job(job)
    assert (failed.state, failed.interruptions) == (State.FAILED, 2)
    assert "poison" in (failed.message or "")


def test_an_interruption_uses_no_attempt(site: Site) -> None:
    node = site.node("dead")
    job = site.submit_one("tenacious")
    site.record(site.run(job, node), Outcome.ERROR)
    site.later(1)
    site.run(job, node)

    site.recover(node)

    assert site.job(job).attempts == 1
    assert site.claim_one().attempt == 2


def test_a_lost_attempt_stands_in_the_history(site: Site) -> None:
    node = site.node("dead")
    job = site.submit_one()
    lease = site.run(job, node)

    site.recover(node)

    (attempt,) = site.store.attempts(job)
    assert (attempt.outcome, attempt.fence, attempt.node) == (Outcome.LOST, lease.fence, "dead")
    assert attempt.ended_us is not None


def test_a_lost_child_that_is_poison_settles_its_parent(site: Site) -> None:
    site.knows(kind("poison", "work", poison_after=1))
    batch, (child,) = site.family("batch", n=1, child="poison")
    node = site.node("dead")
    site.run(child, node)

    site.recover(node)

    assert site.drain() == [(batch, "report")]


def test_many_leases_are_recovered_all(site: Site) -> None:
    ids = site.submit(n=MANY)
    node = site.node("dead", slots=MANY)
    leases = site.claim(node)
    site.start(*leases[: MANY // 2])

    recovered = site.recover(node)

    assert sorted(recovered) == ids
    assert site.count() == {"pending": MANY}


@pytest.mark.parametrize("running", [None, {}])
def test_a_recovered_node_has_left(site: Site, running: dict[int, int] | None) -> None:
    node = site.node("dead")
    site.run(site.submit_one(), node)

    site.recover(node, running)

    assert site.store.beat(node.id, now_us=site.now) is False
    assert node.id not in [info.id for info in site.store.nodes()]
    assert list(site.store.cancel_requests(node.id)) == []


def test_a_node_that_was_declared_dead_is_given_nothing(site: Site) -> None:
    node = site.node("dead")
    site.recover(node)
    site.submit(n=3)

    assert site.claim(node) == []
    assert site.store.counts(Filter()) == {"pending": 3} or site.count() == {"pending": 3}


def test_what_may_not_run_twice_is_orphaned_though_nobody_found_it_running(site: Site) -> None:
    """It may have ended, and its node died before that was recorded."""
    site.knows(kind("fragile", "work", on_lost="orphan"))
    node = site.node("dead")
    began, waited = site.submit("fragile", n=2)
    leases = site.claim_by_job(node)
    site.start(leases[began])

    site.recover(node, running={})

    assert site.states([began, waited]) == [State.ORPHANED, State.PENDING]
