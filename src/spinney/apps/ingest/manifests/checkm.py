"""Parses Checkm 0.7 in the dialect of the Merritt repository.

The rules are in the package's docstring. The caller decides how problems are handled (`Problems`): ``reader.read``
raises at the first one, ``reader.judge`` notes it and continues with the next line.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType
from typing import BinaryIO

from spinney.apps.ingest.manifests import fields, lines
from spinney.apps.ingest.manifests.fields import shown
from spinney.apps.ingest.manifests.file_names import read_rows
from spinney.apps.ingest.manifests.model import NOTHING, About, Parsed, PayloadKind, Problems, Row
from spinney.files.paths import NotAdmitted

LINE_MAX_BYTES = 64 * 1024
"""The longest line that is read, with its end."""
DECLARATION = "checkm_0.7"
PROFILES_URL = "http://uc3.cdlib.org/registry/ingest/manifest/"
PROFILES: Mapping[str, PayloadKind] = MappingProxyType(
    {
        "mrt-ingest-manifest": PayloadKind.OBJECT_MANIFEST,
        "mrt-single-file-batch-manifest": PayloadKind.SINGLE_FILE_BATCH_MANIFEST,
        "mrt-container-batch-manifest": PayloadKind.CONTAINER_BATCH_MANIFEST,
        "mrt-batch-manifest": PayloadKind.BATCH_MANIFEST,
    }
)
PREFIXES: Mapping[str, str] = MappingProxyType(
    {
        "mrt:": "http://merritt.cdlib.org/terms#",
        "nfo:": "http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#",
    }
)
FILE_FIELDS = (
    "nfo:fileUrl",
    "nfo:hashAlgorithm",
    "nfo:hashValue",
    "nfo:fileSize",
    "nfo:fileLastModified",
    "nfo:fileName",
    "mrt:mimeType",
)
"""The fields that describe a file, in the order in which rows are written and parsed."""
OBJECT_FIELDS = ("mrt:primaryIdentifier", "mrt:localIdentifier", "mrt:creator", "mrt:title", "mrt:date")
"""The fields that only batch manifests have."""

_CANONICAL = {f.lower(): f for f in (*FILE_FIELDS, *OBJECT_FIELDS)}
_BY_NAME = {f.lower().partition(":")[2]: f for f in (*FILE_FIELDS, *OBJECT_FIELDS)}
_FORMER = {"mrt:": "http://uc3.cdlib.org/ontology/mom#"}
"""The URLs of prefixes in early manifests, which clients still write."""
_WITHOUT_BAR = re.compile(r"(profile|prefix|fields)[ \t]+(.*)", re.DOTALL | re.IGNORECASE)
_DECLARING = ("#%checkm", "#% checkm")
_ENCODED, _DECODED = re.compile(r"[ \t|%]"), re.compile("%(20|09|25|7[Cc])")

Lines = Iterator[tuple[int, bytes]]


def parse(file: BinaryIO, problems: Problems) -> Parsed | None:
    """Read the header, and return the kind and the rows, which are read lazily. None: the header names no
    kind.

    ``file`` is at the first byte after any byte order mark, and must stay open while rows are read. ``problems``
    gets problems in the order of lines; if it returns, the line is skipped.
    """
    reading = lines.numbered(file, LINE_MAX_BYTES)
    head = _read_head(reading, problems)
    if not head.declared_line:
        problems.warn(
            1, f"#%{DECLARATION} is missing above the rows, and assumed; write it as the first line"
        )
    try:
        columns = head.columns()
    except NotAdmitted as problem:
        problems.refuse(head.fields_line if head.profile_line and head.fields_line else head.last, problem)
        return None
    if head.kind is None:
        return None
    row_lines = _row_lines(chain(head.body, reading), head.last, problems)
    rows = read_rows(row_lines, _builder(head.kind, columns), head.kind, problems)
    return Parsed(head.kind, rows, problems.unit)


# --- the header ---------------------------------------------------------------------------------


@dataclass(slots=True)
class _Head:
    """The content of the header so far."""

    problems: Problems
    declared_line: int = 0
    profile_line: int = 0
    kind: PayloadKind | None = None
    prefixes: set[str] = field(default_factory=set)
    fields_line: int = 0
    fields: list[str] = field(default_factory=list)
    body: list[tuple[int, bytes]] = field(default_factory=list)
    """The first line after the header."""
    last: int = 1

    def columns(self) -> dict[str, int]:
        """Return the place of each field in a row. Checked last, since header lines may have any order. Raises
        NotAdmitted."""
        if not self.profile_line:
            raise NotAdmitted(f"no profile is named above this line; write #%profile | {PROFILES_URL}…")
        if not self.fields_line:
            raise NotAdmitted(f"no fields are named above this line; write #%fields | {FILE_FIELDS[0]} | …")
        places: dict[str, int] = {}
        for place, text in enumerate(self.fields):
            places[self._field(text, places)] = place
        if FILE_FIELDS[0] not in places:
            raise NotAdmitted(f"the fields lack {FILE_FIELDS[0]}; every row needs it")
        return places

    def _field(self, text: str, before: Mapping[str, int]) -> str:
        """Return the canonical name of a field. ``before``: the fields in front of it."""
        name = _CANONICAL.get(text.lower())
        has_prefix = ":" in text
        if name is None and (name := _field_by_name(text)) is not None:
            self.problems.warn(self.fields_line, f"the field '{shown(text)}' is read as {name}; write it so")
        if name is None:
            raise NotAdmitted(
                f"the field '{shown(text)}' is not known; there are {', '.join((*FILE_FIELDS, *OBJECT_FIELDS))}"
            )
        if name in before:
            raise NotAdmitted(f"the field {name} is given twice; give each once")
        prefix = f"{name.partition(':')[0]}:"
        if has_prefix and prefix not in self.prefixes:
            raise NotAdmitted(
                f"the prefix of {name} is not declared; write #%prefix | {prefix} | {PREFIXES[prefix]}"
            )
        if name in OBJECT_FIELDS and self.kind is PayloadKind.OBJECT_MANIFEST:
            raise NotAdmitted(
                f"the field {name} describes an object, and a row here is a file; remove it, or name the profile of "
                f"a batch"
            )
        return name


def _read_head(reading: Lines, problems: Problems) -> _Head:
    """Read up to the first row, which is kept in ``body``. Invalid lines are reported, and the others still count."""
    head = _Head(problems)
    for number, raw in reading:
        head.last = number
        try:
            line = _text(raw)
            if number == 1 and line.lower().startswith(_DECLARING):
                head.declared_line = 1  # also when it is wrong, which is one problem, not two
                _check_declaration(head, line)
                continue
            if not line.startswith("#%"):
                if not line or line.startswith("#"):
                    continue
                head.body.append((number, raw))
                return head
            word, values = _directive(line)
            if word.lower() == "eof":
                head.body.append((number, raw))
                return head
            _add_directive(head, word, values)
        except NotAdmitted as problem:
            problems.refuse(number, problem)
    return head


def _check_declaration(head: _Head, line: str) -> None:
    """Check a first line that declares the format. Raises NotAdmitted for another version."""
    if line.lower() == f"#%{DECLARATION}":
        return
    if line.lower().replace(" ", "") == f"#%{DECLARATION}":
        head.problems.warn(1, f"'{shown(line)}' is read as #%{DECLARATION}; write it so")
    else:
        raise NotAdmitted(f"the first line is '{shown(line)}'; it must be #%{DECLARATION}")


def _text(raw: bytes) -> str:
    """Return the text of a line without the blanks around it. Raises NotAdmitted for one that is too long or
    not UTF-8."""
    return lines.text(raw, LINE_MAX_BYTES).lstrip(" \t")


def _directive(line: str) -> tuple[str, list[str]]:
    """Return the word of a ``#%`` line, and the values behind it without empty ones at the end."""
    word, *values = [part.strip(" \t") for part in line[2:].split("|")]
    while values and not values[-1]:
        values.pop()
    return word, values


