"""Values of this package's own types as orjson writes them."""

from collections.abc import Collection, Mapping
from typing import Any


def plain(value: Any) -> Any:
    """Return the JSON form of a value whose type orjson does not know, as its ``default``: an object for a mapping, a
    list for another collection. Raises TypeError for anything else."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Collection):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
