"""Validate entries before a transaction begins, so that no database refuses an entry half-way.

The stages of an object call the same rules before they store anything: a version that is stored must be
recordable.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from spinney.apps.ingest.inventory.file_spans import LAST, Content, content
from spinney.apps.ingest.inventory.model import Entry
from spinney.files import digests
from spinney.files.paths import NotAdmitted, relative, shown

NAME_MAX_BYTES = 255
"""The maximum length of an ark, a collection, an owner and the like."""
KEY_MAX_BYTES = 1000
"""The maximum length of a local id or a minter's key, which are indexed: PostgreSQL allows no index entry above 2,700
bytes."""
_SIZE_MAX = 2**63 - 1
_BATCH, _JOB = re.compile(r"bid-[\w.-]+"), re.compile(r"jid-[\w.-]+")


@dataclass(frozen=True, slots=True)
class Admitted:
    """The checked files of an entry."""

    contents: Sequence[Content]
    size_bytes: int


def admitted(entry: Entry) -> Admitted:
    """Check an entry, and read its files, once. Returns them sorted by path, with the sum of their sizes.

    Raises NotAdmitted for texts that are empty, too long or not storable, for paths that lead upward or occur
    twice, and for invalid digests and sizes; ValueError for a time without a zone, which is an error of the
    program.
    """
    for field in ("ark", "collection", "owner", "submitter"):
        name(field, getattr(entry, field))
    name("storage target", entry.storage)
    for field, value, form in (("batch id", entry.batch_id, _BATCH), ("job id", entry.job_id, _JOB)):
        if not form.fullmatch(name(field, value)):
            raise NotAdmitted(f"'{shown(value)}' is no {field}; it begins with '{form.pattern[:4]}'")
    for field in ("who", "what", "when"):
        plain(field, getattr(entry, field) or "")
    if not 1 <= entry.version < LAST:
        raise NotAdmitted(f"{entry.version} is no version of {shown(entry.ark)}; versions count from 1")
    aware(entry.created)
    return _files(entry)


def local_ids_admitted(local_ids: Iterable[str]) -> list[str]:
    """Return each local id once, in the order in which they are locked. Raises NotAdmitted."""
    return sorted({name("local id", local_id, KEY_MAX_BYTES) for local_id in local_ids})


def name(what: str, value: str, longest_bytes: int = NAME_MAX_BYTES) -> str:
    """Return ``value`` if it can be stored as a name by which entries are looked up; otherwise raise NotAdmitted.
    ``what``: the noun for the message."""
    if not value:
        raise NotAdmitted(f"the {what} is empty; give one")
    if len(plain(what, value).encode()) > longest_bytes:
        raise NotAdmitted(
            f"the {what} '{shown(value[:40])}…' is longer than {longest_bytes} bytes; shorten it"
        )
    return value


def aware(when: datetime) -> datetime:
    """Return the time if it has a zone. Raises ValueError otherwise, and not NotAdmitted, because a time without a zone
    is a bug of the caller and never a depositor's mistake."""
    if when.tzinfo is None:
        raise ValueError(f"{when!r} has no time zone; give a time with one")
    return when


def plain(what: str, value: str) -> str:
    """Return ``value`` if both databases can store it; otherwise raise NotAdmitted."""
    if "\0" in value:
        raise NotAdmitted(f"the {what} '{shown(value[:40])}' contains a NUL; remove it")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise NotAdmitted(f"the {what} '{shown(value[:40])}' is not UTF-8; write it as UTF-8") from None
    return value


def _files(entry: Entry) -> Admitted:
    """Check the files of an entry: paths, sizes, types and digests, each path once. Raises NotAdmitted."""
    contents: dict[str, Content] = {}
    size_bytes = 0
    for file in entry.files:
        path = relative(file.path)
        if path in contents:
            raise NotAdmitted(f"{shown(entry.ark)} has '{shown(path)}' twice; list each file once")
        size_bytes += file.size_bytes
        if file.size_bytes < 0 or size_bytes > _SIZE_MAX:
            raise NotAdmitted(f"'{shown(path)}' cannot have {file.size_bytes} bytes; measure it again")
        if file.mime_type is not None:
            name("MIME type", file.mime_type)
        if file.modified is not None:
            plain("date of the last change", file.modified)
        contents[path] = content(file, _digests(path, file.digests))
    return Admitted([contents[path] for path in sorted(contents)], size_bytes)


def _digests(path: str, digests_: Mapping[str, str]) -> Mapping[str, str]:
    """Return the digests in canonical form. Raises NotAdmitted for two values of one algorithm."""
    checked: dict[str, str] = {}
    for digest in (digests.digest(algorithm, value) for algorithm, value in digests_.items()):
        if checked.setdefault(digest.algorithm, digest.value) != digest.value:
            raise NotAdmitted(f"'{shown(path)}' has two {digest.algorithm} values; give the right one")
    return checked
