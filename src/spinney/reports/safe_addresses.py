"""Addresses to which requests for URLs of users may connect, so that private networks are protected.

The host name is resolved once, and the connection is made to the very address that was checked, so that a name server
cannot answer a second query with another address (DNS rebinding). ``safe_transport`` and the downloads of
``spinney.apps.ingest.fetch`` connect to them."""

import socket
from collections.abc import Sequence

from spinney.host.resolver import Resolve, resolve
from spinney.model.values.networks import bracketed, is_exempt, is_public
from spinney.reports.printable import printable

_HOST_MAX = 200
"""How many characters of a host are shown."""


class ForbiddenAddress(ValueError):
    """A host leads to an address that is not on the public Internet; name another, or have the host allowed."""

    def __init__(self, host: str, address: str) -> None:
        if host == address:
            super().__init__(f"{shown(address)} is not on the public Internet")
        else:
            super().__init__(
                f"{shown(bracketed(host))} leads to {shown(address)}, which is not on the public Internet"
            )


class SafeAddresses:
    """Addresses that may be reached: public ones, those of ``hosts`` (``host`` or ``host:port``, as in a URL), or, when
    ``private``, any."""

    def __init__(
        self, *, hosts: frozenset[str] = frozenset(), private: bool = False, resolve: Resolve = resolve
    ) -> None:
        self._hosts = frozenset(host.strip().lower() for host in hosts)
        self._private, self._resolve = private, resolve

    def of(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a host, all of which may be reached, in the order in which they are to be
        tried.

        Raises ForbiddenAddress when one of them is not public, ValueError for a text that is no host name, and
        socket.gaierror when the name is not resolved.
        """
        try:
            addresses = self._resolve(host, port)
        except UnicodeError:
            raise ValueError(f"{shown(host)} is no name of a host; correct the URL") from None
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "it has no address")
        if self._private or is_exempt(host, port, self._hosts):
            return addresses
        # One address that is not public refuses all: which one is used would be up to the name server.
        for address in addresses:
            if not is_public(address):
                raise ForbiddenAddress(host, address)
        return addresses


def shown(host: str) -> str:
    """Return a host or an address, as a URL or a name server gave it, made safe to show."""
    return printable(host, _HOST_MAX)
