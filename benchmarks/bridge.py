"""A bridge: tasks of a Disbatch database through one node, with a server that speaks MongoDB's protocol beside it."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from pymongo.errors import PyMongoError

from spinney.bridges.disbatch.database import Database, connect, ensure_indexes

TASKS = 2_000
LIMITS = (8, 64)
"""Limits of the queue: so many tasks are claimed at a time."""
_PATIENCE_S = 600.0
_APPLICATION = """
from spinney import Spinney

app = Spinney()


@app.job
def demo() -> None:
    pass
"""


def tasks() -> Mapping[str, float]:
    """Return tasks a second by the limit of their queue, and the cost of the other side's statements alone."""
    figures: dict[str, float] = {}
    with TemporaryDirectory() as folder, _server(Path(folder)) as url:
        for limit in LIMITS:
            db = connect(url, f"limit_{limit}")
            ensure_indexes(db)
            figures |= _measured(Path(folder) / str(limit), url, db, limit)
            db.client.close()
    return figures


def _measured(place: Path, url: str, db: Database, limit: int) -> Mapping[str, float]:
    place.mkdir()
    (place / "jobs.py").write_text(_APPLICATION)
    (place / "disbatch.toml").write_text('[plugins]\n"Demo" = "demo"\n')
    queue = (
        db["queues"].insert_one({"name": "q", "plugin": "Demo", "threads": limit, "sort": "fifo"}).inserted_id
    )
    now = datetime.now(UTC)
    task = {"queue": queue, "ctime": now, "mtime": now, "node": None, "status": -2, "params": {}}
    db["tasks"].insert_many([dict(task) for _ in range(TASKS)])
    command = [sys.executable, "-m", "spinney"]
    subprocess.run([*command, "init"], cwd=place, check=True, stdout=subprocess.DEVNULL)
    words = ["disbatch", "node", "jobs:app", "--mongo", url, "--database", db.name, "--slots", str(limit)]
    with (place / "log").open("wb") as log:
        node = subprocess.Popen([*command, *words], cwd=place, stderr=log, start_new_session=True)
    try:
        _until(lambda: _done(db) > 0)
        begun, at = time.monotonic(), _done(db)
        _until(lambda: _done(db) == TASKS)
        rate = (TASKS - at) / (time.monotonic() - begun)
    finally:
        node.terminate()
        node.wait()
    begun = time.monotonic()
    free = {"queue": queue, "status": 1, "node": {"$ne": None}}
    for _ in range(10):
        list(db["tasks"].find(free).sort("_id", 1).limit(limit))
    return {
        f"tasks/s, limit {limit}": rate,
        f"ms of the server to find {limit} tasks": (time.monotonic() - begun) / 10 * 1000,
    }


def _done(db: Database) -> int:
    return db["tasks"].count_documents({"complete": True})


def _until(look: Callable[[], bool]) -> None:
    end_s = time.monotonic() + _PATIENCE_S
    while not look():
        if time.monotonic() > end_s:
            raise TimeoutError("the tasks are not done in time")
        time.sleep(0.2)


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    """Run a server with a sync at each commit; yield its URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = Path(sys.executable).with_name("secantusd-py")
    words = [
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--storage-path",
        str(folder / "data"),
        "--sync-on-commit",
    ]
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen([program, *words], cwd=folder, stdout=log, stderr=log)
    url = f"mongodb://127.0.0.1:{port}"
    try:
        _until(lambda: _answers(url))
        yield url
    finally:
        os.kill(server.pid, signal.SIGKILL)
        server.wait()


def _answers(url: str) -> bool:
    db = connect(url, "admin", timeout_s=1.0)
    try:
        db.command("ping")
    except PyMongoError:
        return False
    finally:
        db.client.close()
    return True
