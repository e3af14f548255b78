"""Parses the JSON form of a manifest: JSON Lines, or one small document.

Rules and examples are in the package's docstring; `Problems` are as in `checkm`. A duplicate key is refused, since
parsers differ in which of the two counts.
"""

import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

from spinney.apps.ingest.manifests import fields, lines
from spinney.apps.ingest.manifests.fields import shown
from spinney.apps.ingest.manifests.file_names import read_rows
from spinney.apps.ingest.manifests.model import (
    NOTHING,
    About,
    LineRefused,
    Parsed,
    PayloadKind,
    Problem,
    Problems,
    Row,
)
from spinney.files.paths import NotAdmitted

JSON_MAX_BYTES = 4 * 1024 * 1024
"""The maximum size of a line, or of a manifest that is one document. Parsed hostile JSON takes thirty times that."""

FILE_KEYS = ("url", "name", "digest", "size", "modified", "mime_type")
OBJECT_KEYS = ("primary_id", "local_ids", "creator", "title", "date")

Entry = Mapping[str, Any]
_ValueRule = tuple[Callable[[Any], bool], str]
"""What the value of a key must be: a check, and the same in words."""


def parse(file: io.BufferedReader, problems: Problems) -> Parsed | None:
    """Read the header or the document, and return the kind and the rows, which are read lazily. None: it
    names no kind.

    The first line decides: an object without ``files`` and ``objects`` is the header of JSON Lines; anything
    else begins a document, which is read in full. ``problems`` are as in ``checkm.parse``.
    """
    reading = lines.numbered(file, JSON_MAX_BYTES)
    before: list[bytes] = []
    number, raw = next(reading, (1, b""))
    while raw and not raw.strip():
        before.append(raw)
        number, raw = next(reading, (number, b""))
    header = _header(raw)
    try:
        if header is not None:
            kind = _kind(header)
            _no_others(header, ("profile",), "the header")
            return _parsed(_lines(reading, problems), kind, problems)
        document = _whole(b"".join((*before, raw)), file)
        kind = _kind(document)
        key = "objects" if kind.is_batch else "files"
        _no_others(document, ("profile", key), "the manifest")
        entries = document.get(key)
        if not isinstance(entries, list) or not entries:
            raise NotAdmitted(f'a manifest of kind {kind} needs "{key}": a list that is not empty')
    except LineRefused as problem:
        problems.refuse(problem.line, problem)
    except NotAdmitted as problem:
        problems.refuse(number, problem)
    else:
        return _parsed(enumerate(entries, 1), kind, replace(problems, unit="entry"))
    return None


def _header(raw: bytes) -> Entry | None:
    """Return the first line if it is the header of JSON Lines; None: the manifest is one document."""
    try:
        value = _value(raw)
    except NotAdmitted:
        return None
    return value if isinstance(value, dict) and not value.keys() & {"files", "objects"} else None


def _whole(begun: bytes, file: io.BufferedReader) -> Entry:
    """Return a manifest that is one document; ``begun``: its bytes up to here."""
    raw = begun + file.read(max(0, JSON_MAX_BYTES + 1 - len(begun)))
    if len(raw) > JSON_MAX_BYTES:
        raise NotAdmitted(
            f"a manifest that is one JSON document may have {JSON_MAX_BYTES} bytes; "
            f'write JSON Lines: {{"profile": …}}, then an entry a line, then {{"end": how many}}'
        )
    value = _value(raw)
    if not isinstance(value, dict):
        raise NotAdmitted('this is no JSON object; write {"profile": …, "files": […]}')
    return value


def _kind(value: Entry) -> PayloadKind:
    """Return the kind that a header or document names. Raises NotAdmitted."""
    kinds = [kind for kind in PayloadKind if kind.is_manifest]
    profile = value.get("profile")
    if profile is None:
        raise NotAdmitted(f'no "profile" is named; name one of {", ".join(kinds)}')
    if profile not in kinds:
        raise NotAdmitted(f"the profile {_shown(profile)} is not known; name one of {', '.join(kinds)}")
    return PayloadKind(profile)


# --- JSON Lines ---------------------------------------------------------------------------------


def _lines(reading: Iterator[tuple[int, bytes]], problems: Problems) -> Iterator[tuple[int, Any]]:
    """Yield the entries of JSON Lines up to the end line, which must have their number. Invalid lines are reported, and
    skipped if that returns."""
    count, number, end = 0, 1, None
    for number, raw in reading:
        if not raw.strip():
            continue
        try:
            value = _value(raw)
        except NotAdmitted as problem:
            count += 1
            problems.refuse(number, problem)
            continue
        if isinstance(value, dict) and value.keys() == {"end"}:
            end = value["end"]
            break
        count += 1
        yield number, value
    else:
        reason = f'the manifest ends without {{"end": {count}}}, so it was cut off; hand it in whole'
        problems.refuse(number + 1, reason)
        return
    if type(end) is not int or end != count:
        reason = (
            f"the end line announces {_shown(end)} entries, but there are {count}; hand in the whole manifest"
        )
        problems.refuse(number, reason)
    elif not count:
        problems.refuse(number, "the manifest ends before its first entry; name what is to be deposited")
    for further, raw in reading:
        if raw.strip():
            problems.refuse(
                further, f"this is below the end on line {number}; hand in one manifest at a time"
            )
            return


# --- entries ------------------------------------------------------------------------------------


