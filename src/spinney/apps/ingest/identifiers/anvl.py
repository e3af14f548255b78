"""ANVL, "A Name-Value Language": lines of ``name: value``, as ERC and EZID write them.

After draft-kunze-anvl and the EZID API's section "Request and response bodies": percent signs and line
ends are written as %25, %0A, %0D, in names the colon too. A line that begins with blank space continues
the value before it; one that begins with '#' is a comment; an empty one ends the record.
"""

import re
from dataclasses import dataclass, replace

from spinney.files.paths import NotAdmitted, shown

# The line ends of str.splitlines, and other characters that no line of text should contain.
_IN_VALUES = re.compile("[%\u0000-\u001f\u007f-\u009f\u2028\u2029]")
_IN_NAMES = re.compile("[%:\u0000-\u001f\u007f-\u009f\u2028\u2029]")
_BLANK = " \t"
_SURROGATES = re.compile("[\ud800-\udfff]")
_ESCAPES = re.compile(r"(?:%[0-9A-Fa-f]{2})+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """An element of ANVL: a name and its value, continuation lines joined."""

    name: str
    raw: str
    """The value before unescaping (``unescaped``), for callers that split it: an escaped separator does not split."""


def line(name: str, value: str) -> str:
    """Return one line, with its end. Lone surrogates, which UTF-8 cannot represent, become U+FFFD."""
    return f"{_escaped(_IN_NAMES, name)}: {_escaped(_IN_VALUES, value)}".rstrip(" ") + "\n"


def parse(text: str) -> list[Element]:
    """Return the elements of the first record. Raises NotAdmitted with the number of an invalid line."""
    elements: list[Element] = []
    for number, raw in enumerate(re.split(r"\r\n|\n|\r", text), start=1):
        if not raw.strip():
            if elements:
                break
            continue
        if raw.startswith("#"):
            continue
        if raw[0] in _BLANK:
            _continue(elements, raw, number)
            continue
        name, colon, value = raw.partition(":")
        if not colon:
            raise NotAdmitted(f"line {number} ('{shown(raw[:60])}') has no colon; write 'name: value'")
        elements.append(Element(name=unescaped(name.strip(_BLANK)), raw=value.strip(_BLANK)))
    return elements


def unescaped(text: str) -> str:
    """Undo the %-escapes of a name or value; invalid escapes, and those that are no UTF-8, are kept."""
    return _ESCAPES.sub(_decoded, text)


def _continue(elements: list[Element], raw: str, number: int) -> None:
    if not elements:
        raise NotAdmitted(
            f"line {number} continues a value, and there is none before it; begin the line at the left"
        )
    last = elements[-1]
    elements[-1] = replace(last, raw=f"{last.raw} {raw.strip(_BLANK)}".strip(_BLANK))


def _decoded(match: re.Match[str]) -> str:
    try:
        return bytes.fromhex(match[0].replace("%", "")).decode()
    except UnicodeDecodeError:
        return match[0]


def _escaped(pattern: re.Pattern[str], text: str) -> str:
    whole = _SURROGATES.sub("\ufffd", text)
    return pattern.sub(lambda m: "".join(f"%{b:02X}" for b in m[0].encode()), whole)
