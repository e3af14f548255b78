"""Where a connection may lead: not into the network of those who run this service; and where one comes from. Pure.

A URL that somebody else gives is asked from inside our network. Were it to lead to loopback, to a neighbour or to a
cloud's metadata service, he would reach through us what he must not (server-side request forgery). So an address must
be one of the public Internet, by IANA's special-purpose registries (RFC 6890) as `ipaddress` keeps them, unless the
configuration names the host.
"""

import ipaddress

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""RFC 6052: an IPv4 address in the last four bytes."""


def is_exempt(host: str, port: int, hosts: frozenset[str]) -> bool:
    """Whether the configuration lets this host be reached at this port, whatever its address."""
    name = bracketed(host.lower())
    return name in hosts or f"{name}:{port}" in hosts


def is_public(address: str) -> bool:
    """Whether an address is one of the public Internet; what is no address is not."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    inner = _embedded(parsed)
    if inner is not None:
        return is_public(str(inner))
    if parsed.is_multicast or parsed.is_reserved or parsed.is_unspecified:
        return False
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.is_site_local:
        return False
    return parsed.is_global


def block(address: str) -> str:
    """What counts as one place: an IPv4 address, or of IPv6 the network of 64 bits, which anybody has to himself. What
    is no address is a place of its own."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(parsed.ipv4_mapped or ipaddress.ip_network((int(parsed) >> 64 << 64, 64)))
    return str(parsed)


def bracketed(host: str) -> str:
    """An IPv6 address as it stands in a URL; any other host as it is."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _embedded(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 address stands for, which is where the packets end up."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address in _NAT64:
        return ipaddress.IPv4Address(address.packed[-4:])
    return address.ipv4_mapped or address.sixtofour
