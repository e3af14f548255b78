"""Connections under the rules: their address is checked, and they are closed when they are too slow or
aborted.

Each is made to the very address that was checked (``spinney.safe_http``): a name that is resolved a second
time could lead elsewhere (DNS rebinding). Reads wait in slices, because a blocking read cannot be aborted
from another thread.
"""

import io
import select
import socket
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from http.client import HTTPResponse, RemoteDisconnected
from typing import TYPE_CHECKING, Any

from spinney.apps.ingest.fetch.errors import ConnectionBroke, Halt, TryFailed
from spinney.apps.ingest.fetch.rules import Rules
from spinney.files import paths
from spinney.safe_http import ForbiddenAddress, SafeAddresses, bracketed

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

OVERHEAD_MAX_BYTES = 256 << 10
"""The maximum size of what is not content: headers, interim answers, the marks of chunks. It grows with the content."""

Server = tuple[str, str, int]
"""Scheme, host and port."""

SLICE_S = 0.25
"""How soon a thread that waits for bytes notices that it was aborted."""


class Connector:
    """Connects to public addresses, and to hosts that the rules name. Several threads may use it at once."""

    def __init__(self, rules: Rules, halt: Halt) -> None:
        self._addresses = SafeAddresses(hosts=rules.hosts, resolve=rules.resolve)
        self._rules = rules
        self._halt = halt

    def connect(self, server: Server) -> "Connection":
        """Return a new connection to a server, with TLS for ``https``.

        The addresses of the host are tried in their order until one takes the connection; a failure of TLS
        ends the search. Raises TryFailed where the host may not be reached, is unknown or does not answer,
        with the failure of the last address; Halted when aborted in between.
        """
        scheme, host, port = server
        failure = Exception()
        for address in self._admitted_addresses(host, port):
            self._halt.check()
            try:
                sock = socket.create_connection((address, port), self._rules.connect_s)
            except OSError as error:
                failure = self._connect_failure(error)
                continue
            try:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if scheme == "https":
                    sock = self._tls.wrap_socket(sock, server_hostname=host)
            except OSError as error:
                sock.close()
                raise self._connect_failure(error) from None
            return Connection(server, sock, self._rules, self._halt)
        raise failure

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        # Made when it is needed: loading the system's authorities takes longer than fetching a small file.
        context = ssl.create_default_context()
        if self._rules.authorities is not None:
            context.load_verify_locations(self._rules.authorities)
        return context

    def _connect_failure(self, error: OSError) -> TryFailed:
        """Return the failure for an error of connecting, without its whole text, which may contain anything."""
        if isinstance(error, TimeoutError):
            return TryFailed(
                f"the server did not take the connection within {self._rules.connect_s:g} seconds; try again later",
                unresponsive=True,
            )
        if isinstance(error, ssl.SSLCertVerificationError):
            return TryFailed(
                f"the server's certificate is not trusted ({paths.shown(error.verify_message)}); "
                f"have it renewed, or its authority added to those that this machine trusts"
            )
        return TryFailed(
            f"no connection to the server ({paths.shown(error.strerror or 'refused')}); try again later",
            retryable=True,
            unresponsive=not isinstance(error, ssl.SSLError),
        )

    def _admitted_addresses(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a host that may be reached. Raises TryFailed, which is retryable only where
        the resolver itself had a temporary failure."""
        try:
            return self._addresses.of(host, port)
        except socket.gaierror as error:
            passing = error.errno == socket.EAI_AGAIN
            advice = "try again later" if passing else "check the host in the URL"
            raise TryFailed(
                f"the name {paths.shown(host)} is not resolved ({error.strerror}); {advice}",
                unresponsive=passing,
            ) from None
        except ForbiddenAddress as error:
            raise TryFailed(
                f"{error}; have '{paths.shown(bracketed(host))}:{port}' added to the hosts of the profile if it may be "
                f"reached"
            ) from None
        except ValueError as error:
            raise TryFailed(str(error)) from None


@dataclass(eq=False, slots=True)
class Connection:
    """A connection to one server, for one request after another. It belongs to one thread at a time."""

    server: Server
    sock: socket.socket
    rules: Rules
    halt: Halt
    is_reusable: bool = False
    """Whether the answer to the last request has been read to its end, and the server keeps the connection; for its
    owner to set."""
    idle_since_s: float = 0.0
    """When its last request ended, by the monotonic clock; for its owner to set."""

    def request(self, method: str, head: bytes) -> "Response":
        """Send a request without a body, and return the response when its headers have been read.

        ``head``: the request line and headers, with the empty line. The body is read from the response, under
        the same limits of time. Raises ConnectionBroke, whose ``answered`` says whether the request may be
        sent again; TryFailed when the server is too slow, HTTPException when the answer is no HTTP, Halted
        when aborted.
        """
        self.is_reusable = False
        try:
            self.sock.settimeout(self.rules.read_s)
            self.sock.sendall(head)
        except TimeoutError:
            raise _silent(self.rules) from None
        except OSError:
            raise ConnectionBroke(answered=False) from None
        received = _Received(self)
        response = Response(received, method=method)  # type: ignore[arg-type] # it only calls makefile
        response.received = received
        try:
            response.begin()
        except RemoteDisconnected:
            raise ConnectionBroke(answered=received.has_begun) from None
        return response

    def is_usable(self) -> bool:
        """Return whether another request may be sent: the server has neither closed the connection nor sent
        more.

        It may still be closed while the request is on its way.
        """
        readable = select.poll()
        readable.register(self.sock, select.POLLIN)
        return not readable.poll(0)

    def close(self) -> None:
        """Close the socket; what the server still sends is lost."""
        self.sock.close()


class Response(HTTPResponse):
    """A response whose interim answers are skipped (RFC 9110 section 15.2); ``HTTPResponse`` skips only 100."""

    received: "_Received"

    def begin(self) -> None:
        """Read the headers of the final answer."""
        super().begin()
        while 100 <= self.status < 200:
            self.headers = None  # type: ignore[assignment] # so that the next one is read
            super().begin()

    def flush(self) -> None:
        """Do nothing, since nothing is written.

        ``HTTPResponse`` flushes its stream, also when it is closed. When a response is garbage, its stream may have
        been closed before it, and from Python 3.13 on that failure is printed into the output of the stage."""


class _Received(io.RawIOBase):
    """The bytes of one answer. It requires a minimum rate of the server, and ends soon when it is aborted.

    Closing it does not close the connection, which serves the next request.
    """

    def __init__(self, connection: Connection) -> None:
        rules = connection.rules
        self._sock, self._rules, self._halt = connection.sock, rules, connection.halt
        self._pace = Pace(rules.floor_bytes_s, rules.floor_window_s)
        self._bytes = 0
        self._sock.settimeout(max(0.001, min(SLICE_S, rules.read_s)))
        self.content_bytes = 0
        """How many of the bytes were content, for the reader of the body to count."""

    @property
    def has_begun(self) -> bool:
        """Return whether any byte of the answer was received."""
        return self._bytes > 0

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return the bytes as a file, as ``HTTPResponse`` asks of a socket."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        """Return True, as ``io`` asks of a raw stream that is read."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Read what has arrived, at least a byte; 0: the server has closed the connection. Raises TryFailed, Halted."""
        began_s = time.monotonic()
        count = self._read_within(buffer, began_s)
        if not self._pace.is_kept(time.monotonic() - began_s, count):
            raise TryFailed(
                f"the server sent less than {self._rules.floor_bytes_s:.0f} bytes a second over "
                f"{self._rules.floor_window_s:g} seconds; try again when it is less busy",
                retryable=True,
            )
        self._bytes += count
        # Chunks of a few bytes have marks as long as themselves; the buffered bytes are yet to be counted as content.
        if self._bytes > OVERHEAD_MAX_BYTES + 16 * self.content_bytes:
            raise TryFailed("the server's answer has no end of headers; ask its operators")
        return count

    def _read_within(self, buffer: Any, began_s: float) -> int:
        """Read once, waiting up to ``read_s`` seconds in slices. Raises Halted, TryFailed,
        ConnectionBroke."""
        while True:
            self._halt.check()
            try:
                return self._sock.recv_into(buffer)
            except TimeoutError:
                if time.monotonic() - began_s + SLICE_S / 2 > self._rules.read_s:
                    raise _silent(self._rules) from None
            except OSError:
                raise ConnectionBroke(answered=self.has_begun) from None


def _silent(rules: Rules) -> TryFailed:
    """Return the failure for a server that sent nothing for ``read_s`` seconds."""
    return TryFailed(
        f"the server was silent for {rules.read_s:g} seconds; try again later",
        unresponsive=True,
    )


class Pace:
    """A minimum of bytes a second, over whole windows of waiting time.

    Only waiting counts, so that a slow disk here does not make a server look slow; a window, because a server
    may pause.
    """

    def __init__(self, floor_bytes_s: float, window_s: float) -> None:
        self._floor = floor_bytes_s
        self._window_s = window_s
        self._waited_s = 0.0
        self._bytes = 0

    def is_kept(self, waited_s: float, read_bytes: int) -> bool:
        """Count one read of ``read_bytes`` bytes that took ``waited_s`` seconds; return False when a window ends with
        it that was slower than the minimum."""
        self._waited_s += waited_s
        self._bytes += read_bytes
        if self._waited_s < self._window_s:
            return True
        fast_enough = self._bytes >= self._floor * self._waited_s
        self._waited_s, self._bytes = 0.0, 0
        return fast_enough
