"""Wake-ups between processes."""

import asyncio
import contextlib
import gc
import os
import socket
import warnings
from pathlib import Path

import pytest

from spinney.model.values.paths import socket_name
from spinney.wakeup import local as wakeup_socket
from spinney.wakeup.local import LocalWaker, bound_socket, received_wakeups, wake_local_nodes


async def test_a_wakeup_wakes_every_node(tmp_path: Path) -> None:
    one, two = asyncio.Event(), asyncio.Event()
    async with (
        received_wakeups(tmp_path, socket_name("one", 1), one.set),
        received_wakeups(tmp_path, socket_name("two", 1), two.set),
    ):
        wake_local_nodes(tmp_path)
        async with asyncio.timeout(5):
            await one.wait()
            await two.wait()


async def test_a_node_with_a_long_name_is_woken(tmp_path: Path) -> None:
    woken = asyncio.Event()
    async with received_wakeups(tmp_path, socket_name("x" * 100, 4_194_304), woken.set):
        wake_local_nodes(tmp_path)
        async with asyncio.timeout(5):
            await woken.wait()


async def test_a_node_does_not_wake_itself(tmp_path: Path) -> None:
    with (
        bound_socket(tmp_path, socket_name("one", 1)) as own,
        bound_socket(tmp_path, socket_name("two", 1)) as other,
    ):
        wake_local_nodes(tmp_path, but=socket_name("one", 1))
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
    async with received_wakeups(deep, socket_name("n" * 60, 1), woken.set):
        wake_local_nodes(deep)
        async with asyncio.timeout(5):
            await woken.wait()


def test_the_sockets_of_the_dead_are_cleared_away(tmp_path: Path) -> None:
    name = socket_name("dead", 1)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        folder = os.open(tmp_path, os.O_RDONLY)
        dead.bind(f"/proc/self/fd/{folder}/{name}")
        os.close(folder)
    assert (tmp_path / name).exists()
    wake_local_nodes(tmp_path)
    assert not (tmp_path / name).exists()


def test_a_full_or_missing_receiver_holds_nobody_up(tmp_path: Path) -> None:
    wake_local_nodes(tmp_path / "missing")
    with bound_socket(tmp_path, socket_name("busy", 1)):
        for _ in range(2000):
            wake_local_nodes(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_waker_wakes_each_node_once_and_those_that_it_knows_first(tmp_path: Path) -> None:
    waker = LocalWaker(tmp_path)
    with bound_socket(tmp_path, socket_name("one", 1)) as one:
        waker.wake_known()
        assert _wakeups(one) == 0, "nobody is known yet"
        waker.wake_rest()
        assert _wakeups(one) == 1
        waker.wake_known()
        assert _wakeups(one) == 1
        with bound_socket(tmp_path, socket_name("two", 1)) as two:
            waker.wake_rest()
            assert (_wakeups(one), _wakeups(two)) == (0, 1), "a newcomer, and nobody twice"
            waker.wake_known()
            assert (_wakeups(one), _wakeups(two)) == (1, 1)
        waker.wake_rest()
        waker.wake_rest()
        assert _wakeups(one) == 1, "where nobody was woken before it wakes all"
    waker.close()


def test_a_waker_finds_who_has_taken_the_place_of_the_dead(tmp_path: Path) -> None:
    waker, name = LocalWaker(tmp_path), socket_name("one", 1)
    with bound_socket(tmp_path, name):
        waker.wake_rest()
    waker.wake_known()
    with bound_socket(tmp_path, name) as successor:
        waker.wake_rest()
        waker.wake_known()
        assert _wakeups(successor) >= 1
    waker.close()


def test_a_waker_reads_a_directory_again_only_when_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waker, read, sockets = LocalWaker(tmp_path), list[object](), wakeup_socket._sockets
    monkeypatch.setattr(wakeup_socket, "_sockets", lambda folder: read.append(folder) or sockets(folder))
    with bound_socket(tmp_path, socket_name("one", 1)) as one:
        os.utime(tmp_path, (1, 1))
        for _ in range(3):
            waker.wake_rest()
        assert (_wakeups(one), len(read)) == (3, 1)
        with bound_socket(tmp_path, socket_name("two", 1)) as two:
            waker.wake_rest()
            assert (_wakeups(one), _wakeups(two), len(read)) == (1, 1, 2)
    waker.close()


def test_a_waker_finds_who_came_within_the_same_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = 1_700_000_000_000_000_000
    waker = LocalWaker(tmp_path)
    with bound_socket(tmp_path, socket_name("one", 1)), bound_socket(tmp_path, socket_name("two", 1)) as two:
        hidden = tmp_path.parent / "hidden"
        (tmp_path / socket_name("two", 1)).rename(hidden)
        os.utime(tmp_path, ns=(second, second))
        monkeypatch.setattr(wakeup_socket.time, "time_ns", lambda: second + 500_000_000)
        waker.wake_rest()
        assert _wakeups(two) == 0
        hidden.rename(tmp_path / socket_name("two", 1))
        os.utime(tmp_path, ns=(second, second))  # as a file system has it that knows no parts of a second
        waker.wake_rest()
        assert _wakeups(two) == 1
    waker.close()


def test_a_waker_wakes_all_again_whom_it_woke_for_nothing(tmp_path: Path) -> None:
    waker = LocalWaker(tmp_path)
    with bound_socket(tmp_path, socket_name("one", 1)) as one:
        waker.wake_rest()
        waker.wake_known()  # for a commit that failed
        waker.close()
        assert _wakeups(one) == 2
        waker.wake_known()
        waker.wake_rest()
        assert _wakeups(one) == 1
    waker.close()


def test_a_waker_reaches_long_paths_and_needs_no_directory(tmp_path: Path) -> None:
    missing = LocalWaker(tmp_path / "missing")
    missing.wake_known()
    missing.wake_rest()
    deep = tmp_path / ("d" * 200)
    deep.mkdir()
    waker = LocalWaker(deep)
    with bound_socket(deep, socket_name("one", 1)) as one:
        for _ in range(2):
            waker.wake_known()
            waker.wake_rest()
            assert _wakeups(one) == 1
    waker.close()
    waker.wake_known()
    missing.close()


def test_a_waker_that_nobody_closes_is_no_reason_for_a_warning(tmp_path: Path) -> None:
    waker = LocalWaker(tmp_path)
    waker.wake_rest()
    gc.collect()  # what the tests before have left warns for itself
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        del waker
        gc.collect()
    assert warned == []


def _wakeups(receiver: socket.socket) -> int:
    """How many have arrived since the last look."""
    received = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            receiver.recv(1)
            received += 1
    return received
