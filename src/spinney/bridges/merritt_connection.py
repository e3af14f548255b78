"""The connection of commands to ZooKeeper."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from spinney.errors import StoreUnavailable

CONNECT_S = 15.0
"""How long a command waits for the first connection, in seconds."""
_SHORT_SESSION_S = 10.0
"""The length of the session of a command that only looks or makes one change, in seconds."""
ZooKeeperOption = Annotated[
    str,
    typer.Option(
        "--zookeeper",
        metavar="HOSTS",
        help="The servers: HOST:PORT,HOST:PORT, with a chroot behind them if the queue has one.",
        envvar="MERRITT_ZOOKEEPER",
    ),
]


@contextmanager
def connected(hosts: str, *, session_s: float = _SHORT_SESSION_S) -> Iterator[KazooClient]:
    """Yield a connected client, whose session ends with the block.

    ``hosts``: servers, separated by commas, with a chroot behind the last. ``session_s``: after so many
    seconds without contact the session, and with it the locks, end; ZooKeeper may bound it. Raises
    StoreUnavailable where no server answers within ``CONNECT_S``.
    """
    # A server that is just starting can accept a connection and leave its request unanswered. Kazoo waits for the
    # session's time divided by the number of servers: with one server named once, the session would be lost.
    several = hosts if "," in hosts else f"{hosts.partition('/')[0]},{hosts}"
    # Kazoo would repeat a request that a lost connection has interrupted, and wait for a server that is away without
    # end. Whoever sends the request repeats it instead, and can show that the server is away.
    client = KazooClient(several, timeout=session_s, command_retry={"max_tries": 1})
    try:
        try:
            client.start(timeout=CONNECT_S)
        except (KazooTimeoutError, KazooException, ValueError, OSError) as error:
            raise StoreUnavailable(
                f"no ZooKeeper server of {hosts} answers ({type(error).__name__}); start it, or correct --zookeeper"
            ) from error
        yield client
    finally:
        client.stop()
        client.close()
