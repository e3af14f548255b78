"""Addresses that outgoing connections may reach (not those of private networks), this machine's own, and the
addresses and blocks of clients. Pure functions.

A URL that a user gives is requested from inside the server's network. If it led to loopback, to a neighbour or to a
cloud's metadata service, the user would reach through the server what must not be reachable (server-side request
forgery). So an address must be one of the public Internet, by IANA's special-purpose registries (RFC 6890) as
`ipaddress` keeps them, unless the configuration names the host."""

import ipaddress

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""RFC 6052: an IPv4 address in the last four bytes."""
_MISSED = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "3fff::/20", "168.63.129.16/32")))
"""Special networks that `ipaddress` of some supported versions takes for public: those of protocols (RFC 6890), where
clouds have metadata services, and of documentation (RFC 9637); and the address that Azure has set aside for the host of
each virtual machine, which gives it its keys."""


def is_exempt(host: str, port: int, hosts: frozenset[str]) -> bool:
    """Return whether the configuration allows this host at this port, whatever its address."""
    name = bracketed(host.lower())
    return name in hosts or f"{name}:{port}" in hosts


def is_public(address: str) -> bool:
    """Return whether a text is an address of the public Internet."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    inner = _embedded(parsed)
    if inner is not None:
        return is_public(str(inner))
    if parsed.is_multicast or parsed.is_reserved or parsed.is_unspecified:
        return False
    if any(parsed in network for network in _MISSED):
        return False
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.is_site_local:
        return False
    return parsed.is_global


def is_loopback(host: str) -> bool:
    """Return whether a name or an address, in brackets or not, is this machine's own."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def block(address: str) -> str:
    """Return the block that counts as one client: an IPv4 address, or for IPv6 the network of 64 bits, which a single
    client may have. A text that is no address is returned as it is."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(parsed.ipv4_mapped or ipaddress.ip_network((int(parsed) >> 64 << 64, 64)))
    return str(parsed)


def unmapped(address: str) -> str:
    """Return the IPv4 address of a client that a socket for both families shows as ``::ffff:192.0.2.1`` (RFC 4291,
    2.5.5.2); any other text as it is."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return address if mapped is None else str(mapped)


def bracketed(host: str) -> str:
    """Return an IPv6 address in brackets, as in a URL; any other host as it is."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _embedded(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that is embedded in an IPv6 address, to which the packets are delivered."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address in _NAT64:
        return ipaddress.IPv4Address(address.packed[-4:])
    return address.ipv4_mapped or address.sixtofour
