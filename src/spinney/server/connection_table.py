"""The open connections by the address they come from, and which of them are closed when there is no room.

A connection is **idle** while no request on it is being answered: it is new, sends a head slowly, or waits for its next
request. Where more are open than there is room for, in all or from one address, the connection that has been idle for
the longest is closed, of the address that has most open: so a client that opens many loses its own connections, and
others are answered. Where none is idle, the new connection is refused, with the time to try again. Clients retry on a
new connection when one was closed before it was used, as HTTP requires (RFC 9112, section 9.3.1).

Connections from a trusted proxy or over the Unix socket stand for many people: they count in all, but not by address.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, Protocol, TypeVar


class Closable(Protocol):
    """A connection that can be closed."""

    def close(self) -> None:
        """Close the connection; it calls ``ConnectionTable.closed`` when that has happened."""


ConnectionT = TypeVar("ConnectionT", bound=Closable)


class Refusal(Enum):
    """Why a request on a connection is not answered."""

    FULL = "full"
    """Too many are open in all."""
    CROWDED = "crowded"
    """Too many are open from its address."""


@dataclass(slots=True, eq=False)
class _Address(Generic[ConnectionT]):
    """The open connections from one address. ``bounded``: whether they are limited by the address."""

    bounded: bool
    open: set[ConnectionT] = field(default_factory=set)
    idle: dict[ConnectionT, None] = field(default_factory=dict)
    """Idle connections, those that have been idle for the longest first."""


class ConnectionTable(Generic[ConnectionT]):
    """The connections of one server. At most ``most`` may be open in all; from one address ``per_address``,
    of which ``idle_per_address`` may be idle. It belongs to the event loop, and closes connections by
    ``Closable.close``; those remove themselves by ``closed``, which may be called twice."""

    def __init__(self, *, most: int, per_address: int, idle_per_address: int) -> None:
        self._most, self._per_address, self._idle_per_address = most, per_address, idle_per_address
        self._addresses: dict[str, _Address[ConnectionT]] = {}
        self._address_of: dict[ConnectionT, str] = {}
        self._placeless: set[ConnectionT] = set()
        """Connections that were opened when there was no room: they are refused, and not those from before."""

    def __len__(self) -> int:
        return len(self._address_of)

    def opened(self, connection: ConnectionT, address: str, *, bounded: bool) -> None:
        """Add a new connection, which is idle, and close an idle one for it where there is no room. Where
        none is idle the new one stays open, and ``refusal`` says why its requests are refused. ``bounded``:
        whether connections are counted by this address."""
        self._address_of[connection] = address
        entry = self._addresses.setdefault(address, _Address(bounded))
        entry.open.add(connection)
        self.idle(connection)
        if bounded and len(entry.open) > self._per_address:
            self._evict(entry, sparing=connection)
        if len(self._address_of) > self._most:
            self._evict_of_all(sparing=connection)
        if self._lack_of_room(entry) is not None:
            self._placeless.add(connection)

    def idle(self, connection: ConnectionT) -> None:
        """Mark the connection as idle from now on: no request on it is being answered. Where its address has
        too many idle ones, the one that has been idle for the longest is closed."""
        entry = self._of(connection)
        if entry is None:
            return
        entry.idle.pop(connection, None)
        entry.idle[connection] = None
        if entry.bounded and len(entry.idle) > self._idle_per_address:
            self._evict(entry, sparing=connection)

    def busy(self, connection: ConnectionT) -> None:
        """Mark the connection as busy: a request on it is being answered."""
        entry = self._of(connection)
        if entry is not None:
            entry.idle.pop(connection, None)

    def closed(self, connection: ConnectionT) -> None:
        """Remove the connection, which is no longer open. Idempotent."""
        entry = self._of(connection)
        if entry is None:
            return
        address = self._address_of.pop(connection)
        self._placeless.discard(connection)
        entry.open.discard(connection)
        entry.idle.pop(connection, None)
        if not entry.open:
            del self._addresses[address]

    def refusal(self, connection: ConnectionT) -> Refusal | None:
        """Return why requests on this connection are to be refused; None: they are not. Only a connection
        that came when there was no room is refused, and only until there is room."""
        entry = self._of(connection)
        lack = None if entry is None or connection not in self._placeless else self._lack_of_room(entry)
        if lack is None:
            self._placeless.discard(connection)
        return lack

    def _lack_of_room(self, address: _Address[ConnectionT]) -> Refusal | None:
        """Return which limit is exceeded with this address; None: none."""
        if address.bounded and len(address.open) > self._per_address:
            return Refusal.CROWDED
        return Refusal.FULL if len(self._address_of) > self._most else None

    def _of(self, connection: ConnectionT) -> _Address[ConnectionT] | None:
        """Return the entry of a connection's address; None: the connection is not in the table."""
        address = self._address_of.get(connection)
        return None if address is None else self._addresses[address]

    def _evict_of_all(self, *, sparing: ConnectionT) -> None:
        """Close the connection that has been idle for the longest, of the address that has most open.
        ``sparing``: the new one."""
        others = [
            address for address in self._addresses.values() if len(address.idle) > (sparing in address.idle)
        ]
        if others:
            self._evict(max(others, key=lambda address: len(address.open)), sparing=sparing)

    def _evict(self, address: _Address[ConnectionT], *, sparing: ConnectionT) -> None:
        """Close the connection that has been idle for the longest, of this address, if there is any."""
        longest = next((connection for connection in address.idle if connection is not sparing), None)
        if longest is not None:
            self.closed(longest)
            longest.close()
