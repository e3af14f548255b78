"""A supervisor in miniature for tests: real workers, a real pump, everything they say written down."""

import asyncio
import contextlib
import ctypes
import itertools
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import pytest_asyncio

from spinney.model.values.paths import ROOT_TOKEN, job_folder
from spinney.node.dispatch.output import Pump
from spinney.node.settings import NodeSettings
from spinney.node.workers import proctree
from spinney.node.workers.backlog import Backlog
from spinney.node.workers.child import Child
from spinney.node.workers.shared_page import CELL_CANCEL
from spinney.node.workers.worker_reports import Exit, Hello

HERE = Path(__file__).parent
APP = "executor_app:app"
DEADLINE_S = 20.0
_LAST = 2**40
"""From here on are the fences of attempts behind which nothing of a test is left."""


class Host:
    """Starts workers and remembers what comes from them. Implements ``child.Events``."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.root = place / "folders"
        self.root.mkdir()
        (self.root / ROOT_TOKEN).touch()
        self.pids: set[int] = set()
        self.stages: dict[int, tuple[int, str]] = {}
        self.rows: dict[int, list[Any]] = {}
        self.returned: list[int] = []
        self.blockers: list[tuple[int, list[int]]] = []
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.number = 0
        """The number of the latest request."""
        self.answers: dict[str, Any] = {}
        self.hellos: list[Hello] = []
        self.exits: dict[str, Exit] = {}
        self.marked: list[int] = []
        self.changed = asyncio.Event()
        self.loop = asyncio.get_running_loop()
        self.pump = Pump(self._on_marked, head_bytes=200_000, tail_bytes=1000)
        self.children: list[Child] = []
        self.workers: dict[tuple[Any, ...], Child] = {}
        """The workers that tests share, by whether they run many attempts at once."""
        self._numbers = itertools.count()

    # --- what a test does -----------------------------------------------------------------

    def start(
        self,
        *,
        concurrent: bool = False,
        app: str = APP,
        path: Sequence[Path] = (),
        postmortem_bytes: int = 0,
        **more: Any,
    ) -> Child:
        name = f"w{next(self._numbers)}"
        child = Child(
            name=name,
            settings=NodeSettings(
                store="sqlite:////nowhere.db",
                app=app,
                folders=str(self.root),
                postmortem_bytes=postmortem_bytes,
            ),
            events=self,
            page=self.place / f"{name}.page",
            log_file=self.place / f"{name}.log",
            live_pids=self.pids,
            concurrent=concurrent,
            **more,
        )
        python_path = os.pathsep.join((*map(str, (HERE, *path)), os.environ.get("PYTHONPATH", "")))
        with mock.patch.dict(os.environ, PYTHONPATH=python_path):
            child.start()
        self.children.append(child)
        self.pump.add(child, self.locate)
        return child

    def keep(self, *, concurrent: bool = False, app: str = APP, **more: Any) -> Child:
        """Return a worker that outlives the test unless the test ends it; it is started only when there is
        none. Its application has the stages of ``_at_rest``."""
        key = (concurrent, app, *sorted(more.items()))
        if key not in self.workers:
            self.workers[key] = self.start(concurrent=concurrent, app=app, **more)
        return self.workers[key]

    async def forget(self) -> None:
        """Forget a test and end what it started, less the workers to keep. Those go on only when they do what they are
        given: a test that has spoiled one costs the next one time, never its truth."""
        for child in self.children:
            if child.alive and not (child in self.workers.values() and await self._at_rest(child)):
                await child.kill_attempt(0.0)
        for child in [child for child in self.children if not child.alive]:
            await asyncio.wrap_future(self.pump.remove(child.name))
            child.page.close()
            self.children.remove(child)
        self.workers = {key: child for key, child in self.workers.items() if child.alive}
        for child in self.workers.values():
            # Tests use the same fences again, which nodes never do.
            child.page.cells[CELL_CANCEL] = 0
            child._backlog = Backlog()
        for left in (
            self.stages,
            self.rows,
            self.returned,
            self.blockers,
            self.requests,
            self.hellos,
            self.exits,
            self.marked,
        ):
            left.clear()
        self.answers = {}
        for folder in self.root.glob("[0-9]*"):
            shutil.rmtree(folder)

    async def _at_rest(self, child: Child) -> bool:
        """End what runs in it; whether it then does what it is given, with all its output in its place."""
        if child.concurrent:
            for line in child.running():
                child.request_cancel(line.fence)
        elif child.running():
            return False
        type_, stage = ("many", "meets_async") if child.concurrent else ("sample", "say")
        last = _LAST + next(self._numbers)
        self.give(child, stage, (last, '{"n": 1}' if child.concurrent else '{"text": "last"}'), type_=type_)
        ends = lambda: last in self.marked and child.outstanding == 0  # noqa: E731
        with contextlib.suppress(TimeoutError):
            await self.until(lambda: ends() or last in self.returned or not child.alive)
        return child.alive and ends()

    def give(self, child: Child, stage: str, *jobs: tuple[int, str], type_: str = "sample") -> None:
        """Send (fence, parameters); the job's id is the fence, too."""
        for fence, _ in jobs:
            self.stages[fence] = (fence, stage)
        child.send_run([[type_, stage, [[f, f, 1, text, None, f] for f, text in jobs]]])  # type: ignore[list-item]

    async def run(
        self, child: Child, stage: str, params: str = "{}", *, fence: int = 1, type_: str = "sample"
    ) -> Any:
        """Run one attempt; returns what stands in its row behind the times, or None."""
        self.give(child, stage, (fence, params), type_=type_)
        await self.until(lambda: fence in self.rows)
        detail = self.detail(fence)
        if detail and detail.get("output"):
            await self.until(lambda: fence in self.marked)
            if not self.printed(fence) + self.printed(fence, "stderr"):
                # In doubt a worker says "output", as when the pump is just reading.
                detail = {name: value for name, value in detail.items() if name != "output"}
                return None if detail == {"outcome": "ok"} else detail
        return detail

    def detail(self, fence: int) -> Any:
        row = self.rows[fence]
        return row[3] if len(row) > 3 else None

    async def until(self, holds: Callable[[], Any]) -> None:
        """Wait until something holds, looking whenever something has come and now and then."""
        async with asyncio.timeout(DEADLINE_S):
            while not holds():
                self.changed.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.changed.wait(), 0.01)

    async def ended(self, child: Child) -> Exit:
        async with asyncio.timeout(DEADLINE_S):
            await child.wait()
        await asyncio.wrap_future(self.pump.remove(child.name))
        return self.exits[child.name]

    def folder(self, job_id: int) -> Path:
        return self.root / job_folder(job_id)

    def locate(self, fence: int) -> Path:
        job_id, stage = self.stages[fence]
        return self.folder(job_id) / ".spinney" / f"{stage}.{fence}"

    def printed(self, fence: int, stream: str = "stdout") -> str:
        file = self.locate(fence)
        file = file.with_name(f"{file.name}.{stream}")
        return file.read_text() if file.exists() else ""

    # --- Events ---------------------------------------------------------------------------

    def hello(self, child: Child, hello: Hello) -> None:
        self.hellos.append(hello)
        self.changed.set()

    def done(self, child: Child, rows: list[list[Any]]) -> None:
        for row in rows:
            assert row[0] not in self.rows, "told twice"
            self.rows[row[0]] = row
            if child.concurrent and len(row) > 3 and row[3].get("output"):
                self.pump.end(child.name, row[0])
        self.changed.set()

    def back(self, child: Child, fences: list[int]) -> None:
        self.returned.extend(fences)
        self.changed.set()

    def ask(self, child: Child, number: int, fence: int, verb: str, args: dict[str, Any]) -> None:
        self.number = number
        self.requests.append((verb, args))
        answer = self.answers.get(verb)
        if isinstance(answer, Exception):
            child.refuse(number, answer)
        elif answer is not ...:
            child.answer(number, answer)
        self.changed.set()

    def output(self, child: Child, fence: int, stream: str, text: str) -> None:
        self.pump.put(child.name, fence, stream, text)

    def blocked(self, child: Child, blocker: int, late: list[int]) -> None:
        self.blockers.append((blocker, late))

    def exited(self, child: Child, how: Exit) -> None:
        self.exits[child.name] = how
        self.changed.set()

    def _on_marked(self, fence: int, remark: str | None) -> None:
        self.marked.append(fence)
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.changed.set)

    async def close(self) -> None:
        for child in self.children:
            if child.alive:
                await child.kill_attempt(0.0)
        self.pump.close()
        for child in self.children:
            child.page.close()


