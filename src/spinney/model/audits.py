"""The audit's chain: each entry bears a digest over itself and the entry before.

Whoever changes an entry or cuts one out must change the digest of all that follow; whoever has kept
one digest (a *head*) can therefore prove that nothing up to it was touched.
"""

import hashlib
from dataclasses import asdict, dataclass

import orjson

BEGINNING = "0" * 64
"""What stands before the first entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One verb, in one transaction. Large verbs work in steps and leave an entry for each."""

    seq: int
    """From 1, without gaps."""
    at_us: int
    by: str
    verb: str
    what: str
    """JSON text: what it was asked to do, and to whom."""
    count: int
    """How many jobs (holds, locks, schedules) this step touched."""
    reason: str | None
    call: str
    """The same for all steps of one call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditCall:
    """One verb as somebody asked for it, with the steps in which it was done put together."""

    first: int
    """Number of its first entry."""
    last: int
    """Of its last; others' entries may stand between the two."""
    at_us: int
    until_us: int
    by: str
    verb: str
    what: str
    """JSON text: of the first step."""
    count: int
    """Over all steps."""
    steps: int
    reason: str | None
    call: str


def digest(before: str, entry: AuditEntry) -> str:
    """The link of this entry: SHA-256, in hexadecimal, over the link before and the entry's canonical JSON."""
    text = orjson.dumps(asdict(entry), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(before.encode() + b"\n" + text).hexdigest()


def head(seq: int, link: str) -> str:
    """How a state of the audit is printed and given back: ``42:9f86d0…``."""
    return f"{seq}:{link}"
