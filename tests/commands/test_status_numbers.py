"""States in the numbers of two older systems: as the API shows them."""

import pytest

from spinney.commands.status_numbers import Status, status
from spinney.model.states import State

S = State
TABLE = [
    *((state, -2, 0) for state in (S.PENDING, S.SCHEDULED, S.WAITING)),
    (S.HELD, -4, 0),
    (S.CLAIMED, -1, 0),
    (S.RUNNING, 0, 0),
    (S.COMPLETED, 1, 1),
    (S.FAILED, 2, -1),
    (S.CANCELLED, -5, -1),
    (S.ORPHANED, -6, -1),
]


@pytest.mark.parametrize(("state", "disbatch", "motus"), TABLE)
def test_a_state_has_the_numbers_of_the_table(state: State, disbatch: int, motus: int) -> None:
    assert status(state) == Status(disbatch=disbatch, motus=motus)


def test_a_positive_code_of_the_handler_stands_in_their_place() -> None:
    assert status(S.FAILED, code=17) == Status(disbatch=17, motus=-1)
    assert status(S.COMPLETED, code=3) == Status(disbatch=3, motus=1)
    assert status(S.PENDING, code=17).disbatch == -2
    assert status(S.FAILED, code=0).disbatch == 2


def test_what_was_killed_has_a_number_of_its_own() -> None:
    assert status(S.FAILED, code=17, killed=True) == Status(disbatch=-3, motus=-1)
    assert status(S.COMPLETED, killed=True).disbatch == 1


def test_every_state_has_numbers() -> None:
    for state in State:
        assert status(state).motus in (0, 1, -1)
