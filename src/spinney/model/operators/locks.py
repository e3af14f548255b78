"""Locks, with who holds them and who waits.

A lock exists as long as a job has it or waits for it; its capacity is a setting that may exist without any
job (``spinney.model.settings.capacities``)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LockInfo:
    """A lock that a job has or waits for."""

    name: str
    owner_id: int | None
    """The job that has it (one row for each job where the capacity is more than 1); None: no job."""
    until: str
    """``attempt``, ``job`` or ``reserved`` (for a job that was woken for it); empty: no job has it."""
    node: str | None
    """The node that runs the owner now, if any."""
    since_us: int | None
    """When the owner got the lock, in microseconds since 1970 UTC."""
    waiting: int
    """How many jobs wait for it."""
    amount: int = 1
    """The amount that this owner has; 0 also where no job has it."""
    used: int = 1
    """The amount that all owners have together."""
    capacity: int = 1
    """The capacity in force for stages that name none."""
