"""The audit's hash chain: each entry has a digest over itself and the entry before.

To change or remove an entry, the digests of all later ones would have to be changed; with one kept digest (a *head*) it
can therefore be proved that nothing up to it was changed.

The chain makes changes visible, and prevents none: who can write the database can compute a new chain. So the
head has to be kept elsewhere, as in a mail or a ticket; ``spinney audit`` prints it, and ``spinney audit
verify`` takes it."""

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

import orjson

BEGINNING = "0" * 64
"""The digest before the first entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One verb in one transaction. Large operations work in steps, with an entry for each."""

    seq: int
    """The number of the entry: from 1, without gaps."""
    at_us: int
    by: str
    verb: str
    what: str
    """The arguments of the operation, as JSON text."""
    count: int
    """How many jobs (holds, locks, schedules) this step touched."""
    reason: str | None
    call: str
    """The same for all steps of one call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditCall:
    """One call of a verb, summarized from the entries of its steps."""

    first: int
    """The number of its first entry."""
    last: int
    """The number of its last entry; entries of other calls may be in between."""
    at_us: int
    until_us: int
    by: str
    verb: str
    what: str
    """The details of the first step, as JSON text, with the jobs of the first steps."""
    count: int
    """The number of affected jobs over all steps."""
    steps: int
    reason: str | None
    call: str


def details(what: str) -> Any:
    """Return the operation's arguments (``what`` of an entry), or the text itself when it is no JSON any more: somebody
    changed it, as the verification says."""
    try:
        return orjson.loads(what)
    except orjson.JSONDecodeError:
        return what


def digest(before: str, entry: AuditEntry) -> str:
    """Return the digest of this entry: SHA-256, in hexadecimal, over the digest before, a line feed and the
    entry's JSON with sorted keys. All fields count. It is how other programs can verify a copy of the audit,
    so it must not change. Raises TypeError for a value that JSON has no form for."""
    text = orjson.dumps(asdict(entry), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(before.encode() + b"\n" + text).hexdigest()


def head(seq: int, link: str) -> str:
    """Return the text form of a head of the audit: ``42:9f86d0…``, the number of the last entry and its whole
    digest. People keep it and give it back, so the form must not change either."""
    return f"{seq}:{link}"
