"""Listening: whom a node heeds, and how it goes on when its connection is lost."""

import asyncio
import contextlib
import socket
from collections.abc import Sequence

import pytest

from spinney.model.errors import StoreUnusable
from spinney.node.services.notifications import PAUSE_MAX_S, PAUSE_S, NotificationListener


class Wire:
    """An ear whose senders a test writes."""

    def __init__(self) -> None:
        self.speaker, self._ear = socket.socketpair()
        self._ear.setblocking(False)
        self.closed = False

    def says(self, *senders: str) -> None:
        self.speaker.sendall("".join(f"{s}\n" for s in senders).encode())

    def fileno(self) -> int:
        return self._ear.fileno()

    def poll(self) -> Sequence[str]:
        data = self._ear.recv(1000)
        if not data:
            raise StoreUnusable("cut off")
        return data.decode().splitlines()

    def close(self) -> None:
        self._ear.close()
        self.closed = True


class Exchange:
    """A store that has these ears to give, and then cannot be reached."""

    def __init__(self, *ears: Wire) -> None:
        self.ears = list(ears)

    def listen(self) -> Wire:
        if not self.ears:
            raise StoreUnusable("cannot be reached")
        return self.ears.pop(0)

    def close(self) -> None:
        pass


class Woken:
    def __init__(self) -> None:
        self.times = 0
        self.now = asyncio.Event()

    def __call__(self) -> None:
        self.times += 1
        self.now.set()

    async def again(self) -> None:
        await asyncio.wait_for(self.now.wait(), 10)
        self.now.clear()


async def test_who_got_the_datagram_is_not_woken_again() -> None:
    wire, woken = Wire(), Woken()
    listener = asyncio.ensure_future(
        NotificationListener(lambda: Exchange(wire), run_dir_id="here", on_wake=woken).run()
    )
    await woken.again()  # for what was said before it listened

    wire.says("here", "here")
    for _ in range(5):
        await asyncio.sleep(0)
    wire.says("here", "there")
    await woken.again()

    assert woken.times == 2
    listener.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await listener
    assert wire.closed


async def test_a_lost_connection_is_made_again_after_pauses_that_grow() -> None:
    first, second, woken = Wire(), Wire(), Woken()
    store, pauses = Exchange(first, second), []
    enough = asyncio.Event()

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 10:
            enough.set()
            await asyncio.Event().wait()

    listener = asyncio.ensure_future(
        NotificationListener(
            lambda: store, run_dir_id="here", on_wake=woken, pause=pause, draw=lambda: 0.5
        ).run()
    )
    await woken.again()
    first.speaker.close()
    await woken.again()
    second.speaker.close()
    await asyncio.wait_for(enough.wait(), 10)
    listener.cancel()

    assert (first.closed, second.closed) == (True, True)
    assert pauses[:3] == [PAUSE_S, 2 * PAUSE_S, 4 * PAUSE_S]
    assert pauses[-1] == PAUSE_MAX_S


@pytest.mark.parametrize(("draw", "share"), [(0.0, 0.5), (1.0, 1.5)])
async def test_nodes_do_not_come_back_all_at_once(draw: float, share: float) -> None:
    paused: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    async def pause(seconds: float) -> None:
        paused.set_result(seconds)
        await asyncio.Event().wait()

    listener = asyncio.ensure_future(
        NotificationListener(Exchange, run_dir_id="", on_wake=Woken(), pause=pause, draw=lambda: draw).run()  # type: ignore[arg-type]
    )
    assert await asyncio.wait_for(paused, 10) == share * PAUSE_S
    listener.cancel()