def _add_directive(head: _Head, word: str, values: list[str]) -> None:
    """Store a directive of the header in ``head``. Raises NotAdmitted for an unknown word, and for a second profile."""
    number = head.last
    if word.lower() == DECLARATION and not values and not head.declared_line:
        head.declared_line = number
        head.problems.warn(number, f"#%{DECLARATION} is below the first line; make it the first")
        return
    if (match := _WITHOUT_BAR.fullmatch(word)) is not None:
        head.problems.warn(number, f"there is no '|' behind #%{match[1].lower()}; write one")
        word, values = match[1], [match[2], *values]
    word = word.lower()
    if word == "profile":
        if head.profile_line:
            raise NotAdmitted(f"the profile is named on line {head.profile_line} already; name one")
        head.profile_line = number
        head.kind = _kind(head, values)
    elif word == "prefix":
        # Recorded before it is checked: a wrong URL is one problem, and not a second one at the fields.
        head.prefixes.update(_plain(value) for value in values[:1])
        _prefix(head, values)
    elif word == "fields":
        if head.fields_line:
            raise NotAdmitted(f"the fields are named on line {head.fields_line} already; name them once")
        head.fields_line = number
        head.fields = values
    else:
        raise NotAdmitted(
            f"'#%{shown(word)}' is not known; there are #%profile, #%prefix, #%fields and #%eof"
        )


def _field_by_name(text: str) -> str | None:
    """Return the field by its name without a prefix, or with blanks in it. Each name is unique."""
    plain = "".join(text.split()).lower()
    return _CANONICAL.get(plain) or _BY_NAME.get(plain)


def _plain(text: str) -> str:
    """Return a prefix in canonical form."""
    return f"{text.lower().removesuffix(':').rstrip(' ')}:" if text else text


