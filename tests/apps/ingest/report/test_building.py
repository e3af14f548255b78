"""What a report says, and what has changed since the last one."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.apps.ingest.report import BatchFacts, ObjectEnd, PreviousReport, Report, build

from .samples import end, facts, failed


def previous_report(report: Report) -> PreviousReport:
    return PreviousReport(
        number=report.facts.number,
        completed={e.jid: e.label for e in report.completed},
        failed={e.jid: e.label for e in report.failed},
        versions={e.jid: e.version for e in report.completed if e.version is not None},
    )


def test_totals_are_those_of_completed_objects() -> None:
    report = build(facts(), [end(1), failed(2), end(3), end(4, "cancelled")])

    totals = report.totals
    assert (totals.objects, totals.completed, totals.failed, totals.cancelled, totals.open) == (4, 2, 1, 1, 0)
    assert (totals.files, totals.bytes, totals.digests_verified, totals.seconds) == (4, 2000, 4, 90.0)


@pytest.mark.parametrize(
    ("ends", "more", "state"),
    [
        ([end(1)], {}, "completed"),
        ([end(1), end(2, "cancelled")], {}, "completed"),
        ([end(1), failed(2)], {}, "failed"),
        ([end(1), end(2, "orphaned")], {}, "failed"),
        ([failed(1), end(2, "running")], {}, "processing"),
        ([], {"fault": "line 3: an unknown field"}, "failed"),
        ([], {}, "completed"),
    ],
)
def test_the_state_follows_from_the_objects(ends: list[ObjectEnd], more: dict[str, Any], state: str) -> None:
    assert build(facts(**more), ends).state == state


def test_an_update_tells_what_has_changed() -> None:
    first = build(facts(), [end(1), failed(2), failed(3), end(4), end(5, "running"), failed(6)])

    second = build(
        facts(2),
        [end(1), end(2), failed(3), failed(4), end(5), end(7), end(6, "cancelled")],
        previous_report(first),
    )

    changes = second.changes
    assert changes is not None
    assert changes.mended == ("map 2",)
    assert changes.newly_failed == ("map 4",)
    assert changes.added == ("map 5", "map 7")
    assert changes.gone == ("map 6",)


def test_an_update_names_the_completed_objects_that_made_another_version() -> None:
    first = build(facts(), [end(1, version=1), end(2, version=1), end(3, version=1), failed(4)])

    ends = [
        end(1, version=2),
        end(2, version=1),
        end(3, version=2, unchanged=True),
        end(4, version=1),
        end(5, version=1),
    ]
    second = build(facts(2), ends, previous_report(first))

    assert second.changes is not None
    assert second.changes.new_versions == ("map 1",)
    assert (second.changes.mended, second.changes.added) == (("map 4",), ("map 5",))


def test_a_first_report_has_no_changes() -> None:
    assert build(facts(), [end(1)]).changes is None


@pytest.mark.parametrize(("number", "before"), [(2, None), (1, 1), (3, 1)])
def test_a_number_out_of_turn_is_refused(number: int, before: int | None) -> None:
    with pytest.raises(ValueError, match=f"report {number} of bid-1 cannot follow"):
        build(facts(number), [], None if before is None else PreviousReport(number=before))


def test_objects_are_read_once_and_keep_their_order() -> None:
    def ends() -> Iterator[ObjectEnd]:
        yield from (end(n) for n in (3, 1, 2))

    assert [e.jid for e in build(facts(), ends()).completed] == ["jid-3", "jid-1", "jid-2"]


STATES = st.dictionaries(st.integers(1, 8), st.sampled_from(["completed", "failed", "cancelled", "running"]))


@given(STATES, STATES)
def test_changes_lead_from_one_report_to_the_next(then: dict[int, str], now: dict[int, str]) -> None:
    def report(number: int, states: dict[int, str], before: PreviousReport | None) -> Report:
        facts_of_one: BatchFacts = facts(number)
        return build(facts_of_one, [end(n, state) for n, state in states.items()], before)

    before = previous_report(report(1, then, None))
    update = report(2, now, before)

    changes = update.changes
    assert changes is not None
    good, bad = set(before.completed.values()), set(before.failed.values())
    left = set(changes.gone)
    now_good = (good - set(changes.newly_failed) - left) | set(changes.mended) | set(changes.added)
    now_bad = (bad - set(changes.mended) - left) | set(changes.newly_failed)
    assert now_good == {e.label for e in update.completed}
    assert now_bad == {e.label for e in update.failed}
