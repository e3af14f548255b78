"""Answers that are made once for many, and never before they were asked for."""

import asyncio

import pytest

from spinney.web.pages.request_coalescer import RequestCoalescer


async def test_given_one_is_being_made_when_many_ask_then_one_more_is_made_for_all_of_them() -> None:
    coalesced, gate, begun, made = RequestCoalescer(), asyncio.Event(), asyncio.Event(), 0

    async def make() -> int:
        nonlocal made
        made += 1
        mine = made
        begun.set()
        await gate.wait()
        return mine

    first = asyncio.create_task(coalesced.get("a", make))
    await begun.wait()
    others = [asyncio.create_task(coalesced.get("a", make)) for _ in range(5)]
    await asyncio.sleep(0)
    gate.set()

    assert await first == 1
    assert await asyncio.gather(*others) == [2] * 5
    assert await coalesced.get("a", make) == 3


async def test_given_an_answer_that_fails_when_asked_again_then_it_is_made_anew() -> None:
    coalesced = RequestCoalescer()

    async def fail() -> int:
        raise ValueError("no")

    async def make() -> int:
        return 1

    with pytest.raises(ValueError, match="no"):
        await coalesced.get("a", fail)
    assert await coalesced.get("a", make) == 1


async def test_given_a_reader_who_goes_away_when_others_wait_then_they_get_their_answer() -> None:
    coalesced, gate = RequestCoalescer(), asyncio.Event()

    async def make() -> int:
        await gate.wait()
        return 1

    gone = asyncio.create_task(coalesced.get("a", make))
    stays = asyncio.create_task(coalesced.get("a", make))
    await asyncio.sleep(0)
    gone.cancel()
    gate.set()

    assert await stays == 1
