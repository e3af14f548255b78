"""A job's data: durable when the call returns, read fresh, written only by who owns the attempt."""

import json
from collections.abc import Callable

import pytest

from spinney.model.errors import BadParameters, Refused, SpinneyError
from spinney.model.jobs import Lease
from spinney.model.outcomes import Outcome
from spinney.store.parts import Store

from .words import Site, kind, stage


def _put(site: Site, lease: Lease, name: str, value: object, target: int | None = None) -> None:
    site.store.put_data(lease.job_id, lease.fence, name, json.dumps(value), target or lease.job_id)


def _append(site: Site, lease: Lease, name: str, value: object, target: int | None = None) -> int:
    return site.store.append_data(lease.job_id, lease.fence, name, json.dumps(value), target or lease.job_id)


def test_what_is_put_is_read_by_everybody_at_once(site: Site, open_another: Callable[[], Store]) -> None:
    other = open_another()
    lease = site.run(site.submit_one())

    _put(site, lease, "note", {"a": [1, None, "ü"]})

    assert site.store.get_data(lease.job_id) == {"note": {"a": [1, None, "ü"]}}
    assert other.get_data(lease.job_id) == {"note": {"a": [1, None, "ü"]}}


def test_an_entry_is_read_alone_by_its_name(site: Site) -> None:
    job_id = site.submit_one(data={"n": "1", "m": "2"})

    assert site.store.get_data(job_id, name="n") == {"n": 1}
    assert site.store.get_data(job_id, name="none") == {}


def test_a_later_value_replaces_the_earlier(site: Site) -> None:
    lease = site.run(site.submit_one(data={"n": "1"}))

    _put(site, lease, "n", 2)

    assert site.store.get_data(lease.job_id) == {"n": 2}


def test_none_removes_an_entry_and_null_does_not(site: Site) -> None:
    lease = site.run(site.submit_one(data={"gone": "1"}))

    site.store.put_data(lease.job_id, lease.fence, "gone", None, lease.job_id)
    site.store.put_data(lease.job_id, lease.fence, "never was", None, lease.job_id)
    _put(site, lease, "null", None)

    assert site.store.get_data(lease.job_id) == {"null": None}


def test_a_list_grows_by_append_and_is_made_when_missing(site: Site) -> None:
    lease = site.run(site.submit_one())

    lengths = [_append(site, lease, "log", value) for value in ("a", {"b": 1}, [2])]

    assert lengths == [1, 2, 3]
    assert site.store.get_data(lease.job_id) == {"log": ["a", {"b": 1}, [2]]}


def test_what_is_no_list_is_not_appended_to(site: Site) -> None:
    lease = site.run(site.submit_one(data={"n": "1"}))

    with pytest.raises(SpinneyError):
        _append(site, lease, "n", 2)

    assert site.store.get_data(lease.job_id) == {"n": 1}


@pytest.mark.parametrize("who", ["parent", "root"])
def test_a_child_writes_on_parent_and_root_under_its_own_fence(site: Site, who: str) -> None:
    root, (parent,) = site.family(child="parent", n=1)
    lease = site.run(parent)
    site.spawn(lease)
    site.pass_(lease)
    leaf = site.claim_one()
    target = parent if who == "parent" else root

    _put(site, leaf, "seen", leaf.job_id, target)
    _append(site, leaf, "all", leaf.job_id, target)

    assert site.store.get_data(target) == {"seen": leaf.job_id, "all": [leaf.job_id]}
    assert site.store.get_data(leaf.job_id) == {}


@pytest.mark.parametrize("write", [_put, _append])
def test_data_of_any_other_job_is_refused(site: Site, write: Callable[..., object]) -> None:
    _, (ours, sibling) = site.family(n=2)
    lease = site.claim_by_job()[ours]

    with pytest.raises(Refused):
        write(site, lease, "k", 1, sibling)

    assert site.store.get_data(sibling) == {}


def test_siblings_append_to_their_parent_and_nothing_is_lost(site: Site) -> None:
    parent, born = site.family(n=10)
    leases = site.claim()

    lengths = [_append(site, lease, "done", lease.job_id, parent) for lease in leases]

    assert lengths == list(range(1, 11))
    assert sorted(site.store.get_data(parent)["done"]) == born


