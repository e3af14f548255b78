"""The caller and the store: what every part of ``control`` works with.

A ``Service`` is made for one caller: a route of a server makes one for each request, a command for itself.
Its fields are handed on to every part (``part``), so that all of them act with the same name and rights and
by the same clock."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from spinney.model.access import ALL_RIGHTS, Rights, Role
from spinney.model.errors import Forbidden, NoSuchJob
from spinney.model.jobs import Filter, Job
from spinney.model.rights.actor import Actor
from spinney.store.parts import Store

if TYPE_CHECKING:
    from spinney.model.operators.stats import Stats

PartT = TypeVar("PartT", bound="Service")
_A = {
    Role.VIEWER: "a viewer",
    Role.SUBMITTER: "a submitter",
    Role.OPERATOR: "an operator",
    Role.ADMIN: "an admin",
}
ASK = "ask an admin"
"""Ends the sentence of a refusal."""


@dataclass(frozen=True, kw_only=True)
class Service:
    """Operations of one caller on one store."""

    store: Store
    clock: Callable[[], int]
    """The clock: microseconds since 1970 UTC."""
    wake_nodes: Callable[[], None]
    """Wakes the nodes that can be woken; called after every change they should see."""
    by: str
    """The caller's name; it is stored with changes, and in the audit."""
    rights: Rights = ALL_RIGHTS
    """The caller's rights."""
    ends_us: int | None = None
    """When the caller's credential expires: nothing that the caller hands out lasts longer. None: never."""
    by_configuration: bool = False
    """Whether the server's configuration admits the caller, who has no account."""
    go_on: Callable[[], None] = lambda: None
    """Called between the steps of a long operation; raises Forbidden when the caller has lost the rights."""
    tell: Callable[[Any], None] = lambda progress: None
    """Called with each piece of progress of a command that tells how far it is; it may raise, and ends the command."""
    log_refusal: Callable[[str], None] = lambda why: None
    """Enters into the audit what was refused to the caller. Whoever has the store itself is refused nothing."""
    remove_folder: Callable[[int], None] | None = None
    """Removes the folder of a deleted job. None: nodes do."""
    folder_root: Path | None = None
    """Below which this process sees the folders of jobs. None: it sees none."""
    recent_stats: "Callable[[Service], Stats] | None" = None
    """Returns what this caller may see of the figures of the last minute, which may be some seconds old: a server looks
    them up for all callers at once. None: they are looked up."""

    @property
    def is_local(self) -> bool:
        """Return whether the caller has opened the store itself, so that no rights are checked. An admin who comes
        through a server is checked."""
        return self.rights is ALL_RIGHTS

    def actor(self, reason: str | None = None) -> Actor:
        """Return the actor of what follows; one for each call of a verb, whatever its number of steps."""
        account = None if self.is_local or self.by_configuration else self.by
        return Actor(by=self.by, reason=reason, account=account)

    def part(self, cls: type[PartT]) -> PartT:
        """Return another part of ``control``, on the same store, with the same caller and rights."""
        return cls(**{field.name: getattr(self, field.name) for field in fields(Service)})

    def require(self, role: Role, action: str) -> None:
        """Raise Forbidden unless the caller has this role. ``action`` ends "may not …": ``submit jobs``."""
        if not self.rights.permits(role):
            raise Forbidden(
                f"{self.by} is {_A[self.rights.role]} and may not {action}: that takes {_A[role]}; {ASK}"
            )

    def require_everywhere(self, role: Role, action: str) -> None:
        """Raise Forbidden unless the caller has this role without limits: for operations that concern all jobs."""
        self.require(role, action)
        if not self.rights.everywhere:
            raise Forbidden(
                f"{self.by} is limited to {limits(self.rights)} and may not {action}, which is not limited to it; {ASK}"
            )

    def within(self, job_filter: Filter) -> Filter:
        """Return the filter narrowed to visible jobs, for code that queries the store itself."""
        within = self.rights.within
        if self.rights.everywhere:
            return job_filter
        return replace(
            job_filter, within=within if job_filter.within is None else job_filter.within.narrowed(within)
        )

    def require_within(self, job: Job) -> None:
        """Raise NoSuchJob for a job that is not visible: the caller must not learn that it exists."""
        if not self.rights.within.holds(job.collection, job.queue):
            raise NoSuchJob(job.id)


def limits(rights: Rights) -> str:
    """Return what the caller is limited to, as part of a sentence: ``collection a or b and queue
    nightly``."""
    within = rights.within
    parts = [
        f"{kind} {' or '.join(names) or 'none'}"
        for kind, names in (("collection", within.collections), ("queue", within.queues))
        if names is not None
    ]
    return " and ".join(parts) or "nothing"
