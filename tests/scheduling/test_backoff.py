"""A failed stage rests longer each time, never longer than the cap, never all at the same moment."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.model.types import Backoff
from spinney.scheduling.backoff import delay_s

BACKOFFS = st.builds(
    Backoff,
    base_s=st.floats(0, 1e4),
    factor=st.floats(1, 100),
    cap_s=st.floats(0, 1e5),
    jitter=st.floats(0, 1),
)
ATTEMPTS = st.integers(1, 100_000)
DRAWS = st.floats(0, 1)


@given(BACKOFFS, ATTEMPTS, DRAWS)
def test_a_rest_is_never_longer_than_the_cap(backoff: Backoff, attempt: int, draw: float) -> None:
    assert 0 <= delay_s(backoff, attempt, draw) <= backoff.cap_s


@given(BACKOFFS, ATTEMPTS, DRAWS)
def test_a_draw_moves_the_delay_only_within_the_jittered_part(
    backoff: Backoff, attempt: int, draw: float
) -> None:
    longest = delay_s(backoff, attempt, 0.0)

    delay = delay_s(backoff, attempt, draw)

    assert longest * (1 - backoff.jitter) <= delay + 1e-9
    assert delay <= longest


@given(BACKOFFS, st.integers(1, 200))
def test_the_next_rest_is_never_shorter_for_the_same_draw(backoff: Backoff, attempt: int) -> None:
    assert delay_s(backoff, attempt, 0.3) <= delay_s(backoff, attempt + 1, 0.3)


@pytest.mark.parametrize(("attempt", "rest_s"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (60_000, 10)])
def test_it_doubles_from_the_base_up_to_the_cap(attempt: int, rest_s: float) -> None:
    backoff = Backoff(base_s=1, factor=2, cap_s=10, jitter=0)

    assert delay_s(backoff, attempt, 0.7) == rest_s


def test_full_jitter_reaches_from_nothing_to_the_whole() -> None:
    backoff = Backoff(base_s=4, factor=1, cap_s=10, jitter=1)

    assert delay_s(backoff, 1, 0.0) == 4
    assert delay_s(backoff, 1, 1.0) == 0
