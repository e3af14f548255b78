"""Output finds its attempt, exactly and in time, and stays bounded."""

import json
import os
import random
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
import pytest_asyncio
from executor_fixtures import DEADLINE_S, host, shared_host
from hypothesis import given
from hypothesis import strategies as st

from spinney.model.values.paths import ROOT_TOKEN
from spinney.node.dispatch import output
from spinney.node.dispatch.output import Pump
from spinney.node.worker import capture
from spinney.node.worker.capture import Capture, WorkerLog
from spinney.node.workers import boundaries, worker_startup
from spinney.node.workers.shared_page import CELL_PUMP, SharedPage

__all__ = ["host", "shared_host"]

TOKEN = b"0123456789abcdef"


@pytest_asyncio.fixture(loop_scope="module")
async def worker(host):
    return host.keep()


# --- with a real worker ----------------------------------------------------------------------------


async def test_everything_that_is_written_however_lands_in_the_attempts_files(host, worker):
    assert await host.run(worker, "voices") == {"outcome": "ok", "output": True}
    assert host.printed(1) == "from python\nfrom C\nfrom write\nfrom a program\n"
    assert host.printed(1, "stderr") == "to stderr\nfrom logging\n"


async def test_an_attempt_that_writes_nothing_makes_no_file(host, worker):
    host.give(worker, "say", (1, '{"text": "one"}'))
    host.give(worker, "noop", (2, "{}"))
    host.give(worker, "say", (3, '{"text": "three"}'))
    await host.until(lambda: len(host.rows) == 3 and {1, 3} <= set(host.marked))
    assert (host.printed(1), host.printed(3)) == ("one\n", "three\n")
    assert not host.folder(2).exists()


async def test_output_of_a_list_of_quick_jobs_is_never_told_to_a_neighbour(host, worker):
    jobs = [(fence, json.dumps({"text": f"job {fence}"})) for fence in range(1, 501)]
    host.give(worker, "say", *jobs)
    await host.until(lambda: set(host.marked) >= {fence for fence, _ in jobs})
    for fence, _ in jobs:
        assert host.printed(fence) == f"job {fence}\n"


async def test_output_is_readable_while_the_stage_runs(host, worker, tmp_path):
    go = tmp_path / "go"
    host.give(worker, "noop", *[(fence, "{}") for fence in range(10, 60)])
    host.give(worker, "wait_for", (1, json.dumps({"file": str(go)})))
    await host.until(lambda: host.printed(1) == "waiting\n")
    assert 1 not in host.rows
    go.touch()
    await host.until(lambda: 1 in host.marked)


async def test_long_output_keeps_its_head_and_its_tail_and_says_what_was_cut(host, worker):
    await host.run(worker, "flood", '{"size": 1000000}')
    text = host.printed(1)
    size = 1_000_000 + len("begin\n") + len("end\n")
    assert text.startswith("begin\nxxx")
    assert text.endswith("xxx" + "end\n")
    assert f"[spinney: {size - 200_000 - 1000} bytes of output were cut here]" in text
    assert len(text) < 202_000


async def test_what_loading_the_application_printed_is_in_the_workers_log(host):
    worker = host.start()
    await host.run(worker, "say", '{"text": "mine"}')
    assert host.printed(1) == "mine\n"
    assert worker.log_file.read_text() == "loading prints, too\n"


_CHATTY = """
import threading, time
from pathlib import Path
from spinney import Spinney

app = Spinney()
sample = app.pipeline("sample")

@sample.stage
def say(text: str) -> None:
    print(text)

def chat():
    while not Path({go!r}).exists():
        time.sleep(0.005)
    print("from the background", flush=True)

threading.Thread(target=chat, daemon=True).start()
"""


async def test_what_the_application_prints_while_its_worker_is_idle_is_in_the_workers_log(host, tmp_path):
    go = tmp_path / "go"
    (tmp_path / "chatty.py").write_text(_CHATTY.format(go=str(go)))
    worker = host.start(app="chatty:app", path=[tmp_path])
    # Given a worker between two attempts, when a thread of its application prints
    await host.run(worker, "say", '{"text": "first"}', fence=1)
    # Until the worker has cleared the fence, what is printed would belong to the attempt.
    await host.until(lambda: worker.page.fence() == 0)
    go.touch()
    # Then that is written without waiting for an attempt
    await host.until(lambda: worker.log_file.exists() and worker.log_file.read_text().endswith("\n"))
    assert worker.log_file.read_text() == "from the background\n"
    # And it is not taken for what the next one prints
    await host.run(worker, "say", '{"text": "second"}', fence=2)
    assert (host.printed(1), host.printed(2)) == ("first\n", "second\n")


