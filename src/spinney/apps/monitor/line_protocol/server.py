"""The connections of the line protocol: one asyncio server on TCP and on a Unix socket.

Each connection has a task of its own, and commands run in a thread, so that a client that is slow, silent or sends half
a line holds up nobody else. The commands of all clients take turns in that one thread.

The protocol has no sign-in: whoever may connect may start and stop checks, and end the monitor. So TCP is refused to
all but loopback and the networks of the settings, and the Unix socket is for its owner and group. A client that sends
HTTP is disconnected, because any web page can have a browser on this machine send that. The number of connections, the
length of a line, silence and unread replies are limited."""

import asyncio
import ipaddress
import logging
import socket
import stat
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from spinney.apps.monitor.line_protocol import command_line, layout, replies
from spinney.apps.monitor.line_protocol.commands import COMMANDS, CommandContext
from spinney.apps.monitor.line_protocol.replies import Reply
from spinney.apps.monitor.settings import Socket
from spinney.apps.monitor.tasks.tcl_list import MalformedList
from spinney.errors import SpinneyError, UsageError
from spinney.safe_http import is_loopback

WRITE_S = 60.0
"""A client that does not read a reply for so long is disconnected."""
_PART = 65_536
"""How many bytes are read at once."""

T = TypeVar("T")
"""What a function returns that runs in the thread of the commands."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Connection:
    """One client that is connected, and the format of the replies that it has chosen."""

    kind: str
    """``TCP/IP`` or ``unix-socket``."""
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    since_us: int
    """When it was made, in microseconds since 1970."""
    active_s: float = field(default_factory=time.monotonic)
    """When its last line came, by the monotonic clock."""
    commands: int = 0
    """How many lines have come, also those that were no command."""
    format: str = "HR"
    """``HR`` or ``JSON``, as the client has chosen by ``FORMAT``."""

    @property
    def line_end(self) -> str:
        """Return the end of a line in replies to this client."""
        return "\r\n" if self.kind == "TCP/IP" else "\n"


class LineServer:
    """Serves the line protocol until it is stopped: by ``stop``, or by a client's ``SHUTDWN``."""

    def __init__(self, open_context: Callable[[], CommandContext], limits: Socket) -> None:
        """``open_context`` is called once, in the thread of the commands. ``limits``: the settings of the
        socket."""
        self._open_context, self._limits = open_context, limits
        self._allowed = [ipaddress.ip_network(network, strict=False) for network in limits.allowed]
        self._connections: list[Connection] = []
        self._stopped = asyncio.Event()
        # One thread, since a store belongs to the thread that opened it; each command takes some milliseconds.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="monitor-commands")
        self._context: CommandContext | None = None
        self.addresses: list[str] = []

    async def run(self) -> None:
        """Serve until ``stop`` is called, or a client sends ``SHUTDWN``; then abort all connections and wait
        for the command at work. Raises UsageError for an address that cannot be used, and what opening the
        store raises."""
        servers = await self._listen()
        self._context = await self._in_thread(self._open_context)
        try:
            await self._stopped.wait()
        finally:
            for server in servers:
                server.close()
            for connection in list(self._connections):
                connection.writer.transport.abort()
            self._thread.shutdown(wait=True, cancel_futures=True)
            if self._limits.path is not None:
                self._limits.path.unlink(missing_ok=True)

    def stop(self) -> None:
        """End the server: ``run`` closes its addresses, and aborts the connections. It may be called more
        than once, and from a signal handler of the event loop."""
        self._stopped.set()

    # --- connections ----------------------------------------------------------------------

    async def _listen(self) -> list[asyncio.Server]:
        """Listen on the addresses of the settings. Others than owner and group cannot connect to the socket's
        file."""
        servers: list[asyncio.Server] = []
        try:
            if self._limits.listen:
                host, _, port = self._limits.listen.rpartition(":")
                if not is_loopback(host) and not self._allowed:
                    raise UsageError(
                        f"{host} is not on loopback: the line protocol has no login; list the addresses that may "
                        f"connect as 'allowed' in [socket]"
                    )
                server = await asyncio.start_server(self._serve_tcp, host.strip("[]"), int(port))
                servers.append(server)
                self.addresses += [str(listening.getsockname()) for listening in server.sockets]
            if self._limits.path is not None:
                _remove_stale(self._limits.path)
                serve = partial(self._serve, "unix-socket")
                servers.append(await asyncio.start_unix_server(serve, self._limits.path))
                self._limits.path.chmod(0o660)
        except OSError as error:
            raise UsageError(f"the line protocol cannot be served: {error.strerror or error}") from None
        return servers

    async def _serve_tcp(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = ipaddress.ip_address(writer.get_extra_info("peername")[0])
        if not (peer.is_loopback or any(peer in network for network in self._allowed)):
            log.warning("refused a connection from %s", peer)
            writer.close()
            return
        await self._serve("TCP/IP", reader, writer)

    async def _serve(self, kind: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client until it goes, is silent for too long, does not read, or the server stops."""
        if len(self._connections) >= self._limits.connections:
            log.warning("refused a connection: there are %d", len(self._connections))
            writer.close()
            return
        connection = Connection(kind, reader, writer, time.time_ns() // 1000)
        self._connections.append(connection)
        try:
            async for line in self._lines(connection):
                if command_line.is_http(line):
                    log.warning("refused a connection that sends HTTP: a page in a browser may have made it")
                    return
                await self._answer(connection, line)
                if self._stopped.is_set():
                    return
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # It has gone, or does not read, or the server ends; asyncio would log a traceback for a cancelled task.
            writer.transport.abort()
        finally:
            self._connections.remove(connection)
            writer.close()

    async def _lines(self, connection: Connection) -> AsyncIterator[bytes]:
        """Yield the lines of a client, the last one also without its end; an empty one is passed over. A line
        that is too long gets an error and ends the connection, after those before it. Raises TimeoutError
        after the silence that the settings allow."""
        pending = b""
        while True:
            async with asyncio.timeout(self._limits.idle_s):
                part = await connection.reader.read(_PART)
            *lines, pending = _divided(pending + part) if part else (pending, b"")
            for line in lines:
                if len(line) > self._limits.line_bytes:
                    break
                if line:
                    yield line
            if not part:
                return
            if len(pending) > self._limits.line_bytes or any(
                len(line) > self._limits.line_bytes for line in lines
            ):
                most = f"a line has at most {self._limits.line_bytes:,} bytes"
                await self._send(connection, replies.internal_error(most))
                return

    async def _answer(self, connection: Connection, line: bytes) -> None:
        connection.active_s = time.monotonic()
        connection.commands += 1
        text = command_line.decoded(line)
        try:
            command = command_line.parse(text)
        except command_line.InvalidLine as invalid:
            await self._send(connection, replies.invalid_line(str(invalid)))
            return
        except MalformedList as malformed:
            await self._send(connection, replies.internal_error(str(malformed)))
            return
        await self._send(connection, await self._reply(connection, command.word, list(command.arguments)))

    async def _reply(self, connection: Connection, word: str, arguments: list[str]) -> Reply:
        """Return the reply to a command. ``FORMAT`` and ``WHOS`` concern the connections, which only this
        server has, and ``SHUTDWN`` waits a moment so that its reply can still be sent."""
        try:
            match word:
                case "FORMAT":
                    return _set_format(connection, arguments)
                case "WHOS":
                    return self._connected()
                case "SHUTDWN":
                    asyncio.get_running_loop().call_later(0.1, self.stop)
                    return replies.box(100, "Server is going to exit")
            do = COMMANDS.get(word)
            if do is None:
                return replies.refusal(101, f"Unrecognized command: Unrecognized command {word}")
            return await self._in_thread(lambda: do(self._opened, arguments))
        except SpinneyError as error:
            return replies.internal_error(str(error))
        except Exception as error:
            log.exception("the command %s failed", word)
            # Its text may hold SQL, or what else is no client's business.
            return replies.internal_error(f"{type(error).__name__}; the log of the monitor has more")

    @property
    def _opened(self) -> CommandContext:
        if self._context is None:
            raise UsageError("the monitor is starting; try again")
        return self._context

    def _connected(self) -> Reply:
        """Return the list of connections (``WHOS``), the oldest first."""
        now_s = time.monotonic()
        rows = [
            (
                self._opened.local(connection.since_us, "%d-%m-%Y %H:%M:%S"),
                connection.kind,
                connection.commands,
                connection.format,
                layout.elapsed(now_s - connection.active_s),
            )
            for connection in self._connections
        ]
        title = f"{len(rows)} Sessions Connected"
        caption = ("Login", "Socket", "Cmds Counter", "Format", "Idle")
        fields = [
            {"login": login, "type": kind, "ncmds": str(commands), "protocol": format_, "idle": idle}
            for login, kind, commands, format_, idle in rows
        ]
        return replies.reply(
            112,
            layout.table(f"[112] {title}", caption, rows),
            {"nconnections": len(rows), "title": title, "connections": fields},
        )

    async def _send(self, connection: Connection, reply: Reply) -> None:
        text = reply.text(connection.format).replace("\n", connection.line_end)
        connection.writer.write(text.encode("utf-8", "replace"))
        async with asyncio.timeout(WRITE_S):
            await connection.writer.drain()

    async def _in_thread(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)


def _set_format(connection: Connection, arguments: list[str]) -> Reply:
    """Set the format of a connection, or report it where there is no argument; the reply is in the new
    one."""
    if arguments:
        name = arguments[0].upper()
        if name not in ("HR", "JSON"):
            text = f"Invalid format '{arguments[0]}'"
            fields = {"status": "error", "error_code": "invalid_format", "message": text}
            return replies.reply(113, layout.box(f"[113] {text}"), fields)
        connection.format = name
    text = f"Current format: {connection.format}"
    fields = {"status": "ok", "format": connection.format, "message": text}
    return replies.reply(104, layout.box(f"[104] {text}"), fields)


def _divided(text: bytes) -> list[bytes]:
    """Divide bytes at LF, CR LF and CR into lines, the last of which may go on in the next part. A CR at the
    very end is taken for a line's end at once: if its LF follows, that makes an empty line, which is passed
    over."""
    lines = text.splitlines()
    return [*lines, b""] if text.endswith((b"\n", b"\r")) else lines


def _remove_stale(path: Path) -> None:
    """Remove the socket that a server which was killed has left. Raises UsageError while another one listens there."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except FileNotFoundError:
            return
        except ConnectionRefusedError:
            if not stat.S_ISSOCK(path.lstat().st_mode):
                raise UsageError(f"{path} is a file and no socket; name another path in [socket]") from None
            path.unlink(missing_ok=True)
            return
        except OSError as error:
            raise UsageError(f"{path} is not a socket that can be replaced: {error.strerror}") from None
    raise UsageError(f"another monitor listens at {path}; end it, or name another socket")
