"""Names of files that are to lie in one folder: no two may meet, on any file system.

Two names meet when they are equal but for upper and lower case or for the way an accent is encoded
(canonical caseless matching, the Unicode Standard, section 3.13, D145): some file systems keep one
file for both. Nor may a file be the folder of another.
"""

import unicodedata

from spinney.apps.ingest.manifests.model import Unit
from spinney.apps.ingest.paths import NotAdmitted, shown

_TOP = 0
_SHOWN_MAX = 200


class Names:
    """The names of one object's files, with the place where each was given.

    A tree of folders rather than a set of whole paths, so that memory grows with what was read and
    not with its depth: 200 folders within each other in every row are lawful.
    """

    __slots__ = ("_found", "_places", "_unit")

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        # "folder/name in it" -> the number of a folder, or of a file the place, negative.
        self._found: dict[str, int] = {}
        self._places = [0]

    def add(self, name: str, place: int) -> None:
        """Take a name in. Raises NotAdmitted, naming the other place, when it meets another."""
        *above, last = _folded(name).split("/")
        at = _TOP
        for part in above:
            at = self._folder(at, part, name, place)
        key = f"{at}/{last}"
        other = self._found.setdefault(key, -place)
        if other > _TOP:
            raise NotAdmitted(
                f"the file '{_shown(name)}' is a folder on {self._unit} {self._places[other]}; rename one"
            )
        if other != -place:
            raise NotAdmitted(
                f"the name '{_shown(name)}' is on {self._unit} {-other} already (upper and lower case "
                f"count as the same); give each file a name of its own"
            )

    def _folder(self, at: int, part: str, name: str, place: int) -> int:
        key = f"{at}/{part}"
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = len(self._places)
            self._places.append(place)
        if found < _TOP:
            raise NotAdmitted(
                f"'{_shown(name)}' needs a folder where {self._unit} {-found} has a file; rename one"
            )
        return found


def _folded(name: str) -> str:
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())


def _shown(name: str) -> str:
    return shown(name if len(name) <= _SHOWN_MAX else f"{name[:_SHOWN_MAX]}…")