async def test_output_of_an_unknown_attempt_goes_to_the_workers_log(host, worker):
    worker.send_run([("sample", "say", [[77, 77, 1, '{"text": "whose?"}', None, 77]])])
    await host.until(lambda: 77 in host.marked)
    assert "whose?" in worker.log_file.read_text()


async def test_what_an_attempt_does_to_its_streams_does_not_harm_the_next(host, worker):
    for fence, how in enumerate(("close", "replace", "close-fd", "redirect"), 1):
        await host.run(worker, "meddles", json.dumps({"how": how}), fence=10 * fence)
        assert host.printed(10 * fence) == "before\n"
        await host.run(worker, "say", '{"text": "after"}', fence=10 * fence + 1)
        assert host.printed(10 * fence + 1) == "after\n"


@pytest.mark.parametrize("how", ["silent-close-fd", "silent-redirect", "silent-replace"])
async def test_streams_are_put_back_although_nothing_was_written(host, worker, how):
    await host.run(worker, "meddles", json.dumps({"how": how}), fence=1)
    await host.run(worker, "say", '{"text": "after"}', fence=2)
    assert host.printed(2) == "after\n"
    await host.run(worker, "voices", fence=3)
    assert "from a program" in host.printed(3)


async def test_streams_that_an_application_closes_while_it_is_loaded_are_those_of_its_jobs(host, tmp_path):
    """Otherwise the shared page is opened in their place, and what jobs print is written over it: attempts were handed
    back endlessly, or never began."""
    (tmp_path / "closing_app.py").write_text(
        "import os\nfrom executor_app import app\nos.close(1)\nos.close(2)\n"
    )
    worker = host.start(app="closing_app:app", path=[tmp_path])

    assert await host.run(worker, "voices") == {"outcome": "ok", "output": True}

    assert "from write" in host.printed(1)
    assert "to stderr" in host.printed(1, "stderr")


# --- the pump against a worker made of a page and two pipes ----------------------------------------


class Acted:
    """Acts a worker in this process, byte by byte."""

    def __init__(self, place):
        self.place = place
        (place / ROOT_TOKEN).touch()
        self.page = SharedPage.create(place / "page")
        self.ends = [os.pipe(), os.pipe()]
        self.marked = []
        self.remarks = {}
        self.seen = threading.Condition()
        self.pump = Pump(self._on_marked, head_bytes=1000, tail_bytes=100)
        child: Any = SimpleNamespace(
            name="acted",
            stdout_fd=self.ends[0][0],
            stderr_fd=self.ends[1][0],
            page=self.page,
            token=TOKEN,
            log_file=place / "log",
        )
        self.pump.add(child, lambda fence: place / "out" / f"stage.{fence}")

    def _on_marked(self, fence, remark):
        with self.seen:
            self.marked.append(fence)
            self.remarks[fence] = remark
            self.seen.notify_all()

    def write(self, data, stream=0):
        os.write(self.ends[stream][1], data)

    def mark(self, fence, streams=(0, 1)):
        for stream in streams:
            os.write(self.ends[stream][1], boundaries.boundary(TOKEN, fence))

    def await_mark(self, fence):
        with self.seen:
            assert self.seen.wait_for(lambda: fence in self.marked, DEADLINE_S)

    def remove(self):
        for _, end in self.ends:
            os.close(end)
        return self.pump.remove("acted").result(DEADLINE_S)

    def read(self, fence, stream="stdout"):
        file = self.place / "out" / f"stage.{fence}.{stream}"
        return file.read_bytes() if file.exists() else None


@pytest.fixture
def acted(tmp_path):
    acted = Acted(tmp_path)
    yield acted
    acted.pump.close()
    acted.page.close()


def test_the_mark_decides_not_the_page(acted):
    """Given bytes whose mark comes when the page already shows the next attempt, then the mark wins."""
    acted.page.begin(2, 1)
    acted.write(b"first" + boundaries.boundary(TOKEN, 1) + b"second")
    acted.mark(1, (1,))
    acted.await_mark(1)
    acted.mark(2)
    acted.await_mark(2)
    assert acted.read(1) == b"first"
    assert acted.read(2) == b"second"
    assert acted.read(1, "stderr") is None


