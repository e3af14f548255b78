"""Failures grouped by their cause: which jobs stand failed for the same reason, and since when."""

from itertools import pairwise
from typing import Any

import pytest

from spinney.model.attempts.failure_groups import Failure
from spinney.model.attempts.failures import Cause
from spinney.model.errors import Refused, UsageError
from spinney.model.jobs import Filter
from spinney.model.outcomes import Outcome
from spinney.model.states import State

from .behind import FORGET_STEP, KEPT_US
from .words import Site, kind, stage

DISK = "[Errno 28] No space left on device: '/data/{}.csv'"
KEY = "'{}'"


def error(exception: str, message: str) -> dict[str, object]:
    return {"error": {"type": exception, "message": message, "traceback": "…"}, "message": message}


def fails(
    site: Site, n: int = 1, exception: str = "OSError", message: str = DISK, of: str = "one"
) -> list[int]:
    """``n`` jobs that fail with this; ``{}`` in the message differs."""
    ids = site.submit(of, n=n)
    for job_id in ids:
        site.fail(site.run(job_id), **error(exception, message.format(job_id)))
    return ids


def groups(site: Site, **how: Any) -> list[Failure]:
    return list(site.store.failures.groups(**how).items)


def test_jobs_that_failed_for_the_same_reason_are_one_group(site: Site) -> None:
    fails(site, 3)

    (group,) = groups(site)

    assert (group.type, group.stage, group.exception, group.jobs) == ("one", "work", "OSError", 3)
    assert group.message == "[Errno #] No space left on device: '…'"
    assert group.fingerprint == Cause.of("one", "work", "OSError", DISK).fingerprint


def test_the_largest_group_comes_first_and_all_are_counted(site: Site) -> None:
    fails(site, 2)
    fails(site, 3, "KeyError", "'name'")
    fails(site, 1, of="tenacious")

    groups = site.store.failures.groups(limit=2)

    assert [g.jobs for g in groups.items] == [3, 2]
    assert (groups.jobs, groups.causes, groups.consequences) == (6, 3, 0)


def test_another_exception_stage_or_type_is_another_cause(site: Site) -> None:
    fails(site, message="it broke")
    fails(site, exception="KeyError", message="it broke")
    fails(site, message="it broke", of="tenacious")
    site.pass_(site.run(job := site.submit_one("three")))
    site.fail(site.run(job), **error("OSError", "it broke"))

    assert {(g.type, g.stage, g.exception) for g in groups(site)} == {
        ("one", "work", "OSError"),
        ("one", "work", "KeyError"),
        ("tenacious", "work", "OSError"),
        ("three", "second", "OSError"),
    }


def test_it_is_told_since_when_there_has_been_a_cause_and_when_it_was_seen_last(site: Site) -> None:
    began = site.now
    fails(site)
    site.later(60)
    fails(site)

    (group,) = groups(site)

    assert (group.first_us, group.last_us) == (began, began + 60_000_000)


def test_groups_of_one_type_are_asked_for(site: Site) -> None:
    fails(site, 2)
    fails(site, of="tenacious")
    parent, _ = site.family(n=1)
    site.drain(failing=site.children(parent))

    groups = site.store.failures.groups(type_="tenacious")
    assert ([g.type for g in groups.items], groups.jobs, groups.consequences) == (["tenacious"], 1, 0)
    assert site.store.failures.groups(type_="parent").consequences == 1


def test_what_was_never_submitted_has_not_failed(site: Site) -> None:
    groups = site.store.failures.groups()

    assert (groups.jobs, groups.causes, groups.consequences, list(groups.items)) == (0, 0, 0, [])


# --- what failed by itself, and what because of others ------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "exception"), [(Outcome.TIMEOUT, "timeout"), (Outcome.DIED, "died"), (Outcome.ERROR, "error")]
)
def test_an_attempt_without_an_exception_is_told_by_its_outcome(
    site: Site, outcome: Outcome, exception: str
) -> None:
    site.record(site.run(site.submit_one()), outcome, message="its worker was killed by SIGKILL")

    (group,) = groups(site)
    assert (group.exception, group.message) == (exception, "its worker was killed by SIGKILL")


