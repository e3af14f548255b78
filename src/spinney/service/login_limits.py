"""Limits that slow down the guessing of passwords, without locking anybody out.

Failed logins are counted under up to three limits, and the strictest one counts:

- **a name from an address**: three failures are free, as many as people mistype. So nobody slows anybody else from
  another address, and behind a proxy that hides addresses only those who use the same name;
- **an address**, and **a name** from all addresses: a hundred failures a day (UTC) are free, far more than people
  mistype. The first bounds a client that tries many names, the second a botnet that tries one name from many addresses:
  a hundred guesses and then one every five minutes.

A browser in which the user has signed in before (``Device``) is counted by itself alone, so that no stranger can slow
it; it, too, has three failures free, so that a stolen cookie opens no way to guess faster.
"""

from spinney.model.rights.accounts import Device, LoginLimit, digest
from spinney.model.values.networks import block

FREE = 3
"""Failures of one person that are free."""
FREE_OF_MANY = 100
"""Failures a day that are free where several people are counted together."""
_DAY_US = 86_400_000_000


def login_limits(
    name: str, address: str | None, device: Device | None, now_us: int
) -> tuple[LoginLimit, ...]:
    """Return the limits under which a login is counted. ``device``: the browser, when it is known to belong to this
    user; ``address``: None over a Unix socket, which only the users of this host reach."""
    if device is not None:
        return (_of_one("device", device.user, device.number),)
    place = None if address is None else block(address)
    limits = [_of_one("pair", name, place or ""), _of_many("name", name, now_us)]
    if place is not None:
        limits.append(_of_many("address", place, now_us))
    return tuple(limits)


def password_limits(name: str) -> tuple[LoginLimit, ...]:
    """Return the limits for a user who gives the old password to set another one."""
    return (_of_one("password", name),)


def _of_one(*parts: str) -> LoginLimit:
    return LoginLimit(key=digest("\0".join(parts)), free=FREE, cleared=True)


def _of_many(kind: str, text: str, now_us: int) -> LoginLimit:
    """Return a limit that is counted anew each day: a success of one user takes back no failures of others, and in a
    large office there would never be a day without any."""
    return LoginLimit(key=digest(f"{kind}\0{now_us // _DAY_US}\0{text}"), free=FREE_OF_MANY)
