"""An order of the numbers below a size that looks random, repeats nothing and needs no memory.

A Feistel network permutes the smallest space of 2n bits that contains the size; a result outside of the size is
permuted again until it falls inside ("cycle walking", Black and Rogaway 2002; at most four rounds on
average). This only scatters names and is no encryption: anyone can reverse it.
"""

import hashlib

_ROUNDS = 6
_SEED = hashlib.blake2b(person=b"spinney scatter").digest()


def scattered(number: int, size: int) -> int:
    """Return the place of ``number`` in the order of the numbers 0..size-1. Raises ValueError for a number outside of
    these.

    It must never change: names that were minted depend on it.
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