def test_what_is_printed_while_the_disk_is_slow_is_written_in_one_piece(acted, monkeypatch):
    """Given a write that takes long, when an attempt of a ``--concurrent`` worker prints many lines meanwhile, then
    they wait as bytes of one write, in their order, and the attempt's end comes behind them."""
    real, begun, go, written = capture.append, threading.Event(), threading.Event(), []

    def append(path, data):
        begun.set()
        assert go.wait(DEADLINE_S)
        written.append((path.suffix, data))
        return real(path, data)

    monkeypatch.setattr(capture, "append", append)
    acted.pump.put("acted", 1, "stdout", "first\n")
    assert begun.wait(DEADLINE_S)
    for n in range(100):
        acted.pump.put("acted", 1, "stdout", f"{n}\n")
        acted.pump.put("acted", 1, "stderr", f"{n}\n")
    acted.pump.end("acted", 1)
    go.set()
    acted.await_mark(1)
    lines = "".join(f"{n}\n" for n in range(100)).encode()
    assert written == [(".stdout", b"first\n"), (".stdout", lines), (".stderr", lines)]
    assert acted.read(1) == b"first\n" + lines


def test_it_is_told_only_when_both_streams_are_written(acted):
    acted.write(b"out")
    acted.mark(1, (0,))
    acted.mark(9)
    acted.await_mark(9)
    assert acted.marked == [9], "stdout's mark of 1 alone says nothing"


def test_bytes_wait_for_their_mark_when_an_attempt_has_passed_during_the_read(acted, monkeypatch):
    """Given an idle worker before and after a read, when an attempt has begun and ended meanwhile, then what was
    read is not taken for output outside attempts."""
    real, passed = output._read, []

    def read_while_an_attempt_passes(stream, *others):
        if passed or stream.number:
            return real(stream, *others)
        acted.page.begin(5, 1)
        acted.write(b"late")
        passed.append(data := real(stream, *others))
        acted.mark(5)
        acted.page.finish()
        return data

    monkeypatch.setattr(output, "_read", read_while_an_attempt_passes)
    acted.write(b"too ")
    acted.await_mark(5)
    assert (passed, acted.read(5)) == ([b"too late"], b"too late")


def test_what_a_dead_worker_left_belongs_to_the_attempt_on_its_page(acted):
    acted.page.begin(2, 1)
    acted.write(b"one" + boundaries.boundary(TOKEN, 1) + b"last words")
    acted.remove()
    assert acted.read(1) == b"one"
    assert acted.read(2) == b"last words"


def test_what_a_dead_worker_left_outside_attempts_is_in_its_log(acted, tmp_path):
    acted.write(b"murmur")
    acted.remove()
    assert (tmp_path / "log").read_bytes() == b"murmur"


def test_removing_what_is_not_there_is_done_at_once(acted):
    acted.pump.remove("nobody").result(DEADLINE_S)


def test_a_full_disk_stops_nobody(acted, monkeypatch):
    """Given a disk that is full for a while, then output is dropped with a note, marks still come."""
    full = [True]
    real = capture.append

    def append(path, data):
        if full[0]:
            raise OSError(28, "No space left on device")
        return real(path, data)

    monkeypatch.setattr(capture, "append", append)
    acted.page.begin(1, 1)
    acted.write(b"lost")
    acted.mark(1)
    acted.await_mark(1)
    acted.page.begin(2, 1)
    acted.write(b"x" * 10)
    acted.write(b"err", stream=1)
    acted.mark(3)  # a mark of nobody shows that what came before is done
    full[0] = False
    acted.await_mark(3)
    acted.page.begin(4, 1)
    acted.write(b"kept")
    acted.mark(4)
    acted.await_mark(4)
    assert acted.read(1) is None
    assert acted.read(4) == b"kept"
    # And the attempt says so
    assert acted.remarks[1] == "some of its output was lost (4 bytes: No space left on device)"
    assert acted.remarks[4] is None


def test_what_a_dead_worker_wrote_and_was_lost_is_told_of_its_attempt(acted, tmp_path):
    (tmp_path / "out").write_text("in the way")
    acted.page.begin(1, 1)
    acted.write(b"lost")
    acted.write(b"as well", stream=1)
    assert acted.remove() == {1: f"some of its output was lost (11 bytes: {tmp_path}/out is no directory)"}


