"""One row for as many versions as have a file unchanged, in whatever order they come."""

import itertools
from collections.abc import Iterable, Mapping

from hypothesis import given
from hypothesis import strategies as st

from spinney.apps.ingest.inventory.file_spans import FIRST, LAST, Content, Span, span_changes

VERSIONS = st.dictionaries(
    st.integers(1, 12), st.frozensets(st.sampled_from([("a", 1), ("a", 2), ("b", 1), ("c", 1)])), min_size=1
)
"""Version to what it has; also what no object could have (one path twice): the rule must not care."""


class Table:
    """The spans of one object, as a database would keep them."""

    def __init__(self) -> None:
        self.spans: dict[int, Span] = {}
        self.recorded: list[int] = []
        self._ids = itertools.count()

    def record(self, version: int, files: Iterable[Content]) -> int:
        """Returns how many rows were written."""
        over = [span for span in self.spans.values() if span.first <= version <= span.last]
        before = max((v for v in self.recorded if v < version), default=None)
        after = min((v for v in self.recorded if v > version), default=None)
        changes = span_changes(over, files, version, before, after)
        for row, first, last in changes.narrowed:
            self.spans[row] = Span(row, first, last, self.spans[row].content)
        for content, first, last in changes.added:
            row = next(self._ids)
            self.spans[row] = Span(row, first, last, content)
        self.recorded.append(version)
        return len(changes.narrowed) + len(changes.added)

    def files(self, version: int) -> list[Content]:
        return [span.content for span in self.spans.values() if span.first <= version <= span.last]

    def shown(self) -> set[tuple[Content, int, int]]:
        return {(span.content, span.first, span.last) for span in self.spans.values()}


def in_order(versions: Mapping[int, Iterable[Content]], order: Iterable[int]) -> Table:
    table = Table()
    for version in order:
        table.record(version, versions[version])
    return table


@given(VERSIONS, st.randoms())
def test_every_version_has_what_it_was_recorded_with_whatever_the_order(versions, random) -> None:
    order = random.sample(sorted(versions), len(versions))

    table = in_order(versions, order)

    for version, files in versions.items():
        assert sorted(table.files(version)) == sorted(files)


@given(VERSIONS, st.randoms())
def test_the_rows_are_the_same_in_the_end_whatever_the_order(versions, random) -> None:
    order = random.sample(sorted(versions), len(versions))

    assert in_order(versions, order).shown() == in_order(versions, sorted(versions)).shown()


@given(VERSIONS)
def test_there_is_one_row_for_each_run_of_versions_and_no_more(versions) -> None:
    runs = 0
    had: frozenset[Content] = frozenset()
    for version in sorted(versions):
        runs += len(versions[version] - had)
        had = versions[version]

    assert len(in_order(versions, sorted(versions)).spans) == runs


def test_a_version_costs_what_differs_forward_and_backward() -> None:
    def files(version: int) -> list[Content]:
        return [(f"f{n}", version if n == version % 100 else 0) for n in range(100)]

    for order in (range(1, 51), range(50, 0, -1)):
        table = Table()
        written = [table.record(version, files(version)) for version in order]

        assert written[0] == 100
        # One file has gone back to what it was, one is another.
        assert max(written[1:]) <= 4
        assert len(table.spans) <= 100 + 3 * 50


def test_what_stands_alone_reaches_as_far_as_there_are_versions() -> None:
    table = Table()

    table.record(7, [("a",)])

    assert table.shown() == {(("a",), FIRST, LAST)}


def test_a_file_that_is_gone_for_one_version_is_told_twice() -> None:
    table = in_order({1: [("a",)], 3: [("a",)], 2: []}, [1, 3, 2])

    assert table.shown() == {(("a",), FIRST, 1), (("a",), 3, LAST)}
