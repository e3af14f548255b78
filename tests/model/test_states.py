"""The table of transitions against the one in docs/concepts.md, word for word."""

from pathlib import Path

import pytest

from spinney.model.errors import UnlawfulTransition
from spinney.model.states import LEASED, SETTLED, TRANSITIONS, State, lawful, require

CONCEPTS = Path(__file__).parents[2] / "docs" / "concepts.md"


def documented() -> dict[State | None, frozenset[State]]:
    """Return the table of transitions that the concepts show."""
    table = CONCEPTS.read_text().partition("| from | to |\n|---|---|\n")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return {
        None if before == "(new)" else State(before): frozenset(
            State(name.strip()) for name in after.split(",") if name
        )
        for before, after in rows
    }


def test_the_table_is_that_of_the_concepts() -> None:
    assert dict(TRANSITIONS) == documented()


@pytest.mark.parametrize("before", [None, *State])
@pytest.mark.parametrize("after", list(State))
def test_require_refuses_exactly_what_is_not_lawful(before: State | None, after: State) -> None:
    if lawful(before, after):
        require(1, before, after)
        return
    with pytest.raises(UnlawfulTransition) as refusal:
        require(1, before, after)
    assert (refusal.value.before, refusal.value.after) == (before, after)


def test_the_refusal_names_the_job_its_state_and_what_to_do() -> None:
    text = str(UnlawfulTransition(7, State.DELETED, State.PENDING))

    assert all(part in text for part in ("job 7", "deleted", "opened again", "spinney show 7"))


def test_a_settled_job_is_never_claimed_without_being_opened_first() -> None:
    assert all(not TRANSITIONS[state] & LEASED for state in SETTLED)


def test_only_pending_jobs_can_be_claimed() -> None:
    assert {before for before in TRANSITIONS if State.CLAIMED in TRANSITIONS[before]} == {State.PENDING}


def test_a_tombstone_is_the_end() -> None:
    assert not TRANSITIONS[State.DELETED]


def test_what_may_be_deleted_is_settled_or_held() -> None:
    deletable = {before for before in TRANSITIONS if State.DELETED in TRANSITIONS[before]}

    assert deletable == (SETTLED - {State.DELETED}) | {State.HELD}


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "completed",
            "pending",
            "job 7 has completed, so there is nothing to retry; 'spinney rerun 7' runs it again",
        ),
        (
            "scheduled",
            "pending",
            "job 7 is scheduled for later, so there is nothing to retry yet; 'spinney run-now 7' runs it now",
        ),
        (
            "running",
            "pending",
            "job 7 is running and cannot be opened again; 'spinney show 7' shows its state",
        ),
        (
            "failed",
            "cancelled",
            "job 7 has failed and cannot be cancelled; 'spinney show 7' shows its state",
        ),
    ],
)
def test_an_unlawful_transition_is_said_in_the_words_of_who_asked_for_it(
    before: str, after: str, message: str
) -> None:
    assert str(UnlawfulTransition(7, before, after)) == message
