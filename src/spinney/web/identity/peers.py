"""The system user at the other end of the Unix socket, as the kernel reports it."""

import os
import pwd
from collections.abc import Mapping

from spinney.model.access import Rights, Role
from spinney.model.errors import Forbidden

PREFIX = "socket:"
"""The prefix of the names of peers."""


def uid(client: str | None) -> int | None:
    """Return the user id that ``spinney.server.connections`` has put in place of the client's address; None for a TCP
    connection."""
    if client is None or not client.startswith("uid:"):
        return None
    return int(client.removeprefix("uid:"))


def name(number: int) -> str:
    """Return the name under which a peer acts and is recorded: ``socket:NAME``."""
    return PREFIX + _user(number)


def rights(number: int, roles: Mapping[str, Role]) -> Rights:
    """Return the rights of a peer: admin for the server's own user, and for others the role that ``peers`` of
    ``[server]`` names, by name before number. Raises Forbidden for a user who has no access."""
    if number == os.geteuid():
        return Rights(role=Role.ADMIN, external=("*",))
    role = roles.get(_user(number), roles.get(str(number)))
    if role is None:
        raise Forbidden(
            f"the user {_user(number)} of this machine has no access here; use a token, or give that user a role "
            f"in peers of [server]"
        )
    return Rights(role=role)


def _user(number: int) -> str:
    """Return the name of a system user; the number as text where it has none."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
