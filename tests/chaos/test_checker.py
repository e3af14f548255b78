"""A checker that cannot fail is worth nothing: each rule of ``checker`` finds the history that breaks it."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chaos_notes import Stretch, read
from checker import (
    DOUBLE,
    LATE_S,
    LIMIT,
    LOST,
    RULES,
    Blow,
    Cancel,
    Finding,
    History,
    Kept,
    Kind,
    Late,
    judge,
    recovery_s,
)

from spinney.model.jobs import Attempt
from spinney.model.outcomes import Outcome
from spinney.model.states import State

KINDS = {
    "chain": Kind(stages=("first", "second")),
    "tree": Kind(stages=("grow",)),
    "leaf": Kind(stages=("leaf",)),
    "once": Kind(stages=("once",), ends=frozenset({State.COMPLETED, State.ORPHANED}), once=True),
}


def ran(job_id: int, fence: int, type_: str, stage: str, begun: float, seen: float, **more: Any) -> Stretch:
    fields: dict[str, Any] = {"ended": "end", "pid": 7} | more
    return Stretch(job_id=job_id, fence=fence, type=type_, stage=stage, begun_s=begun, seen_s=seen, **fields)


def kept(job_id: int, fence: int, stage: str, outcome: Outcome = Outcome.OK, **more: Any) -> Attempt:
    return Attempt(
        job_id=job_id,
        fence=fence,
        stage=stage,
        outcome=outcome,
        attempt=1,
        node="oak",
        started_us=1,
        ended_us=2,
        **more,
    )


GOOD = History(
    kinds=KINDS,
    capacities={"queue:narrow": 1},
    accepted=[1, 2, 4],
    children={2: 1},
    jobs=[
        Kept(id=1, type="chain", state=State.COMPLETED),
        Kept(id=2, type="tree", state=State.COMPLETED),
        Kept(id=3, type="leaf", state=State.COMPLETED, parent_id=2),
        Kept(id=4, type="once", state=State.ORPHANED),
    ],
    attempts=[
        kept(1, 1, "first", Outcome.LOST),
        kept(1, 2, "first"),
        kept(1, 5, "second"),
        kept(2, 3, "grow"),
        kept(3, 6, "leaf"),
        kept(4, 4, "once", Outcome.LOST),
    ],
    stretches=[
        ran(1, 1, "chain", "first", 0.0, 1.0, ended=None),
        ran(1, 2, "chain", "first", 2.0, 3.0, places=("queue:narrow",), pid=8),
        ran(1, 5, "chain", "second", 3.0, 4.0, pid=8),
        ran(2, 3, "tree", "grow", 0.0, 3.0),
        ran(3, 6, "leaf", "leaf", 3.0, 3.0, places=("queue:narrow",)),
        ran(4, 4, "once", "once", 1.0, 2.0, ended=None),
    ],
    refused=[Late(job_id=1, fence=1)],
)


def test_a_history_that_keeps_every_promise_is_left_alone() -> None:
    """With an attempt that was lost, its record refused, and an orphan."""
    assert judge(GOOD) == []


def changed(states: dict[int, State] | None = None, **fields: Any) -> History:
    """The good history with these fields, and jobs in other states."""
    if states:
        fields["jobs"] = [replace(job, state=states.get(job.id, job.state)) for job in GOOD.jobs]
    return replace(GOOD, **fields)


def more(name: str, *things: Any) -> History:
    return changed(**{name: [*getattr(GOOD, name), *things]})


def less(name: str, **of: Any) -> History:
    """Without what has these fields."""
    kept_ = [t for t in getattr(GOOD, name) if any(getattr(t, field) != value for field, value in of.items())]
    assert len(kept_) < len(getattr(GOOD, name))
    return changed(**{name: kept_})


BROKEN = {
    "an accepted job is gone": (less("jobs", id=4), LOST, "was accepted and is not there"),
    "a job never settles": (changed({1: State.PENDING}), LOST, "has not settled"),
    "a job ends as it may not": (changed({1: State.FAILED}), LOST, "ended as failed"),
    "a job is cancelled that nobody cancelled": (changed({4: State.CANCELLED}), LOST, "ended as cancel"),
    "a lease is forgotten": (changed(leases=1), LOST, "1 leases are left"),
    "a child is gone": (less("jobs", id=3), LOST, "bore 1 children, 0 are there"),
    "a stage is left out": (less("attempts", job_id=1, fence=2), LOST, "completed without first"),
    "a pass does not count any more": (
        changed(attempts=[replace(a, superseded=a.fence == 2) for a in GOOD.attempts]),
        LOST,
        "completed without first",
    ),
    "a stage passed that never ran": (
        less("stretches", fence=5),
        LOST,
        "second with fence 5, which never ended",
    ),
    "a stage passed that was cut off": (
        changed(stretches=[replace(s, ended=None if s.fence == 5 else s.ended) for s in GOOD.stretches]),
        LOST,
        "which never ended",
    ),
    "a number is given twice": (changed(accepted=[1, 2, 4, 4]), DOUBLE, "the number 4 was given to 2"),
    "a refused submission is there": (
        changed(accepted=[1, 2], doubtful=0),
        DOUBLE,
        "nobody was told of 1 jobs",
    ),
    "a child too many": (
        more("jobs", Kept(id=5, type="leaf", state=State.COMPLETED, parent_id=2)),
        DOUBLE,
        "bore 1 children, 2 are",
    ),
    "a stage passes twice": (
        changed(
            attempts=[*GOOD.attempts, kept(1, 9, "second")],
            stretches=[*GOOD.stretches, ran(1, 9, "chain", "second", 5.0, 6.0)],
        ),
        DOUBLE,
        "passed second with the fences [5, 9]",
    ),
    "a stage runs again after it has passed": (
        more("stretches", ran(1, 9, "chain", "second", 5.0, 6.0, ended=None)),
        DOUBLE,
        "ran second again with [9]",
    ),
    "a settlement is recorded twice": (
        more("attempts", kept(1, 5, "second")),
        DOUBLE,
        "fence 5 was recorded 2 times",
    ),
    "two owners at once": (
        changed(stretches=[replace(s, seen_s=2.5 if s.fence == 1 else s.seen_s) for s in GOOD.stretches]),
        DOUBLE,
        "job 1 had two owners for 0.500 s",
    ),
    "two owners, one within the other's time": (
        more("stretches", ran(1, 7, "chain", "first", 0.2, 0.3, ended=None)),
        DOUBLE,
        "job 1 had two owners",
    ),
    "one lease runs in two processes": (
        more("stretches", ran(1, 2, "chain", "first", 2.5, 2.9, pid=9)),
        DOUBLE,
        "began with fence 2 after 2",
    ),
    "a fence goes down": (
        changed(
            stretches=[replace(s, begun_s=9.0, seen_s=9.5) if s.fence == 1 else s for s in GOOD.stretches]
        ),
        DOUBLE,
        "began with fence 1 after 5",
    ),
    "an orphan runs again": (
        more("stretches", ran(4, 8, "once", "once", 3.0, 4.0, ended=None)),
        DOUBLE,
        "may run once only, began 2 times",
    ),
    "a refused record counts all the same": (
        more("refused", Late(job_id=1, fence=5)),
        DOUBLE,
        "fence 5 was refused, and is recorded as ok",
    ),
    "a later stage begins after a cancel": (
        changed(cancels=[Cancel(job_id=1, stage="first", at_s=2.5)]),
        DOUBLE,
        "began second after its cancel in first",
    ),
    "what is cancelled begins": (
        changed(cancels=[Cancel(job_id=1, stage="second", at_s=2.5, settled=True)]),
        DOUBLE,
        "began second after its",
    ),
    "more at once than a place takes": (
        more("stretches", ran(2, 3, "tree", "grow", 2.1, 2.2, places=("queue:narrow",))),
        LIMIT,
        "2 at once at queue:narrow, which takes 1",
    ),
    "more at once than a place takes, one of which was cut off at once": (
        more("stretches", ran(2, 3, "tree", "grow", 2.1, 2.1, places=("queue:narrow",))),
        LIMIT,
        "2 at once at queue:narrow, which takes 1",
    ),
    "what was frozen goes on after the thaw": (
        changed(
            stretches=[replace(s, late=(9.0, 9.1 + LATE_S)) if s.fence == 1 else s for s in GOOD.stretches],
            thaws={7: 9.0},
        ),
        DOUBLE,
        "went on for 1.1 s after a thaw",
    ),
}


@pytest.mark.parametrize(("history", "kind", "text"), BROKEN.values(), ids=BROKEN)
def test_it_finds(history: History, kind: str, text: str) -> None:
    judgement = judge(history)

    assert any(f.kind == kind and text in f.text for f in judgement), judgement


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_rule_is_broken_by_one_of_them(rule: Callable[[History], Iterable[Finding]]) -> None:
    assert any(list(rule(history)) for history, _, _ in BROKEN.values())


def test_what_a_thawed_process_took_up_late_is_no_second_owner() -> None:
    late = ran(3, 5, "leaf", "leaf", 3.0, 3.0, late=(3.0, 3.2), ended=None, pid=9, places=("queue:narrow",))
    history = changed(stretches=[*GOOD.stretches, late], thaws={9: 2.9})

    assert judge(history) == []


def test_a_job_whose_need_was_cancelled_may_fail() -> None:
    cancelled = {"states": {1: State.FAILED}, "cancels": [Cancel(job_id=2, stage=None, at_s=9.0)]}

    assert judge(changed(**cancelled, needs={1: [2]})) == []
    assert judge(changed(**cancelled, needs={1: [3]})) != []


FROZEN = ran(3, 6, "leaf", "leaf", 3.0, 3.1, late=(8.0, 8.2), late_ended="end", ended=None, pid=9)


def test_what_went_on_after_a_freeze_and_was_recorded_is_whole() -> None:
    history = changed(stretches=[*(s for s in GOOD.stretches if s.fence != 6), FROZEN], thaws={9: 8.0})

    assert judge(history) == []


def test_what_was_recorded_after_a_freeze_was_the_only_owner_all_along() -> None:
    other = ran(3, 5, "leaf", "leaf", 4.0, 4.1, ended=None)
    history = changed(stretches=[*(s for s in GOOD.stretches if s.fence != 6), FROZEN, other], thaws={9: 8.0})

    assert any("had two owners" in finding.text for finding in judge(history))


def test_more_strangers_than_doubtful_submissions_are_too_many() -> None:
    assert judge(changed(accepted=[1, 2], doubtful=1)) == []


def test_children_of_a_cancelled_job_may_be_cancelled() -> None:
    history = changed(
        {2: State.CANCELLED, 3: State.CANCELLED},
        cancels=[Cancel(job_id=2, stage=None, at_s=9.0)],
    )

    assert judge(history) == []


def test_the_time_to_recover_is_from_the_blow_until_what_it_cut_off_runs_again() -> None:
    assert recovery_s(GOOD.stretches, [Blow(at_s=1.2, over_s=1.2)]) == pytest.approx(0.8)


def test_of_repeated_blows_the_first_that_hit_it_counts() -> None:
    assert recovery_s(
        GOOD.stretches, [Blow(at_s=1.5, over_s=1.5), Blow(at_s=1.2, over_s=1.2)]
    ) == pytest.approx(0.8)


def test_of_what_lasted_the_end_counts() -> None:
    stretches = [s for s in GOOD.stretches if s.fence in (3, 6)]

    assert recovery_s(stretches, [Blow(at_s=1.0, over_s=2.5)]) == pytest.approx(0.5)
    assert recovery_s(stretches, [Blow(at_s=1.0, over_s=1.0)]) is None


def test_notes_are_read_as_they_were_written(tmp_path: Path) -> None:
    (tmp_path / "7-1").write_text(
        "begin 1 chain first 3 1000000000 queue:narrow,lock:press:1\n"
        "begin 2 leaf leaf 4 1500000000 -\n"
        "at 1 chain first 3 2000000000 -\n"
        "end 2 leaf leaf 4 2500000000 -\n"
    )
    cut_off, whole = read(tmp_path)

    assert (cut_off.begun_s, cut_off.seen_s, cut_off.ended) == (1.0, 2.0, None)
    assert cut_off.places == ("queue:narrow", "lock:press:1")
    assert (whole.pid, whole.begun_s, whole.seen_s, whole.ended) == (7, 1.5, 2.5, "end")


def test_a_lease_that_begins_twice_in_one_process_is_told_twice(tmp_path: Path) -> None:
    (tmp_path / "7-1").write_text("begin 1 chain first 3 1000000000 -\n" * 2)

    assert [stretch.fence for stretch in read(tmp_path)] == [3, 3]


def test_what_a_thawed_process_did_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "7-1").write_text(
        "begin 1 chain first 3 1000000000 -\nat 1 chain first 3 2000000000 -\nend 1 chain first 3 9000000000 -\n"
        "begin 2 leaf leaf 4 9100000000 -\n"
    )
    frozen, late = read(tmp_path, thaws={7: 8.0})

    assert (frozen.seen_s, frozen.ended, frozen.late, frozen.late_ended) == (2.0, None, (9.0,), "end")
    assert (late.begun_s, late.late) == (9.1, (9.1,))