def test_poison_and_an_orphan_are_failures_too(site: Site) -> None:
    site.knows(kind("frail", "work", poison_after=1), kind("once", "work", on_lost="orphan"))
    node = site.node("n")
    ids = [site.submit_one("frail"), site.submit_one("once")]
    site.start(*site.claim(node))

    site.recover(node)

    assert site.states(ids) == [State.FAILED, State.ORPHANED]
    assert {g.type: g.exception for g in groups(site)} == {"frail": "poison", "once": "lost"}


def test_what_failed_because_of_its_subjobs_is_a_consequence(site: Site) -> None:
    parent, children = site.family(n=2)
    site.drain(failing=children)

    groups = site.store.failures.groups()

    assert site.state(parent) is State.FAILED
    assert [(g.type, g.jobs) for g in groups.items] == [("one", 2)]
    assert (groups.jobs, groups.consequences) == (2, 1)


def test_what_failed_because_of_a_need_is_a_consequence(site: Site) -> None:
    need = site.submit_one()
    needer = site.submit_one(needs=(need,))
    site.fail(site.run(need))

    assert site.state(needer) is State.FAILED
    assert (site.store.failures.groups().jobs, site.store.failures.groups().consequences) == (1, 1)


def test_an_attempt_that_will_be_tried_again_is_no_failure_yet(site: Site) -> None:
    site.record(site.run(job := site.submit_one("tenacious")), Outcome.ERROR, **error("OSError", "x"))

    assert site.state(job) is State.SCHEDULED
    assert groups(site) == []


def test_the_last_attempt_says_why(site: Site) -> None:
    job = site.submit_one("tenacious")
    for message in ("first", "second", "third"):
        site.later(10)
        site.record(site.run(job), Outcome.ERROR, **error("OSError", message))

    assert [g.message for g in groups(site)] == ["third"]


# --- groups shrink ------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["retry", "rerun", "delete"])
def test_a_job_that_is_opened_or_deleted_leaves_its_group(site: Site, how: str) -> None:
    first, *_ = fails(site, 3)

    getattr(site, how)(first)

    assert [g.jobs for g in groups(site)] == [2]


def test_a_parent_that_regrows_takes_no_group_along(site: Site) -> None:
    site.knows(kind("sum", "expand", stage("report", again=True), children="settled"))
    parent, (child,) = site.family("sum", n=1)
    site.fail(site.run(child))
    site.fail(site.run(parent), message="the report broke")
    assert len(groups(site)) == 2

    site.retry(parent)
    site.retry(child)

    assert groups(site) == []


def test_a_subjob_that_is_superseded_is_no_cause_in_its_tree(site: Site) -> None:
    parent, (child,) = site.family(n=1)
    site.fail(site.run(child))
    assert site.store.failures.groups(root_id=parent).jobs == 1

    site.rerun(parent)

    assert site.state(child) is State.FAILED
    assert site.store.failures.groups(root_id=parent).jobs == 0


def test_a_failure_below_a_superseded_subjob_is_no_cause_in_its_tree(site: Site) -> None:
    top, (branch,) = site.family(n=1, child="parent")
    lease = site.run(branch)
    (leaf,) = site.spawn(lease)
    site.pass_(lease)
    site.later(5)
    site.drain(failing={leaf})
    failures = site.store.failures.groups(root_id=top)
    assert (failures.jobs, failures.consequences) == (1, 2)

    site.rerun(top)
    site.later(5)
    lease = site.run(top)
    (again,) = site.spawn(lease)
    site.pass_(lease)
    site.fail(site.run(again), message="another cause")

    failures = site.store.failures.groups(root_id=top)
    assert ([group.message for group in failures.items], failures.consequences) == (["another cause"], 1)
    assert site.store.bulk.first_failure_us(top) == site.job(again).settled_us
    assert site.store.failures.groups(type_="one").jobs == 2, "they are failed all the same"


