"""Threads with stores: calls of one kind keep those of another neither waiting nor out."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from spinney.store.parts import Store
from spinney.web import store_pool
from spinney.web.store_pool import ServerBusy, StorePool


def test_calls_that_wait_for_the_folder_root_refuse_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_pool, "QUEUED_MAX", 6)
    answers = threading.Event()
    wait: Callable[[Store], Any] = lambda store: answers.wait()  # noqa: E731

    async def work() -> None:
        async with StorePool(mock.Mock, threads=1) as stores:
            uploads = [asyncio.create_task(stores.run(wait, disk=True)) for _ in range(6)]
            await asyncio.sleep(0)
            try:
                with pytest.raises(ServerBusy):
                    await stores.run(wait, disk=True)
                assert await stores.run(lambda store: "answered") == "answered"
            finally:
                answers.set()
            assert all(await asyncio.gather(*uploads))

    asyncio.run(work())
