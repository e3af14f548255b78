"""The line protocol, by real connections: replies, and clients that behave badly."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Event, Thread
from typing import Any, cast

import pytest

from spinney.apps.monitor import settings
from spinney.apps.monitor.database import database
from spinney.apps.monitor.line_protocol.commands import COMMANDS, CommandContext
from spinney.apps.monitor.line_protocol.replies import Reply
from spinney.apps.monitor.line_protocol.server import LineServer
from spinney.command_line import open_control

from .monitor import Monitor, service

SILENCE_S = 0.3


class Client:
    """One connection."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(str(path))

    def ask(self, line: str) -> str:
        """Send a line, and return the reply up to the empty line behind it."""
        self.socket.sendall(line.encode() + b"\n")
        return self.read()

    def read(self) -> str:
        reply = b""
        while not reply.endswith((b"\n\n", b"'\n")):
            part = self.socket.recv(65536)
            if not part:
                break
            reply += part
        return reply.decode()

    def json(self, line: str) -> dict[str, object]:
        self.ask("FORMAT JSON")
        return dict(json.loads(self.ask(line)))

    def close(self) -> None:
        self.socket.close()


@pytest.fixture
def furnished(monitor: Monitor) -> Monitor:
    """A monitor with four services, no tasks and no node, and settings for its sockets."""
    with (monitor.place / "monitor.toml").open("a") as file:
        file.write('[socket]\nlisten = "127.0.0.1:0"\nconnections = 4\nline_bytes = 1000\n')
    monitor.import_(
        [
            service(1),
            service(2),
            service(3, entity="Town", description="It's 100%"),
            service(4, entity="Port", uri="http://me@Maps.Example.org:80/wms"),
        ]
    )
    return monitor


@pytest.fixture
def address(furnished: Monitor) -> Iterator[Path]:
    """The Unix socket of such a monitor, which a thread serves."""
    config = settings.load()
    path = furnished.place / "monitor.sock"
    loops: list[asyncio.AbstractEventLoop] = []
    with ExitStack() as stack:

        def open_context() -> CommandContext:
            return CommandContext(
                stack.enter_context(open_control(None, "line protocol")), database(), config
            )

        server = LineServer(open_context, config.socket)

        async def serve() -> None:
            loops.append(asyncio.get_running_loop())
            await server.run()

        thread = Thread(target=lambda: asyncio.run(serve()))
        thread.start()
        try:
            furnished.wait(lambda: _listens(path))
            yield path
        finally:
            loops[0].call_soon_threadsafe(server.stop)
            thread.join()
    assert not path.exists()


@pytest.fixture
def command_address(furnished: Monitor) -> Iterator[Path]:
    """The same, served by the command."""
    command = [sys.executable, "-m", "spinney", "monitor", "run", "--no-node"]
    environment = {**os.environ, "SPINNEY_STORE": furnished.store}
    running = subprocess.Popen(command, cwd=furnished.place, env=environment)
    path = furnished.place / "monitor.sock"
    furnished.wait(lambda: _listens(path))
    yield path
    running.send_signal(signal.SIGTERM)
    assert running.wait(60) == 0
    assert not path.exists()


def _listens(path: Path) -> bool:
    try:
        with closing(Client(path)) as client:
            return "[120]" in client.ask("NOOP")
    except OSError:
        return False


pytestmark = pytest.mark.parametrize("monitor", ["sqlite"], indirect=True)


@pytest.mark.parametrize("number", ["2147483648", "3000000000", "9" * 20, "9" * 500])
def test_a_number_that_no_service_can_have_is_answered_as_one_that_none_has(
    address: Path, number: str
) -> None:
    for line in (
        "CHECK gid={}",
        "CHECK eid={}",
        "QTASK gid={}",
        "QSERVICE gid={}",
        *(("CHECK {}", "LSSERV {}", "QTASK {}", "LSSERV -{}") if len(number) < 11 else ()),
    ):
        with closing(Client(address)) as client:
            none, too_large = ("".join(client.ask(line.format(each)).split()) for each in ("999", number))
        assert too_large == none.replace("999", number), line


