"""Names of files that are to lie in one folder: none is another's folder, and which of them nearly meet.

Two names nearly meet when they are equal but for upper and lower case or for the way an accent is encoded (canonical
caseless matching, the Unicode Standard, section 3.13, D145). They are two files, which some file systems take for one.
"""

from dataclasses import dataclass

from spinney.apps.ingest.files.paths import NotAdmitted, folded, shown
from spinney.apps.ingest.manifests.model import Unit

_TOP = 0
_SHOWN_MAX = 200


@dataclass(frozen=True, slots=True)
class _Met(Exception):
    """A name that is there already, or is a file and a folder at once."""

    place: int
    is_folder: bool
    """There it is a folder, and here a file."""
    needs_folder: bool
    """There it is a file, and here a folder."""


class Names:
    """The names of one object's files, with the place where each was given."""

    __slots__ = ("_exact", "_folded", "_unit")

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._exact, self._folded = _Tree(), _Tree()

    def add(self, name: str, place: int) -> str | None:
        """Take a name in; returns a sentence when it nearly meets another. Raises NotAdmitted, naming the other place,
        when it is that other or one is the other's folder."""
        try:
            self._exact.add(name, place)
        except _Met as met:
            raise NotAdmitted(self._refusal(name, met)) from None
        try:
            self._folded.add(folded(name), place)
        except _Met as met:
            return (
                f"the name '{_shown(name)}' is that on {self._unit} {met.place} but for upper and lower case or the "
                f"encoding of accents; both are kept, and readers with other file systems may see one"
            )
        return None

    def _refusal(self, name: str, met: _Met) -> str:
        if met.is_folder:
            return f"the file '{_shown(name)}' is a folder on {self._unit} {met.place}; rename one"
        if met.needs_folder:
            return f"'{_shown(name)}' needs a folder where {self._unit} {met.place} has a file; rename one"
        return f"the name '{_shown(name)}' is on {self._unit} {met.place} already; give each file a name of its own"


class _Tree:
    """A tree of folders rather than a set of whole paths, so that memory grows with what was read and not with its
    depth: 200 folders within each other in every row are lawful."""

    __slots__ = ("_found", "_places")

    def __init__(self) -> None:
        # "folder/name in it" -> the number of a folder, or of a file the place, negative.
        self._found: dict[str, int] = {}
        self._places = [0]

    def add(self, name: str, place: int) -> None:
        *above, last = name.split("/")
        at = _TOP
        for part in above:
            at = self._folder(at, part, place)
        other = self._found.setdefault(f"{at}/{last}", -place)
        if other > _TOP:
            raise _Met(self._places[other], is_folder=True, needs_folder=False)
        if other != -place:
            raise _Met(-other, is_folder=False, needs_folder=False)

    def _folder(self, at: int, part: str, place: int) -> int:
        key = f"{at}/{part}"
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = len(self._places)
            self._places.append(place)
        if found < _TOP:
            raise _Met(-found, is_folder=False, needs_folder=True)
        return found


def _shown(name: str) -> str:
    return shown(name if len(name) <= _SHOWN_MAX else f"{name[:_SHOWN_MAX]}…")