def test_a_place_that_cannot_be_told_is_survived(acted, tmp_path):
    """Given a file where the output folder should be, then that output is lost and the next is not."""
    (tmp_path / "out").write_text("in the way")
    acted.page.begin(1, 1)
    acted.write(b"lost")
    acted.mark(1)
    acted.await_mark(1)
    (tmp_path / "out").unlink()
    acted.page.begin(2, 1)
    acted.write(b"kept")
    acted.mark(2)
    acted.await_mark(2)
    assert acted.read(2) == b"kept"


def test_a_link_in_the_outputs_place_is_not_followed(acted, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("untouched")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "stage.1.stdout").symlink_to(precious)
    acted.page.begin(1, 1)
    acted.write(b"overwrite")
    acted.mark(1)
    acted.await_mark(1)
    assert precious.read_text() == "untouched"


# --- the worker's side of marks --------------------------------------------------------------------


def sight_of(pipes):
    """As a worker inherits it: a descriptor, of which the supervisor has none any more."""
    with boundaries.pipe_watch(here for here, _ in pipes) as seen:
        return os.dup(seen.fileno())


@pytest.fixture
def watched(tmp_path):
    """A page, two pipes that nobody pumps, and a marker with sight on their writing ends."""
    page = SharedPage.create(tmp_path / "page")
    pipes = [os.pipe(), os.pipe()]
    saved = [os.dup(1), os.dup(2)]
    try:
        for stream in (0, 1):
            os.dup2(pipes[stream][1], stream + 1)
        marker = boundaries.BoundaryWriter(page, TOKEN, sight_of(pipes))
    finally:
        for stream in (0, 1):
            os.dup2(saved[stream], stream + 1)
            os.close(saved[stream])
    yield page, pipes, marker
    page.close()
    for end in (end for ends in pipes for end in ends):
        os.close(end)


@pytest.mark.parametrize("stream", [0, 1])
def test_a_byte_in_either_pipe_is_seen_and_a_mark_is_no_byte(watched, stream):
    """Given pipes that nobody reads, when a mark has been set, then what lies before it is not taken
    for the next attempt's, and one more byte behind it is."""
    _, pipes, marker = watched
    assert not marker.wrote()
    os.write(pipes[stream][1], b"x")
    assert marker.wrote()
    marker.set(1)
    assert not marker.wrote()
    os.write(pipes[stream][1], b"y")
    assert marker.wrote()


@pytest.mark.parametrize("stream", [0, 1])
def test_what_a_pump_has_taken_out_already_is_seen(watched, stream):
    """Given pipes that are empty again, then it is the pump's own word that tells of the byte: while
    it reads, and when it has counted."""
    page, pipes, marker = watched
    reading, pumped = CELL_PUMP + 2 * stream, CELL_PUMP + 2 * stream + 1
    os.write(pipes[stream][1], b"x")
    page.cells[reading] = 1
    os.read(pipes[stream][0], 10)
    assert marker.wrote()
    page.cells[pumped] += 1
    page.cells[reading] = 0
    assert marker.wrote()
    marker.set(1)
    page.cells[pumped] += len(os.read(pipes[stream][0], 100))
    assert not marker.wrote()


def test_sight_keeps_no_pipe_open_for_reading():
    """Given a reader that is gone, then whoever writes is told, although the sight is still there."""
    here, there = os.pipe()
    seen = boundaries.pipe_watch([here])
    os.close(here)
    with seen, pytest.raises(BrokenPipeError):
        os.write(there, b"x")
    os.close(there)


async def test_a_worker_is_told_of_its_sight_and_what_it_starts_inherits_none(host, monkeypatch):
    """Given what a worker is started with, when it has taken that, then sight is one of the
    descriptors that go no further."""
    remarks = []

    def launch(argv, *, env, pass_fds, **more):
        document = orjson.loads(env[worker_startup.VARIABLE])
        assert document["pipe_watch_fd"] in pass_fds
        os.set_inheritable(document["pipe_watch_fd"], True)
        monkeypatch.setenv(worker_startup.VARIABLE, env[worker_startup.VARIABLE])
        taken = worker_startup.take()
        remarks.append(
            (
                str(Path(f"/proc/self/fd/{taken.pipe_watch_fd}").readlink()),
                os.get_inheritable(taken.pipe_watch_fd),
            )
        )
        raise OSError("no more is wanted")

    monkeypatch.setattr(subprocess, "Popen", launch)
    with pytest.raises(OSError, match="no more is wanted"):
        host.start()
    assert remarks == [("anon_inode:[eventpoll]", False)]


