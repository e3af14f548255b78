"""Access rights: roles, and the limits within which a user has one. Pure rules without any lookup.

Roles are ranked: each includes the rights of those before it. Limits narrow which jobs are visible and may be changed
(``AccessScope``), and which shares, priorities, queues and locks may be named. A job that is not visible does not exist
for the caller.

In every limit None means "any", and an empty tuple means "none". A token acts with the intersection of its
own rights and its owner's (``narrowed``), and rights may be granted only by somebody who has all of them
(``covers``)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from spinney.model.errors import UsageError
from spinney.model.values import names


class Role(StrEnum):
    """A role; each includes the rights of the one before."""

    VIEWER = "viewer"
    """Look at jobs within the limits, with output and files."""
    SUBMITTER = "submitter"
    """Submit jobs, and cancel, retry, hold and release the jobs that the caller submitted."""
    OPERATOR = "operator"
    """Every verb on jobs within the limits; without limits also queues, nodes and holds of all kinds."""
    ADMIN = "admin"
    """Users, tokens, retention; verification of the audit."""

    @property
    def rank(self) -> int:
        """Return the rank of the role: 0 for the one with the fewest rights."""
        return _RANKS[self]


# By the order of definition, from the fewest rights to the most.
_RANKS = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessScope:
    """Which jobs a user may see and change: those of these collections and of these queues. None: all."""

    collections: tuple[str, ...] | None = None
    queues: tuple[str, ...] | None = None

    @property
    def everywhere(self) -> bool:
        """Return whether the scope includes all jobs."""
        return self.collections is None and self.queues is None

    def holds(self, collection: str | None, queue: str) -> bool:
        """Return whether the scope includes a job of this collection in this queue. A job without a collection is
        outside of every limit of collections."""
        return (self.collections is None or collection in self.collections) and (
            self.queues is None or queue in self.queues
        )

    def narrowed(self, other: "AccessScope") -> "AccessScope":
        """Return the scope that both allow: a job is within it when it is within each of the two."""
        return AccessScope(
            collections=_both(self.collections, other.collections), queues=_both(self.queues, other.queues)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """What a user or token may do. Raises UsageError, BadName for invalid limits."""

    role: Role
    within: AccessScope = AccessScope()
    shares: tuple[str, ...] | None = None
    """Which shares may be named in a submission; ``lab:*`` means all with that prefix. None: any."""
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
                    f"priorities {first} to {last} are no range; give two numbers from 0 (first) to 99 (last), "
                    f"the lower first"
                )

    def permits(self, role: Role) -> bool:
        """Return whether the rights include this role; limits are not considered."""
        return self.role.rank >= role.rank

    @property
    def everywhere(self) -> bool:
        """Return whether all jobs are visible, so that operations on all of them are allowed."""
        return self.within.everywhere

    @property
    def name_limits(self) -> Mapping[str, tuple[str, ...] | None]:
        """Return the limits that are lists of names; None: any name."""
        return {
            "collections": self.within.collections,
            "queues": self.within.queues,
            "shares": self.shares,
            "locks": self.locks,
        }

    def names_share(self, share: str) -> bool:
        """Return whether the rights allow this share to be named."""
        return _fits(self.shares, share)

    def names_lock(self, lock: str) -> bool:
        """Return whether the rights allow this lock (or all of a family ``x:*``) to be freed or given a capacity."""
        return _fits(self.locks, lock)

    def gives_priority(self, priority: int) -> bool:
        """Return whether the rights allow this priority to be given."""
        return self.priorities is None or self.priorities[0] <= priority <= self.priorities[1]

    def claims(self, type_: str) -> bool:
        """Return whether external stages of this job type may be claimed."""
        return "*" in self.external or type_ in self.external

    def covers(self, other: "Rights") -> bool:
        """Return whether the other rights are included in these: only such rights may be granted to others.
        Rights without a limit are included only in rights without that limit."""
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
        """Return the intersection of both: a token never has more rights than its owner. It may be empty:
        limits that have no name in common leave an empty tuple."""
        return Rights(
            role=min(self.role, other.role, key=lambda role: role.rank),
            within=self.within.narrowed(other.within),
            shares=_both_patterns(self.shares, other.shares),
            priorities=_both_ranges(self.priorities, other.priorities),
            locks=_both_patterns(self.locks, other.locks),
            external=_both_types(self.external, other.external),
        )


ALL_RIGHTS = Rights(role=Role.ADMIN, external=("*",))
"""The rights of a caller who opens the store directly."""


def _fits(patterns: Sequence[str] | None, text: str) -> bool:
    """Return whether a name, or all that a pattern matches, is within a limit."""
    return patterns is None or any(_covers(pattern, text) for pattern in patterns)


def _covers(pattern: str, text: str) -> bool:
    """Return whether a pattern matches a name, or everything that another pattern matches."""
    return text.startswith(pattern[:-1]) if pattern.endswith("*") else text == pattern


def _among(all_: Collection[str] | None, some: Collection[str] | None) -> bool:
    """Return whether a limit of names includes another; for names without patterns."""
    return all_ is None or (some is not None and set(some) <= set(all_))


def _among_patterns(all_: Sequence[str] | None, some: Sequence[str] | None) -> bool:
    return all_ is None or (some is not None and all(_fits(all_, pattern) for pattern in some))


def _both(first: Collection[str] | None, second: Collection[str] | None) -> tuple[str, ...] | None:
    """Return the intersection of two limits, in the order of the first; None: both allow any name."""
    if first is None or second is None:
        only = second if first is None else first
        return None if only is None else tuple(only)
    return tuple(name for name in first if name in second)


def _both_patterns(first: Sequence[str] | None, second: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the intersection of two lists of patterns: where two patterns overlap, the longer one."""
    if first is None or second is None:
        return _both(first, second)
    patterns = [p for p in first if _fits(second, p)] + [p for p in second if _fits(first, p)]
    return tuple(dict.fromkeys(patterns))


def _both_ranges(
    first_range: tuple[int, int] | None, other: tuple[int, int] | None
) -> tuple[int, int] | None:
    """Return the intersection of two ranges of priorities; None: both allow any."""
    if first_range is None or other is None:
        return other if first_range is None else first_range
    first, last = max(first_range[0], other[0]), min(first_range[1], other[1])
    # Where the ranges do not overlap, the very last priority remains: a submission has to have one.
    return (first, last) if first <= last else (99, 99)


def _both_types(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    """Return the intersection of two lists of job types, in which ``*`` means all of them."""
    if "*" in first:
        return tuple(second)
    return tuple(first) if "*" in second else tuple(name for name in first if name in second)
