"""Reading the JSON form of a manifest: JSON Lines, or one small document.

Rules and examples in the package's docstring; `Report` as in `checkm`. A key that stands twice is
refused: which of the two counts would depend on who reads it.
"""

import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from spinney.apps.ingest.files.paths import NotAdmitted, shown
from spinney.apps.ingest.manifests import fields, lines
from spinney.apps.ingest.manifests.file_names import Names
from spinney.apps.ingest.manifests.model import NOTHING, About, PayloadKind, Problem, Report, Row, Unit

JSON_MAX_BYTES = 4 * 1024 * 1024
"""Of one line, or of a manifest that is one document. Parsed, hostile JSON takes thirty times that."""

FILE_KEYS = ("url", "name", "digest", "size", "modified", "mime_type")
OBJECT_KEYS = ("primary_id", "local_ids", "creator", "title", "date")
_SHOWN_MAX = 140

Entry = Mapping[str, Any]


def parse(file: io.BufferedReader, report: Report, warn: Report) -> tuple[PayloadKind, Iterator[Row]] | None:
    """Read the header or the document; rows follow as they are asked for. None: no kind is told."""
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
            return kind, _lines(reading, kind, report, warn)
        document = _whole(b"".join((*before, raw)), file)
        kind = _kind(document)
        key = "objects" if kind.is_batch else "files"
        _no_others(document, ("profile", key), "the manifest")
        entries = document.get(key)
        if not isinstance(entries, list) or not entries:
            raise NotAdmitted(f'a manifest of kind {kind} needs "{key}": a list that is not empty')
    except _Syntax as problem:
        report(Problem(line=problem.line, reason=str(problem)))
    except NotAdmitted as problem:
        report(Problem(line=number, reason=str(problem)))
    else:
        return kind, _entries(enumerate(entries, 1), kind, "entry", report, warn)
    return None


def _header(raw: bytes) -> Entry | None:
    """The first line when it is the header of JSON Lines; else the manifest is one document."""
    try:
        value = _value(raw)
    except NotAdmitted:
        return None
    return value if isinstance(value, dict) and not value.keys() & {"files", "objects"} else None


def _whole(begun: bytes, file: io.BufferedReader) -> Entry:
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
    kinds = [kind for kind in PayloadKind if kind.is_manifest]
    given = value.get("profile")
    if given is None:
        raise NotAdmitted(f'no "profile" is named; name one of {", ".join(kinds)}')
    if given not in kinds:
        raise NotAdmitted(f"the profile {_shown(given)} is not known; name one of {', '.join(kinds)}")
    return PayloadKind(given)


# --- JSON Lines ---------------------------------------------------------------------------------


def _lines(
    reading: Iterator[tuple[int, bytes]], kind: PayloadKind, report: Report, warn: Report
) -> Iterator[Row]:
    ended: list[tuple[int, Any]] = []
    count, number = 0, 1

    def entries() -> Iterator[tuple[int, Any]]:
        nonlocal count, number
        for number, raw in reading:
            if not raw.strip():
                continue
            try:
                value = _value(raw)
            except NotAdmitted as problem:
                count += 1
                report(Problem(line=number, reason=str(problem)))
                continue
            if isinstance(value, dict) and value.keys() == {"end"}:
                ended.append((number, value["end"]))
                return
            count += 1
            yield number, value

    yield from _entries(entries(), kind, "line", report, warn)
    if not ended:
        reason = f'the manifest ends without {{"end": {count}}}, so it was cut off; hand it in whole'
        report(Problem(line=number + 1, reason=reason))
        return
    at, told = ended[0]
    if type(told) is not int or told != count:
        reason = f"the end tells of {_shown(told)} entries and there are {count}; hand the manifest in whole"
        report(Problem(line=at, reason=reason))
    elif not count:
        reason = "the manifest ends before its first entry; name what is to be deposited"
        report(Problem(line=at, reason=reason))
    for number, raw in reading:
        if raw.strip():
            reason = f"this stands below the end on line {at}; hand in one manifest at a time"
            report(Problem(line=number, reason=reason))
            return


# --- entries ------------------------------------------------------------------------------------


def _entries(
    entries: Iterator[tuple[int, Any]], kind: PayloadKind, unit: Unit, report: Report, warn: Report
) -> Iterator[Row]:
    names = None if kind.is_batch else Names(unit)
    for number, entry in entries:
        try:
            row = _object(number, entry, kind, unit, warn) if kind.is_batch else _file(number, entry)
            row = row if unit == row.unit else replace(row, unit=unit)
            if names is not None and (met := names.add(row.name, number)) is not None:
                warn(Problem(line=number, reason=met, unit=unit))
        except NotAdmitted as problem:
            report(Problem(line=number, reason=str(problem), unit=unit))
            continue
        yield row


