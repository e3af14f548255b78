"""Real nodes for tests: guard, supervisor and workers as processes, on a store in a file."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest

import job_verbs
from new_store import new_store
from spinney.folders import folders
from spinney.model.errors import UnlawfulTransition
from spinney.model.jobs import Attempt, Filter, Job, NodeInfo, Submission
from spinney.model.states import SETTLED, State
from spinney.node.settings import NodeSettings
from spinney.store.parts import Store
from spinney.store.sql import open_store
from spinney.wakeup.local import wake_local_nodes
from waiting import until

T = TypeVar("T")
HERE = Path(__file__).parent
DEADLINE_S = 60.0
NODE = NodeInfo(
    id=1,
    name="oak",
    boot_id="b",
    host="h",
    pid=4,
    slots=1,
    state="active",
    beat=7,
    started_us=5,
    seen_us=0,
    version="1",
    types=(),
    lease_s=15.0,
)
"""A node as its row shows it, for tests without one."""
"""Only for what never happens: on a busy machine everything may take many times as long as on an idle one."""
_RUN = (
    "import sys\n"
    "from spinney.node.run import run_node\n"
    "from spinney.node.settings import NodeSettings\n"
    "sys.exit(run_node(NodeSettings.from_json(sys.argv[1])))\n"
)


def now_us() -> int:
    return time.time_ns() // 1000


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


class Node:
    """A node's guard as a child process, and what is below it."""

    def __init__(self, process: subprocess.Popen[str], cluster: "Cluster", name: str) -> None:
        self.process, self.cluster, self.name = process, cluster, name

    @property
    def pid(self) -> int:
        return self.process.pid

    def joined(self) -> "Node":
        """Wait until it has joined."""
        until(lambda: self.info() or self.process.poll() is not None, f"{self.name} joins")
        assert self.process.poll() is None, self.process.stderr and self.process.stderr.read()
        return self

    def info(self) -> NodeInfo | None:
        return next((n for n in self.cluster.store.nodes() if n.pid == self.pid), None)

    def beats(self) -> int:
        """How many heartbeats it has sent."""
        info = self.info()
        assert info is not None
        return info.beat

    def supervisor(self) -> int:
        return until(lambda: next(iter(_children(self.pid)), 0), "a supervisor")

    def workers(self) -> list[int]:
        return _children(self.supervisor())

    def processes(self) -> list[int]:
        """The guard and all below it, the guard first."""
        pids = [self.pid]
        for pid in pids:
            pids += _children(pid)
        return pids

    def pause(self) -> list[int]:
        """Stop the whole node as it stands, as a frozen machine would; returns its processes."""
        stopped: list[int] = []
        while left := [pid for pid in self.processes() if pid not in stopped]:
            for pid in left:
                os.kill(pid, signal.SIGSTOP)
            stopped += left
        return stopped

    def term(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(DEADLINE_S)

    def wait(self) -> int:
        return self.process.wait(DEADLINE_S)

    def stop(self) -> str:
        """Drain it; returns what it logged."""
        self.term()
        _, log = self.process.communicate(timeout=DEADLINE_S)
        assert self.process.returncode == 0, log
        return log


class Cluster:
    """A store, a folder root, and the nodes that a test starts on them."""

    def __init__(self, place: Path, url: str | None = None, *, local_folders: bool = False) -> None:
        self.place = place
        as_usual = url is None and not local_folders
        file = place / "spinney.db"
        self.url = url or (new_store(file) if as_usual else f"sqlite:///{file}")
        self.store: Store = open_store(self.url)
        if not as_usual:
            self.store.create(local_folders=local_folders)
        self.folders = place / "folders"
        self.folders.mkdir()
        folders.write_token(self.folders, self.store.facts()["folder_token"])
        self.mark = f"SPINNEY_TEST={uuid.uuid4().hex}"
        self.nodes: list[Node] = []

    @property
    def run_dir(self) -> Path:
        return NodeSettings(store=self.url, app="a:b", folders="x").run_path()

    def start(
        self,
        *,
        name: str = "oak",
        app: str = "node_app:app",
        host: str | None = None,
        env: Mapping[str, str] | None = None,
        log: Path | None = None,
        parent: str = "",
        **settings: Any,
    ) -> Node:
        """Start a node; it may not have joined yet. ``host``: one that takes itself to be on another host of that
        name, with a run-time directory of its own. ``env``: more of its environment. ``log``: where it logs to,
        for one that logs more than a pipe takes. ``parent``: a program that starts the node, whose command line are its
        arguments; the process of the ``Node`` is then this program's."""
        elsewhere = {} if host is None else self._elsewhere(host)
        if host is not None:
            settings = {"run_dir": str(self.place / f"run-{host}")} | settings
        chosen: dict[str, Any] = {
            "slots": 2,
            "beat_s": 0.2,
            "lease_period_s": 30.0,
            "tick_s": 0.05,
        } | settings
        node_settings = NodeSettings(
            store=self.url, app=app, name=name, **{"folders": str(self.folders)} | chosen
        )
        key, _, value = self.mark.partition("=")
        words = [sys.executable, "-c", _RUN, node_settings.to_json()]
        process = subprocess.Popen(
            [sys.executable, "-c", parent, *words] if parent else words,
            cwd=HERE,
            env=os.environ | {key: value} | elsewhere | (env or {}),
            stderr=subprocess.PIPE if log is None else log.open("ab"),
            text=True,
        )
        self.nodes.append(Node(process, self, name))
        return self.nodes[-1]

    def _elsewhere(self, host: str) -> dict[str, str]:
        """The environment in which Python is told another name of its host."""
        folder = self.place / f"host-{host}"
        folder.mkdir(exist_ok=True)
        (folder / "sitecustomize.py").write_text(f"import socket\nsocket.gethostname = lambda: {host!r}\n")
        return {"PYTHONPATH": os.pathsep.join((str(folder), os.environ.get("PYTHONPATH", "")))}

    def node(self, **settings: Any) -> Node:
        """Start a node and wait until it has joined."""
        return self.start(**settings).joined()

    # --- jobs -----------------------------------------------------------------------------

    def submit(self, type_: str, *params: Mapping[str, Any], **options: Any) -> list[int]:
        order = Submission(type=type_, params=[json.dumps(p) for p in params or ({},)], **options)
        ids = list(self.store.submit([order], now_us=now_us()).ids)
        wake_local_nodes(self.run_dir)
        return ids

    def run(self, type_: str, *params: Mapping[str, Any], **options: Any) -> list[Job]:
        """Submit and wait until all have settled."""
        return self.settled(self.submit(type_, *params, **options))

    def settled(self, ids: list[int], deadline_s: float = DEADLINE_S) -> list[Job]:
        left: list[int] = []

        def look() -> list[Job]:
            """Asks for one job alone as long as that is open: a look at thousands would keep the node from its work."""
            if not left:
                left.extend(ids)
            while left and self.store.job(left[-1]).state in SETTLED:
                left.pop()
            jobs = [] if left else [self.store.job(i) for i in ids]
            return jobs if all(j.state in SETTLED for j in jobs) else []

        try:
            return until(look, deadline_s=deadline_s)
        except AssertionError:
            stuck = [j for j in map(self.store.job, ids) if j.state not in SETTLED]
            raise AssertionError(f"not settled: {stuck[:3]} and {len(stuck)} in all") from None

    def attempts(self, job_id: int) -> list[Attempt]:
        return self.store.attempts(job_id)

    def counts(self) -> dict[str, int]:
        return dict(self.store.counts(Filter()))

    def file(self, name: str) -> Path:
        return self.place / name

    # --- processes ------------------------------------------------------------------------

    def living(self) -> set[int]:
        """Every process below any node of this house, however it detached itself."""
        children = set()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if self.mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                        children.add(int(entry.name))
                except OSError:
                    continue
        return children

    def close(self) -> None:
        for node in self.nodes:
            if node.process.poll() is None:
                node.process.kill()
        give_up = time.monotonic() + DEADLINE_S
        while (left := self.living()) and time.monotonic() < give_up:
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            for node in self.nodes:
                node.process.poll()
            time.sleep(0.005)
        for node in self.nodes:
            node.process.wait(DEADLINE_S)
            if node.process.stderr is not None:
                node.process.stderr.close()
        self.store.close()


def _children(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(c) for task in tasks for c in (task / "children").read_text().split()]
    except OSError:
        return []


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A store with its folder root; every process started on it is gone afterwards."""
    made = Cluster(tmp_path)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A house for the tests of a module that do no more with a node than to give it work."""
    cluster = Cluster(tmp_path_factory.mktemp("kept"))
    try:
        yield cluster
        if cluster.nodes:
            assert "Traceback" not in cluster.nodes[-1].stop()
    finally:
        cluster.close()


@pytest.fixture
def working(request: pytest.FixtureRequest, kept: Cluster, tmp_path: Path) -> Iterator[Cluster]:
    """``kept`` with its node at work, which the module's ``SETTINGS`` tell about; files are the test's own. A test
    that leaves work behind, or has killed the node, costs the next one time, never its truth."""
    if not kept.nodes or kept.nodes[-1].process.poll() is not None:
        kept.node(**getattr(request.module, "SETTINGS", {}))
    kept.place = tmp_path
    yield kept
    open_ = [job.id for job in kept.store.jobs(Filter(states=tuple(set(State) - SETTLED)), limit=10_000)]
    for job_id in open_:
        with suppress(UnlawfulTransition):  # it has settled since
            job_verbs.cancel(kept.store, job_id, tree=False, by="test", reason="left behind", now_us=now_us())
    if open_:
        kept.settled(open_)
