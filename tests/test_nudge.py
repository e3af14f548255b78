"""Wake-ups between processes."""

import asyncio
import contextlib
import gc
import os
import socket
import warnings
from pathlib import Path

import pytest

from spinney import nudge
from spinney.nudge import Nudger, bound, nudge_all, nudged, socket_name


async def test_a_nudge_wakes_every_node(tmp_path: Path) -> None:
    one, two = asyncio.Event(), asyncio.Event()
    async with (
        nudged(tmp_path, socket_name("one", 1), one.set),
        nudged(tmp_path, socket_name("two", 1), two.set),
    ):
        nudge_all(tmp_path)
        async with asyncio.timeout(5):
            await one.wait()
            await two.wait()


async def test_a_node_does_not_wake_itself(tmp_path: Path) -> None:
    with bound(tmp_path, socket_name("one", 1)) as own, bound(tmp_path, socket_name("two", 1)) as other:
        nudge_all(tmp_path, but=socket_name("one", 1))
        assert other.recv(1) == b""
        try:
            own.recv(1)
        except BlockingIOError:
            return
        raise AssertionError("it was woken")


async def test_paths_may_be_long(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 200)
    deep.mkdir()
    woken = asyncio.Event()
    async with nudged(deep, socket_name("n" * 60, 1), woken.set):
        nudge_all(deep)
        async with asyncio.timeout(5):
            await woken.wait()


def test_the_sockets_of_the_dead_are_cleared_away(tmp_path: Path) -> None:
    name = socket_name("dead", 1)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        folder = os.open(tmp_path, os.O_RDONLY)
        dead.bind(f"/proc/self/fd/{folder}/{name}")
        os.close(folder)
    assert (tmp_path / name).exists()
    nudge_all(tmp_path)
    assert not (tmp_path / name).exists()


def test_a_full_or_missing_receiver_holds_nobody_up(tmp_path: Path) -> None:
    nudge_all(tmp_path / "missing")
    with bound(tmp_path, socket_name("busy", 1)):
        for _ in range(2000):
            nudge_all(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_nudger_wakes_each_node_once_and_those_that_it_knows_first(tmp_path: Path) -> None:
    nudger = Nudger(tmp_path)
    with bound(tmp_path, socket_name("one", 1)) as one:
        nudger.nudge_known()
        assert _nudges(one) == 0, "nobody is known yet"
        nudger.nudge_rest()
        assert _nudges(one) == 1
        nudger.nudge_known()
        assert _nudges(one) == 1
        with bound(tmp_path, socket_name("two", 1)) as two:
            nudger.nudge_rest()
            assert (_nudges(one), _nudges(two)) == (0, 1), "a newcomer, and nobody twice"
            nudger.nudge_known()
            assert (_nudges(one), _nudges(two)) == (1, 1)
        nudger.nudge_rest()
        nudger.nudge_rest()
        assert _nudges(one) == 1, "where nobody was woken before it wakes all"
    nudger.close()


def test_a_nudger_finds_who_has_taken_the_place_of_the_dead(tmp_path: Path) -> None:
    nudger, name = Nudger(tmp_path), socket_name("one", 1)
    with bound(tmp_path, name):
        nudger.nudge_rest()
    nudger.nudge_known()
    with bound(tmp_path, name) as successor:
        nudger.nudge_rest()
        nudger.nudge_known()
        assert _nudges(successor) >= 1
    nudger.close()


def test_a_nudger_reads_a_directory_again_only_when_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nudger, read, sockets = Nudger(tmp_path), list[object](), nudge._sockets
    monkeypatch.setattr(nudge, "_sockets", lambda folder: read.append(folder) or sockets(folder))
    with bound(tmp_path, socket_name("one", 1)) as one:
        os.utime(tmp_path, (1, 1))
        for _ in range(3):
            nudger.nudge_rest()
        assert (_nudges(one), len(read)) == (3, 1)
        with bound(tmp_path, socket_name("two", 1)) as two:
            nudger.nudge_rest()
            assert (_nudges(one), _nudges(two), len(read)) == (1, 1, 2)
    nudger.close()


def test_a_nudger_finds_who_came_within_the_same_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = 1_700_000_000_000_000_000
    nudger = Nudger(tmp_path)
    with bound(tmp_path, socket_name("one", 1)), bound(tmp_path, socket_name("two", 1)) as two:
        hidden = tmp_path.parent / "hidden"
        (tmp_path / socket_name("two", 1)).rename(hidden)
        os.utime(tmp_path, ns=(second, second))
        monkeypatch.setattr(nudge.time, "time_ns", lambda: second + 500_000_000)
        nudger.nudge_rest()
        assert _nudges(two) == 0
        hidden.rename(tmp_path / socket_name("two", 1))
        os.utime(tmp_path, ns=(second, second))  # as a file system has it that knows no parts of a second
        nudger.nudge_rest()
        assert _nudges(two) == 1
    nudger.close()


def test_a_nudger_wakes_all_again_whom_it_woke_for_nothing(tmp_path: Path) -> None:
    nudger = Nudger(tmp_path)
    with bound(tmp_path, socket_name("one", 1)) as one:
        nudger.nudge_rest()
        nudger.nudge_known()  # for a commit that failed
        nudger.close()
        assert _nudges(one) == 2
        nudger.nudge_known()
        nudger.nudge_rest()
        assert _nudges(one) == 1
    nudger.close()


def test_a_nudger_reaches_long_paths_and_needs_no_directory(tmp_path: Path) -> None:
    missing = Nudger(tmp_path / "missing")
    missing.nudge_known()
    missing.nudge_rest()
    deep = tmp_path / ("d" * 200)
    deep.mkdir()
    nudger = Nudger(deep)
    with bound(deep, socket_name("one", 1)) as one:
        for _ in range(2):
            nudger.nudge_known()
            nudger.nudge_rest()
            assert _nudges(one) == 1
    nudger.close()
    nudger.nudge_known()
    missing.close()


def test_a_nudger_that_nobody_closes_is_no_reason_for_a_warning(tmp_path: Path) -> None:
    nudger = Nudger(tmp_path)
    nudger.nudge_rest()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        del nudger
        gc.collect()
    assert warned == []


def _nudges(receiver: socket.socket) -> int:
    """How many have arrived since the last look."""
    found = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            receiver.recv(1)
            found += 1
    return found
