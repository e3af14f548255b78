"""Which connections are open, by the address they come from, and which of them give way when there is no room.

A connection is **idle** while no request on it is being answered: it is new, sends a head slowly, or waits for its next
request. Where more are open than there is room for, in all or from one address, the connection that has been idle for
the longest is closed, of the address that has most open: so whoever opens many loses the own ones, and others are
answered. Where none is idle, the new connection is told to come again. Clients ask anew on a connection that was closed
before it was used, as HTTP has them do (RFC 9112, section 9.3.1).

Connections from a trusted proxy or over the Unix socket stand for many people: they count in all, but not by address.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, Protocol, TypeVar


class Closable(Protocol):
    """A connection."""

    def close(self) -> None: ...


ConnectionT = TypeVar("ConnectionT", bound=Closable)


class Refusal(Enum):
    """Why a request on a connection is not answered."""

    FULL = "full"
    """Too many are open in all."""
    CROWDED = "crowded"
    """Too many are open from its address."""


@dataclass(slots=True, eq=False)
class _Address(Generic[ConnectionT]):
    bounded: bool
    open: set[ConnectionT] = field(default_factory=set)
    idle: dict[ConnectionT, None] = field(default_factory=dict)
    """Those idle for the longest first."""


class ConnectionTable(Generic[ConnectionT]):
    """Of one server. ``most`` may be open in all; of one address ``per_address``, and ``idle_per_address`` idle."""

    def __init__(self, *, most: int, per_address: int, idle_per_address: int) -> None:
        self._most, self._per_address, self._idle_per_address = most, per_address, idle_per_address
        self._addresses: dict[str, _Address[ConnectionT]] = {}
        self._whose: dict[ConnectionT, str] = {}
        self._placeless: set[ConnectionT] = set()
        """Those that came when there was no room: they are refused, and nobody who was there before."""

    def __len__(self) -> int:
        return len(self._whose)

    def opened(self, connection: ConnectionT, address: str, *, bounded: bool) -> None:
        """A new connection, idle as yet. ``bounded``: whether connections are counted by this address."""
        self._whose[connection] = address
        found = self._addresses.setdefault(address, _Address(bounded))
        found.open.add(connection)
        self.idle(connection)
        if bounded and len(found.open) > self._per_address:
            self._evict(found, sparing=connection)
        if len(self._whose) > self._most:
            self._evict_of_all(sparing=connection)
        if self._lack_of_room(found) is not None:
            self._placeless.add(connection)

    def idle(self, connection: ConnectionT) -> None:
        """Nothing is being answered on it from now on."""
        found = self._of(connection)
        if found is None:
            return
        found.idle.pop(connection, None)
        found.idle[connection] = None
        if found.bounded and len(found.idle) > self._idle_per_address:
            self._evict(found, sparing=connection)

    def busy(self, connection: ConnectionT) -> None:
        """A request on it is being answered from now on."""
        found = self._of(connection)
        if found is not None:
            found.idle.pop(connection, None)

    def closed(self, connection: ConnectionT) -> None:
        """It is no longer open."""
        found = self._of(connection)
        if found is None:
            return
        address = self._whose.pop(connection)
        self._placeless.discard(connection)
        found.open.discard(connection)
        found.idle.pop(connection, None)
        if not found.open:
            del self._addresses[address]

    def refusal(self, connection: ConnectionT) -> Refusal | None:
        """Why nothing is to be answered on this connection; None: it has a place."""
        found = self._of(connection)
        lack = None if found is None or connection not in self._placeless else self._lack_of_room(found)
        if lack is None:
            self._placeless.discard(connection)
        return lack

    def _lack_of_room(self, of: _Address[ConnectionT]) -> Refusal | None:
        if of.bounded and len(of.open) > self._per_address:
            return Refusal.CROWDED
        return Refusal.FULL if len(self._whose) > self._most else None

    def _of(self, connection: ConnectionT) -> _Address[ConnectionT] | None:
        address = self._whose.get(connection)
        return None if address is None else self._addresses[address]

    def _evict_of_all(self, *, sparing: ConnectionT) -> None:
        others = [each for each in self._addresses.values() if len(each.idle) > (sparing in each.idle)]
        if others:
            self._evict(max(others, key=lambda each: len(each.open)), sparing=sparing)

    def _evict(self, of: _Address[ConnectionT], *, sparing: ConnectionT) -> None:
        longest = next((connection for connection in of.idle if connection is not sparing), None)
        if longest is not None:
            self.closed(longest)
            longest.close()
