"""The page tells what runs, to whoever maps it."""

import os

import pytest

from spinney.node.workers.shared_page import CELL_RECALL, SharedPage, read_running
from waiting import until


@pytest.fixture
def path(tmp_path):
    return tmp_path / "w1.page"


def test_what_begins_is_seen_by_the_other_side_and_by_a_successor(path):
    ours = SharedPage.create(path)
    theirs = SharedPage(os.dup(ours.fd))
    theirs.begin(42, 1_700_000_000_000_000)
    assert ours.fence() == 42
    (line,) = ours.running()
    assert (line.fence, line.started_us) == (42, 1_700_000_000_000_000)
    assert 0 <= line.elapsed_s < 5
    assert read_running(path) == {42: 1_700_000_000_000_000}

    theirs.finish()
    assert ours.fence() == 0
    assert ours.running() == []
    assert ours.done() == 1
    assert read_running(path) == {}


def test_the_page_outlives_both(path):
    page = SharedPage.create(path)
    page.begin(7, 5)
    page.close()
    page.close()
    assert read_running(path) == {7: 5}


def test_many_lines_hold_many_attempts(path):
    page = SharedPage.create(path, lines=300)
    for n in range(300):
        page.begin(1000 + n, n + 1, line=n)
    page.finish(line=5)
    assert read_running(path) == {1000 + n: n + 1 for n in range(300) if n != 5}


def test_a_page_is_made_afresh_and_for_its_owner_alone(path):
    path.write_text("left from before")
    page = SharedPage.create(path)
    assert page.running() == []
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_page_for_which_the_disk_has_no_room_leaves_no_file(path, monkeypatch):
    def full(fd, offset, size):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space"):
        SharedPage.create(path)
    assert not path.exists()


@pytest.mark.parametrize("content", [None, b"", b"short", b"x" * 4096])
def test_what_is_no_page_says_that_nothing_was_running(path, content):
    if content is not None:
        path.write_bytes(content)
    assert read_running(path) == {}


def test_a_page_cut_short_is_survived(path):
    page = SharedPage.create(path, lines=4000)
    page.begin(1, 2)
    os.truncate(path, 4096)
    assert read_running(path) == {1: 2}


def test_elapsed_time_is_counted_from_the_beginning(path):
    page = SharedPage.create(path)
    page.begin(1, 1)
    (line,) = page.running()
    until(lambda: line.elapsed_s >= 0.01)


def test_cells_are_shared(path):
    ours = SharedPage.create(path)
    theirs = SharedPage.open(path)
    ours.cells[CELL_RECALL] = 3
    assert theirs.cells[CELL_RECALL] == 3