@contextlib.contextmanager
def subreaping() -> Iterator[None]:
    """What loses its parent below this process becomes its child meanwhile, and thereby a stray to end. Not for longer:
    a server that is started later for other tests leaves its parent, too, and is none."""
    proctree.become_subreaper()
    try:
        yield
    finally:
        proctree._prctl(proctree._PR_SET_CHILD_SUBREAPER, 0)


@contextlib.asynccontextmanager
async def host_in(place: Path) -> AsyncIterator[Host]:
    """A host that ends everything it started, however the test goes."""
    with subreaping():
        host = Host(place)
        try:
            yield host
        finally:
            await host.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_host(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Host]:
    async with host_in(tmp_path_factory.mktemp("host")) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def host(shared_host: Host) -> AsyncIterator[Host]:
    """The module's, as if it were new. ``conftest`` has whoever asks for it run in the module's event loop."""
    yield shared_host
    await shared_host.forget()


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    return proctree.identify(pid) is not None


def signal_thread(pid: int, number: int) -> None:
    """Send a signal to a thread of this process that is not its first."""
    thread = next(int(task.name) for task in Path(f"/proc/{pid}/task").iterdir() if int(task.name) != pid)
    assert ctypes.CDLL(None).tgkill(pid, thread, number) == 0


def open_fds() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