def _parsed(entries: Iterator[tuple[int, Any]], kind: PayloadKind, problems: Problems) -> Parsed:
    """Return the kind and the rows of numbered entries; invalid ones are reported, and skipped if that returns."""
    row = partial(_object, kind=kind, problems=problems) if kind.is_batch else _file
    return Parsed(kind, read_rows(entries, row, kind, problems), problems.unit)


def _object(number: int, entry: Any, kind: PayloadKind, problems: Problems) -> Row:
    """Parse an entry of a batch: one URL, or in a batch-manifest the files of an object."""
    if kind is not PayloadKind.BATCH_MANIFEST or not isinstance(entry, dict) or entry.get("files") is None:
        return _file(number, entry, of_object=True)
    values = _values(entry, ("files", "name", *OBJECT_KEYS), "an object with files of its own")
    if not values["files"]:
        raise NotAdmitted('"files" is empty; list the files of the object')

    def refuse(problem: Problem) -> NoReturn:
        raise NotAdmitted(f"files, {problem}")

    below = Problems(
        report=refuse, note=lambda warning: problems.warn(number, f"files, {warning}"), unit="entry"
    )
    rows = read_rows(
        enumerate(values["files"], 1),
        lambda _, each: _file(number, each),
        PayloadKind.OBJECT_MANIFEST,
        below,
    )
    return Row(
        line=number,
        url="",
        name=fields.name(values["name"] or f"object-{number}", ""),
        about=_about(values),
        files=tuple(rows),
    )


def _file(number: int, entry: Any, *, of_object: bool = False) -> Row:
    """Parse an entry that is a file, or that gives the URL of an object's payload."""
    if not isinstance(entry, dict):
        raise NotAdmitted(f'this is no JSON object but {_shown(entry)}; write {{"url": …}}')
    values = _values(entry, (*FILE_KEYS, *OBJECT_KEYS) if of_object else FILE_KEYS, "the entry")
    url = fields.url(values["url"])
    digest = _values(values["digest"] or {}, ("algorithm", "value"), "the digest")
    return Row(
        line=number,
        url=url,
        name=fields.name(values["name"], url),
        digest=fields.digest(digest["algorithm"], digest["value"]),
        size_bytes=values["size"],
        modified=fields.one_line(values["modified"], "date of the last change"),
        mime_type=fields.mime_type(values["mime_type"]),
        about=_about(values) if of_object else NOTHING,
    )


def _about(values: Entry) -> About:
    """Return the description of an object from the values of its entry."""
    primary_id, local_ids, *texts = (values[key] for key in OBJECT_KEYS)
    return fields.about(primary_id, local_ids or (), *texts)


def _no_others(value: Entry, keys: Sequence[str], where: str) -> None:
    """Raise NotAdmitted for an unknown key, which may be a misspelt one whose value would be lost."""
    unknown = sorted(value.keys() - set(keys))
    if unknown:
        raise NotAdmitted(
            f"{where} has a key '{shown(unknown[0])}', which is unknown there; its keys are {', '.join(keys)}"
        )


def _values(entry: Entry, keys: Sequence[str], where: str) -> dict[str, Any]:
    """Return the values of an entry by these keys; None for a key that it has not. Raises NotAdmitted for another key,
    and for a value of another kind, such as true or 1.0 as a size."""
    _no_others(entry, keys, where)
    for key, value in entry.items():
        is_right, right = _VALUE_RULES.get(key, _TEXT)
        if value is not None and not is_right(value):
            raise NotAdmitted(f"{key} is {_shown(value)}; write {right}")
    return {key: entry.get(key) for key in keys}


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


_TEXT: _ValueRule = (_is_text, "text in quotes")
_VALUE_RULES: Mapping[str, _ValueRule] = {
    "size": (lambda value: type(value) is int and 0 <= value <= fields.SIZE_MAX_BYTES, "a number of bytes"),
    "digest": (lambda value: isinstance(value, dict), '{"algorithm": …, "value": …}'),
    "local_ids": (lambda value: isinstance(value, list) and all(map(_is_text, value)), "a list of texts"),
    "files": (lambda value: isinstance(value, list), "a list of the files of the object"),
}
"""The rules for values, by key; the values of other keys are texts."""


# --- JSON itself --------------------------------------------------------------------------------


def _value(raw: bytes) -> Any:
    """Parse JSON. Raises NotAdmitted for what JSON parsers read differently, LineRefused for wrong syntax."""
    text = lines.text(raw, JSON_MAX_BYTES)
    try:
        value = json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise LineRefused(
            error.lineno, f"this is no JSON ({error.msg}, character {error.colno}); correct it"
        ) from None
    except (ValueError, RecursionError):
        raise NotAdmitted(
            "this is no manifest in JSON (too deep, or a number is too long); correct it"
        ) from None
    if "\\u" in text:
        _all_unicode(value)
    return value


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object. Raises NotAdmitted for a key that stands twice in it."""
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise NotAdmitted(f"the key '{shown(twice)}' is given twice; give each once")
    return value


def _no_number(constant: str) -> NoReturn:
    raise NotAdmitted(f"{constant} is not a number in JSON; remove it")


def _all_unicode(value: Any) -> None:
    # Half a surrogate pair can be escaped in JSON, and could not be written as UTF-8.
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise NotAdmitted("this is no manifest in JSON (too deep); correct it") from None
    except UnicodeEncodeError:
        raise NotAdmitted("an escape like \\ud800 is half a character; write both halves") from None


def _shown(value: Any) -> str:
    # Without its content: its depth may have used up the stack.
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "an object"
    return shown(repr(value))
