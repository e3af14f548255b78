"""Wake-ups between processes."""

import asyncio
import os
import socket
from pathlib import Path

from spinney.nudge import bound, nudge_all, nudged, socket_name


async def test_a_nudge_wakes_every_node(tmp_path: Path) -> None:
    one, two = asyncio.Event(), asyncio.Event()
    async with nudged(tmp_path, socket_name("one", 1), one.set), nudged(tmp_path, socket_name("two", 1), two.set):
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
