"""Name resolution by the system's resolver (hosts file, DNS, and whatever else the machine is configured with)."""

import socket
from collections.abc import Callable, Sequence

Resolve = Callable[[str, int], Sequence[str]]
"""Returns the IP addresses of a host for connections to a port, best first."""


def resolve(host: str, port: int) -> Sequence[str]:
    """Return the IP addresses of a host, each once. Raises socket.gaierror, and UnicodeError for a text that is no host
    name."""
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in infos))
