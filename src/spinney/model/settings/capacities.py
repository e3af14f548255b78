"""How much of a lock there is, and whose word counts: an operator's, the taker's, an application's, or 1.

A word is about one lock (``download:example.org``) or about a family (``download:*``: all names that begin so). Of
several words of one party the longest name counts, so that an exception can be made from a rule.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spinney.model.errors import UsageError
from spinney.model.values import names

AMOUNT_MAX = 2**63 - 1
"""What a column of 64 bits holds."""
DEFAULT = 1
"""The capacity of a lock about which nobody has said anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockCapacity:
    """What an application declares of a lock, or of a family of locks."""

    name: str
    """The lock's name, or the beginning of several with a ``*`` behind it."""
    capacity: int

    def __post_init__(self) -> None:
        names.lock_or_family(self.name)
        require_capacity(self.capacity)

    def to_json(self) -> dict[str, Any]:
        """A value that ``from_json`` turns back into an equal one."""
        return {"name": self.name, "capacity": self.capacity}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "LockCapacity":
        """What a value made by ``to_json`` says."""
        return cls(name=value["name"], capacity=value["capacity"])


def require_capacity(capacity: object) -> int:
    """The capacity, if it is one. Raises UsageError."""
    if type(capacity) is not int or not 1 <= capacity <= AMOUNT_MAX:
        raise UsageError(
            f"a lock's capacity is a whole number from 1 to {AMOUNT_MAX}, not {capacity!r:.80}; to let nothing "
            f"start, lay a hold"
        )
    return capacity


def require_amount(amount: object) -> int:
    """The amount of a lock that somebody would take, if it is one. Raises UsageError."""
    if type(amount) is not int or not 0 <= amount <= AMOUNT_MAX:
        raise UsageError(f"of a lock is taken a whole number from 0 to {AMOUNT_MAX}, not {amount!r:.80}")
    return amount


@dataclass(frozen=True, slots=True)
class CapacityRules:
    """What one party says of locks."""

    exact: Mapping[str, int] = field(default_factory=dict)
    families: tuple[tuple[str, int], ...] = ()
    """(beginning, capacity), the longest first."""

    @classmethod
    def of(cls, said: Iterable[tuple[str, int]]) -> "CapacityRules":
        """From pairs of a name, or a family's, and its capacity."""
        exact: dict[str, int] = {}
        families: list[tuple[str, int]] = []
        for name, capacity in said:
            if name.endswith("*"):
                families.append((name[:-1], capacity))
            else:
                exact[name] = capacity
        return cls(exact, tuple(sorted(families, key=lambda word: -len(word[0]))))

    def about(self, name: str) -> int | None:
        """What is said of this lock; None: nothing."""
        found = self.exact.get(name)
        if found is not None:
            return found
        return next((capacity for beginning, capacity in self.families if name.startswith(beginning)), None)


@dataclass(frozen=True, slots=True)
class Capacities:
    """What everybody says."""

    set: CapacityRules = CapacityRules()
    """By operators."""
    declared: CapacityRules = CapacityRules()
    """By applications."""

    def in_force(self, name: str, given: int | None = None) -> int:
        """The capacity of a lock. ``given``: what the one that takes it says, which an operator's word outweighs."""
        found = self.set.about(name)
        if found is None:
            found = self.declared.about(name) if given is None else given
        return DEFAULT if found is None else found


NONE = Capacities()
