"""Writes manifests from which `read` reads the same rows.

Rows are written as they come, so that memory does not grow with the manifest. The functions write to a stream
of the caller, who makes the file durable and removes one that an error leaves incomplete.
"""

import json
import re
from collections.abc import Iterable
from typing import Any, BinaryIO

from spinney.apps.ingest.manifests import checkm, fields
from spinney.apps.ingest.manifests.json_form import OBJECT_KEYS
from spinney.apps.ingest.manifests.model import NOTHING, PayloadKind, Row
from spinney.files.paths import NotAdmitted, relative, shown

_UNWRITABLE = re.compile(r"[|\n\0]")


def write(rows: Iterable[Row], kind: PayloadKind, stream: BinaryIO) -> None:
    """Write a Checkm manifest.

    Raises NotAdmitted for a row that this form cannot represent (a name with a line break, a title with a
    ``|``, files in place of a URL), for which there is `write_json`, and for a URL, a name or local ids that
    `read` would refuse. Sizes, types, dates and texts are taken as valid, and clashes of names are not
    checked.
    """
    profile = _profile(kind)
    columns = checkm.FILE_FIELDS + (checkm.OBJECT_FIELDS if kind.is_batch else ())
    stream.write(f"#%{checkm.DECLARATION}\n#%profile | {checkm.PROFILES_URL}{profile}\n".encode())
    for prefix, url in checkm.PREFIXES.items():
        stream.write(f"#%prefix | {prefix} | {url}\n".encode())
    stream.write(f"#%fields | {' | '.join(columns)}\n".encode())
    for row in rows:
        stream.write(_line(row, kind))
    stream.write(b"#%eof\n")


def write_json(rows: Iterable[Row], kind: PayloadKind, stream: BinaryIO) -> None:
    """Write a manifest as JSON Lines.

    Any name can be written. Rows are not checked, and neither is the size of a line, which ``read`` limits.
    Raises NotAdmitted for a kind that is no manifest.
    """
    _profile(kind)
    stream.write(_json({"profile": kind.value}))
    count = 0
    for row in rows:
        stream.write(_json(_entry(row)))
        count += 1
    stream.write(_json({"end": count}))


def _profile(kind: PayloadKind) -> str:
    """Return the name of the profile of this kind. Raises NotAdmitted for a kind that is no manifest."""
    for profile, profile_kind in checkm.PROFILES.items():
        if profile_kind is kind:
            return profile
    raise NotAdmitted(f"a payload of kind {kind} is no manifest; write one of {', '.join(checkm.PROFILES)}")


def _line(row: Row, kind: PayloadKind) -> bytes:
    """Return the line of a row, with its end. Raises NotAdmitted as ``write`` does."""
    if row.files:
        raise NotAdmitted(f"'{shown(row.name)}' has files in place of a URL; write it as JSON")
    if not kind.is_batch and row.about != NOTHING:
        raise NotAdmitted(
            f"'{shown(row.name)}' has the description of an object, and is a file of one; remove that"
        )
    digest, about = row.digest, row.about
    parts = [
        fields.url(row.url),
        digest.algorithm if digest else "",
        digest.value if digest else "",
        "" if row.size_bytes is None else str(row.size_bytes),
        row.modified or "",
        checkm.encoded(relative(row.name)),
        row.mime_type or "",
    ]
    if kind.is_batch:
        local_ids = ";".join(about.local_ids)
        if fields.local_identifiers(local_ids.split(";")) != about.local_ids:
            raise NotAdmitted(
                f"the local ids of '{shown(row.name)}' have a ';' or a blank at an end; write it as JSON"
            )
        parts += [about.primary_id or "", local_ids, about.creator or "", about.title or "", about.date or ""]
    for part in parts:
        if part != part.strip(" \t\r\n") or _UNWRITABLE.search(part):
            raise NotAdmitted(
                f"'{fields.shown(part)}' has a '|', a line break or a blank at an end, which Checkm "
                f"cannot represent; write it as JSON"
            )
    line = f"{' | '.join(parts)}\n".encode()
    if len(line) > checkm.LINE_MAX_BYTES:
        raise NotAdmitted(f"the row of '{fields.shown(row.name)}' is too long for Checkm; shorten it")
    return line


def _entry(row: Row) -> dict[str, Any]:
    """Return the JSON object of a row; keys without a value are left out."""
    entry: dict[str, Any] = {
        "url": row.url or None,
        "name": row.name,
        "digest": row.digest and {"algorithm": row.digest.algorithm, "value": row.digest.value},
        "size": row.size_bytes,
        "modified": row.modified,
        "mime_type": row.mime_type,
        **{name: getattr(row.about, name) for name in OBJECT_KEYS},
        "local_ids": list(row.about.local_ids) or None,
        "files": [_entry(file_row) for file_row in row.files] or None,
    }
    return {key: value for key, value in entry.items() if value is not None}


def _json(value: dict[str, Any]) -> bytes:
    return f"{json.dumps(value, ensure_ascii=False)}\n".encode()
