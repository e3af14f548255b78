"""How much one share may hold: the formula of the design, bounded to 1 … S-1."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.scheduling.quota import quota

SLOTS = st.integers(1, 5000)
SHARES = st.integers(0, 100_000)


@pytest.mark.parametrize(
    ("slots", "shares", "most"),
    [
        (10, 1, 9),  # int(0.9 * 11) = 9
        (10, 2, 5),  # int(0.9 * 6) = 5
        (10, 3, 3),  # int(0.9 * 4) = 3
        (10, 5, 2),  # int(0.9 * 3) = 2
        (10, 10, 1),  # int(0.9 * 2) = 1
        (10, 100, 1),  # shares count up to the slots
        (20, 1, 18),
        (20, 2, 9),
        (20, 7, 2),
        (2, 1, 1),  # one slot stays for a newcomer
        (2, 2, 1),
        (1, 1, 1),  # never 0
        (1, 7, 1),
        (100, 3, 30),
    ],
)
def test_the_table_of_the_formula(slots: int, shares: int, most: int) -> None:
    assert quota(slots, shares) == most


@pytest.mark.parametrize(
    ("slots", "shares", "turn", "most"),
    [
        (50, 1, 10, 45),
        (50, 2, 10, 23),
        (50, 5, 10, 10),  # int(0.9 * 11) = 9
        (50, 30, 10, 10),
        (8, 3, 10, 7),  # one slot stays for a newcomer
        (1, 3, 10, 1),
    ],
)
def test_a_share_may_hold_a_turn_however_many_there_are(
    slots: int, shares: int, turn: int, most: int
) -> None:
    assert quota(slots, shares, turn) == most


@given(SLOTS, st.integers(1, 100_000))
def test_it_is_the_formula_of_the_design(slots: int, shares: int) -> None:
    n = min(shares, slots)

    assert quota(slots, shares) == max(1, min(slots - 1, int(0.9 * (1 + slots // n))))


@given(SLOTS, SHARES)
def test_a_share_may_always_hold_one_and_never_all_of_two_or_more(slots: int, shares: int) -> None:
    assert 1 <= quota(slots, shares) <= max(1, slots - 1)


@given(SLOTS, SHARES, SHARES)
def test_more_shares_never_give_anybody_more(slots: int, some: int, others: int) -> None:
    few, many = sorted((some, others))

    assert quota(slots, many) <= quota(slots, few)