@pytest.mark.parametrize("outcome", [Outcome.ERROR, Outcome.DEFER, Outcome.DIED, Outcome.OK])
def test_what_an_attempt_wrote_stays_whatever_becomes_of_it(site: Site, outcome: Outcome) -> None:
    lease = site.run(site.submit_one("tenacious"))
    _put(site, lease, "half", 1)

    site.record(lease, outcome)

    assert site.store.get_data(lease.job_id) == {"half": 1}


def test_a_value_of_64_kb_is_kept_and_one_byte_more_is_refused(site: Site) -> None:
    lease = site.run(site.submit_one())
    most = "x" * (64 * 1024 - 2)

    _put(site, lease, "most", most)
    with pytest.raises(BadParameters):
        _put(site, lease, "too much", most + "x")

    assert site.store.get_data(lease.job_id) == {"most": most}


def test_kilobytes_are_counted_in_bytes_and_not_in_characters(site: Site) -> None:
    lease = site.run(site.submit_one())
    text = json.dumps("ü" * 40_000, ensure_ascii=False)

    with pytest.raises(BadParameters):
        site.store.put_data(lease.job_id, lease.fence, "k", text, lease.job_id)


def test_a_list_does_not_grow_beyond_64_kb(site: Site) -> None:
    lease = site.run(site.submit_one())
    _append(site, lease, "log", "x" * 40_000)

    with pytest.raises(BadParameters):
        _append(site, lease, "log", "x" * 40_000)

    assert len(site.store.get_data(lease.job_id)["log"]) == 1


def test_a_job_without_data_has_none(site: Site) -> None:
    assert site.store.get_data(site.submit_one()) == {}


# --- progress -------------------------------------------------------------------------------


def test_progress_is_shown_while_the_attempt_runs(site: Site) -> None:
    lease = site.run(site.submit_one())

    site.store.progress(lease.job_id, lease.fence, 0.25, "17 of 68")

    job = site.job(lease.job_id)
    assert (job.progress, job.progress_message) == (0.25, "17 of 68")


def test_later_progress_replaces_the_earlier(site: Site) -> None:
    lease = site.run(site.submit_one())
    site.store.progress(lease.job_id, lease.fence, 0.25, "17 of 68")

    site.store.progress(lease.job_id, lease.fence, 0.5, None)

    assert site.job(lease.job_id).progress == 0.5


@pytest.mark.parametrize("ends", ["passes", "fails", "is returned"])
def test_the_progress_of_an_attempt_is_not_shown_for_the_next_one(site: Site, ends: str) -> None:
    site.knows(kind("two", stage("first", max_attempts=2), "second"))
    lease = site.run(site.submit_one("two"))
    site.store.progress(lease.job_id, lease.fence, 1.0, "68 of 68")
    if ends == "passes":
        site.pass_(lease)
    elif ends == "fails":
        site.record(lease, Outcome.ERROR, message="it broke")
        site.later(10)
    else:
        site.record(lease, Outcome.RETURNED)
    job = site.job(lease.job_id)
    assert (job.progress, job.progress_message) == (None, None)

    site.run(lease.job_id)
    job = site.job(lease.job_id)
    assert (job.progress, job.progress_message) == (None, None)


# --- values of stages -----------------------------------------------------------------------


def test_values_of_passed_stages_are_given_by_stage(site: Site) -> None:
    job = site.submit_one("three")

    site.pass_(site.run(job), result={"size": 3})
    site.pass_(site.run(job), result=[1, "b"])

    assert site.store.results(job) == {"first": {"size": 3}, "second": [1, "b"]}


def test_a_failed_attempt_has_no_value(site: Site) -> None:
    job = site.submit_one("tenacious")

    site.record(site.run(job), Outcome.ERROR, result="half")

    assert site.store.results(job) == {}


def test_the_value_is_that_of_the_attempt_that_counts(site: Site) -> None:
    job = site.submit_one("three")
    for value in (1, 2, 3):
        site.pass_(site.run(job), result=value)
    site.rerun(job, stage="second")

    site.pass_(site.run(job), result="new")

    assert site.store.results(job) == {"first": 1, "second": "new"}


def test_a_finished_and_a_handed_over_stage_keep_their_values(site: Site) -> None:
    job = site.submit_one("three")
    first = site.entry(site.run(job), keep=True, result=1)
    (second,) = site.flush_and_claim([first], site.want(site.here, 0)).leases

    site.record(second, Outcome.FINISH, result=2)

    assert site.store.results(job) == {"first": 1, "second": 2}