def test_the_reply_to_what_nobody_foresaw_names_its_kind_only(
    address: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(context: CommandContext, arguments: object) -> Reply:
        raise KeyError("select secret from mon_services")

    monkeypatch.setitem(cast(Any, COMMANDS), "NOOP", fail)
    with closing(Client(address)) as client:
        assert "[501] Server internal error: KeyError; the log of the monitor has more" in client.ask("NOOP")


@pytest.mark.parametrize(
    ("line", "setting"),
    [
        ('zone = "Mars/Olympus"', "zone"),
        ('zone = "../etc/passwd"', "zone"),
        ('[socket]\nallowed = ["10.1.0.0/16", "foo"]', "socket.allowed.1"),
        ('[socket]\nlisten = "127.0.0.1:99999"', "socket.listen"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_by_its_name(
    monitor: Monitor, line: str, setting: str
) -> None:
    with (monitor.place / "monitor.toml").open("a") as file:
        file.write(f"{line}\n")

    assert f"monitor.toml: {setting}: " in monitor.shell.refused(2, "monitor", "tasks")


def test_whoever_asks_for_the_connections_while_the_store_is_opened_gets_a_reply(monitor: Monitor) -> None:
    opened, path = Event(), monitor.place / "monitor.sock"

    async def reply() -> bytes:
        loop, listening = asyncio.get_running_loop(), asyncio.Event()

        def open_context() -> CommandContext:
            loop.call_soon_threadsafe(listening.set)
            opened.wait(60)
            return cast("CommandContext", None)

        server = LineServer(open_context, settings.Socket(listen="", path=path))
        async with asyncio.TaskGroup() as tasks, asyncio.timeout(60):
            tasks.create_task(server.run())
            await listening.wait()
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(b"WHOS\n")
            text = await reader.readuntil(b"\n\n")
            opened.set()
            server.stop()
            writer.close()
        return text

    try:
        assert b"[501] Server internal error: the monitor is starting" in asyncio.run(reply())
    finally:
        opened.set()


def test_a_server_that_ends_logs_nothing_of_its_clients(furnished: Monitor) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "spinney", "monitor", "run", "--no-node"],
        cwd=furnished.place,
        env={**os.environ, "SPINNEY_STORE": furnished.store},
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        path = furnished.place / "monitor.sock"
        furnished.wait(lambda: _listens(path))
        with closing(Client(path)) as silent, closing(Client(path)) as client:
            assert "[120]" in silent.ask("NOOP")
            assert "[100]" in client.ask("SHUTDWN")
            _, errors = running.communicate(timeout=60)
    assert (running.returncode, errors) == (0, "")


def test_replies(address: Path) -> None:
    with closing(Client(address)) as client:
        assert "| 1   | Sea Institute | 2       |" in client.ask("ENTITIES")
        assert "Town" not in client.ask("ENTITIES Sea%")
        assert "Sea" not in client.ask("ENTITIES {x' OR '1'='1}")
        assert "| 3   | It's 100%" in client.ask("LSSERV 2")
        assert "| Maps.Example.org " in client.ask("LSSERV 3")
        assert "[109] No entity found with eid = 99" in client.ask("LSSERV 99")
        assert "[103] Wrong argument(s): 'abc'" in client.ask("LSSERV abc")
        assert "[503] Missing argument for code 122" in client.ask("LSSERV")
        assert client.ask("QSERVICE 3 1").count("| gid ") == 2
        assert "[116] No service found" in client.ask("QSERVICE 999")
        assert "[118] No tasks performed on this service" in client.ask("QTASK 1")
        assert "[110] 1 registered tasks" in client.ask("REGTASKS")
        assert "[114] No Jobs Running" in client.ask("JOBLIST")
        assert client.ask("!!") == "101: Invalid command line '!!'\n"
        assert "[101] Unrecognized command: Unrecognized command FOO" in client.ask("FOO 1")
        assert "[501] Server internal error: unmatched open brace in list" in client.ask("NOOP {")
        assert "[113] Invalid format 'XML'" in client.ask("FORMAT XML")
        assert client.json("NOOP") == {"code": "120", "message": "Noop command acknoledged"}
        assert client.json("QTASK 1") == {
            "code": "118",
            "message": "Service 1 (Map 1, type WMS)",
            "tasks": [],
        }


def test_sequences_are_started_shown_and_stopped(address: Path) -> None:
    with closing(Client(address)) as client:
        assert "[105] Invalid keys in argument list" in client.ask("CHECK 999")
        assert "[109] No valid records found" in client.ask("CHECK zzz")
        assert "[102] OK" in client.ask("CHECK 1 2 1 999")
        assert "[102] OK" in client.ask("CHECK eid=2")
        listed = client.ask("QUERY")
        assert "| seq000 | Series of 2 records | 0 " in listed
        assert "| seq2   | Town                | 0 " in listed
        totals = {one["description"]: one["total_jobs_number"] for one in client.json("QUERY")["queued"]}
        assert totals == {"Series of 2 records": 2, "Town": 1}, "nobody is to take them for completed"
        client.ask("FORMAT HR")
        assert "[502] Stopping operations" in client.ask("STOP")
        assert "seq" not in client.ask("QUERY").replace("Job Sequences", "")


def test_a_sequence_keeps_its_name_and_the_23rd_of_one_name_is_refused(
    monitor: Monitor, address: Path
) -> None:
    def names() -> list[str]:
        return re.findall(r"\| (seq\S+) ", client.ask("QUERY"))

    with closing(Client(address)) as client:
        assert all("[102] OK" in client.ask("CHECK 1") for _ in range(22))
        assert names() == ["seq000", *(f"seq000-{n}" for n in range(1, 22))]
        assert "[501] Server internal error: Too many sequences for the same eid 000" in client.ask("CHECK 1")
        assert "[102] OK" in client.ask("CHECK eid=2")
        (stopped,) = monitor.shell.listed("list", "--type", "monitor.sequence", "--oldest", "--limit", "1")
        monitor.shell.ok("cancel", str(stopped["id"]))
        assert names()[0] == "seq000-1"
        assert "[102] OK" in client.ask("CHECK 3")
        assert names()[-1] == "seq000"


def test_checks_at_work_are_listed_since_their_task_began_and_stopped(
    monitor: Monitor, command_address: Path
) -> None:
    ended = monitor.place / "ended"
    monitor.task("01_first.sh", f'date +%s > {ended}\necho "ok {{}} {{}} {{}} $(date +%s)"')
    may_end = monitor.place / "may_end"
    monitor.task("02_long.sh", f"until [ -e {may_end} ]; do sleep 0.1; done")
    (monitor.place / "monitor.toml").write_text(
        (monitor.place / "monitor.toml").read_text().replace("timeout_s = 5", "timeout_s = 60")
    )
    monitor.start_node()
    with closing(Client(command_address)) as client:
        client.ask("FORMAT JSON")

        def at_work() -> dict[str, Any]:
            return dict(json.loads(client.ask("JOBLIST")))

        client.ask("CHECK 3")
        monitor.wait(lambda: [job["status"] for job in at_work().get("jobs", [])] == ["long"])
        (job,) = at_work()["jobs"]
        assert (job["gid"], job["type"]) == (3, "WMS")
        assert job["timestamp"] >= int(ended.read_text())
        assert json.loads(client.ask("QUERY"))["pending"][0]["active_jobs"] == 1
        assert json.loads(client.ask("STOP"))["code"] == "502"
        assert (
            at_work().get("jobs", [{"status": "stop_signal_received"}])[0]["status"] == "stop_signal_received"
        )
    may_end.touch()  # a check that is stopped ends after its task


def test_a_client_that_sends_half_a_line_holds_up_nobody(address: Path) -> None:
    with closing(Client(address)) as slow, closing(Client(address)) as other:
        slow.socket.sendall(b"NO")
        assert "[120]" in other.ask("NOOP")
        assert "2 Sessions Connected" in other.ask("WHOS")
        slow.socket.sendall(b"OP")
        slow.socket.shutdown(socket.SHUT_WR)
        assert "[120]" in slow.read()


def test_a_client_that_reads_nothing_holds_up_nobody(address: Path) -> None:
    with closing(Client(address)) as deaf, closing(Client(address)) as other:
        deaf.socket.setblocking(False)
        until_s = time.monotonic() + 1
        while time.monotonic() < until_s:
            try:
                deaf.socket.send(b"REGTASKS\n" * 100)
            except BlockingIOError:
                break
        assert "[120]" in other.ask("NOOP")


@pytest.mark.parametrize("sent", [b"x" * 5000 + b"\n", b"N" * 5000])
def test_a_line_without_end_is_refused_and_its_client_is_disconnected(address: Path, sent: bytes) -> None:
    with closing(Client(address)) as client:
        client.socket.sendall(sent)
        assert "a line has at most 1,000 bytes" in client.read()
        assert client.socket.recv(10) == b""


def test_binary_text_and_too_many_clients(address: Path) -> None:
    with closing(Client(address)) as client:
        assert "101: Invalid command line" in client.ask("\x01\x02")
        client.socket.sendall(b"NOOP \xff\xfe\n")
        assert "[120]" in client.read()
        others = [Client(address) for _ in range(4)]
        assert others[-1].socket.recv(10) == b""
        for other in others:
            other.close()


def test_several_lines_in_one_packet_are_answered_in_order(address: Path) -> None:
    with closing(Client(address)) as client:
        client.socket.sendall(b"NOOP\r\nFORMAT\rFOO\n\n")
        text = ""
        while "[101]" not in text:
            text += client.read()
        assert text.index("[120]") < text.index("[104]") < text.index("[101]")


def test_the_commands_of_an_http_request_are_not_obeyed(address: Path) -> None:
    """A page of any site may have a browser on this machine send a form to a port on loopback."""
    with closing(Client(address)) as client, closing(Client(address)) as another:
        client.socket.sendall(b"POST /a HTTP/1.1\r\nHost: 127.0.0.1:4422\r\n\r\nSHUTDWN\r\nNOOP\r\n")

        assert client.read() == ""
        assert "[120]" in another.ask("NOOP")
