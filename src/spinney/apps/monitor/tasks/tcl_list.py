"""Lists as Tcl writes them, the format of the scripts and clients of the SNIG services monitor.

Elements are parted by white space. ``{…}`` stands as it is, and braces nest in it; in ``"…"`` and in bare words a
backslash escapes as in Tcl (``\\n``, ``\\t``, ``\\x41``, ``\\101``, ``\\u0049``). ``$``, ``[`` and ``;`` mean nothing
(Tcl's manual page of ``list``, and ``Tcl(n)`` on backslashes).

The parser is written by hand, since nothing of what programs and clients send may be evaluated as Tcl would."""

import re
from collections.abc import Iterable

_SPACE = " \t\n\r\v\f"
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_CODES = re.compile(r"x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})")
_PLAIN = re.compile(r"[^\s{}\[\]$;\"\\]+")


class MalformedList(ValueError):
    """The text is no Tcl list; the message is the one that Tcl gives."""


def parse(text: str) -> list[str]:
    """Return the elements of a list; none for a text of nothing but white space. Raises MalformedList for an
    open brace or quote, and for text right behind a closing one."""
    elements: list[str] = []
    place, end = 0, len(text)
    while True:
        while place < end and text[place] in _SPACE:
            place += 1
        if place == end:
            return elements
        if text[place] == "{":
            element, place = _braced(text, place)
        elif text[place] == '"':
            element, place = _quoted(text, place)
        else:
            element, place = _word(text, place, _SPACE)
        elements.append(element)


def join(elements: Iterable[str]) -> str:
    """Return the list of these elements, such that ``parse`` returns them. An element stands bare, in braces
    or with backslashes, whichever is first possible."""
    return " ".join(_written(element) for element in elements)


def _braced(text: str, start: int) -> tuple[str, int]:
    """Return the element in the braces that begin at ``start``, and the place behind it. Backslashes keep
    braces from counting, and stand in the element."""
    depth, place = 1, start + 1
    while place < len(text):
        char = text[place]
        if char == "\\":
            place += 2
            continue
        depth += (char == "{") - (char == "}")
        if depth == 0:
            _require_space(text, place + 1, "braces")
            return text[start + 1 : place], place + 1
        place += 1
    raise MalformedList("unmatched open brace in list")


def _quoted(text: str, start: int) -> tuple[str, int]:
    """Return the element in the quotes that begin at ``start``, and the place behind it."""
    element, place = _word(text, start + 1, '"')
    if place == len(text):
        raise MalformedList("unmatched open quote in list")
    _require_space(text, place + 1, "quotes")
    return element, place + 1


def _word(text: str, place: int, ends: str) -> tuple[str, int]:
    """Return the characters from a place up to one of ``ends``, and the place of that."""
    parts: list[str] = []
    while place < len(text) and text[place] not in ends:
        part, place = _character(text, place)
        parts.append(part)
    return "".join(parts), place


def _character(text: str, place: int) -> tuple[str, int]:
    """Return a character of a word, and the place behind it."""
    if text[place] != "\\" or place + 1 == len(text):
        return text[place], place + 1
    if match := _CODES.match(text, place + 1):
        hexadecimal = match[1] or match[2] or match[3]
        code = int(hexadecimal, 16) if hexadecimal else int(match[4], 8) & 0xFF
        valid = code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF
        return chr(code) if valid else "\N{REPLACEMENT CHARACTER}", match.end()
    if text[place + 1] == "\n":
        rest = re.compile(r"[ \t]*").match(text, place + 2)
        return " ", rest.end() if rest else place + 2
    return _SIMPLE.get(text[place + 1], text[place + 1]), place + 2


def _require_space(text: str, place: int, kind: str) -> None:
    """Raise MalformedList, in Tcl's own words, unless an element in braces or quotes ends there."""
    if place < len(text) and text[place] not in _SPACE:
        rest = re.split(r"\s", text[place:], maxsplit=1)[0]
        raise MalformedList(f'list element in {kind} followed by "{rest}" instead of space')


def _written(element: str) -> str:
    """Return one element as a list has it. A ``#`` at its beginning would make Tcl take a list for a
    comment."""
    if _PLAIN.fullmatch(element) and not element.startswith("#"):
        return element
    if _is_balanced(element):
        return f"{{{element}}}"
    return "".join(_escaped(char) for char in element)


def _is_balanced(element: str) -> bool:
    """Return whether an element can stand in braces: it is read again as it is, which its own braces and a
    backslash at its end may prevent. A backslash at a line's end joins lines where Tcl takes a list for a script."""
    text = f"{{{element}}}"
    try:
        return _braced(text, 0) == (element, len(text)) and "\\\n" not in element
    except MalformedList:
        return False


def _escaped(char: str) -> str:
    if char in "\n\t\r\v\f":
        return "\\" + {value: key for key, value in _SIMPLE.items()}[char]
    return f"\\{char}" if char in ' {}[]$;"\\#' else char
