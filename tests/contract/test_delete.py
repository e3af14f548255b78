"""Delete: a settled or held job with everything below it; a tombstone stays, folders are told."""

import pytest

from spinney.model.errors import Refused, SpinneyError
from spinney.model.outcomes import Outcome
from spinney.model.states import State

from .words import Site


@pytest.mark.parametrize("end", ["complete", "fail", "cancel", "hold"])
def test_a_settled_or_held_job_is_deleted_and_a_tombstone_stays(site: Site, end: str) -> None:
    job = site.submit_one()
    lease = site.run(job)
    match end:
        case "complete":
            site.pass_(lease)
        case "fail":
            site.fail(lease)
        case "cancel":
            site.cancel(job)
            site.record(lease, Outcome.CANCELLED)
        case "hold":
            site.record(lease, Outcome.HOLD)

    assert site.delete(job) == {job}

    assert site.state(job) is State.DELETED
    assert site.store.job(job).settled_us is not None
    assert site.claim() == []


@pytest.mark.parametrize("where", ["pending", "scheduled", "claimed", "running", "waiting"])
def test_an_open_job_is_not_deleted(site: Site, where: str) -> None:
    needs = (site.submit_one(at_us=site.now + 10**9),) if where == "waiting" else ()
    job = site.submit_one(at_us=site.now + 10**9 if where == "scheduled" else None, needs=needs)
    if where in ("claimed", "running"):
        lease = site.claim_one()
        if where == "running":
            site.start(lease)

    with pytest.raises(SpinneyError):
        site.delete(job)

    assert site.state(job) == where


def test_a_tree_goes_as_a_whole(site: Site) -> None:
    root, (branch, leaf) = site.family(child="parent", n=2)
    leases = site.claim_by_job()
    grand = site.spawn(leases[branch], n=2)
    site.pass_(leases[branch], leases[leaf])
    site.drain()

    assert site.delete(root) == {root, branch, leaf, *grand}

    assert site.states([root, branch, leaf, *grand]) == [State.DELETED] * 5


def test_a_tree_with_an_open_member_is_refused_whole(site: Site) -> None:
    batch, born = site.family("batch", n=2)
    site.drain(failing={batch, born[0]})
    site.retry(born[0])
    assert site.state(batch) is State.FAILED

    with pytest.raises(Refused):
        site.delete(batch)

    assert site.states([batch, *born]) == [State.FAILED, State.PENDING, State.COMPLETED]


def test_a_tree_with_a_running_member_goes_after_cancelling(site: Site) -> None:
    parent, born = site.family(n=2)
    lease = site.run(born[0])
    with pytest.raises(SpinneyError):
        site.delete(parent)

    site.cancel(parent, tree=True)
    site.record(lease, Outcome.CANCELLED)
    site.sweep()

    assert site.delete(parent) == {parent, *born}


def test_a_branch_may_go_and_the_rest_stays(site: Site) -> None:
    parent, born = site.family(n=2)
    site.drain()

    assert site.delete(born[0]) == {born[0]}

    assert site.states([parent, born[1]]) == [State.COMPLETED, State.COMPLETED]
    assert site.children(parent) == [born[1]]


@pytest.mark.parametrize("outcome", [Outcome.ERROR, Outcome.HOLD])
def test_children_that_were_never_born_bar_no_deletion(site: Site, outcome: Outcome) -> None:
    lease = site.run(site.submit_one("parent"))
    site.spawn(lease, n=2)
    site.record(lease, outcome, retryable=False)

    assert site.delete(lease.job_id) == {lease.job_id}

    site.sweep()
    assert site.count() in ({"deleted": 1}, {})


def test_folders_of_deleted_jobs_are_told_until_they_are_gone(site: Site) -> None:
    parent, born = site.family(n=2)
    site.drain()
    assert list(site.store.deleted_folders(10)) == []
    site.delete(parent)

    assert set(site.store.deleted_folders(10)) == {parent, *born}
    assert len(site.store.deleted_folders(2)) == 2
    assert list(site.store.deleted_folders(2, after=parent)) == sorted(born)
    assert list(site.store.deleted_folders(10, after=max(born))) == []
    site.store.note_removed_folders([parent, born[0]])
    assert list(site.store.deleted_folders(10)) == [born[1]]
    site.store.note_removed_folders([born[1]])
    assert list(site.store.deleted_folders(10)) == []


def test_to_say_twice_that_a_folder_is_gone_is_no_mistake(site: Site) -> None:
    job = site.submit_one()
    site.drain()
    site.delete(job)

    site.store.note_removed_folders([job])
    site.store.note_removed_folders([job, 4711])

    assert list(site.store.deleted_folders(10)) == []


def test_a_tombstone_of_a_wide_tree(site: Site) -> None:
    parent, born = site.family(n=1500)
    site.cancel(parent, tree=True)
    site.sweep()

    assert site.delete(parent) == {parent, *born}

    assert site.count() in ({"deleted": 1501}, {})
