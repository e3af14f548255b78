"""What a legacy record carries: Java properties, XML or JSON. Nothing is unpickled or deserialized into objects."""

import json
import re
from collections.abc import Iterable
from typing import Any
from xml.etree.ElementTree import TreeBuilder
from xml.parsers import expat

from spinney.bridges.merritt.errors import MerrittZKNodeInvalid

_JAVA_OBJECT = b"\xac\xed"
_MOST_DEPTH = 50
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_KEY = re.compile(r"((?:\\.|[^\\\s:=])*)\s*[:=]?\s*(.*)", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse(path: str, data: bytes) -> dict[str, Any]:
    """Return the fields of a payload; its first characters show of which kind it is, and ``path`` names the
    record in errors. Raises MerrittZKNodeInvalid for a serialized Java object, for XML or JSON that cannot be
    read, and for halves of characters (lone surrogates), which no node in UTF-8 could have."""
    if data.startswith(_JAVA_OBJECT):
        raise MerrittZKNodeInvalid(
            f"{path} is a serialized Java object, which is not read because reading it can run code; move it by hand."
        )
    start = data.lstrip()[:1]
    if start == b"<":
        return dict(parse_xml(path, data))
    fields = _parse_json(path, data) if start == b"{" else parse_properties(_text(data))
    try:
        json.dumps(fields, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise MerrittZKNodeInvalid(
            f"{path} has half of a character (a lone surrogate); move it by hand."
        ) from None
    return fields


def parse_properties(text: str) -> dict[str, str]:
    """Return what Java's ``Properties.load`` reads: keys and values with escapes and continued lines."""
    properties: dict[str, str] = {}
    lines = iter(re.split(r"\r\n|\n|\r", text))
    for line in lines:
        logical = line.lstrip(" \t\f")
        if logical[:1] in ("", "#", "!"):
            continue
        while len(logical) - len(logical.rstrip("\\")) & 1:
            logical = logical[:-1] + next(lines, "").lstrip(" \t\f")
        key, value = _KEY.fullmatch(logical).groups()  # type: ignore[union-attr]
        properties[_unescape(key)] = _unescape(value)
    return properties


def parse_xml(path: str, data: bytes) -> dict[str, str]:
    """Return the text of the elements that have no children, by local name or by their attribute ``key``.

    A document that declares an entity is refused, and no external one is ever loaded. Raises MerrittZKNodeInvalid.
    """
    builder, parser = TreeBuilder(), expat.ParserCreate()
    names: list[str] = []

    def started(name: str, attributes: dict[str, str]) -> None:
        if len(names) >= _MOST_DEPTH:
            raise MerrittZKNodeInvalid(f"{path} is XML of more than {_MOST_DEPTH} levels; move it by hand.")
        names.append(attributes.get("key") or name.rpartition(":")[2])
        builder.start(names[-1], {})

    def ended(_: str) -> None:
        builder.end(names.pop())

    def entity(*_: object) -> None:
        raise MerrittZKNodeInvalid(
            f"{path} is XML that declares an entity, which is refused; move it by hand."
        )

    parser.StartElementHandler, parser.EndElementHandler = started, ended
    parser.CharacterDataHandler, parser.EntityDeclHandler = builder.data, entity
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise MerrittZKNodeInvalid(f"{path} is no XML ({error}); move it by hand.") from None
    return {each.tag: "".join(each.itertext()).strip() for each in builder.close().iter() if not len(each)}


def _parse_json(path: str, data: bytes) -> dict[str, Any]:
    """Return the object that JSON is. Raises MerrittZKNodeInvalid, also for one with so many levels that it may
    not be written again."""
    try:
        value: dict[str, Any] = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MerrittZKNodeInvalid(f"{path} is no JSON ({error}); move it by hand.") from None
    level: list[Any] = [value]
    for _ in range(_MOST_DEPTH):
        level = [child for each in level for child in _children(each)]
    if level:
        raise MerrittZKNodeInvalid(f"{path} is JSON of more than {_MOST_DEPTH} levels; move it by hand.")
    return value


def _children(value: Any) -> Iterable[Any]:
    """Return the values in an object or a list of JSON; other values have none."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _unescape(text: str) -> str:
    """Return a text of Java's properties without escapes. Java counts UTF-16: a character beyond U+FFFF is two
    escapes, which are joined here; a half alone stays."""
    return (
        _ESCAPE.sub(_unescaped, text)
        .encode("utf-16-le", "surrogatepass")
        .decode("utf-16-le", "surrogatepass")
    )


def _unescaped(escape: re.Match[str]) -> str:
    """Return the character that an escape of Java's properties means."""
    code = escape[1]
    return chr(int(code[1:], 16)) if len(code) == 5 else _CONTROL.get(code, code)


def _text(data: bytes) -> str:
    """Return text in UTF-8, or in ISO 8859-1, which Java's ``Properties.store`` writes."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("iso-8859-1")
