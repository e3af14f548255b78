"""The rules for the names of one object's files: no name is another's folder, and similar names get a warning.

Two names are similar when they differ only in case or in the encoding of accents (canonical caseless matching, the
Unicode Standard, section 3.13, D145). They are two files, which some file systems treat as one.
"""

from dataclasses import dataclass

from spinney.apps.ingest.manifests.model import Unit
from spinney.files.paths import NotAdmitted, folded, shown

_TOP = 0
_SHOWN_MAX = 200


@dataclass(frozen=True, slots=True)
class _NameClash(Exception):
    """A name that is used already, or is a file and a folder at once."""

    place: int
    is_folder: bool
    """The other one is a folder, and this one a file."""
    needs_folder: bool
    """The other one is a file, and this one a folder."""


class Names:
    """The names of one object's files, with the place of each in the manifest."""

    __slots__ = ("_exact", "_folded", "_unit")

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._exact, self._folded = _Tree(), _Tree()

    def add(self, name: str, place: int) -> str | None:
        """Add a name, and return a warning when it is similar to another, else None. Raises NotAdmitted, with the other
        place, when it is equal to another or one is the other's folder."""
        try:
            self._exact.add(name, place)
        except _NameClash as clash:
            raise NotAdmitted(self._refusal(name, clash)) from None
        try:
            self._folded.add(folded(name), place)
        except _NameClash as clash:
            return (
                f"the name '{_shown(name)}' is that on {self._unit} {clash.place} but for upper and lower case or the "
                f"encoding of accents; both are kept, and readers with other file systems may see one"
            )
        return None

    def _refusal(self, name: str, clash: _NameClash) -> str:
        if clash.is_folder:
            return f"the file '{_shown(name)}' is a folder on {self._unit} {clash.place}; rename one"
        if clash.needs_folder:
            return f"'{_shown(name)}' needs a folder where {self._unit} {clash.place} has a file; rename one"
        return f"the name '{_shown(name)}' is on {self._unit} {clash.place} already; give each file a name of its own"


class _Tree:
    """A tree of folders rather than a set of whole paths, so that memory does not grow with their depth: every row may
    have 200 nested folders."""

    __slots__ = ("_entries", "_places")

    def __init__(self) -> None:
        # "folder/name in it" -> the number of a folder, or of a file the place, negative.
        self._entries: dict[str, int] = {}
        self._places = [0]

    def add(self, name: str, place: int) -> None:
        """Add the path of a file. Raises _NameClash where another has it, or one of them would be the folder
        of the other."""
        *above, last = name.split("/")
        folder = _TOP
        for part in above:
            folder = self._folder(folder, part, place)
        other = self._entries.setdefault(f"{folder}/{last}", -place)
        if other > _TOP:
            raise _NameClash(self._places[other], is_folder=True, needs_folder=False)
        if other != -place:
            raise _NameClash(-other, is_folder=False, needs_folder=False)

    def _folder(self, folder: int, part: str, place: int) -> int:
        """Return the number of a folder in another one, which is added if it is new. Raises _NameClash where
        it is a file."""
        key = f"{folder}/{part}"
        number = self._entries.get(key)
        if number is None:
            number = self._entries[key] = len(self._places)
            self._places.append(place)
        if number < _TOP:
            raise _NameClash(-number, is_folder=False, needs_folder=True)
        return number


def _shown(name: str) -> str:
    return shown(name if len(name) <= _SHOWN_MAX else f"{name[:_SHOWN_MAX]}…")