def test_a_marker_sees_every_byte_while_a_pump_reads(tmp_path):
    """Given a pump reading as it likes, when attempts write or do not, then a mark is set behind
    every attempt that wrote, and its bytes are under its fence."""
    page = SharedPage.create(tmp_path / "page")
    pipes = [os.pipe(), os.pipe()]
    saved = [os.dup(1), os.dup(2)]
    seen = threading.Event()
    chance = random.Random(3)
    wrote = {fence: chance.randrange(0, 60) if chance.random() < 0.5 else 0 for fence in range(1, 2001)}

    def on_output_written(fence, remark):
        if fence == 2001:
            seen.set()

    (tmp_path / ROOT_TOKEN).touch()
    pump = Pump(on_output_written, head_bytes=1000)
    child: Any = SimpleNamespace(
        name="w",
        stdout_fd=pipes[0][0],
        stderr_fd=pipes[1][0],
        page=page,
        token=TOKEN,
        log_file=tmp_path / "log",
    )
    pump.add(child, lambda fence: tmp_path / "out" / f"s.{fence}")
    marked = set()
    try:
        for stream in (0, 1):
            os.dup2(pipes[stream][1], stream + 1)
        marker = boundaries.BoundaryWriter(page, TOKEN, sight_of(pipes))
        for fence, size in wrote.items():
            page.begin(fence, 1)
            if size:
                os.write(pipes[fence % 2][1], bytes([65 + fence % 26]) * size)
            if marker.wrote():
                marker.set(fence)
                marked.add(fence)
            page.finish()
        marker.set(2001)
    finally:
        for stream in (0, 1):
            os.dup2(saved[stream], stream + 1)
            os.close(saved[stream])
    assert seen.wait(DEADLINE_S)
    assert marked >= {fence for fence, size in wrote.items() if size}
    for fence, size in wrote.items():
        file = tmp_path / "out" / f"s.{fence}.{boundaries.STREAMS[fence % 2]}"
        assert (file.read_bytes() if file.exists() else b"") == bytes([65 + fence % 26]) * size
    pump.close()
    page.close()


@given(
    st.lists(st.tuples(st.integers(0, 2**40), st.binary(max_size=30)), max_size=6),
    st.binary(max_size=20),
    st.integers(1, 9),
)
def test_marks_divide_however_they_were_cut(parts, rest, size):
    start = boundaries.boundary_prefix(TOKEN)
    stream = b"".join(text + boundaries.boundary(TOKEN, fence) for fence, text in parts) + rest
    marked, unmarked = [], b""
    for at in range(0, len(stream), size):
        more, unmarked = boundaries.split(unmarked + stream[at : at + size], start)
        marked += more
    assert marked == parts
    assert unmarked == rest


# --- bounded files ---------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=40), max_size=30))
def test_a_capture_keeps_head_and_tail(tmp_path_factory, chunks):
    file = tmp_path_factory.mktemp("capture") / "out"
    kept = Capture(file, head_bytes=50, tail_bytes=20)
    for chunk in chunks:
        kept.write(chunk)
    kept.close()
    whole = b"".join(chunks)
    content = file.read_bytes() if file.exists() else b""
    if len(whole) <= 70:
        assert content == whole
    else:
        note = f"\n[spinney: {len(whole) - 70} bytes of output were cut here]\n".encode()
        assert content == whole[:50] + note + whole[-20:]


def test_a_workers_log_starts_anew_at_its_limit(tmp_path):
    log = WorkerLog(tmp_path / "log", limit_bytes=100)
    for n in range(5):
        log.write(b"%d" % n * 60)
    assert (tmp_path / "log").read_bytes() == b"4" * 60
    assert (tmp_path / "log.1").read_bytes() == b"3" * 60


def test_a_workers_log_that_cannot_be_written_is_told_once_until_it_can(tmp_path, caplog):
    # Given a log in whose place is a directory
    log = WorkerLog(tmp_path / "log", limit_bytes=2**20)
    (tmp_path / "log").mkdir()
    for _ in range(1000):
        log.write(b"12345")
    (tmp_path / "log").rmdir()
    log.write(b"6")
    log.write(b"7")
    # Then its trouble is told when it begins, and when it is over
    first, last = (record.getMessage() for record in caplog.records)
    assert "Is a directory" in first
    assert "5000 bytes are lost" in last
    assert (tmp_path / "log").read_bytes() == b"67"