def _kind(head: _Head, values: list[str]) -> PayloadKind:
    """Return the kind that a profile names; capitals are read with a warning."""
    text = " | ".join(values)
    plain = text.lower()
    kind = PROFILES.get(plain.removeprefix(PROFILES_URL)) if plain.startswith(PROFILES_URL) else None
    if kind is not None and text != plain:
        head.problems.warn(head.last, f"the profile '{shown(text)}' is read as {plain}; write it so")
    if kind is None:
        raise NotAdmitted(
            f"the profile '{shown(text)}' is not known; "
            f"write {PROFILES_URL} and behind it one of {', '.join(PROFILES)}"
        )
    return kind


def _prefix(head: _Head, values: list[str]) -> None:
    """Check the declaration of a prefix; capitals and the URLs of early manifests are read with a warning."""
    prefix = _plain(values[0]) if values else ""
    if prefix not in PREFIXES:
        raise NotAdmitted(
            f"the prefix '{shown(' | '.join(values))}' is not known; there are {' and '.join(PREFIXES)}"
        )
    if values == [prefix, PREFIXES[prefix]]:
        return
    if [value.lower() for value in values[1:]] in ([PREFIXES[prefix].lower()], [_FORMER.get(prefix)]):
        head.problems.warn(
            head.last, f"'{shown(' | '.join(values))}' is read as {prefix} | {PREFIXES[prefix]}; write it so"
        )
    else:
        raise NotAdmitted(
            f"the prefix {prefix} means '{shown(' | '.join(values[1:]))}' here; it must be {PREFIXES[prefix]}"
        )


# --- the rows -----------------------------------------------------------------------------------


def _row_lines(reading: Lines, above: int, problems: Problems) -> Iterator[tuple[int, str]]:
    """Yield the lines of rows up to ``#%eof``, and check what is behind it; invalid lines are reported, and skipped if
    that returns.

    ``reading``: the lines after the header. ``above``: the number of the last line before them, for a
    manifest that ends there. Without ``#%eof`` the manifest is reported as cut off, after its last row.
    """
    number, has_rows = above, False
    for number, raw in reading:
        try:
            line = _text(raw)
            if line.startswith("#%"):
                word, _ = _directive(line)
                if word.lower() == "eof":
                    break
                raise NotAdmitted(f"'#%{shown(word)}' is below a row; move it above the rows")
        except NotAdmitted as problem:
            problems.refuse(number, problem)
            continue
        if line and not line.startswith("#"):
            has_rows = True
            yield number, line
    else:
        problems.refuse(number + 1, "the manifest ends without #%eof, so it was cut off; hand it in whole")
        return
    if not has_rows:
        problems.refuse(number, "the manifest ends before its first row; name what is to be deposited")
    for below, raw in reading:
        text = raw.strip()
        if text.startswith(b"#%") or (text and not text.startswith(b"#")):
            problems.refuse(
                below, f"this is below the #%eof on line {number}; hand in one manifest at a time"
            )
            return


def _builder(kind: PayloadKind, columns: Mapping[str, int]) -> Callable[[int, str], Row]:
    """Return the function that parses lines into rows, with the places of the fields looked up once and not
    for every row."""
    width = len(columns)
    url, algorithm, value, size, modified, name, mime_type = (columns.get(f, width) for f in FILE_FIELDS)
    primary_id, local_ids, creator, title, date = (columns.get(f, width) for f in OBJECT_FIELDS)
    has_object_fields = kind.is_batch and not columns.keys().isdisjoint(OBJECT_FIELDS)
    # Missing fields of a row are empty, and so is place `width`, which stands for fields that are not named.
    padding = [""] * (width + 1)

    def about(parts: list[str]) -> About:
        return fields.about(
            parts[primary_id], parts[local_ids].split(";"), parts[creator], parts[title], parts[date]
        )

    def row(number: int, line: str) -> Row:
        parts = [part.strip(" \t") for part in line.split("|")]
        if len(parts) > width:
            if any(parts[width:]):
                raise NotAdmitted(
                    f"there are {len(parts)} fields and {width} are named; write a '|' within a URL as %7C"
                )
            del parts[width:]
        parts += padding[len(parts) :]
        where = fields.url(parts[url])
        return Row(
            line=number,
            url=where,
            name=fields.name(decoded(parts[name]) or None, where),
            digest=fields.digest(parts[algorithm], parts[value]),
            size_bytes=fields.size(parts[size]),
            modified=fields.one_line(parts[modified], "date of the last change"),
            mime_type=fields.mime_type(parts[mime_type]),
            about=about(parts) if has_object_fields else NOTHING,
        )

    return row


def encoded(name: str) -> str:
    """Encode a name for a row (Checkm, section 3): blanks, bars and percent signs are percent-encoded."""
    return _ENCODED.sub(lambda m: f"%{ord(m[0]):02X}", name)


def decoded(field: str) -> str:
    """Decode a name of a row. Other text that begins with a percent sign is kept."""
    return _DECODED.sub(lambda m: chr(int(m[1], 16)), field)
