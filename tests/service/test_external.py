"""External stages, as an external worker asks for them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import job_verbs
from contract.behind import sql_store
from contract.words import Clock, Site, kind, locked, stage
from new_store import new_store
from spinney.commands import Command
from spinney.commands.control import Control
from spinney.define.params.redaction import REDACTED
from spinney.features.external.commands import (
    AppendAttemptData,
    PutAttemptData,
    ReportProgress,
    SettleAttempt,
    SpawnSubjobs,
    TakeAttemptLock,
)
from spinney.features.external.service import External
from spinney.model.access import AccessScope, Rights, Role
from spinney.model.errors import BadName, BadParameters, Forbidden, Refused, StaleFence, UsageError
from spinney.model.external import (
    ExternalWorker,
    ExternalWorkerGone,
    NoSuchExternalWorker,
    Settlement,
    WorkItem,
)
from spinney.model.jobs import Filter
from spinney.model.outcomes import Outcome
from spinney.model.states import State
from spinney.model.types import Isolation
from spinney.schemas import ListLength, LockResult
from spinney.store.sql import open_store

EAR = ("talk", "listen")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    store = open_store(new_store(tmp_path / "x.db"))
    made = Site(store, Clock())
    ear = stage("listen", isolation=Isolation.EXTERNAL, max_attempts=2, timeout_s=100.0, grace_s=5.0)
    made.knows(
        kind("talk", ear, "keep"),
        kind("note", stage("read", isolation=Isolation.EXTERNAL, locks=locked("desk"))),
        kind("once", stage("listen", isolation=Isolation.EXTERNAL), on_lost="orphan"),
    )
    yield made
    store.close()


@pytest.fixture
def wakeups() -> list[str]:
    return []


Asking = Callable[..., External]


@pytest.fixture
def asking(site: Site, wakeups: list[str]) -> Asking:
    def service(by: str = "ann", **rights: Any) -> External:
        usual = {"role": Role.SUBMITTER, "external": ("talk", "note", "once")}
        return Control(
            store=site.store,
            clock=lambda: site.now,
            wake_nodes=lambda: wakeups.append("now"),
            by=by,
            rights=Rights(**{**usual, **rights}),
        ).part(External)

    return service


@pytest.fixture
def ext(asking: Asking) -> External:
    return asking()


def join(ext: External, *lanes: tuple[str, str], slots: int = 4, name: str = "ear") -> ExternalWorker:
    return ext.join(name, lanes or [EAR], slots=slots)


def begin(
    ext: External, site: Site, of: str = "talk", stage: str = "listen"
) -> tuple[ExternalWorker, WorkItem]:
    """An external worker with one attempt."""
    site.submit(of)
    external_worker = join(ext, (of, stage))
    (work,) = ext.claim(external_worker.key, seen=0).work
    return external_worker, work


def spawn(ext: External, worker: ExternalWorker, work: WorkItem, *jobs: dict[str, Any]) -> list[int]:
    of = {"worker": worker.key, "job": work.job_id, "fence": work.fence}
    return list(SpawnSubjobs(**of, jobs=[*jobs]).perform(ext).ids)


def state(site: Site, work: WorkItem) -> tuple[State, str | None]:
    job = site.store.job(work.job_id)
    return job.state, job.stage


# --- the straight way -----------------------------------------------------------------------


def test_what_is_claimed_comes_with_all_that_its_stage_needs(ext: External, site: Site) -> None:
    site.knows(kind("two", "fetch", stage("listen", isolation=Isolation.EXTERNAL)))
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    site.submit("two", {"file": "a.wav"}, data={"lang": '"de"'}, trace=trace)
    first = site.claim_one()
    site.pass_(first, result={"bytes": 17})
    ext = External(store=site.store, clock=lambda: site.now, wake_nodes=lambda: None, by="ann")
    external_worker = join(ext, ("two", "listen"))

    claimed = ext.claim(external_worker.key, seen=0, limit=5)
    (work,) = claimed.work
    assert (work.params, work.data, work.results) == (
        {"file": "a.wav"},
        {"lang": "de"},
        {"fetch": {"bytes": 17}},
    )
    assert (work.type, work.stage, work.attempt) == ("two", "listen", 1)
    assert (work.parent_id, work.root_id, work.trace) == (None, work.job_id, trace)
    assert claimed.seen == work.fence


def test_what_is_settled_goes_on_at_a_node_which_is_woken(
    ext: External, site: Site, wakeups: list[str]
) -> None:
    external_worker, work = begin(ext, site)
    ext.settle(external_worker.key, work.job_id, work.fence, Settlement(outcome=Outcome.OK, result="hello"))
    assert state(site, work) == (State.PENDING, "keep")
    assert site.store.results(work.job_id) == {"listen": "hello"}
    assert wakeups


def test_a_party_is_given_no_more_than_its_slots_and_no_more_than_it_asks_for(
    ext: External, site: Site
) -> None:
    site.submit("talk", n=5)
    external_worker = join(ext, slots=3)
    one = ext.claim(external_worker.key, seen=0)
    more = ext.claim(external_worker.key, seen=one.seen, limit=9)
    assert (len(one.work), len(more.work)) == (1, 2)
    assert ext.claim(external_worker.key, seen=more.seen, limit=9).work == ()


def test_locks_that_its_stage_wants_are_taken_for_a_party(ext: External, site: Site) -> None:
    site.submit("note", n=2)
    external_worker = join(ext, ("note", "read"))
    claimed = ext.claim(external_worker.key, seen=0, limit=2)
    (first,) = claimed.work
    ext.settle(external_worker.key, first.job_id, first.fence, Settlement(outcome=Outcome.OK))
    (second,) = ext.claim(external_worker.key, seen=claimed.seen).work
    assert second.job_id != first.job_id


# --- how an attempt may end -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "end_state"),
    [
        ({"outcome": Outcome.WARNING, "result": 1, "message": "noisy"}, State.PENDING),
        ({"outcome": Outcome.NOT_APPLICABLE}, State.PENDING),
        ({"outcome": Outcome.FINISH}, State.COMPLETED),
        ({"outcome": Outcome.ERROR, "message": "no sound"}, State.SCHEDULED),
        ({"outcome": Outcome.ERROR, "message": "no sound", "retryable": False, "code": 3}, State.FAILED),
        ({"outcome": Outcome.DEFER, "delay_s": 30.0}, State.SCHEDULED),
        ({"outcome": Outcome.HOLD, "message": "look at it"}, State.HELD),
        ({"outcome": Outcome.RETURNED}, State.PENDING),
        ({"outcome": Outcome.LOCKED, "lock": "ear"}, State.PENDING),
    ],
)
def test_every_outcome_of_a_stage_is_a_partys_too(
    ext: External, site: Site, fields: Any, end_state: State
) -> None:
    external_worker, work = begin(ext, site)
    ext.settle(external_worker.key, work.job_id, work.fence, Settlement(**fields))
    assert site.store.job(work.job_id).state is end_state


def test_an_error_is_kept_with_what_is_known_of_it(ext: External, site: Site) -> None:
    external_worker, work = begin(ext, site)
    error = {"type": "SoundError", "traceback": "line 1"}
    settlement = Settlement(outcome=Outcome.ERROR, message="no sound\0", error=error, retryable=False)
    ext.settle(external_worker.key, work.job_id, work.fence, settlement)
    (attempt,) = site.store.attempts(work.job_id)
    assert attempt.error == error
    assert attempt.message == "no sound\ufffd"


def test_what_a_party_says_is_recorded_without_the_secrets_of_the_job(asking: Asking, site: Site) -> None:
    """As recorded it is a failure's cause, and a filter by message finds it."""
    ear = stage("listen", isolation=Isolation.EXTERNAL)
    schema = {"type": "object", "properties": {"code": {"type": "string", "writeOnly": True}}}
    site.knows(replace(kind("safe", ear), schema=schema))
    ext = asking(external=("safe",))
    site.submit_one("safe", {"code": "open sesame"})
    external_worker = join(ext, ("safe", "listen"))
    (work,) = ext.claim(external_worker.key, seen=0).work

    error = {"type": "NoEntry", "message": "open sesame is wrong", "traceback": "say 'open sesame'"}
    settlement = Settlement(outcome=Outcome.ERROR, message="'open sesame' is wrong", error=error)
    ext.settle(external_worker.key, work.job_id, work.fence, settlement)

    (attempt,) = site.store.attempts(work.job_id)
    assert attempt.message == f"'{REDACTED}' is wrong"
    assert attempt.error == {
        "type": "NoEntry",
        "message": f"{REDACTED} is wrong",
        "traceback": f"say '{REDACTED}'",
    }
    numbers = [sum(site.store.counts(Filter(message=text)).values()) for text in ("sesame", "is wrong")]
    assert numbers == [0, 1]