def _object(number: int, entry: Any, kind: PayloadKind, unit: Unit, warn: Report) -> Row:
    if kind is not PayloadKind.BATCH_MANIFEST or not isinstance(entry, dict) or entry.get("files") is None:
        return _file(number, entry, of_object=True)
    _no_others(entry, ("files", "name", *OBJECT_KEYS), "an object with files of its own")
    given = entry["files"]
    if not isinstance(given, list) or not given:
        raise NotAdmitted('"files" is no list, or empty; list the files of the object')
    names = Names("entry")
    files = []
    for at, one in enumerate(given, 1):
        try:
            files.append(_file(number, one))
            if (met := names.add(files[-1].name, at)) is not None:
                warn(Problem(line=number, reason=f"files, entry {at}: {met}", unit=unit))
        except NotAdmitted as problem:
            raise NotAdmitted(f"files, entry {at}: {problem}") from None
    return Row(
        line=number,
        url="",
        name=fields.name(_text(entry, "name") or f"object-{number}", ""),
        about=_about(entry),
        files=tuple(files),
    )


def _file(number: int, entry: Any, *, of_object: bool = False) -> Row:
    """An entry that is a file, or that names by URL the file in which an object comes."""
    if not isinstance(entry, dict):
        raise NotAdmitted(f'this is no JSON object but {_shown(entry)}; write {{"url": …}}')
    _no_others(entry, (*FILE_KEYS, *OBJECT_KEYS) if of_object else FILE_KEYS, "the entry")
    url = fields.url(_text(entry, "url") or "")
    algorithm, value = _digest(entry)
    return Row(
        line=number,
        url=url,
        name=fields.name(_text(entry, "name"), url),
        digest=fields.digest(algorithm, value),
        size_bytes=_size(entry),
        modified=fields.one_line(_text(entry, "modified") or "", "date of the last change"),
        mime_type=fields.mime_type(_text(entry, "mime_type") or ""),
        about=_about(entry) if of_object else NOTHING,
    )


def _about(entry: Entry) -> About:
    return About(
        primary_id=fields.one_line(_text(entry, "primary_id") or "", "primary identifier"),
        local_ids=_local_ids(entry),
        creator=fields.one_line(_text(entry, "creator") or "", "creator"),
        title=fields.one_line(_text(entry, "title") or "", "title"),
        date=fields.one_line(_text(entry, "date") or "", "date"),
    )


def _local_ids(entry: Entry) -> tuple[str, ...]:
    given = entry.get("local_ids")
    if given is None:
        return ()
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise NotAdmitted(f"local_ids is {_shown(given)}; write a list of texts")
    found = (fields.one_line(one.strip(" \t"), "local identifier") for one in given)
    return tuple(dict.fromkeys(one for one in found if one))


def _digest(entry: Entry) -> tuple[str, str]:
    given = entry.get("digest")
    if given is None:
        return "", ""
    if not isinstance(given, dict):
        raise NotAdmitted(f'the digest is {_shown(given)}; write {{"algorithm": …, "value": …}}')
    _no_others(given, ("algorithm", "value"), "the digest")
    return _text(given, "algorithm") or "", _text(given, "value") or ""


def _size(entry: Entry) -> int | None:
    given = entry.get("size")
    if given is None:
        return None
    if type(given) is not int or not 0 <= given <= fields.SIZE_MAX_BYTES:
        raise NotAdmitted(f"the size is {_shown(given)}; write a number of bytes")
    return given


def _text(entry: Entry, key: str) -> str | None:
    given = entry.get(key)
    if given is not None and not isinstance(given, str):
        raise NotAdmitted(f"{key} is {_shown(given)}; write text in quotes")
    return given


def _no_others(value: Entry, keys: Sequence[str], where: str) -> None:
    unknown = sorted(value.keys() - set(keys))
    if unknown:
        raise NotAdmitted(
            f"{where} has a key '{shown(unknown[0][:_SHOWN_MAX])}', which is not known there; "
            f"there are {', '.join(keys)}"
        )


# --- JSON itself --------------------------------------------------------------------------------


class _Syntax(NotAdmitted):
    """A refusal that knows its line within what was parsed."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


def _value(raw: bytes) -> Any:
    text = lines.text(raw, JSON_MAX_BYTES)
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise _Syntax(
            error.lineno, f"this is no JSON ({error.msg}, character {error.colno}); mend it"
        ) from None
    except (ValueError, RecursionError):
        raise NotAdmitted("this is no JSON of a manifest (too deep, or a number too long); mend it") from None
    if "\\u" in text:
        _all_unicode(value)
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise NotAdmitted(f"the key '{shown(twice[:_SHOWN_MAX])}' stands twice; give each once")
    return value


def _no_number(constant: str) -> NoReturn:
    raise NotAdmitted(f"{constant} is no number of JSON; take it out")


def _all_unicode(value: Any) -> None:
    # Half a surrogate pair can be escaped in JSON, and would break whatever writes it as UTF-8.
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise NotAdmitted("this is no JSON of a manifest (too deep); mend it") from None
    except UnicodeEncodeError:
        raise NotAdmitted("an escape like \\ud800 is half a character; write both halves") from None


def _shown(value: Any) -> str:
    # Not what is in it: its depth may be all that was left of the stack.
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "an object"
    return shown(repr(value)[:_SHOWN_MAX])
