"""An attempt has one owner: what a late or zombie owner writes is refused, and shown."""

from collections.abc import Callable

import pytest

from spinney.model.errors import StaleFence
from spinney.model.jobs import Lease
from spinney.model.outcomes import Outcome
from spinney.model.states import State
from spinney.store.parts import Store

from .words import Site


def _zombie(site: Site) -> Lease:
    """The lease of an attempt whose node was declared dead."""
    dead = site.node("dead")
    lease = site.run(site.submit_one(), dead)
    site.recover(dead)
    return lease


@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.ERROR, Outcome.DEFER, Outcome.CANCELLED])
def test_a_record_after_recovery_is_refused_and_changes_nothing(site: Site, outcome: Outcome) -> None:
    lease = _zombie(site)
    before = site.job(lease.job_id)
    record = site.entry(lease, outcome)

    answer = site.flush_and_claim([record])

    assert answer.refused == [record]
    assert site.job(lease.job_id).state is State.PENDING
    assert site.job(lease.job_id).attempts == before.attempts


def test_a_late_record_does_not_touch_the_new_owners_attempt(site: Site) -> None:
    late = _zombie(site)
    lease = site.run(late.job_id)

    assert len(site.fail(late).refused) == 1

    running = site.job(late.job_id)
    assert (running.state, running.fence) == (State.RUNNING, lease.fence)
    assert site.pass_(lease).refused == []
    assert site.state(late.job_id) is State.COMPLETED


def test_a_record_after_the_job_has_settled_elsewhere_is_refused(site: Site) -> None:
    late = _zombie(site)
    site.pass_(site.run(late.job_id))

    assert len(site.fail(late).refused) == 1

    assert site.state(late.job_id) is State.COMPLETED


def test_the_same_record_twice_counts_once(site: Site) -> None:
    job = site.submit_one("three")
    record = site.entry(site.run(job), Outcome.WARNING)

    first, second = site.flush_and_claim([record]), site.flush_and_claim([record])

    assert (first.refused, second.refused) == ([], [record])
    assert (site.job(job).stage, site.job(job).warnings) == ("second", 1)


def test_the_same_record_twice_in_one_exchange_counts_once(site: Site) -> None:
    job = site.submit_one("three")
    record = site.entry(site.run(job), Outcome.WARNING)

    answer = site.flush_and_claim([record, record])

    assert answer.refused == [record]
    assert (site.job(job).stage, site.job(job).warnings) == ("second", 1)


def test_one_refused_record_takes_no_others_with_it(site: Site) -> None:
    late = _zombie(site)
    site.claim()
    good = site.run(site.submit_one())
    wrong, right = site.entry(late), site.entry(good)

    answer = site.flush_and_claim([wrong, right])

    assert answer.refused == [wrong]
    assert site.state(good.job_id) is State.COMPLETED


def test_a_record_with_the_fence_of_another_job_is_refused(site: Site) -> None:
    one, other = site.submit(n=2)
    leases = site.claim_by_job()
    forged = site.entry(leases[one])._replace(job_id=other)

    assert site.flush_and_claim([forged]).refused == [forged]
    assert site.states([one, other]) == [State.CLAIMED, State.CLAIMED]


def test_a_record_for_a_job_that_never_was_is_refused(site: Site) -> None:
    forged = site.entry(site.run(site.submit_one()))._replace(job_id=10**9)

    assert site.flush_and_claim([forged]).refused == [forged]


VERBS: dict[str, Callable[[Store, Lease, int], object]] = {
    "put_data": lambda s, le, now: s.put_data(le.job_id, le.fence, "k", "1", le.job_id),
    "append_data": lambda s, le, now: s.append_data(le.job_id, le.fence, "k", "1", le.job_id),
    "take_lock": lambda s, le, now: s.take_lock(le.job_id, le.fence, "door", "attempt", now_us=now),
    "progress": lambda s, le, now: s.progress(le.job_id, le.fence, 0.5, "half"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_of_an_attempt_that_lost_its_lease_is_refused(site: Site, verb: str) -> None:
    late = _zombie(site)

    with pytest.raises(StaleFence) as refusal:
        VERBS[verb](site.store, late, site.now)

    assert (refusal.value.job_id, refusal.value.fence) == (late.job_id, late.fence)
    assert site.store.get_data(late.job_id) == {}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_of_an_attempt_that_has_ended_is_refused(site: Site, verb: str) -> None:
    lease = site.run(site.submit_one())
    site.pass_(lease)

    with pytest.raises(StaleFence):
        VERBS[verb](site.store, lease, site.now)


def test_a_late_spawn_is_refused_and_bears_nobody(site: Site) -> None:
    late = _zombie(site)

    with pytest.raises(StaleFence):
        site.spawn(late, n=3)
    with pytest.raises(StaleFence):
        site.spawn(late, keys=("k",))

    assert site.ids() == [late.job_id]
    site.pass_(site.run(late.job_id))
    assert site.children(late.job_id) == []