@pytest.mark.parametrize(
    ("error", "message", "shown"),
    [
        ({"type": "NoSound", "message": "the tape is silent"}, None, "the tape is silent"),
        ({"type": "NoSound"}, None, "NoSound"),
        ({"message": "x" * 9_000}, None, "x" * 2_000),
        ({"type": "NoSound", "message": "the tape is silent"}, "no sound", "no sound"),
        ({}, None, None),
    ],
)
def test_an_error_without_a_message_of_its_own_has_that_of_the_error(
    ext: External, site: Site, error: dict[str, str], message: str | None, shown: str | None
) -> None:
    external_worker, work = begin(ext, site)

    settlement = Settlement(outcome=Outcome.ERROR, error=error, message=message, retryable=False)
    ext.settle(external_worker.key, work.job_id, work.fence, settlement)

    assert (site.state(work.job_id), site.job(work.job_id).message) == (State.FAILED, shown)


def test_the_texts_of_an_error_are_cut_as_those_of_one_on_a_node(ext: External, site: Site) -> None:
    external_worker, work = begin(ext, site)
    error = {"type": "T" * 5_000, "message": "m" * 5_000, "traceback": "begin " + "x" * 100_000 + " end"}

    settlement = Settlement(outcome=Outcome.ERROR, error=error, retryable=False)
    ext.settle(external_worker.key, work.job_id, work.fence, settlement)

    (attempt,) = site.store.attempts(work.job_id)
    kept = attempt.error or {}
    assert (kept["type"], kept["message"]) == ("T" * 2_000, "m" * 2_000)
    assert len(kept["traceback"]) < 65_000
    assert kept["traceback"].startswith("begin ")
    assert kept["traceback"].endswith(" end")
    assert "36010 characters cut" in kept["traceback"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"outcome": Outcome.LOST},
        {"outcome": Outcome.ERROR, "result": 1},
        {"outcome": Outcome.OK, "delay_s": 1.0},
        {"outcome": Outcome.OK, "lane": True},
        {"outcome": Outcome.LOCKED},
        {"outcome": Outcome.OK, "lock": "x"},
        {"outcome": Outcome.ERROR, "code": 0},
        {"outcome": Outcome.ERROR, "error": {"colour": "red"}},
        {"outcome": Outcome.DEFER, "delay_s": -1.0},
    ],
)
def test_what_cannot_be_meant_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError):
        Settlement(**wrong)


