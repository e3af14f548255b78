"""NOID: names from numbers by a template, with a check character.

After J. Kunze, "noid - Nice Opaque Identifier Generator commands" (sections TEMPLATES and NOID CHECK
DIGIT ALGORITHM). A template is ``prefix.mask`` or ``mask``. The mask begins with the order of names,
followed by one letter for each character:

    r   as many names as the mask has, in an order that looks random
    s   as many names as the mask has, one after the other
    z   one after the other without end: after the last one, names grow by a character on the left
    d   a digit                     e   a digit or one of 19 consonants ("betanumeric")
    k   at the end only: the check character

There are no vowels, so that no words are formed, and no l, which looks like 1. The order of ``r`` is our own
(``scattered``), not that of the Perl program.
"""

import hashlib
import math
import re
from dataclasses import dataclass

from spinney.files.paths import NotAdmitted, shown

ALPHABET = "0123456789bcdfghjkmnpqrstvwxz"
"""The 29 characters of a name; a prime number, so that the check detects one wrong or two swapped characters."""
MASK_MAX = 64

_TEMPLATE = re.compile(r"(?:([0-9A-Za-z=~*+@_$]*)\.)?([rsz])([de]{1,%d})(k?)" % MASK_MAX, re.ASCII)  # noqa: UP031
_VALUES = {character: value for value, character in enumerate(ALPHABET)}
_RADIX = {"d": 10, "e": len(ALPHABET)}
_ROUNDS = 6
_SEED = hashlib.blake2b(person=b"spinney scatter").digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A parsed template of a minter, such as ``fk4.zeedeedk``: how its names are counted and written."""

    prefix: str
    order: str
    mask: str
    """The letters d and e."""
    checked: bool
    """Whether a check character ends the name."""

    @property
    def size(self) -> int | None:
        """The number of names; None when it is unlimited."""
        return None if self.order == "z" else _names(self.mask)


def template(text: str) -> Template:
    """Parse a template such as ``fk4.zeedeedk`` or ``reedeek``. Raises NotAdmitted."""
    match = _TEMPLATE.fullmatch(text)
    if match is None:
        raise NotAdmitted(
            f"'{shown(text)}' is no NOID template; give a prefix and a point, or none, then r, s or z, then "
            f"d's and e's (at most {MASK_MAX}), then k or nothing, as in fk4.zeedeedk"
        )
    return Template(prefix=match[1] or "", order=match[2], mask=match[3], checked=bool(match[4]))


def nth(pattern: Template, number: int, *, authority: str = "") -> str:
    """Return the name of a number, from 0; each number has another name.

    ``authority`` is the NAAN, or the NAAN and the rest of the text before the name; it is not part of the name,
    but if it is given the check character covers ``authority/name``. Raises NotAdmitted for a number beyond the
    template's names.
    """
    size = pattern.size
    if number < 0 or (size is not None and number >= size):
        raise NotAdmitted(
            f"template '{pattern.prefix}.{pattern.order}{pattern.mask}' has {size} names and none of number "
            f"{number}; mint from a longer one under a new shoulder"
        )
    mask = _grown(pattern.mask, number) if pattern.order == "z" else pattern.mask
    place = scattered(number, _names(mask)) if pattern.order == "r" else number
    name = pattern.prefix + _rendered(mask, place)
    if not pattern.checked:
        return name
    return name + check_character(f"{authority}/{name}" if authority else name)


def check_character(text: str) -> str:
    """Return the check character for a name, with its authority before it: ``13030/xf93gt2`` has ``q``.

    It detects any one wrong character and any two swapped neighbours among the first 28.
    """
    total = sum(place * _VALUES.get(character, 0) for place, character in enumerate(text, start=1))
    return ALPHABET[total % len(ALPHABET)]


def verify(text: str) -> bool:
    """Return whether the last character of a name, with its authority before it, is its check character."""
    return len(text) > 1 and text[-1] == check_character(text[:-1])


def _names(mask: str) -> int:
    """Return how many names a mask has."""
    return math.prod(_RADIX[letter] for letter in mask)


def _grown(mask: str, number: int) -> str:
    """Return the mask, extended by its first letter as often as the number needs."""
    size = _names(mask)
    while number >= size:
        size *= _RADIX[mask[0]]
        mask = mask[0] + mask
    return mask


def _rendered(mask: str, number: int) -> str:
    """Return the characters of a number by a mask; each letter of the mask is a digit of its radix."""
    characters: list[str] = []
    for letter in reversed(mask):
        number, value = divmod(number, _RADIX[letter])
        characters.append(ALPHABET[value])
    return "".join(reversed(characters))


def scattered(number: int, size: int) -> int:
    """Return the place of ``number`` in an order of the numbers 0..size-1 that looks random, repeats nothing and needs
    no memory. Raises ValueError for a number outside of these. It must never change: names that were minted depend on
    it.

    A Feistel network permutes the smallest space of 2n bits that contains the size; a result outside of the size is
    permuted again until it falls inside ("cycle walking", Black and Rogaway 2002; at most four rounds on average). This
    only scatters names and is no encryption: anyone can reverse it.
    """
    if not 0 <= number < size:
        raise ValueError(f"{number} is not within 0..{size - 1}; give a number below the size")
    half_bits = max(1, ((size - 1).bit_length() + 1) // 2)
    number = _permuted(number, half_bits)
    while number >= size:
        number = _permuted(number, half_bits)
    return number


def _permuted(number: int, half_bits: int) -> int:
    mask = (1 << half_bits) - 1
    left, right = number >> half_bits, number & mask
    for turn in range(_ROUNDS):
        left, right = right, left ^ (_mixed(right, turn, half_bits) & mask)
    return left << half_bits | right


def _mixed(half: int, turn: int, half_bits: int) -> int:
    width = half_bits // 8 + 1
    text = bytes((turn,)) + half.to_bytes(width, "big")
    # Wider than a digest only for spaces of more than 2**1024, where the rest of a half stays as it is.
    return int.from_bytes(hashlib.blake2b(text, key=_SEED).digest(), "big")
