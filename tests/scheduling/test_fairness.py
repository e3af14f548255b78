"""Slots go to the share that holds fewest, ties in rotation; none idles while somebody may use it."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from spinney.scheduling.fairness import deal

SHARES = ["a", "b", "c", "d", "e"]
ROTATIONS = st.permutations(SHARES).flatmap(lambda order: st.integers(1, len(order)).map(lambda k: order[:k]))
COUNTS = st.dictionaries(st.sampled_from(SHARES), st.integers(0, 12))
N = st.integers(0, 40)
QUOTAS = st.none() | st.integers(1, 10)
RUNS = st.integers(1, 9)


@given(COUNTS, ROTATIONS, COUNTS, N, QUOTAS, RUNS)
def test_no_share_is_picked_beyond_its_supply(
    held: dict[str, int], rotation: list[str], supply: dict[str, int], n: int, at_most: int | None, run: int
) -> None:
    picks = Counter(deal(held, rotation, supply, n, at_most, run))

    assert picks.total() <= n
    assert all(count <= supply.get(share, 0) for share, count in picks.items())


@given(COUNTS, ROTATIONS, COUNTS, N, RUNS)
def test_no_slot_idles_while_somebody_may_use_it(
    held: dict[str, int], rotation: list[str], supply: dict[str, int], n: int, run: int
) -> None:
    picks = deal(held, rotation, supply, n, run=run)

    assert len(picks) == min(n, sum(supply.get(share, 0) for share in rotation))


@given(COUNTS, ROTATIONS, COUNTS, N, st.integers(1, 10), RUNS)
def test_with_a_quota_a_slot_idles_only_when_nobody_may_use_it(
    held: dict[str, int], rotation: list[str], supply: dict[str, int], n: int, at_most: int, run: int
) -> None:
    picks = deal(held, rotation, supply, n, at_most, run)
    room = sum(min(supply.get(share, 0), max(0, at_most - held.get(share, 0))) for share in rotation)

    assert len(picks) == min(n, room)


@given(COUNTS, ROTATIONS, COUNTS, N, st.integers(1, 10), RUNS)
def test_nobody_is_dealt_more_than_the_quota(
    held: dict[str, int], rotation: list[str], supply: dict[str, int], n: int, at_most: int, run: int
) -> None:
    picks = Counter(deal(held, rotation, supply, n, at_most, run))

    assert all(held.get(share, 0) + count <= at_most for share, count in picks.items())


@given(COUNTS, ROTATIONS, COUNTS, N, QUOTAS)
def test_every_pick_goes_to_a_share_that_holds_fewest(
    held: dict[str, int], rotation: list[str], supply: dict[str, int], n: int, at_most: int | None
) -> None:
    holds = {share: held.get(share, 0) for share in rotation}
    left = {share: supply.get(share, 0) for share in rotation}

    for pick in deal(held, rotation, supply, n, at_most):
        rivals = [s for s in rotation if left[s] > 0 and (at_most is None or holds[s] < at_most)]
        assert holds[pick] == min(holds[share] for share in rivals)
        holds[pick] += 1
        left[pick] -= 1


@given(ROTATIONS, COUNTS, N)
def test_shares_that_started_equal_stay_within_one(
    rotation: list[str], supply: dict[str, int], n: int
) -> None:
    picks = Counter(deal({}, rotation, supply, n))
    unsated = [picks[share] for share in rotation if picks[share] < supply.get(share, 0)]

    assert not unsated or max(picks.values(), default=0) - min(unsated) <= 1


@given(ROTATIONS, st.integers(0, 12), N)
def test_ties_go_in_rotation(rotation: list[str], held: int, n: int) -> None:
    plenty = dict.fromkeys(rotation, n)

    picks = deal(dict.fromkeys(rotation, held), rotation, plenty, n)

    assert picks == [rotation[i % len(rotation)] for i in range(n)]


@given(COUNTS, ROTATIONS, COUNTS, N)
def test_among_equals_the_one_that_comes_first_in_rotation_is_served_first(
    held: dict[str, int], rotation: list[str], supply: dict[str, int], n: int
) -> None:
    picks = deal(held, rotation, supply, n)

    if picks:
        waiting = [s for s in rotation if supply.get(s, 0) > 0]
        fewest = min(held.get(s, 0) for s in waiting)
        assert picks[0] == next(s for s in waiting if held.get(s, 0) == fewest)


@given(COUNTS, ROTATIONS, COUNTS, N, N)
def test_the_same_question_has_the_same_answer_and_a_shorter_one_is_its_beginning(
    held: dict[str, int], rotation: list[str], supply: dict[str, int], n: int, m: int
) -> None:
    fewer, more = sorted((n, m))

    assert deal(held, rotation, supply, more)[:fewer] == deal(held, rotation, supply, fewer)


@given(ROTATIONS, N, RUNS)
def test_in_runs_nobody_gets_a_whole_run_more_than_another(rotation: list[str], n: int, run: int) -> None:
    plenty = dict.fromkeys(rotation, 100)

    picks = Counter(deal({}, rotation, plenty, n, run=run))

    assert max(picks[share] for share in rotation) - min(picks[share] for share in rotation) <= run


def test_runs_are_cut_so_that_the_rest_is_even() -> None:
    picks = deal({}, ["ann", "bob"], {"ann": 50, "bob": 50}, 20, run=8)

    assert Counter(picks) == {"ann": 10, "bob": 10}
    assert picks[:8] == ["ann"] * 8


def test_shares_that_hold_slots_do_not_cut_the_runs_of_those_that_hold_none() -> None:
    free, busy = [f"free{n}" for n in range(51)], [f"busy{n}" for n in range(400)]

    picks = deal(dict.fromkeys(busy, 1), [*busy, *free], dict.fromkeys([*busy, *free], 400), 400, run=8)

    assert set(picks) == set(free)
    assert min(Counter(picks).values()) >= 7
