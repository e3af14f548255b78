"""Release: a held job goes on where it stood, looked at afresh."""

import contextlib

import pytest

from spinney.model.errors import Refused, UnlawfulTransition
from spinney.model.outcomes import Outcome
from spinney.model.states import State

from .words import Site, kind, stage


def test_a_released_job_goes_on_with_the_stage_that_held_it(site: Site) -> None:
    job = site.submit_one("three")
    site.pass_(site.run(job))
    site.record(site.run(job), Outcome.HOLD)

    touched = site.release(job)

    assert list(touched.ids) == [job]
    assert (site.state(job), site.job(job).stage) == (State.PENDING, "second")
    assert [name for _, name in site.drain()] == ["second", "third"]


def test_a_released_job_carries_the_reason_no_more(site: Site) -> None:
    job = site.submit_one()
    site.record(site.run(job), Outcome.HOLD, message="look at the digest")

    site.release(job)

    assert site.job(job).message != "look at the digest"


def test_a_held_child_that_is_released_lets_its_parent_go_on(site: Site) -> None:
    parent, (child,) = site.family(n=1)
    site.record(site.run(child), Outcome.HOLD)
    assert site.state(parent) is State.WAITING

    site.release(child)

    assert site.drain() == [(child, "work"), (parent, "merge")]


def test_a_released_job_waits_for_the_keyed_children_it_has(site: Site) -> None:
    site.knows(kind("t", "expand", stage("merge")))
    lease = site.run(site.submit_one("t"))
    (child,) = site.spawn(lease, keys=("k",))
    site.record(lease, Outcome.HOLD)

    site.release(lease.job_id)
    site.drain()

    assert site.states([lease.job_id, child]) == [State.COMPLETED] * 2


@pytest.mark.parametrize("where", ["pending", "running", "completed", "failed"])
def test_only_what_is_held_can_be_released(site: Site, where: str) -> None:
    job = site.submit_one()
    if where != "pending":
        lease = site.run(job)
        if where == "completed":
            site.pass_(lease)
        elif where == "failed":
            site.fail(lease)

    with contextlib.suppress(Refused, UnlawfulTransition):
        assert list(site.release(job).ids) == []

    assert site.state(job) == where
