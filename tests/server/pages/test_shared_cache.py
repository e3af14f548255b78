import asyncio

import pytest

from spinney.web.pages.shared_cache import SharedCache


class Source:
    def __init__(self) -> None:
        self.asked = 0
        self.go = asyncio.Event()

    async def make(self) -> int:
        self.asked += 1
        await self.go.wait()
        return self.asked


async def test_given_many_who_ask_at_once_then_it_is_made_once() -> None:
    source, shared = Source(), SharedCache()

    waiting = [asyncio.create_task(shared.get("a", source.make)) for _ in range(50)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    source.go.set()

    assert await asyncio.gather(*waiting[1:]) == [1] * 49


async def test_given_its_time_is_over_then_it_is_made_anew_and_others_keep_theirs() -> None:
    now = [0.0]
    source, shared = Source(), SharedCache(lambda: now[0])
    source.go.set()

    assert await shared.get("a", source.make) == 1
    assert await shared.get("a", source.make) == 1
    assert await shared.get("b", source.make) == 2
    now[0] = 2.0
    assert await shared.get("a", source.make) == 3


async def test_given_it_fails_then_all_hear_of_it_and_the_next_asks_again() -> None:
    shared = SharedCache()
    tries = []

    async def fail() -> None:
        tries.append(1)
        raise ValueError("away")

    for _ in range(2):
        with pytest.raises(ValueError, match="away"):
            await shared.get("a", fail)
    assert len(tries) == 2
