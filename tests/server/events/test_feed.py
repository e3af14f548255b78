"""What watchers are told, on a real store."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest

from new_store import new_store
from spinney.commands.control import Control
from spinney.features.jobs.commands import CancelJob
from spinney.model.access import ALL_RIGHTS, AccessScope, Rights, Role
from spinney.model.errors import UsageError
from spinney.model.jobs import NodeInfo
from spinney.model.types import StageSpec, TypeSpec
from spinney.schemas import AuthMethod
from spinney.store.sql import open_store
from spinney.web.events.feed import Event, Feed, Watcher
from spinney.web.events.topics import Topic, topic
from spinney.web.request_context import Principal, RequestContext, now_us
from spinney.web.store_pool import StorePool


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = new_store(tmp_path / "spinney.db")
    store = open_store(url)
    store.register([TypeSpec(name="work", stages=(StageSpec(name="work"),))], [])
    store.close()
    return url


@pytest.fixture
def control(url: str) -> Iterator[Control]:
    """Somebody else, in a process of his own as far as the store can tell."""
    store = open_store(url)
    yield Control(store=store, clock=now_us, wake_nodes=lambda: None, by="somebody")
    store.close()


class ServerMaintenance:
    """A feed, and those who look at it."""

    def __init__(self, feed: Feed, stores: StorePool) -> None:
        self.feed, self._stores = feed, stores

    def context(self, rights: Rights = ALL_RIGHTS, name: str = "wanda") -> RequestContext:
        return RequestContext(
            principal=Principal(name=name, rights=rights, how=AuthMethod.TOKEN),
            stores=self._stores,
            run_dir=None,
        )

    def watch(self, *topics: str, rights: Rights = ALL_RIGHTS, last: str | None = None) -> Watcher:
        return self.feed.watch([topic(name) for name in topics], self.context(rights), last=last)


@asynccontextmanager
async def watching(url: str) -> AsyncIterator[ServerMaintenance]:
    async with StorePool(lambda: open_store(url), threads=1) as stores, Feed(stores, least_s=0.0) as feed:
        yield ServerMaintenance(feed, stores)


async def next_events(watcher: Watcher) -> list[Event]:
    """Return the next events of the watcher, which must come within 10 s."""
    await watcher.wait(10.0)
    rows = watcher.take()
    assert rows, "nothing was told in time"
    return rows


async def test_a_watcher_is_told_how_it_stands_and_then_what_changes(url: str, control: Control) -> None:
    (job,) = control.submit("work", [{}]).ids
    async with watching(url) as there:
        watcher = there.watch(f"job:{job}")
        (first,) = await next_events(watcher)
        assert first.topic == f"job:{job}"
        assert orjson.loads(first.data)["state"] == "pending"
        control.do(CancelJob(job=job))
        (second,) = await next_events(watcher)
        assert orjson.loads(second.data)["state"] == "cancelled"
        assert second.number > first.number


async def test_what_does_not_change_is_not_told_again(url: str, control: Control) -> None:
    (one, other) = control.submit("work", [{}, {}]).ids
    async with watching(url) as there:
        watcher, witness = there.watch(f"job:{one}"), there.watch(f"job:{other}")
        await next_events(watcher)
        await next_events(witness)
        control.do(CancelJob(job=other))
        await next_events(witness)  # the feed has looked at both by now, or looks at both in one go
        control.do(CancelJob(job=one))
        (event,) = await next_events(watcher)
        assert orjson.loads(event.data)["state"] == "cancelled"


async def test_many_watchers_are_one_look(
    url: str, control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job,) = control.submit("work", [{}]).ids
    looks = 0
    async with watching(url) as there:
        inner = Feed._look_at

        async def counted(self: Feed, one: object) -> None:
            nonlocal looks
            looks += 1
            await inner(self, one)  # type: ignore[arg-type]

        monkeypatch.setattr(Feed, "_look_at", counted)
        watchers = [there.watch(f"job:{job}") for _ in range(50)]
        for watcher in watchers:
            await next_events(watcher)
        control.do(CancelJob(job=job))
        for watcher in watchers:
            await next_events(watcher)
        assert looks == 2
        assert there.feed.streams == 50


async def test_who_comes_back_is_told_what_has_changed_since_and_no_more(url: str, control: Control) -> None:
    still, moving = control.submit("work", [{}, {}]).ids
    async with watching(url) as there:
        watcher = there.watch(f"job:{still}", f"job:{moving}")
        events = await next_events(watcher)
        while len(events) < 2:
            events += await next_events(watcher)
        last = watcher.event_id(events[-1])
        witness = there.watch(f"job:{moving}")
        await next_events(witness)
        there.feed.leave(watcher)
        control.do(CancelJob(job=moving))
        await next_events(witness)
        again = await next_events(there.watch(f"job:{still}", f"job:{moving}", last=last))
        assert [e.topic for e in again] == [f"job:{moving}"]


async def test_who_comes_back_to_another_start_of_the_server_is_told_everything(
    url: str, control: Control
) -> None:
    (job,) = control.submit("work", [{}]).ids
    async with watching(url) as there:
        assert [
            e.topic for e in await next_events(there.watch(f"job:{job}", last="0123456789ab.999999"))
        ] == [f"job:{job}"]


@pytest.mark.parametrize("change", ["rights", "name"])
async def test_who_comes_back_with_other_rights_is_told_everything(
    url: str, control: Control, change: str
) -> None:
    control.submit("work", [{}])
    limited = Rights(role=Role.ADMIN, within=AccessScope(queues=("other",)))
    async with watching(url) as there:
        before, now = {
            "rights": (there.context(limited), there.context()),
            "name": (there.context(limited), there.context(limited, "willy")),
        }[change]
        topics = [topic("jobs")]
        (state_now,) = await next_events(there.feed.watch(topics, now))
        watcher = there.feed.watch(topics, before)
        (state_before,) = await next_events(watcher)
        there.feed.leave(watcher)

        last = watcher.event_id(state_before)
        assert there.feed.watch(topics, now, last=last).take() == [state_now]
        assert there.feed.watch(topics, before, last=last).take() == []


async def test_between_two_tellings_the_last_state_counts(url: str, control: Control) -> None:
    (job,) = control.submit("work", [{}]).ids
    async with watching(url) as there:
        watcher, witness = there.watch(f"job:{job}"), there.watch(f"job:{job}")
        await next_events(witness)
        control.do(CancelJob(job=job))
        await next_events(witness)
        (event,) = await next_events(watcher)
        assert orjson.loads(event.data)["state"] == "cancelled"


async def test_what_is_out_of_sight_is_as_what_is_not_there(url: str, control: Control) -> None:
    from spinney.define.job.options import Options

    (job,) = control.submit("work", [{}], Options(collection="birds")).ids
    limited = Rights(role=Role.VIEWER, within=AccessScope(collections=("fish",)))
    async with watching(url) as there:
        (event,) = await next_events(there.watch(f"job:{job}", rights=limited))
        (nothing,) = await next_events(there.watch("job:999", rights=limited))
        assert orjson.loads(event.data) == {"id": job, "state": None}
        assert orjson.loads(nothing.data) == {"id": 999, "state": None}
        (jobs,) = await next_events(there.watch("jobs", rights=limited))
        assert orjson.loads(jobs.data) == []


async def test_a_tree_is_told_by_its_counts(url: str, control: Control) -> None:
    (job,) = control.submit("work", [{}]).ids
    async with watching(url) as there:
        (event,) = await next_events(there.watch(f"tree:{job}"))
        assert orjson.loads(event.data) == {"id": job, "state": "pending", "stage": "work", "counts": {}}


@pytest.mark.parametrize(
    "name",
    [
        "overview",
        "batches",
        "jobs",
        "queues",
        "nodes",
        "holds",
        "locks",
        "schedules",
        "failures",
        "jobs:state=failed&type=work",
    ],
)
@pytest.mark.parametrize(
    "within", [AccessScope(), AccessScope(collections=("fish",)), AccessScope(queues=("default",))]
)
async def test_every_topic_can_be_watched(url: str, control: Control, name: str, within: AccessScope) -> None:
    control.submit("work", [{}])
    async with watching(url) as there:
        (event,) = await next_events(there.watch(name, rights=Rights(role=Role.VIEWER, within=within)))
        assert event.topic == name
        orjson.loads(event.data)


@pytest.mark.parametrize(
    "name",
    [
        "overvieuw",
        "job:",
        "job:x",
        "job:1.5",
        "job:²",
        "tree:99999999999999999999",
        "jobs:state=glad",
        "jobs:colour=red",
        "",
    ],
)
def test_a_topic_that_there_is_not_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        topic(name)


async def test_the_topic_of_nodes_tells_each(url: str, control: Control) -> None:
    node = NodeInfo(
        id=0,
        name="oak",
        boot_id="b",
        host="h",
        pid=1,
        slots=2,
        state="active",
        beat=0,
        started_us=0,
        seen_us=0,
        version="1",
        types=("work",),
    )
    control.store.join(node, now_us=now_us())
    async with watching(url) as there:
        (event,) = await next_events(there.watch("nodes"))
        (rows,) = orjson.loads(event.data)
        assert (rows["node"], rows["used"]) == ("oak", 0)


async def test_a_topic_that_cannot_be_looked_at_keeps_no_other_back(url: str, control: Control) -> None:
    (job,) = control.submit("work", [{}]).ids

    def broken(control: Control) -> object:
        raise ZeroDivisionError

    async with watching(url) as there:
        watcher = there.watch(f"job:{job}")
        context = watcher.watched[0].context
        there.feed.watch([Topic(name="broken", look=broken)], context)
        await next_events(watcher)
        control.do(CancelJob(job=job))
        (event,) = await next_events(watcher)
        assert orjson.loads(event.data)["state"] == "cancelled"


async def test_streams_end_with_the_feed(url: str, control: Control) -> None:
    async with watching(url) as there:
        watcher = there.watch("overview")
        await next_events(watcher)
        there.feed.end()
        async with asyncio.timeout(5):
            while not watcher.ended:
                await watcher.wait(1.0)
