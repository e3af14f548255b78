"""Lists in answers: one page at a time, or whole."""

from collections.abc import Sequence
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