def test_a_result_that_is_too_large_is_refused_and_the_attempt_goes_on(ext: External, site: Site) -> None:
    external_worker, work = begin(ext, site)
    with pytest.raises(BadParameters, match="put it into a file"):
        ext.settle(
            external_worker.key, work.job_id, work.fence, Settlement(outcome=Outcome.OK, result="x" * 70_000)
        )
    assert ext.heartbeat(external_worker.key, seen=work.fence, fences=[work.fence]).yours == (work.fence,)


def test_settling_twice_in_the_same_words_is_settling_once(ext: External, site: Site) -> None:
    external_worker, work = begin(ext, site)
    settlement = Settlement(outcome=Outcome.OK, result=1)
    ext.settle(external_worker.key, work.job_id, work.fence, settlement)
    ext.settle(external_worker.key, work.job_id, work.fence, settlement)
    with pytest.raises(StaleFence):
        ext.settle(external_worker.key, work.job_id, work.fence, Settlement(outcome=Outcome.ERROR))
    assert len(site.store.attempts(work.job_id)) == 1


@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.RETURNED])
def test_a_settlement_that_is_repeated_while_it_is_carried_out_counts_once(
    ext: External, site: Site, monkeypatch: pytest.MonkeyPatch, outcome: Outcome
) -> None:
    external_worker, work = begin(ext, site)
    at = (external_worker.key, work.job_id, work.fence)
    flush_and_claim = site.store.flush_and_claim

    def after_the_first_request(*args: Any, **more: Any) -> Any:
        monkeypatch.setattr(site.store, "flush_and_claim", flush_and_claim)
        ext.settle(*at, Settlement(outcome=outcome))
        return flush_and_claim(*args, **more)

    monkeypatch.setattr(site.store, "flush_and_claim", after_the_first_request)
    ext.settle(*at, Settlement(outcome=outcome))

    assert len(site.store.attempts(work.job_id)) == (outcome is Outcome.OK)


