"""Lists in answers: one page at a time, or whole."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    """A page of a list; ``each`` of a client iterates over all pages."""

    items: Sequence[T]
    next: int | str | None = None
    """The value of ``after`` for the next page; None: this is the last page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class All(Generic[T]):
    """A list that has only one page."""

    items: Sequence[T]
    next: None = None


def page_by_name(items: Iterable[T], name: Callable[[T], str], *, after: str, limit: int) -> Page[T]:
    """Return the first items of a whole list whose names come after ``after``, by name."""
    behind = sorted((item for item in items if name(item) > after), key=name)
    shown = behind[:limit]
    return Page(items=shown, next=name(shown[-1]) if len(behind) > limit else None)
