"""When it is known, without asking the worker, that nothing more of what it was given begins."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from spinney.node.workers.backlog import Backlog
from spinney.node.workers.shared_page import CELL_LINE, CELL_RECALL, SharedPage


@pytest.fixture
def page(tmp_path: Path) -> Iterator[SharedPage]:
    made = SharedPage.create(tmp_path / "page")
    yield made
    made.close()


def test_it_is_known_at_the_second_look_that_finds_the_same_attempt(page: SharedPage) -> None:
    standing = Backlog()
    page.begin(7, 1)
    assert [standing.blocking_fence(page, 1), standing.blocking_fence(page, 1)] == [0, 0]
    page.cells[CELL_RECALL] = 1
    assert [standing.blocking_fence(page, 1) for _ in range(3)] == [0, 7, 7]


def test_one_that_began_since_the_first_look_may_have_slipped_past_the_recall_and_so_may_the_next(
    page: SharedPage,
) -> None:
    standing = Backlog()
    page.begin(7, 1)
    page.cells[CELL_RECALL] = 1
    assert standing.blocking_fence(page, 1) == 0
    page.begin(8, 2)
    assert [standing.blocking_fence(page, 1), standing.blocking_fence(page, 1)] == [0, 8]


def test_between_two_attempts_nothing_is_known(page: SharedPage) -> None:
    standing = Backlog()
    page.cells[CELL_RECALL] = 1
    page.cells[CELL_LINE] = 0
    assert {standing.blocking_fence(page, 1) for _ in range(3)} == {0}


def test_what_was_sent_since_the_recall_may_begin(page: SharedPage) -> None:
    standing = Backlog()
    page.begin(7, 1)
    page.cells[CELL_RECALL] = 1
    assert [standing.blocking_fence(page, 1), standing.blocking_fence(page, 1)] == [0, 7]
    assert standing.blocking_fence(page, 2) == 0
    page.cells[CELL_RECALL] = 2
    assert [standing.blocking_fence(page, 2), standing.blocking_fence(page, 2)] == [0, 7]


def test_what_was_taken_back_is_no_news_once(page: SharedPage) -> None:
    standing = Backlog()
    standing.take([3, 4])
    assert standing.not_taken([2, 3, 4]) == [2]
    assert standing.not_taken([5]) == [5]
