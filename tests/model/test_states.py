"""The table of transitions against the text of the design, word for word."""

import pytest

from spinney.model.errors import UnlawfulTransition
from spinney.model.states import LEASED, SETTLED, TRANSITIONS, State, lawful, require

DESIGN = """
    (new)      -> scheduled pending held waiting failed
    scheduled  -> pending waiting held cancelled
    pending    -> claimed waiting held scheduled cancelled
    held       -> pending scheduled waiting cancelled deleted
    claimed    -> running pending failed cancelled orphaned
    running    -> running pending scheduled waiting held completed failed cancelled orphaned
    waiting    -> pending scheduled held completed failed cancelled
    failed, orphaned, cancelled -> pending scheduled waiting held deleted
    completed  -> pending waiting held deleted
"""


def told_by_the_design() -> dict[State | None, frozenset[State]]:
    table: dict[State | None, frozenset[State]] = {}
    for line in DESIGN.strip().splitlines():
        before, after = line.split("->")
        for word in before.split(","):
            state = None if word.strip() == "(new)" else State(word.strip())
            table[state] = frozenset(State(name) for name in after.split())
    return table | {State.DELETED: frozenset()}


def test_the_table_is_that_of_the_design() -> None:
    assert dict(TRANSITIONS) == told_by_the_design()


@pytest.mark.parametrize("before", [None, *State])
@pytest.mark.parametrize("after", list(State))
def test_require_refuses_exactly_what_is_not_lawful(before: State | None, after: State) -> None:
    if lawful(before, after):
        require(1, before, after)
        return
    with pytest.raises(UnlawfulTransition) as refusal:
        require(1, before, after)
    assert (refusal.value.before, refusal.value.after) == (before, after)


def test_the_refusal_names_the_job_both_states_and_what_to_do() -> None:
    text = str(UnlawfulTransition(7, State.DELETED, State.PENDING))

    assert all(part in text for part in ("job 7", "deleted", "pending", "spinney show 7"))


def test_a_settled_job_is_never_claimed_without_being_opened_first() -> None:
    assert all(not TRANSITIONS[state] & LEASED for state in SETTLED)


def test_only_pending_jobs_can_be_claimed() -> None:
    assert {before for before in TRANSITIONS if State.CLAIMED in TRANSITIONS[before]} == {State.PENDING}


def test_a_tombstone_is_the_end() -> None:
    assert not TRANSITIONS[State.DELETED]


def test_what_may_be_deleted_is_settled_or_held() -> None:
    deletable = {before for before in TRANSITIONS if State.DELETED in TRANSITIONS[before]}

    assert deletable == (SETTLED - {State.DELETED}) | {State.HELD}
