"""The rows of a manifest, and the rules for the names of an object's files and the identifiers of a batch's objects.

No name is another's folder, and similar names get a warning. Two names are similar when they differ only in case or in
the encoding of accents (canonical caseless matching, the Unicode Standard, section 3.13, D145). They are two files,
which some file systems treat as one.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

from spinney.apps.ingest.manifests.model import PayloadKind, Problems, Row, Unit
from spinney.files.paths import NotAdmitted, folded, shown

_Item = TypeVar("_Item")
_TOP = 0
_SHOWN_MAX = 200
_IS_FOLDER = "the file '{name}' is a folder on {other}; rename one"
_NEEDS_FOLDER = "'{name}' needs a folder where {other} has a file; rename one"
_IS_TAKEN = "the name '{name}' is on {other} already; give each file a name of its own"


class Clash(NamedTuple):
    """A name that is used already, or is a file and a folder at once."""

    refusal: str
    """The sentence, with ``name`` and ``other`` to be filled in."""
    place: int
    """The place of the other name."""


class Names:
    """The names of one object's files, with the place of each in the manifest."""

    __slots__ = ("_exact", "_folded", "_unit")

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._exact, self._folded = _Tree(), _Tree()

    def add_row(self, row: Row, place: int) -> str | None:
        """Add the name of a row; see ``add``."""
        return self.add(row.name, place)

    def add(self, name: str, place: int) -> str | None:
        """Add a name, and return a warning when it is similar to another, else None. Raises NotAdmitted, with the other
        place, when it is equal to another or one is the other's folder."""
        if (clash := self._exact.add(name, place)) is not None:
            other = f"{self._unit} {clash.place}"
            raise NotAdmitted(clash.refusal.format(name=_shown(name), other=other))
        if (clash := self._folded.add(folded(name), place)) is not None:
            return (
                f"the name '{_shown(name)}' is that on {self._unit} {clash.place} but for upper and lower case or the "
                f"encoding of accents; both are kept, and readers with other file systems may see one"
            )
        return None


class Identifiers:
    """The primary and local ids of a batch's objects, with the place of the first row of each."""

    __slots__ = ("_places", "_unit")

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._places: dict[str, int] = {}

    def add_row(self, row: Row, place: int) -> str | None:
        """Add the ids of a row, and return a warning when a row before names the same object: objects are deposited in
        any order, and the later one has the content that counts."""
        ids = (row.about.primary_id or "", *row.about.local_ids)
        others = {name: self._places.setdefault(name, place) for name in ids if name}
        name = next((name for name, other in others.items() if other != place), None)
        if name is None:
            return None
        return (
            f"'{_shown(name)}' is on {self._unit} {others[name]} already; both become versions of one object, in any "
            f"order"
        )


def read_rows(
    items: Iterable[tuple[int, _Item]],
    parse: Callable[[int, _Item], Row],
    kind: PayloadKind,
    problems: Problems,
) -> Iterator[Row]:
    """Yield the rows of a manifest of this kind: what ``parse`` makes of each numbered item. Invalid ones, and those of
    an object with the name of another, are reported, and skipped if that returns."""
    # In a batch each row is an object; names repeat, and identifiers should not.
    earlier_rows = Identifiers(problems.unit) if kind.is_batch else Names(problems.unit)
    for number, item in items:
        try:
            row = parse(number, item)
            if (warning := earlier_rows.add_row(row, number)) is not None:
                problems.warn(number, warning)
        except NotAdmitted as problem:
            problems.refuse(number, problem)
            continue
        yield row


class _Tree:
    """A tree of folders rather than a set of whole paths, so that memory does not grow with their depth: every row may
    have 200 nested folders."""

    __slots__ = ("_entries", "_places")

    def __init__(self) -> None:
        # "folder/name in it" -> the number of a folder, or of a file the place, negative.
        self._entries: dict[str, int] = {}
        self._places = [0]

    def add(self, name: str, place: int) -> Clash | None:
        """Add the path of a file. Return the clash where another has it, or one of them would be the folder of the
        other."""
        *above, last = name.split("/")
        folder = _TOP
        for part in above:
            new = len(self._places)
            folder = self._entries.setdefault(f"{folder}/{part}", new)
            if folder < _TOP:
                return Clash(_NEEDS_FOLDER, -folder)
            if folder == new:
                self._places.append(place)
        other = self._entries.setdefault(f"{folder}/{last}", -place)
        if other > _TOP:
            return Clash(_IS_FOLDER, self._places[other])
        return None if other == -place else Clash(_IS_TAKEN, -other)


def _shown(name: str) -> str:
    return shown(name if len(name) <= _SHOWN_MAX else f"{name[:_SHOWN_MAX]}…")
