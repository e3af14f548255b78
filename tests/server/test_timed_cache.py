"""What is kept for a moment, and what is not."""

import asyncio

import pytest

from spinney.web.timed_cache import TimedCache


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Store:
    """A store that counts its calls."""

    calls = 0
    answer = "ann"

    async def __call__(self) -> str:
        self.calls += 1
        await asyncio.sleep(0)
        return self.answer


async def test_given_two_seconds_then_it_is_asked_once_and_then_anew() -> None:
    clock, store = Clock(), Store()
    memory: TimedCache[str] = TimedCache(2.0, clock)
    assert await memory.get("k", store) == "ann"
    store.answer = "revoked"

    clock.now_s = 1.9
    assert await memory.get("k", store) == "ann"
    clock.now_s = 2.0
    assert await memory.get("k", store) == "revoked"
    assert store.calls == 2


async def test_given_many_at_once_then_the_store_is_asked_once() -> None:
    store = Store()
    memory: TimedCache[str] = TimedCache()

    assert set(await asyncio.gather(*(memory.get("k", store) for _ in range(50)))) == {"ann"}
    assert store.calls == 1


async def test_given_one_who_does_not_wait_any_more_then_the_others_are_answered() -> None:
    store = Store()
    memory: TimedCache[str] = TimedCache()
    gone = asyncio.ensure_future(memory.get("k", store))
    stays = asyncio.ensure_future(memory.get("k", store))
    await asyncio.sleep(0)

    gone.cancel()

    assert await stays == "ann"
    assert store.calls == 1


async def test_given_a_failure_then_it_is_not_kept() -> None:
    memory: TimedCache[str] = TimedCache()

    async def fails() -> str:
        raise OSError("away")

    with pytest.raises(OSError, match="away"):
        await memory.get("k", fails)
    assert await memory.get("k", Store()) == "ann"


async def test_given_that_something_changed_here_then_it_is_asked_anew() -> None:
    store = Store()
    memory: TimedCache[str] = TimedCache()
    await memory.get("k", store)

    memory.forget()
    await memory.get("k", store)

    assert store.calls == 2
