"""Lists as they are answered: a page at a time, or whole."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    """A page of a list; ``each`` of a client goes through all of them."""

    items: Sequence[T]
    next: int | str | None = None
    """What ``after`` of the next page has to be; None: this is the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class All(Generic[T]):
    """A list that has one page only."""

    items: Sequence[T]
    next: None = None
