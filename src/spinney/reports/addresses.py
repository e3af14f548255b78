"""The mail addresses that are accepted: pure rules, checked when a message is submitted.

Stricter than RFC 5322, which allows comments and quoted local parts that servers and people trip over. Local parts
outside ASCII are lawful (RFC 6531) and need a server with SMTPUTF8; domains outside ASCII become their ASCII form.
"""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from email.headerregistry import Address

RECIPIENTS_MAX = 100
"""What any server must take in one transaction (RFC 5321, section 4.5.3.1.8)."""
_ADDRESS_MAX_BYTES = 254
"""RFC 5321, section 4.5.3.1.3: a path has up to 256 octets, with its angle brackets."""
_LOCAL_MAX_BYTES = 64
"""The longest local part (RFC 5321, section 4.5.3.1.1)."""
_NAME_MAX = 200
"""How many characters of a display name are kept."""
_NAMED = re.compile(r"(?P<name>[^<>]*?)\s*<(?P<spec>[^<>]*)>")
_LOCAL = re.compile(r'[^\s"(),:;<>@\[\]\\.]+(\.[^\s"(),:;<>@\[\]\\.]+)*')
"""Matches a local part without quotes or comments: words with single dots between them."""
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
"""Matches one label of a host name (RFC 1123, section 2.1): up to 63 letters, digits and hyphens inside."""
_DOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")


def mailbox(text: str) -> "Address":
    """Parse ``ada@example.org`` or ``Ada Lovelace <ada@example.org>``, and return the address with its domain
    in ASCII.

    A display name is cut after 200 characters, and its quotes are removed. Raises ValueError, with the text
    and what to write instead.
    """
    from email.headerregistry import Address  # slow to load

    if not text.isprintable():
        raise ValueError(
            f"{text[:80]!r} has a line break or what is not printable in it; give a plain address"
        )
    named = _NAMED.fullmatch(text.strip())
    name, spec = (named["name"].strip(), named["spec"]) if named else ("", text.strip())
    local, at_sign, domain = spec.rpartition("@")
    plain = _ascii(domain)
    lawful = at_sign and _LOCAL.fullmatch(local) and plain and len(local.encode()) <= _LOCAL_MAX_BYTES
    if not lawful or len(local.encode()) + 1 + len(plain) > _ADDRESS_MAX_BYTES:
        raise ValueError(
            f"{text[:80]!r} is no mail address; write name@example.org or Name <name@example.org>"
        )
    return Address(display_name=_unquoted(name)[:_NAME_MAX], username=local, domain=plain)


def _ascii(domain: str) -> str:
    """Return the domain in its ASCII form; empty when it is not a domain.

    Python's own codec keeps IDNA 2003, which makes another domain of some letters (``ß`` becomes ``ss``): where the
    way back does not lead to the same name, the domain is refused and must be given in its ASCII form.
    """
    try:
        plain = domain.encode("idna").decode("ascii")
        same = domain.isascii() or plain.encode().decode("idna") == domain.lower()
    except UnicodeError:
        return ""
    return plain if same and _DOMAIN.fullmatch(plain) else ""


def _unquoted(name: str) -> str:
    """Return a display name without the quotes around it (RFC 5322, section 3.2.4)."""
    if len(name) < 2 or not (name.startswith('"') and name.endswith('"')):
        return name
    return re.sub(r"\\(.)", r"\1", name[1:-1])
