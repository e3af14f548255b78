"""Jobs that are submitted under a hold of their own, and trees that are told from single jobs."""

import pytest

from spinney.model.errors import UsageError
from spinney.model.jobs import Submission
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Scope
from spinney.model.states import State

from .words import Site

ACTOR = Actor(by="ann", call="c1", reason="its files are on their way")


def test_a_job_submitted_under_a_hold_is_not_claimed_before_that_is_lifted(site: Site) -> None:
    done = site.store.submit([Submission(type="one")], under=ACTOR, now_us=site.now)
    (job,) = done.ids
    (hold,) = site.store.holds.covering(job)

    assert done.held == 1
    assert site.store.job(job).state is State.HELD
    assert (hold.scope, hold.name, hold.reason, hold.by) == (Scope.JOB, str(job), ACTOR.reason, "ann")
    assert site.claim() == []

    site.store.holds.lift(hold.id, ACTOR, now_us=site.now)

    assert [lease.job_id for lease in site.claim()] == [job]


def test_one_that_waits_for_its_time_is_held_when_that_comes(site: Site) -> None:
    later = Submission(type="one", at_us=site.now + 1_000_000)
    (job,) = site.store.submit([later], under=ACTOR, now_us=site.now).ids

    site.later(2)

    assert site.store.job(job).state is State.HELD
    assert site.claim() == []


def test_only_a_few_are_submitted_so(site: Site) -> None:
    with pytest.raises(UsageError):
        site.store.submit([Submission(type="one", params=["{}"] * 100)], under=ACTOR, now_us=site.now)
    assert site.claim() == []


def test_trees_are_found_newest_first_among_single_jobs(site: Site) -> None:
    tops = []
    for _ in range(3):
        site.submit("one", n=2)
        site.drain()
        tops.append(site.submit_one("batch"))
        lease = site.claim_one()
        site.spawn(lease, "one", n=3)
        site.pass_(lease)
        site.drain()

    assert site.store.bulk.trees() == tops[::-1]
    assert site.store.bulk.trees(limit=1) == tops[2:]
    assert site.store.bulk.trees(before=tops[1]) == tops[:1]


def test_failures_of_one_tree_are_told_apart_and_each_job_has_its_cause(site: Site) -> None:
    children = []
    for failing in (1, 2):
        top = site.submit_one("batch")
        lease = site.claim_one()
        born = site.spawn(lease, "one", n=3)
        site.pass_(lease)
        site.drain(failing=born[:failing])
        children.append((top, born))
    (first, born), (second, _) = children

    assert site.store.failures.groups(root_id=first).jobs == 1
    assert site.store.failures.groups(root_id=second).items[0].jobs == 2
    causes = site.store.failures.of(born)
    assert list(causes) == born[:1]
    assert causes[born[0]].fingerprint == site.store.failures.groups().items[0].fingerprint
