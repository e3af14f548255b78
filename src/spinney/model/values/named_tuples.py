"""Named tuples by the thousand."""

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any, TypeVar

T = TypeVar("T", bound=tuple[Any, ...])

_new: Callable[[Any, Any], Any] = tuple.__new__


def named(kind: type[T], rows: Iterable[Iterable[Any]]) -> Iterator[T]:
    """Each of the rows as such a tuple, at a third of what calling the class costs. Nothing is checked."""
    return map(_new, repeat(kind), rows)
