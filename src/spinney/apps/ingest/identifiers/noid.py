"""NOID: names from numbers by a template, with a check character.

After J. Kunze, "noid - Nice Opaque Identifier Generator commands" (sections TEMPLATES and NOID CHECK
DIGIT ALGORITHM). A template is ``prefix.mask`` or ``mask``. The mask begins with the order of names and
goes on with one letter a character:

    r   as many names as the mask has, in an order that looks like none
    s   as many names as the mask has, one after the other
    z   one after the other without end: past the last one, names grow by a character on the left
    d   a digit                     e   a digit or one of 19 consonants ("betanumeric")
    k   at the end only: the check character

No vowels, so that no words come about, and no l, which is taken for 1. The order of ``r`` is ours
(``scatter``), not that of the Perl program. With a key, ``z`` is scattered too, among names of a length.
"""

import re
from dataclasses import dataclass

from spinney.apps.ingest.files.paths import NotAdmitted, shown
from spinney.apps.ingest.identifiers.scatter import scattered

ALPHABET = "0123456789bcdfghjkmnpqrstvwxz"
"""The 29 characters of a name; a prime, so that the check finds one wrong and two swapped characters."""
MASK_MAX = 64

_TEMPLATE = re.compile(r"(?:([0-9A-Za-z=~*+@_$]*)\.)?([rsz])([de]{1,%d})(k?)" % MASK_MAX, re.ASCII)  # noqa: UP031
_VALUES = {character: value for value, character in enumerate(ALPHABET)}
_RADIX = {"d": 10, "e": len(ALPHABET)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """How names are made; ``template`` reads one."""

    prefix: str
    order: str
    mask: str
    """Of d and e only."""
    checked: bool
    """Whether a check character ends the name."""

    @property
    def size(self) -> int | None:
        """How many names there are; None when there is no end."""
        return None if self.order == "z" else _names(self.mask)


def template(text: str) -> Template:
    """Read a template such as ``fk4.zeedeedk`` or ``reedeek``; raises NotAdmitted."""
    match = _TEMPLATE.fullmatch(text)
    if match is None:
        raise NotAdmitted(
            f"'{shown(text)}' is no NOID template; give a prefix and a point, or none, then r, s or z, then "
            f"d's and e's (at most {MASK_MAX}), then k or nothing, as in fk4.zeedeedk"
        )
    return Template(prefix=match[1] or "", order=match[2], mask=match[3], checked=bool(match[4]))


def nth(pattern: Template, number: int, *, authority: str = "", key: bytes = b"") -> str:
    """The name of a number, from 0 on; another number has another name.

    ``authority`` is the NAAN, or the NAAN and what else stands before the name; it is not part of the name,
    but the check character is over ``authority/name`` when it is given. ``key`` chooses the order of
    ``r``, and one for ``z``. Raises NotAdmitted when the template has no such name any more.
    """
    size = pattern.size
    if number < 0 or (size is not None and number >= size):
        raise NotAdmitted(
            f"template '{pattern.prefix}.{pattern.order}{pattern.mask}' has {size} names and none of number "
            f"{number}; mint from a longer one under a new shoulder"
        )
    mask, before = pattern.mask, 0
    if pattern.order == "z":
        mask, before = _grown(mask, number)
    place = number - before
    if pattern.order == "r" or (pattern.order == "z" and key):
        # A longer mask has more numbers than those before it, which its first names are not to repeat.
        place = scattered(place, _names(mask) - before, key)
    name = pattern.prefix + _rendered(mask, before + place)
    if not pattern.checked:
        return name
    return name + check_character(f"{authority}/{name}" if authority else name)


def check_character(text: str) -> str:
    """The check character for a name, with its authority before it: ``13030/xf93gt2`` has ``q``.

    It finds any one wrong character and any two swapped neighbours among the first 28.
    """
    total = sum(place * _VALUES.get(character, 0) for place, character in enumerate(text, start=1))
    return ALPHABET[total % len(ALPHABET)]


def verify(text: str) -> bool:
    """Whether the last character of a name, with its authority before it, is its check character."""
    return len(text) > 1 and text[-1] == check_character(text[:-1])


def _names(mask: str) -> int:
    size = 1
    for letter in mask:
        size *= _RADIX[letter]
    return size


def _grown(mask: str, number: int) -> tuple[str, int]:
    """The mask, longer by its first letter as often as the number needs, and the numbers of those before."""
    before, size = 0, _names(mask)
    while number >= size:
        before, size = size, size * _RADIX[mask[0]]
        mask = mask[0] + mask
    return mask, before


def _rendered(mask: str, number: int) -> str:
    characters: list[str] = []
    for letter in reversed(mask):
        number, value = divmod(number, _RADIX[letter])
        characters.append(ALPHABET[value])
    return "".join(reversed(characters))
