"""Real ZooKeeper servers for tests: Debian's, on free ports of 127.0.0.1, in temporary folders, gone with the tests.

They are started beside the process of the tests, not below it, because tests of nodes end all descendants of theirs.
"""

import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from waiting import until

UNPACKED = Path(sys.prefix) / "zookeeper"
"""Where ``make`` has ``debian-packages`` unpack ZooKeeper and, where there is none, Java."""
TICK_MS = 200
"""Sessions live at least two ticks, so that tests of expired sessions are short."""
_START_S = 60.0
_JARS = "zookeeper zookeeper-jute slf4j-api slf4j-simple commons-cli metrics-core netty-all snappy-java"
_WATCH = """
exec 3<&0
(
    {java} >> log 2>&1 3<&- &
    server=$!
    echo $server > pid
    read -r _ <&3
    kill -9 $server
    wait $server
) > /dev/null 2>&1 &
"""
"""The server is killed when the tests close the other end of the pipe, or end in whatever way."""


@dataclass
class Server:
    """One ZooKeeper server, which can be killed and started again with its data."""

    folder: Path
    port: int
    _pipe: "subprocess.Popen[bytes] | None" = field(default=None, repr=False)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server, without waiting until it serves."""
        (self.folder / "pid").unlink(missing_ok=True)
        script = _WATCH.format(java=shlex.join(_command(self.folder / "zoo.cfg")))
        self._pipe = subprocess.Popen(
            ["setsid", "sh", "-c", script],
            cwd=self.folder,
            stdin=subprocess.PIPE,
            env=os.environ | {"LD_LIBRARY_PATH": _libraries()},
        )
        self._pipe.wait()
        pid = self.folder / "pid"
        until(lambda: pid.exists() and pid.read_text(), "the shell has started ZooKeeper", _START_S)

    def kill(self) -> None:
        """Kill the server with SIGKILL and wait until it is gone."""
        assert self._pipe is not None
        assert self._pipe.stdin is not None
        self._pipe.stdin.close()
        process = Path("/proc", (self.folder / "pid").read_text().strip())
        until(lambda: not process.exists(), f"the end of ZooKeeper, {process}", _START_S)

    def command(self, word: str) -> str:
        """Return the answer to one of ZooKeeper's four-letter commands, or nothing when it does not serve."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
                connection.sendall(word.encode())
                return b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        except OSError:
            return ""

    def wait_until_serving(self) -> None:
        until(
            lambda: "Mode: " in self.command("srvr"),
            lambda: f"ZooKeeper's start: {(self.folder / 'log').read_text()[-3000:]}",
            _START_S,
        )


@contextmanager
def standalone() -> Iterator[Server]:
    """Run one server. Skip the test where the package could not be had."""
    with _servers(1) as servers:
        yield servers[0]


@contextmanager
def ensemble() -> Iterator[list[Server]]:
    """Run three servers that elect a leader. Skip the test where the package could not be had."""
    with _servers(3) as servers:
        yield servers


@contextmanager
def _servers(count: int) -> Iterator[list[Server]]:
    _require_packages()
    with (
        tempfile.TemporaryDirectory(prefix="spinney-zookeeper-", ignore_cleanup_errors=True) as place,
        ExitStack() as stop,
    ):
        ports = _free_ports(3 * count)
        members = [
            f"server.{number}=127.0.0.1:{ports[3 * number - 2]}:{ports[3 * number - 1]}"
            for number in range(1, count + 1)
        ]
        servers = []
        for number in range(1, count + 1):
            folder = Path(place, str(number))
            (folder / "data").mkdir(parents=True)
            (folder / "log").touch()
            (folder / "data" / "myid").write_text(str(number))
            (folder / "zoo.cfg").write_text(
                f"tickTime={TICK_MS}\ninitLimit=50\nsyncLimit=25\ndataDir={folder}/data\nclientPortAddress=127.0.0.1\n"
                f"clientPort={ports[3 * number - 3]}\nadmin.enableServer=false\n4lw.commands.whitelist=srvr,ruok\n"
                "maxClientCnxns=0\nmaxSessionTimeout=60000\n" + ("\n".join(members) if count > 1 else "")
            )
            servers.append(Server(folder, ports[3 * number - 3]))
        for server in servers:
            server.start()
            stop.callback(server.kill)
        for server in servers:
            server.wait_until_serving()
        yield servers


def _require_packages() -> None:
    if not _jar("zookeeper").exists():
        pytest.skip(
            "there is no ZooKeeper here, and 'make test' could not get it from Debian's packages; install zookeeper"
        )
    if _java() is None:
        pytest.skip("there is no Java here, and 'make test' could not get it; install default-jre-headless")


def _command(config: Path) -> Sequence[str]:
    return [
        str(_java()),
        "-Xmx128m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Dzookeeper.forceSync=no",
        "-cp",
        ":".join(str(_jar(name)) for name in _JARS.split()),
        "org.apache.zookeeper.server.quorum.QuorumPeerMain",
        str(config),
    ]


def _jar(name: str) -> Path:
    unpacked = UNPACKED / f"usr/share/java/{name}.jar"
    return unpacked if unpacked.exists() else Path(f"/usr/share/java/{name}.jar")


def _java() -> str | None:
    return next(
        (str(java) for java in UNPACKED.glob("usr/lib/jvm/default-java/bin/java")), shutil.which("java")
    )


def _libraries() -> str:
    return ":".join(str(folder) for folder in UNPACKED.glob("usr/lib/*-linux-gnu"))


def _free_ports(count: int) -> list[int]:
    with ExitStack() as close:
        sockets = [close.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
