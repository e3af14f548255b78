"""What was typed, told from the bytes that a terminal sends."""

import codecs
import re

_NAMED = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b[H": "home",
    "\x1b[F": "end",
    "\x1bOH": "home",
    "\x1bOF": "end",
    "\x1b[1~": "home",
    "\x1b[4~": "end",
    "\x1b": "escape",
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "\x1b[Z": "back tab",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x15": "clear",
}
_NAMES = frozenset(_NAMED.values())
_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO.|.", re.DOTALL)


class Keys:
    """Bytes in, keys out: a printable character as itself, others by name; what has no name is dropped.

    A terminal sends a sequence in one go, so an escape that ends what was read is the key itself.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def read(self, data: bytes) -> list[str]:
        found = []
        for sequence in _SEQUENCE.findall(self._decoder.decode(data)):
            key = _NAMED.get(sequence, sequence)
            if key in _NAMES or (len(key) == 1 and key.isprintable()):
                found.append(key)
        return found
