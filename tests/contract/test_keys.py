"""Unique keys are taken while their job is unsettled, or until deletion when forever."""

import pytest

from spinney.model.errors import DuplicateKey, Refused, UsageError
from spinney.model.states import State

from .words import Site, submission


def test_a_key_is_taken_while_its_job_is_unsettled(site: Site) -> None:
    job = site.submit_one(keys=("acct:17",))

    with pytest.raises(DuplicateKey) as refusal:
        site.submit_one(keys=("acct:17",))

    assert (refusal.value.key, refusal.value.job_id) == ("acct:17", job)
    assert site.ids() == [job]


def test_a_running_job_keeps_its_key(site: Site) -> None:
    site.run(site.submit_one(keys=("k",)))

    with pytest.raises(DuplicateKey):
        site.submit_one(keys=("k",))


@pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
def test_a_key_is_free_again_when_its_job_has_settled(site: Site, end: str) -> None:
    job = site.submit_one(keys=("k",))
    match end:
        case "complete":
            site.pass_(site.run(job))
        case "fail":
            site.fail(site.run(job))
        case "cancel":
            site.cancel(job)

    again = site.submit_one(keys=("k",))

    assert again != job
    assert site.job(again).key == "k"


def test_a_key_for_ever_stays_taken_when_its_job_has_settled(site: Site) -> None:
    job = site.submit_one(keys=("k",), forever=True)
    site.pass_(site.run(job))

    with pytest.raises(DuplicateKey, match=f"for ever by job {job}; rerun that job") as refusal:
        site.submit_one(keys=("k",))

    assert refusal.value.job_id == job


def test_a_key_for_ever_is_free_again_when_its_job_is_deleted(site: Site) -> None:
    job = site.submit_one(keys=("k",), forever=True)
    site.pass_(site.run(job))
    site.delete(job)

    assert site.job(site.submit_one(keys=("k",))).key == "k"


def test_one_taken_key_and_none_of_the_call_is_stored(site: Site) -> None:
    job = site.submit_one(keys=("k2",))

    with pytest.raises(DuplicateKey):
        site.submit_all(submission(n=2), submission(n=3, keys=("k1", "k2", "k3")))

    assert site.ids() == [job]
    site.submit_one(keys=("k1",))


def test_the_same_key_twice_in_one_call_is_refused(site: Site) -> None:
    # Not DuplicateKey: callers take that as the sign that the job is there already.
    with pytest.raises(UsageError, match="two jobs of this call have the key 'k'"):
        site.submit("one", {}, {}, keys=("k", "k"))
    with pytest.raises(UsageError, match="two jobs of this call have the key 'k'"):
        site.submit_all(submission(keys=("k",)), submission(n=2, keys=("l", "k")))

    assert site.ids() == []


def test_a_taken_key_at_the_end_of_several_thousand_leaves_nothing(site: Site) -> None:
    job = site.submit_one(keys=("last",))

    with pytest.raises(DuplicateKey):
        site.submit(n=3000, keys=[f"k{i}" for i in range(2999)] + ["last"])

    site.sweep()
    assert site.ids() == [job]
    site.submit_one(keys=("k7",))


def test_a_job_opened_again_takes_its_key_again(site: Site) -> None:
    job = site.submit_one(keys=("k",))
    site.fail(site.run(job))
    site.retry(job)

    with pytest.raises(DuplicateKey):
        site.submit_one(keys=("k",))


def test_a_job_whose_key_another_has_now_is_not_opened_beside_it(site: Site) -> None:
    job = site.submit_one(keys=("k",))
    site.fail(site.run(job))
    site.submit_one(keys=("k",))

    with pytest.raises(Refused):
        site.retry(job)

    assert site.state(job) is State.FAILED
