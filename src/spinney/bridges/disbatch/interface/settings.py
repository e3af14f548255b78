"""The settings of a command interface, without the libraries that serve it: a node has the commands, too."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Oids = Literal["plain", "extended"]
"""How replies spell ids: as 24 hex digits, as release 4.4 does, or as ``{"$oid": …}``, as 4.0 to 4.2 do."""


@dataclass(frozen=True, kw_only=True)
class InterfaceSettings:
    """What a command interface may do, and how its replies look."""

    plugins: tuple[str, ...] = ()
    """The plugins that queues may use."""
    oids: Oids = "plain"
    monitoring: bool = True
    """Whether ``GET /monitoring`` looks; without, it answers that monitoring is disabled."""
    balance: bool = False
    """Whether the limits of queues are balanced every 30 seconds."""
    pretend: bool = False
    """Whether balancing logs the limits without writing them."""
    live_window_s: float = 60.0
    """A node is alive when it has written its time within so many seconds."""
    most_tasks: int = 10_000
    """The most tasks of one reply; a request for more is refused."""
    body_bytes: int = 64 << 20
    """The size of a request's body."""
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Argon2 hashes of passwords by user; a caller with neither password nor token is refused. Without users and token
    anybody is let in who reaches the address, which must then be of the loopback interface."""
    token: str | None = field(default=None, repr=False)
    """What programs send as ``Authorization: Bearer …``."""

    @property
    def protected(self) -> bool:
        """Whether callers have to authenticate themselves."""
        return bool(self.users) or self.token is not None
