"""What the supervisor answers to the requests of running attempts."""

from asyncio import Task, ensure_future, gather
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import orjson
import pytest

from spinney.model.jobs import Lease
from spinney.node.context import NodeContext
from spinney.node.dispatch.requests import Requests
from spinney.node.workers.wire import pack

LEASE = cast(Lease, SimpleNamespace(job_id=1, fence=5, parent_id=None, root_id=1))


class _Child(NamedTuple):
    id: int
    params: dict[str, str]
    type: str = "t"
    state: str = "completed"
    stage: str | None = None
    code: int | None = None
    message: str | None = None
    warnings: int = 0


class _Store:
    """A store of one job's children, that notes how many it was asked for at once."""

    def __init__(self, children: list[_Child]) -> None:
        self._children, self.limits = children, [0]
        self.messages: list[str | None] = []
        self.fractions: list[float] = []

    def children(self, job_id: int, *, after: int, limit: int) -> list[_Child]:
        self.limits.append(limit)
        return [child for child in self._children if child.id > after][:limit]

    def progress(self, job_id: int, fence: int, fraction: float, message: str | None) -> None:
        self.messages.append(message)
        self.fractions.append(fraction)


def _requests(store: Any, spawn: Callable[[Coroutine[Any, Any, Any]], object] = ensure_future) -> Requests:
    async def insist(verb: Callable[[Any], Any], **how: Any) -> Any:
        return verb(store)

    thread = SimpleNamespace(insist=insist, call=insist)
    settings = SimpleNamespace(lease_period_s=30.0)
    context = SimpleNamespace(writer=thread, reader=thread, signals=None, now_us=lambda: 1, settings=settings)
    return Requests(cast(NodeContext, context), spawn)


async def test_a_nul_in_a_progress_message_is_replaced_as_in_those_of_external_workers() -> None:
    store = _Store([])

    await _requests(store).serve(LEASE, 5, "progress", {"fraction": 1.0, "message": "a\0b"})
    await _requests(store).serve(LEASE, 5, "progress", {"fraction": 1.0, "message": None})

    assert store.messages == ["a\ufffdb", None]


async def test_of_progress_in_a_short_time_the_first_and_the_last_are_stored() -> None:
    store, tasks = _Store([]), list[Task[Any]]()
    requests = _requests(store, lambda work: tasks.append(ensure_future(work)))

    for fraction in (0.1, 0.5, 0.9):
        await requests.serve(LEASE, 5, "progress", {"fraction": fraction, "message": None})
    assert store.fractions == [0.1]
    await gather(*tasks)

    assert store.fractions == [0.1, 0.9]
    await requests.serve(LEASE, 5, "progress", {"fraction": 0.95, "message": None})
    await requests.serve(LEASE, 5, "progress", {"fraction": 1.0, "message": None})
    assert store.fractions == [0.1, 0.9, 0.95, 1.0]


@pytest.mark.parametrize("chars", [1, 40_000, 1_000_000])
async def test_children_come_in_pages_that_fit_into_a_message_however_large_they_are(chars: int) -> None:
    text = "x" * chars
    store = _Store([_Child(id_, {"text": text}) for id_ in range(2, 252)])
    requests, ids = _requests(store), [1]

    while page := await requests.serve(LEASE, 5, "children", {"after": ids[-1], "limit": 240}):
        ids += [row[0] for row in page]
        assert len(page) <= 240
        assert len(pack(page)) < 8 * 2**20
        assert len(page) == 1 or len(orjson.dumps(page[:-1])) < 4 * 2**20 + len(page)

    assert ids == list(range(1, 252))
    assert max(store.limits) <= 100
