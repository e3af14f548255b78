"""Capacities of locks: set by an operator, by the stage that takes the lock, by an application, or 1, in this order.

A rule is about one lock (``download:example.org``) or about a family (``download:*``: all names with that prefix). If
several rules of one source match, the longest name counts, so that there can be exceptions.

A capacity that is lowered takes nothing from the jobs that have the lock: nobody gets more of it until enough
was released. One that is raised lets waiting jobs continue at once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from spinney.model.errors import UsageError
from spinney.model.values import names

AMOUNT_MAX = 2**63 - 1
"""The largest integer of a column of 64 bits."""
DEFAULT = 1
"""The capacity of a lock without any rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockCapacity:
    """The capacity that an application declares of a lock, or of a family of locks."""

    name: str
    """The lock's name, or the prefix of a family followed by ``*``."""
    capacity: int

    def __post_init__(self) -> None:
        names.lock_or_family(self.name)
        require_capacity(self.capacity)


def require_capacity(capacity: object) -> int:
    """Return the capacity if it is valid, a whole number of at least 1, else raise UsageError. 0 would let
    jobs wait for ever without a reason; a hold has one."""
    if type(capacity) is not int or not 1 <= capacity <= AMOUNT_MAX:
        raise UsageError(
            f"a lock's capacity is a whole number from 1 to {AMOUNT_MAX}, not {capacity!r:.80}; to let nothing "
            f"start, lay a hold"
        )
    return capacity


def require_amount(amount: object) -> int:
    """Return the amount of a lock that a stage takes if it is valid, a whole number of at least 0, else raise
    UsageError. With 0 a job has the lock without counting against its capacity."""
    if type(amount) is not int or not 0 <= amount <= AMOUNT_MAX:
        raise UsageError(
            f"the amount of a lock must be a whole number from 0 to {AMOUNT_MAX}, not {amount!r:.80}"
        )
    return amount


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityInfo:
    """The capacity of a lock, or of each lock of a family."""

    name: str
    """The name of the lock, or the prefix of a family followed by ``*``."""
    capacity: int
    """The capacity in force: an operator's, else the declared one."""
    declared: int | None
    """The capacity that an application declares; None: none does."""
    by: str | None
    """The operator who set it; None: it is the declared one."""
    at_us: int | None


@dataclass(frozen=True, slots=True)
class CapacityRules:
    """The capacities from one source (operators or applications): of single locks, and of families by a prefix."""

    exact: Mapping[str, int] = field(default_factory=dict)
    families: tuple[tuple[str, int], ...] = ()
    """(prefix, capacity), the longest prefix first."""

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, int]]) -> "CapacityRules":
        """Make rules of pairs of a name (or a family) and its capacity."""
        exact: dict[str, int] = {}
        families: list[tuple[str, int]] = []
        for name, capacity in pairs:
            if name.endswith("*"):
                families.append((name[:-1], capacity))
            else:
                exact[name] = capacity
        return cls(exact, tuple(sorted(families, key=lambda family: -len(family[0]))))

    def about(self, name: str) -> int | None:
        """Return the capacity that these rules give this lock; None: they do not cover it. A rule for the
        lock itself counts before any family, and a longer prefix before a shorter one."""
        if name in self.exact:
            return self.exact[name]
        return next((capacity for prefix, capacity in self.families if name.startswith(prefix)), None)


@dataclass(frozen=True, slots=True)
class Capacities:
    """The capacities of locks from all sources. What an operator sets counts before what an application declares."""

    set: CapacityRules = CapacityRules()
    """The capacities that operators have set."""
    declared: CapacityRules = CapacityRules()
    """The capacities that applications declare."""

    @classmethod
    def of(cls, infos: Sequence[CapacityInfo]) -> "Capacities":
        """Return the capacities of these locks and families. Operators' and applications' are kept apart because a
        capacity that a stage names comes between the two."""
        by_operators = ((info.name, info.capacity) for info in infos if info.by is not None)
        declared = ((info.name, info.declared) for info in infos if info.declared is not None)
        return cls(CapacityRules.of(by_operators), CapacityRules.of(declared))

    def in_force(self, name: str, stage_capacity: int | None = None) -> int:
        """Return the capacity of a lock. ``stage_capacity``: what the stage that takes it names; an operator's capacity
        takes precedence."""
        capacity = self.set.about(name)
        if capacity is None:
            capacity = self.declared.about(name) if stage_capacity is None else stage_capacity
        return DEFAULT if capacity is None else capacity


NONE = Capacities()
"""No rule at all, so that every lock has a capacity of 1."""