def test_a_job_that_completes_after_all_has_left_its_group(site: Site) -> None:
    (job,) = fails(site)
    site.retry(job)

    site.drain()

    assert site.state(job) is State.COMPLETED
    assert groups(site) == []


def test_a_group_without_jobs_is_not_listed_and_not_found(site: Site) -> None:
    (job,) = fails(site)
    (group,) = groups(site)
    site.retry(job)

    assert groups(site) == []
    with pytest.raises(Refused, match="'spinney failures' lists"):
        site.store.failures.find(group.fingerprint)


def test_a_cause_that_comes_back_after_a_retry_is_the_old_one(site: Site) -> None:
    began = site.now
    (job,) = fails(site)
    site.retry(job)
    site.later(3600)

    site.fail(site.run(job), **error("OSError", DISK))

    assert [g.first_us for g in groups(site)] == [began]


def test_what_was_seen_long_ago_and_has_no_jobs_is_forgotten_in_steps(site: Site) -> None:
    began = site.now
    ids = [fails(site, message="x" * (n + 1))[0] for n in range(2 * FORGET_STEP)]
    for job_id in ids[1:]:
        site.retry(job_id)
    site.later(KEPT_US / 1e6 + 1)
    for _ in range(4):
        site.sweep()
    later = site.now

    leases = site.claim_by_job()
    for n, job_id in enumerate(ids[1:4]):
        site.fail(leases[job_id], **error("OSError", "x" * (n + 2)))

    first = {len(g.message): g.first_us for g in groups(site)}
    assert first == {1: began, 2: later, 3: later, 4: later}


def test_what_is_still_there_does_not_keep_what_is_behind_it_from_being_forgotten(site: Site) -> None:
    ids = {
        Cause.of("one", "work", "OSError", "x" * n).fingerprint: fails(site, message="x" * n)[0]
        for n in range(1, 122)
    }
    last = ids[max(ids)]
    site.retry(last)
    site.later(KEPT_US / 1e6 + 1)
    for _ in range(4):
        site.sweep()
    later = site.now

    site.fail(site.run(last), **error("OSError", "x" * (list(ids).index(max(ids)) + 1)))

    assert {g.fingerprint: g.first_us for g in groups(site, limit=200)}[max(ids)] == later


# --- finding one ---------------------------------------------------------------------------------


def test_a_failure_is_found_by_its_beginning(site: Site) -> None:
    fails(site)
    (group,) = groups(site)
    mark = group.fingerprint

    for beginning in (mark, mark[:8], f"{mark[:4]}…", mark[:5].upper()):
        assert site.store.failures.find(beginning) == mark


def test_a_beginning_that_several_have_names_them(site: Site) -> None:
    for n in range(40):
        fails(site, message="x" * (n + 1))
    marks = sorted(g.fingerprint for g in groups(site))
    twins = next((a, b) for a, b in pairwise(marks) if a[0] == b[0])

    with pytest.raises(Refused, match=f"{twins[0][0]!r}.*give more of its digits"):
        site.store.failures.find(twins[0][0])


@pytest.mark.parametrize("beginning", ["", "…", "xyz", "3f9a0b1c3f9a0b1c0", "%", "3f_"])
def test_what_no_fingerprint_begins_with_is_a_mistake(site: Site, beginning: str) -> None:
    fails(site)

    with pytest.raises(UsageError, match="'spinney failures' lists"):
        site.store.failures.find(beginning)


def test_jobs_of_a_group_are_filtered_by_it(site: Site) -> None:
    ids = fails(site, 3)
    fails(site, 2, "KeyError", KEY)
    mark = next(g.fingerprint for g in groups(site) if g.exception == "OSError")

    assert [job.id for job in site.store.jobs(Filter(fingerprint=mark))] == ids
