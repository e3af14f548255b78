"""The arguments that name services: numbers, ``gid=N``, ``eid=N``, and patterns."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

_INTEGER = re.compile(r"\s*([+-]?)(0[xX][0-9A-Fa-f]+|0[oO][0-7]+|0[bB][01]+|[0-9]+)\s*")
_OCTAL = re.compile(r"\s*[+-]?0[0-9]*[89][0-9]*\s*")
_MOST = 4_294_967_295
_DIGITS = 20
_KEYED = re.compile(r"([ge]id)=([0-9]+)")


@dataclass(slots=True)
class Named:
    """The services that arguments name: by numbers of services (``gids``) or entities (``eids``), or by
    patterns of descriptions, each in the order of the arguments."""

    gids: list[int] = field(default_factory=list)
    eids: list[int] = field(default_factory=list)
    patterns: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Return whether the arguments name nothing, so that nothing can be found."""
        return not (self.gids or self.eids or self.patterns)


def integer(text: str) -> int | None:
    """Return the value of an integer as Tcl reads one, the empty text as 0; None for any other text, and for integers
    of more than 32 bits. A leading 0 does not make a number octal here, since the old server handed it on to SQL as it
    was written; one with a digit 8 or 9 behind it is none for Tcl."""
    if not text.strip():
        return 0
    match = _INTEGER.fullmatch(text)
    if match is None or _OCTAL.fullmatch(text):
        return None
    digits = match[2]
    value = int(digits, 0) if digits[:2].lower() in ("0x", "0o", "0b") else _decimal(digits)
    return None if value > _MOST else -value if match[1] == "-" else value


def _decimal(digits: str) -> int:
    """Return the value of decimal digits; of more than Python reads, one that is too large for any service."""
    digits = digits.lstrip("0") or "0"
    return int(digits) if len(digits) <= _DIGITS else _MOST + 1


def named(arguments: Sequence[str]) -> Named:
    """Return what the arguments name: a number is a service, ``gid=N`` and ``eid=N`` anywhere in an argument
    say which of both, and everything else is a pattern. Numbers below 1 name nothing."""
    result = Named()
    for argument in arguments:
        number = integer(argument)
        keyed = _KEYED.search(argument)
        if number is not None:
            if number > 0:
                result.gids.append(number)
        elif keyed is not None:
            if (value := _decimal(keyed[2])) > 0:
                (result.gids if keyed[1] == "gid" else result.eids).append(value)
        else:
            result.patterns.append(argument)
    return result
