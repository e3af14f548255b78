"""A MongoDB-compatible server of a test's own: started on a free port, in a folder that is gone with it."""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pymongo.errors import PyMongoError

from spinney.bridges.disbatch.database import Database, connect

_START_S = 30.0
_PR_SET_PDEATHSIG = 1
_PROGRAM = Path(sys.executable).with_name("secantusd-py")


class MongoServer:
    """``start``, ``kill`` and start it however you like; its port and its data stay until ``remove``."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="spinney-mongo-"))
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"mongodb://127.0.0.1:{self.port}"

    def start(self, *options: str) -> "MongoServer":
        """Start it with these options besides; returns when it answers."""
        command = [str(_PROGRAM), "--host", "127.0.0.1", "--port", str(self.port), "--sync-on-commit"]
        command += ["--storage-path", str(self.folder / "data"), "--cache-size", "64M", *options]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self.folder, preexec_fn=_end_with_the_parent
            )
        give_up = time.monotonic() + _START_S
        while True:
            db = connect(self.url, "admin", timeout_s=1.0)
            try:
                db.command("ping")
                return self
            except PyMongoError:
                if self._process.poll() is not None or time.monotonic() > give_up:
                    log_text = (self.folder / "log").read_text()[-2000:]
                    self.remove()
                    raise AssertionError(f"the server did not start: {log_text}") from None
            finally:
                db.client.close()

    def kill(self) -> None:
        """End it without any warning, as a crash would; what it has acknowledged is on disk."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(_START_S)

    def stop_answering(self) -> None:
        """Connections are taken, and nothing is answered until ``answer_again``."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)
        os.waitpid(self._process.pid, os.WUNTRACED)  # returns when it stands still

    def answer_again(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def database(self) -> Iterator[Database]:
        """Give an empty database, which is dropped afterwards."""
        db = connect(self.url, f"test_{uuid.uuid4().hex[:12]}", timeout_s=10)
        try:
            yield db
        finally:
            db.client.drop_database(db.name)
            db.client.close()


def _end_with_the_parent() -> None:
    """Have the kernel kill the server when the tests are killed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@pytest.fixture(scope="module")
def mongo_server() -> Iterator[MongoServer]:
    """A server that the tests of a module share, each in a database of its own. Who kills it makes a ``MongoServer``
    of its own; who stops it has it answer again."""
    server = MongoServer().start()
    yield server
    server.remove()


@pytest.fixture
def own_server() -> Iterator[MongoServer]:
    """A server that the test may kill."""
    server = MongoServer().start()
    yield server
    server.remove()


@pytest.fixture
def db(mongo_server: MongoServer) -> Iterator[Database]:
    """An empty database."""
    with mongo_server.database() as database:
        yield database
