"""A store in a temporary folder and a real node beside it, as users have them."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg

from benchmarks.jobs import app as declared
from spinney import Spinney
from spinney.store.sql import SqlStore, open_store

PATIENCE_S = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where one case is measured."""

    folder: Path
    url: str
    store: SqlStore
    server: str | None = None
    """URL of the database server, when there is one, and the schema in it."""
    schema: str = ""

    def app(self) -> Spinney:
        """A submitter's view: the same types, on this store."""
        made = Spinney(self.url, folders=self.folder / "bench.folders")
        made.types.update(declared.types)
        return made

    @contextmanager
    def node(
        self, slots: int, name: str = "bench", app: str = "benchmarks.jobs:app"
    ) -> Iterator[psutil.Process]:
        """A running node; yields its supervisor's process. Stopped and gone at the end."""
        command = [sys.executable, "-m", "spinney", "node", app, "--store", self.url]
        command += ["--slots", str(slots), "--name", name]
        log = (self.folder / "node.log").open("ab")
        where = {"PYTHONPATH": f"{Path(__file__).parent.parent}:{os.environ.get('PYTHONPATH', '')}"}
        guard = subprocess.Popen(command, stderr=log, stdout=log, cwd=self.folder, env=os.environ | where)
        try:
            until(lambda: name in self._working(), "the node to come up", guard)
            yield psutil.Process(guard.pid).children()[0]
        finally:
            guard.send_signal(signal.SIGTERM)
            guard.wait(PATIENCE_S)
            log.close()

    def rate(self, after_id: int) -> float:
        """Jobs a second of those behind this number, from the first start to the last settlement."""
        with self.store.database.look() as tx:
            ((count, first, last),) = tx.all(
                "select count(*), min(started_us), max(settled_us) from jobs where id > ?", (after_id,)
            )
        return float(count / (last - first) * 1e6)

    def _working(self) -> list[str]:
        return [node.name for node in self.store.nodes() if node.state == "active"]

    def wait_settled(self) -> None:
        """Until nothing is left to run. Asked of the narrow tables: counting what has completed would
        take the processor from what is measured."""
        until(
            lambda: (
                not self._any(
                    "select exists(select 1 from ready), exists(select 1 from leases), "
                    "exists(select 1 from staging)"
                )
            ),
            "all jobs to settle",
        )

    def wait_begun(self) -> None:
        """Until a node has taken something."""
        until(lambda: self._any("select exists(select 1 from leases)"), "the node to begin")

    def _any(self, sql: str) -> bool:
        with self.store.database.look() as tx:
            return any(tx.all(sql)[0])


@contextmanager
def site() -> Iterator[Site]:
    """A fresh store: a file on the disk that holds the temporary folder, or a schema of its own in the database
    that SPINNEY_BENCH_STORE names."""
    server = os.environ.get("SPINNEY_BENCH_STORE")
    with tempfile.TemporaryDirectory(prefix="spinney-bench-") as name, ExitStack() as gone_after:
        folder = Path(name)
        url = gone_after.enter_context(_schema(server)) if server else f"sqlite:///{folder}/bench.db"
        settings = '[spinney]\nfolders = "bench.folders"\n[server]\nstreams_per_user = 1000\n'
        (folder / "spinney.toml").write_text(settings)
        init = [sys.executable, "-m", "spinney", "init", "--store", url]
        subprocess.run(init, check=True, stdout=subprocess.DEVNULL, cwd=folder)
        store = open_store(url)
        store.register([kind.spec for kind in declared.types.values()], [])
        try:
            yield Site(
                folder=folder, url=url, store=store, server=server, schema=url.rpartition("schema=")[2]
            )
        finally:
            store.close()


@contextmanager
def _schema(server: str) -> Iterator[str]:
    name = f"bench_{uuid.uuid4().hex[:12]}"
    yield f"{server}{'&' if '?' in server else '?'}schema={name}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'drop schema if exists "{name}" cascade')


def until(done, what: str, process: subprocess.Popen[bytes] | None = None) -> None:  # type: ignore[no-untyped-def]
    """Wait for a condition; raises when it does not come true in time."""
    end = time.monotonic() + PATIENCE_S
    while not done():
        if time.monotonic() > end or (process is not None and process.poll() is not None):
            raise TimeoutError(f"waited in vain for {what}; look at the node's log")
        time.sleep(0.02)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which that share of all lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def loop_s(rounds: int = 10_000_000) -> float:
    """How long so many turns of an empty loop take: by it figures of different days and machines can be compared."""
    begun = time.perf_counter()
    for _ in range(rounds):
        pass
    return time.perf_counter() - begun


def fsync_ms(folder: Path, rounds: int = 200) -> float:
    """Median time of appending 4 kB and syncing it: what one durable commit must cost on this disk."""
    taken = []
    with (folder / "fsync.probe").open("wb") as file:
        for _ in range(rounds):
            begun = time.perf_counter()
            file.write(b"x" * 4096)
            file.flush()
            os.fdatasync(file.fileno())
            taken.append((time.perf_counter() - begun) * 1e3)
    return percentile(taken, 0.5)