def test_a_settlement_that_another_has_overtaken_is_refused(
    ext: External, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    external_worker, work = begin(ext, site)
    at = (external_worker.key, work.job_id, work.fence)
    flush_and_claim = site.store.flush_and_claim

    def after_another_request(*args: Any, **more: Any) -> Any:
        monkeypatch.setattr(site.store, "flush_and_claim", flush_and_claim)
        ext.settle(*at, Settlement(outcome=Outcome.ERROR))
        return flush_and_claim(*args, **more)

    monkeypatch.setattr(site.store, "flush_and_claim", after_another_request)
    with pytest.raises(StaleFence):
        ext.settle(*at, Settlement(outcome=Outcome.OK))


def test_an_attempt_is_returned_once_however_often_its_worker_repeats_that(ext: External, site: Site) -> None:
    external_worker, work = begin(ext, site)
    at = (external_worker.key, work.job_id, work.fence)
    for _ in range(2):
        ext.settle(*at, Settlement(outcome=Outcome.RETURNED))
    (next_work,) = ext.claim(external_worker.key, seen=work.fence).work
    ext.settle(*at, Settlement(outcome=Outcome.RETURNED))
    assert (next_work.job_id, site.state(work.job_id)) == (work.job_id, State.RUNNING)
    ext.settle(external_worker.key, next_work.job_id, next_work.fence, Settlement(outcome=Outcome.OK))
    with pytest.raises(StaleFence):
        ext.settle(external_worker.key, work.job_id, next_work.fence, Settlement(outcome=Outcome.RETURNED))
    with pytest.raises(StaleFence):  # of an attempt that never was
        ext.settle(
            external_worker.key, work.job_id, next_work.fence + 1, Settlement(outcome=Outcome.RETURNED)
        )


def test_only_what_somebody_wishes_is_cancelled(ext: External, site: Site) -> None:
    external_worker, work = begin(ext, site)
    with pytest.raises(Refused, match="nobody has requested"):
        ext.settle(external_worker.key, work.job_id, work.fence, Settlement(outcome=Outcome.CANCELLED))
    job_verbs.cancel(site.store, work.job_id, tree=False, by="op", reason=None, now_us=site.now)
    assert ext.heartbeat(external_worker.key, seen=work.fence, fences=[work.fence]).cancel == (work.fence,)
    ext.settle(external_worker.key, work.job_id, work.fence, Settlement(outcome=Outcome.CANCELLED))
    assert state(site, work)[0] is State.CANCELLED


# --- answers that got lost, external workers that did ------------------------------------------------


def test_what_a_party_never_heard_of_goes_back_with_its_next_claim(ext: External, site: Site) -> None:
    site.submit("talk", n=2)
    external_worker = join(ext, slots=2)
    lost = ext.claim(external_worker.key, seen=0, limit=2)  # the answer does not arrive
    again = ext.claim(external_worker.key, seen=0, limit=2)

    assert {w.job_id for w in again.work} == {w.job_id for w in lost.work}
    assert not {w.fence for w in again.work} & {w.fence for w in lost.work}
    with pytest.raises(StaleFence):
        ext.settle(
            external_worker.key, lost.work[0].job_id, lost.work[0].fence, Settlement(outcome=Outcome.OK)
        )
    assert site.store.job(again.work[0].job_id).interruptions == 0


def test_a_sign_of_life_on_its_way_beside_a_claim_takes_nothing(ext: External, site: Site) -> None:
    site.submit("talk", n=2)
    external_worker = join(ext)
    first = ext.claim(external_worker.key, seen=0)
    # Given a sign of life that was written before the second claim was answered, and arrives behind it
    second = ext.claim(external_worker.key, seen=first.seen)
    standing = ext.heartbeat(external_worker.key, seen=first.seen, fences=[w.fence for w in first.work])
    assert standing.unheard == 1
    # Then the second attempt is the external worker's still
    both = [w.fence for w in (*first.work, *second.work)]
    assert ext.heartbeat(external_worker.key, seen=second.seen, fences=both).yours == tuple(both)


def test_what_a_party_no_longer_names_goes_back_uncounted(
    ext: External, site: Site, wakeups: list[str]
) -> None:
    external_worker, work = begin(ext, site)
    wakeups.clear()
    standing = ext.heartbeat(external_worker.key, seen=work.fence, fences=[])
    assert standing.lost == ()
    job = site.store.job(work.job_id)
    assert (job.state, job.attempts, job.interruptions) == (State.PENDING, 0, 0)
    assert wakeups


def test_what_must_not_run_twice_is_orphaned_when_its_party_drops_it(ext: External, site: Site) -> None:
    external_worker, work = begin(ext, site, "once")
    ext.heartbeat(external_worker.key, seen=work.fence, fences=[])
    assert state(site, work)[0] is State.ORPHANED


def test_a_party_hears_what_it_has_lost(ext: External, site: Site) -> None:
    external_worker, work = begin(ext, site)
    ext.settle(external_worker.key, work.job_id, work.fence, Settlement(outcome=Outcome.OK))
    assert ext.heartbeat(external_worker.key, seen=work.fence, fences=[work.fence, 999]).lost == (
        work.fence,
        999,
    )


def test_an_attempt_beyond_its_time_limit_is_lost_with_the_next_sign_of_life(
    ext: External, site: Site
) -> None:
    external_worker, work = begin(ext, site)
    site.clock.forward(100)
    assert ext.heartbeat(external_worker.key, seen=work.fence, fences=[work.fence]).lost == (work.fence,)
    (attempt,) = site.store.attempts(work.job_id)
    assert (attempt.outcome, attempt.message) == (Outcome.TIMEOUT, "exceeded its time limit of 100 s")
    assert state(site, work)[0] is State.SCHEDULED


def test_a_wish_that_is_not_obeyed_is_carried_out(ext: External, site: Site) -> None:
    external_worker, work = begin(ext, site)
    job_verbs.cancel(site.store, work.job_id, tree=False, by="op", reason=None, now_us=site.now)
    site.clock.forward(60 + 5)
    assert ext.heartbeat(external_worker.key, seen=work.fence, fences=[work.fence]).lost == (work.fence,)
    assert state(site, work)[0] is State.CANCELLED


def test_a_party_that_crashed_and_comes_again_takes_over_from_itself(ext: External, site: Site) -> None:
    old, work = begin(ext, site)
    new = join(ext)
    assert new.id == old.id
    assert new.key != old.key
    job = site.store.job(work.job_id)
    assert (job.state, job.interruptions) == (State.PENDING, 1)

    (again,) = ext.claim(new.key, seen=0).work
    # And who still speaks for the old one may neither claim nor settle, nor take anything from the new one
    with pytest.raises(ExternalWorkerGone):
        ext.claim(old.key, seen=work.fence)
    with pytest.raises(ExternalWorkerGone):
        ext.settle(old.key, again.job_id, again.fence, Settlement(outcome=Outcome.OK))
    with pytest.raises(ExternalWorkerGone):
        ext.heartbeat(old.key, seen=work.fence, fences=[])
    ext.settle(new.key, again.job_id, again.fence, Settlement(outcome=Outcome.OK))


def test_a_worker_that_may_not_join_takes_nothing_from_the_one_of_its_name(ext: External, site: Site) -> None:
    worker, work = begin(ext, site)

    with pytest.raises(UsageError, match="has no external stage 'keep'"):
        join(ext, EAR, ("talk", "keep"))

    ext.settle(worker.key, work.job_id, work.fence, Settlement(outcome=Outcome.OK))
    assert site.job(work.job_id).stage == "keep"


def test_a_party_that_leaves_hands_back_what_it_has(ext: External, site: Site) -> None:
    external_worker, work = begin(ext, site)
    assert list(ext.leave(external_worker.key)) == [work.job_id]
    assert list(ext.leave(external_worker.key)) == []
    assert site.store.job(work.job_id).interruptions == 0
    with pytest.raises(ExternalWorkerGone, match="join again"):
        ext.claim(external_worker.key, seen=0)
    assert site.store.nodes() == []


def test_coming_and_going_is_audited_and_claims_are_not(ext: External, site: Site) -> None:
    external_worker, _ = begin(ext, site)
    ext.leave(external_worker.key)
    entries = [(e.by, e.verb, e.what) for e, _ in site.store.audit.entries()]
    assert entries == [
        ("ann", "join", '{"external_worker":"ear","lanes":[["talk","listen"]]}'),
        ("ann", "leave", '{"external_worker":"ear"}'),
    ]


# --- while it runs --------------------------------------------------------------------------


def test_progress_and_data_are_kept_under_the_fence(ext: External, site: Site) -> None:
    external_worker, work = begin(ext, site)
    at = {"worker": external_worker.key, "job": work.job_id, "fence": work.fence}
    ReportProgress(**at, fraction=0.5, message="half of it").perform(ext)
    PutAttemptData(**at, name="words", value=["hello"]).perform(ext)
    assert AppendAttemptData(**at, name="words", value="world").perform(ext) == ListLength(length=2)
    job = site.store.job(work.job_id)
    assert (job.progress, job.progress_message) == (0.5, "half of it")
    assert site.store.get_data(work.job_id) == {"words": ["hello", "world"]}
    PutAttemptData(**at, name="words", value=None).perform(ext)
    assert site.store.get_data(work.job_id) == {}


def test_data_of_its_root_are_the_partys_too_and_those_of_others_are_not(ext: External, site: Site) -> None:
    site.knows(kind("batch", "expand"))
    top = site.run(site.submit_one("batch"))
    site.spawn(top, "talk")
    site.pass_(top)
    external_worker = join(ext)
    (work,) = ext.claim(external_worker.key, seen=0).work
    at = {"worker": external_worker.key, "job": work.job_id, "fence": work.fence}
    for of in ("parent", "root"):
        PutAttemptData(**at, name=of, value=1, of=of).perform(ext)
    assert site.store.get_data(top.job_id) == {"parent": 1, "root": 1}
    with pytest.raises(UsageError, match="'job', 'parent' or 'root', not 'sister'"):
        PutAttemptData(**at, name="x", value=1, of="sister")


def test_subjobs_are_there_when_the_attempt_has_passed(ext: External, site: Site) -> None:
    site.knows(kind("part", "work"))
    external_worker, work = begin(ext, site)
    at = (external_worker.key, work.job_id, work.fence)
    ids = spawn(ext, external_worker, work, *({"type": "part", "params": {"n": n}} for n in range(3)))
    assert site.store.children(work.job_id) == []
    ext.settle(*at, Settlement(outcome=Outcome.OK))
    assert [job.id for job in site.store.children(work.job_id)] == list(ids)
    assert site.store.job(work.job_id).waits_for == "children"


def test_a_lock_is_taken_or_the_party_waits_for_it(ext: External, site: Site) -> None:
    site.submit("talk", n=2)
    external_worker = join(ext)
    one, two = ext.claim(external_worker.key, seen=0, limit=2).work
    for work, taken in ((one, True), (two, False)):
        lock = TakeAttemptLock(worker=external_worker.key, job=work.job_id, fence=work.fence, name="ear")
        assert lock.perform(ext) == LockResult(taken=taken)
    ext.settle(external_worker.key, two.job_id, two.fence, Settlement(outcome=Outcome.LOCKED, lock="ear"))
    assert site.store.job(two.job_id).waits_for == "lock:ear"
    ext.settle(external_worker.key, one.job_id, one.fence, Settlement(outcome=Outcome.OK))
    assert state(site, two)[0] is State.PENDING


def test_nothing_is_written_for_an_attempt_that_is_lost_or_anothers(
    ext: External, asking: Asking, site: Site
) -> None:
    external_worker, work = begin(ext, site)
    other = join(asking("bob"), name="other")
    verbs: tuple[tuple[Callable[..., Command], dict[str, Any]], ...] = (
        (ReportProgress, {"fraction": 0.5}),
        (PutAttemptData, {"name": "x", "value": 1}),
        (AppendAttemptData, {"name": "x", "value": 1}),
        (TakeAttemptLock, {"name": "ear"}),
        (SpawnSubjobs, {"jobs": [{"type": "talk", "params": {}}]}),
        (SettleAttempt, {"outcome": "ok"}),
    )
    speakers = (ext, external_worker.key, work.fence + 1), (asking("bob"), other.key, work.fence)
    for speaker, key, fence in speakers:
        for verb, fields in verbs:
            with pytest.raises(StaleFence):
                verb(worker=key, job=work.job_id, fence=fence, **fields).perform(speaker)
    assert site.store.get_data(work.job_id) == {}


# --- who may --------------------------------------------------------------------------------


def test_a_party_is_spoken_for_by_who_let_it_join_alone(ext: External, asking: Asking, site: Site) -> None:
    external_worker, _ = begin(ext, site)
    says: tuple[Callable[[External], object], ...] = (
        lambda e: e.claim(external_worker.key, seen=0),
        lambda e: e.heartbeat(external_worker.key, seen=0, fences=[]),
        lambda e: e.leave(external_worker.key),
    )
    for say in says:
        with pytest.raises(NoSuchExternalWorker):
            say(asking("bob"))
    with pytest.raises(Refused, match="another user has"):
        join(asking("bob"))
    assert [p.key for p in ext.all()] == [external_worker.key]
    assert asking("bob").all() == []
    assert [p.key for p in asking("bob", role=Role.OPERATOR).all()] == [external_worker.key]


def test_job_types_that_may_not_be_claimed_are_refused(ext: External, asking: Asking, site: Site) -> None:
    with pytest.raises(Forbidden, match="may not claim external stages of job type 'talk'"):
        join(asking(external=("note",)))
    external_worker, work = begin(ext, site)
    # And also when the right was taken away since
    with pytest.raises(Forbidden):
        asking(external=()).heartbeat(external_worker.key, seen=work.fence, fences=[work.fence])


def test_who_is_limited_to_queues_is_given_jobs_of_these(asking: Asking, site: Site) -> None:
    site.submit("talk")
    (inside,) = site.submit("talk", queue="ours")
    ext = asking(within=AccessScope(queues=("ours",)))
    external_worker = join(ext)
    assert [w.job_id for w in ext.claim(external_worker.key, seen=0, limit=5).work] == [inside]


def test_who_was_limited_since_it_joined_is_given_no_more_than_the_new_limits_allow(
    asking: Asking, site: Site
) -> None:
    ours, theirs = site.submit("talk", queue="ours") + site.submit("talk", queue="theirs")
    wide = asking(within=AccessScope(queues=("ours", "theirs")))
    external_worker = join(wide, slots=1)
    narrow = asking(within=AccessScope(queues=("ours",)))

    elsewhere = asking(within=AccessScope(collections=("x",)))
    for limited, message in ((narrow, "the limits of ann have changed"), (elsewhere, "is limited to")):
        with pytest.raises(Forbidden, match=message):
            limited.claim(external_worker.key, seen=0)
    again = join(narrow)
    assert [w.job_id for w in narrow.claim(again.key, seen=0, limit=5).work] == [ours]
    assert [w.job_id for w in asking().claim(again.key, seen=0, limit=5).work] == [ours], "as it joined"
    assert theirs


def test_a_subjob_comes_into_no_queue_of_its_type_that_its_party_may_not_name(
    asking: Asking, site: Site
) -> None:
    site.knows(kind("far", stage("go", queue="theirs")))
    site.submit("talk", queue="ours")
    ext = asking(within=AccessScope(queues=("ours",)))
    external_worker = join(ext)
    (work,) = ext.claim(external_worker.key, seen=0).work

    with pytest.raises(Forbidden, match="may not make 'far' jobs, which come into queue 'theirs'"):
        spawn(ext, external_worker, work, {"type": "far", "params": {}})
    assert len(spawn(ext, external_worker, work, {"type": "far", "params": {}, "queue": "ours"})) == 1


@pytest.mark.parametrize("within", [AccessScope(collections=("ours",)), AccessScope(queues=())])
def test_who_is_limited_to_what_a_claim_cannot_tell_apart_may_not_join(
    asking: Asking, within: AccessScope
) -> None:
    with pytest.raises(Forbidden, match="is limited to"):
        join(asking(within=within))


def test_subjobs_name_no_more_than_their_party_may(asking: Asking, site: Site) -> None:
    site.submit("talk", queue="ours")
    ext = asking(within=AccessScope(queues=("ours",)), shares=("a",), priorities=(50, 99))
    external_worker = join(ext)
    (work,) = ext.claim(external_worker.key, seen=0).work
    for wrong in ({"queue": "theirs"}, {"share": "b"}, {"priority": 1}, {"submitter": "bob"}, {"needs": [1]}):
        with pytest.raises(Forbidden):
            spawn(ext, external_worker, work, {"type": "talk", "params": {}, **wrong})
    made = {"type": "talk", "params": {}, "queue": "ours", "share": "a", "priority": 60}
    assert len(spawn(ext, external_worker, work, made)) == 1


@pytest.mark.parametrize("key", ["", "x", "1", "1-", "-1", "1-1-1", "9" * 30 + "-1", "1-2\n", "1-٣"])
def test_a_key_that_is_none_is_nobodys(ext: External, key: str) -> None:
    with pytest.raises(NoSuchExternalWorker):
        ext.heartbeat(key, seen=0, fences=[])


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"name": "a b"}, BadName),
        ({"slots": 0}, UsageError),
        ({"lease_s": 1.0}, UsageError),
        ({"lease_s": float("nan")}, UsageError),
        ({"lanes": []}, UsageError),
    ],
)
def test_a_party_that_cannot_be_is_refused(ext: External, fields: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        ext.join(**{"name": "ear", "lanes": [EAR], **fields})


def test_what_cannot_be_read_fails_and_the_party_gets_the_rest(site: Site, ext: External) -> None:
    damaged, sound = site.submit("talk", {"n": 1}, {"n": 2})
    with sql_store(site.store).database.write() as tx:
        tx.run("update jobs set params = '{' where id = ?", (damaged,))
    external_worker = join(ext)

    claimed = ext.claim(external_worker.key, seen=0, limit=2)

    assert [work.job_id for work in claimed.work] == [sound]
    assert site.state(damaged) is State.FAILED
    assert "parameters of job 1 cannot be read" in (site.job(damaged).message or "")
