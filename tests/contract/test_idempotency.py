"""Submissions with a key of the caller's: asked again after any crash, they make nothing twice."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from spinney.model.errors import BadParameters, Refused, SubmissionUnfinished, UsageError
from spinney.model.jobs import Submission
from spinney.store.contract import SubmissionKey, SubmitResult
from spinney.store.parts import Store

from .behind import new_jobs, rows, staging
from .words import USUAL, Site, submission

KEY = SubmissionKey(owner="ann", key="k1", digest="d1")
LONG = new_jobs.STEP + 1


class Crash(BaseException):
    """The process dies here."""


def submit(
    site: Site, once: SubmissionKey | None = KEY, n: int = 2, of: str = "one", store: Store | None = None
) -> SubmitResult:
    return (store or site.store).submit([submission(of, n=n)], once=once, now_us=site.now)


@pytest.mark.parametrize("n", [1, 2, LONG])
def test_what_is_asked_again_answers_with_the_same_jobs(site: Site, n: int) -> None:
    first = submit(site, n=n)
    again = submit(site, n=n)

    assert (first.repeated, again.repeated) == (False, True)
    assert list(again.ids) == list(first.ids)
    assert len(site.ids()) == n
    site.later(60)
    assert len(site.ids()) == n, "nor does housekeeping find anything more"


def test_of_several_submissions_in_one_call_all_are_told(site: Site) -> None:
    both: list[Submission] = [submission("one", n=2), submission("three", n=1)]

    first = site.store.submit(both, once=KEY, now_us=site.now)

    assert list(site.store.submit(both, once=KEY, now_us=site.now).ids) == list(first.ids)


def test_keys_of_others_and_other_keys_are_others(site: Site) -> None:
    submit(site)
    submit(site, SubmissionKey(owner="ben", key="k1", digest="d1"))
    submit(site, SubmissionKey(owner="ann", key="k2", digest="d1"))
    submit(site, None)

    assert len(site.ids()) == 8


def test_a_key_is_not_used_for_another_request(site: Site) -> None:
    submit(site)

    with pytest.raises(UsageError, match="'k1' was used for another request"):
        submit(site, SubmissionKey(owner="ann", key="k1", digest="d2"))


def test_what_was_refused_has_not_taken_the_key(site: Site) -> None:
    with pytest.raises(BadParameters):
        submit(site, of="locked")

    assert not submit(site, SubmissionKey(owner="ann", key="k1", digest="mended")).repeated


def test_a_key_is_kept_for_a_day(site: Site) -> None:
    first = submit(site)
    site.clock.forward(86_399)
    site.store.sweep(now_us=site.now)
    assert list(submit(site).ids) == list(first.ids)
    site.clock.forward(1)

    assert not submit(site).repeated
    site.clock.forward(86_400)
    site.store.sweep(now_us=site.now)
    assert rows(site.store, "select * from idempotency") == []


# --- long ones, written in steps --------------------------------------------------------------


def _cut_off(site: Site, monkeypatch: pytest.MonkeyPatch, store: Store, where: str) -> None:
    """A writer that dies there, in the middle of a long submission, without a chance to clean up."""

    def die(*_: object, **__: Any) -> None:
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(staging, where, die)
        with pytest.raises(Crash):
            submit(site, n=LONG, store=store)


def test_one_that_died_before_it_was_accepted_is_made_anew(
    site: Site, open_another: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    _cut_off(site, monkeypatch, open_another(), "publish")
    assert site.ids() == []
    with pytest.raises(SubmissionUnfinished, match="still being written"):
        submit(site, n=LONG)
    site.clock.forward(61)

    made = submit(site, n=LONG)

    assert not made.repeated
    assert site.ids() == list(made.ids)
    for _ in range(5):
        site.store.sweep(now_us=site.now)
    assert site.ids() == list(made.ids), "what was left of the first is dropped"
    assert list(submit(site, n=LONG).ids) == list(made.ids)


def test_one_that_was_accepted_just_before_the_crash_is_not_made_again(
    site: Site, open_another: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    _cut_off(site, monkeypatch, open_another(), "step")

    again = submit(site, n=LONG)

    assert again.repeated
    assert site.ids() == list(again.ids)


def test_one_that_could_not_be_written_may_be_asked_again_at_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: Any) -> None:
        raise Refused("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(new_jobs, "write_run", full)
        with pytest.raises(Refused, match="the disk is full"):
            submit(site, n=LONG)

    made = submit(site, n=LONG)
    assert not made.repeated
    assert site.ids() == list(made.ids)


def test_a_writer_that_is_taken_for_dead_and_is_not_cannot_make_them_twice(
    site: Site, open_another: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = open_another()
    made: list[SubmitResult] = []
    steps = staging.write_steps

    def after_a_minute(*args: Any, **more: Any) -> int:
        beat_us = steps(*args, **more)
        site.clock.forward(61)
        monkeypatch.setattr(staging, "write_steps", steps)
        made.append(submit(site, n=LONG))
        return beat_us

    monkeypatch.setattr(staging, "write_steps", after_a_minute)
    with pytest.raises(Refused, match="the submission was dropped"):
        submit(site, n=LONG, store=slow)

    (only,) = made
    assert site.ids() == list(only.ids)


def test_two_at_once_make_one(open_another: Callable[[], Store], site: Site) -> None:
    came: list[SubmitResult] = []
    stores = [open_another() for _ in range(4)]
    for store in stores:
        store.register(USUAL, [])
    ready = threading.Barrier(4)

    def ask(store: Store) -> None:
        ready.wait(10)
        came.append(submit(site, store=store))

    threads = [threading.Thread(target=ask, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert sorted(s.repeated for s in came) == [False, True, True, True]
    assert len(site.ids()) == 2
