"""The record of a service: its URI is well-formed, and says what the record says."""

import ipaddress
import re
from urllib.parse import parse_qs, urlsplit

from spinney.apps.monitor.inventory.model import Service
from spinney.apps.monitor.tasks.findings import Finding, error, warning
from spinney.apps.monitor.tasks.modules import Context

NAME = "congruence"
DESCRIPTION = "The URI is well-formed and agrees with the record"

_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
"""One label of a host name (RFC 1123, 2.1), and underscores, which some networks use."""
_OGC = ("WMS", "WFS", "WMTS", "WCS", "CSW")


def check(service: Service, context: Context) -> Finding:
    """Compare the record with its URI; nothing is fetched, so this task stands first. A URI that cannot be
    used is an error, a missing description or a type or version other than the record's a warning."""
    try:
        parts = urlsplit(service.uri)
        host, _ = parts.hostname or "", parts.port
    except ValueError as problem:
        return error("invalid_uri", f"Invalid URI: {problem}")
    if parts.scheme not in ("http", "https", "ftp"):
        return error("invalid_uri", f"Invalid URI: the scheme is {parts.scheme or 'missing'!r}")
    if any(char.isspace() or not char.isprintable() for char in service.uri):
        return error("invalid_uri", "Invalid URI: it contains blanks or control characters")
    if not _is_host(host):
        return error("invalid_uri", f"Invalid URI: {host!r} is no name of a host")
    if not service.description:
        return warning("undefined_description", "Undefined description")
    query = {name.lower(): values[-1] for name, values in parse_qs(parts.query).items()}
    named = query.get("service", service.type).upper()
    if service.type in _OGC and named != service.type:
        return warning("incongruent_type", f"The URI asks for {named}, and the record says {service.type}")
    version = query.get("version", service.version)
    if service.type in _OGC and service.version and version != service.version:
        return warning(
            "incongruent_version",
            f"The URI asks for version {version}, and the record says {service.version}",
        )
    return Finding(info="Service Data congruence passed")


def _is_host(host: str) -> bool:
    """Return whether a text is an IP address or a host name; one with other letters counts if IDNA can encode
    it."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        try:
            labels = host.encode("idna").decode().rstrip(".").split(".")
        except UnicodeError:
            return False
        return all(_LABEL.fullmatch(label) for label in labels)
    return True
