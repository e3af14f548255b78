"""Text order of lineages is depth-first order, and a subtree is one range."""

from hypothesis import given
from hypothesis import strategies as st

from spinney.model.lineage import ancestors, depth, lineage, subtree


@st.composite
def forests(draw: st.DrawFn) -> dict[int, int | None]:
    """Job id to parent id, every parent older than its children; ids of any size that fits."""
    ids = sorted(draw(st.sets(st.integers(1, 10**12 - 1), min_size=1, max_size=25)))
    return {job_id: draw(st.sampled_from([None, *ids[:i]])) for i, job_id in enumerate(ids)}


def paths(forest: dict[int, int | None]) -> dict[int, str]:
    made: dict[int, str] = {}
    for job_id, parent in forest.items():
        made[job_id] = lineage(job_id, None if parent is None else made[parent])
    return made


def depth_first(forest: dict[int, int | None], parent: int | None = None) -> list[int]:
    own = [job_id for job_id in forest if forest[job_id] == parent]
    return [below for job_id in own for below in (job_id, *depth_first(forest, job_id))]


@given(forests())
def test_text_order_is_depth_first_order(forest: dict[int, int | None]) -> None:
    made = paths(forest)

    assert sorted(forest, key=made.__getitem__) == depth_first(forest)


@given(forests())
def test_a_subtree_is_exactly_one_range(forest: dict[int, int | None]) -> None:
    made = paths(forest)

    for job_id, path in made.items():
        low, high = subtree(path)
        inside = {other for other, its in made.items() if low <= its < high}
        assert inside == set(depth_first(forest, job_id))


@given(forests())
def test_ancestors_are_those_above_from_the_root_down(forest: dict[int, int | None]) -> None:
    made = paths(forest)

    for job_id, path in made.items():
        above: list[int] = []
        parent = forest[job_id]
        while parent is not None:
            above.insert(0, parent)
            parent = forest[parent]
        assert ancestors(path) == above
        assert depth(path) == len(above)
