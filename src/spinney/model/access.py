"""Who may what: roles, and the limits within which somebody has one. Pure rules; nobody is looked up here.

A role is a rank: each may what those before it may. Limits narrow what is seen and touched (``AccessScope``), and which
shares, priorities, queues and locks may be named. What lies out of sight is not there for who asks.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from spinney.model.errors import UsageError
from spinney.model.values import names


class Role(StrEnum):
    """What somebody may, each as the one before and more."""

    VIEWER = "viewer"
    """Look at jobs within the limits, with output and files."""
    SUBMITTER = "submitter"
    """Submit, and cancel, retry, hold and release what is submitted in the own name."""
    OPERATOR = "operator"
    """Every verb on jobs within the limits; without limits also queues, nodes and holds of all kinds."""
    ADMIN = "admin"
    """Users, tokens, retention; the audit's proof."""

    @property
    def rank(self) -> int:
        """0 for the one that may least."""
        return _RANKS[self]


_RANKS = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessScope:
    """Which jobs somebody sees and touches: those of these collections and of these queues. None: of all."""

    collections: tuple[str, ...] | None = None
    queues: tuple[str, ...] | None = None

    @property
    def everywhere(self) -> bool:
        """Whether it leaves nothing out."""
        return self.collections is None and self.queues is None

    def holds(self, collection: str | None, queue: str) -> bool:
        """Whether a job of this collection in this queue lies within."""
        return (self.collections is None or collection in self.collections) and (
            self.queues is None or queue in self.queues
        )

    def narrowed(self, other: "AccessScope") -> "AccessScope":
        """What lies within both."""
        return AccessScope(
            collections=_both(self.collections, other.collections), queues=_both(self.queues, other.queues)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """What somebody may. Raises UsageError, BadName for what cannot be meant."""

    role: Role
    within: AccessScope = AccessScope()
    shares: tuple[str, ...] | None = None
    """Which shares may be named in a submission; ``lab:*`` means all that begin so. None: any."""
    priorities: tuple[int, int] | None = None
    """The first (lowest number) and the last priority that may be given. None: any."""
    locks: tuple[str, ...] | None = None
    """Which locks may be freed, or given a capacity; with ``*`` as above. None: any."""
    external: tuple[str, ...] = ()
    """Job types whose external stages may be claimed; ``*``: of all types."""

    def __post_init__(self) -> None:
        for collection in self.within.collections or ():
            names.label("collection", collection)
        for queue in self.within.queues or ():
            names.name("queue", queue)
        for share in self.shares or ():
            names.label("share", share)
        for lock in self.locks or ():
            if lock != "*":
                names.lock_or_family(lock)
        for type_ in self.external:
            if type_ != "*":
                names.name("job type", type_)
        if self.priorities is not None:
            first, last = self.priorities
            if not 0 <= first <= last <= 99:
                raise UsageError(
                    f"priorities {first} to {last} cannot be meant; use two of 0 (first) to 99 (last), the lower first"
                )

    def permits(self, role: Role) -> bool:
        """Whether what needs this role is allowed, as far as the role goes."""
        return self.role.rank >= role.rank

    @property
    def everywhere(self) -> bool:
        """Whether all jobs are in sight: what concerns all of them may be asked and done."""
        return self.within.everywhere

    def names_share(self, share: str) -> bool:
        """Whether this share may be named."""
        return _fits(self.shares, share)

    def names_lock(self, lock: str) -> bool:
        """Whether this lock (or all of a family ``x:*``) may be freed or given a capacity."""
        return _fits(self.locks, lock)

    def gives_priority(self, priority: int) -> bool:
        """Whether this priority may be given."""
        return self.priorities is None or self.priorities[0] <= priority <= self.priorities[1]

    def claims(self, type_: str) -> bool:
        """Whether external stages of this job type may be claimed."""
        return "*" in self.external or type_ in self.external

    def covers(self, other: "Rights") -> bool:
        """Whether the other allows nothing that this does not: so much may be given away."""
        return (
            self.role.rank >= other.role.rank
            and _among(self.within.collections, other.within.collections)
            and _among(self.within.queues, other.within.queues)
            and _among_patterns(self.shares, other.shares)
            and _among_patterns(self.locks, other.locks)
            and (
                self.priorities is None
                or (
                    other.priorities is not None
                    and self.gives_priority(other.priorities[0])
                    and self.gives_priority(other.priorities[1])
                )
            )
            and ("*" in self.external or set(other.external) <= set(self.external))
        )

    def narrowed(self, other: "Rights") -> "Rights":
        """What both allow: of a token never more than of its owner."""
        return Rights(
            role=min(self.role, other.role, key=lambda role: role.rank),
            within=self.within.narrowed(other.within),
            shares=_both_patterns(self.shares, other.shares),
            priorities=_both_ranges(self.priorities, other.priorities),
            locks=_both_patterns(self.locks, other.locks),
            external=_both_types(self.external, other.external),
        )


ALL_RIGHTS = Rights(role=Role.ADMIN, external=("*",))
"""Of whoever opens the store directly."""


def _fits(patterns: Sequence[str] | None, text: str) -> bool:
    return patterns is None or any(_covers(pattern, text) for pattern in patterns)


def _covers(pattern: str, text: str) -> bool:
    """Whether a pattern allows a name, or all that another pattern does."""
    return text.startswith(pattern[:-1]) if pattern.endswith("*") else text == pattern


def _among(all_: Collection[str] | None, some: Collection[str] | None) -> bool:
    return all_ is None or (some is not None and set(some) <= set(all_))


def _among_patterns(all_: Sequence[str] | None, some: Sequence[str] | None) -> bool:
    return all_ is None or (some is not None and all(_fits(all_, pattern) for pattern in some))


def _both(one: Collection[str] | None, other: Collection[str] | None) -> tuple[str, ...] | None:
    if one is None or other is None:
        found = other if one is None else one
        return None if found is None else tuple(found)
    return tuple(name for name in one if name in other)


def _both_patterns(one: Sequence[str] | None, other: Sequence[str] | None) -> tuple[str, ...] | None:
    """Of two patterns that overlap the longer one."""
    if one is None or other is None:
        return _both(one, other)
    found = [p for p in one if _fits(other, p)] + [p for p in other if _fits(one, p)]
    return tuple(dict.fromkeys(found))


def _both_ranges(one: tuple[int, int] | None, other: tuple[int, int] | None) -> tuple[int, int] | None:
    if one is None or other is None:
        return other if one is None else one
    first, last = max(one[0], other[0]), min(one[1], other[1])
    # Where nothing is common the last priority of all is left: who may submit has to have one.
    return (first, last) if first <= last else (99, 99)


def _both_types(one: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
    if "*" in one:
        return tuple(other)
    return tuple(one) if "*" in other else tuple(name for name in one if name in other)
