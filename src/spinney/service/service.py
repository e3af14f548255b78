"""Who works on which store: what every part of ``control`` has in hand."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from spinney.model.access import ALL_RIGHTS, Rights, Role
from spinney.model.errors import Forbidden, NoSuchJob
from spinney.model.jobs import Job
from spinney.model.rights.operators import Actor
from spinney.store.contract import Store

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
    """One person's hand on a store."""

    store: Store
    clock: Callable[[], int]
    """Microseconds since 1970 UTC."""
    wake_nodes: Callable[[], None]
    """Wakes the nodes that can be woken; called after every change they should see."""
    by: str
    """Who asks; kept with what was changed, and in the audit."""
    rights: Rights = ALL_RIGHTS
    """What who asks may."""
    ends_us: int | None = None
    """When what who asks is known by expires: nothing that he hands out lasts longer. None: never."""
    by_configuration: bool = False
    """Whether the configuration of a server lets in who asks, who has no account."""
    go_on: Callable[[], None] = lambda: None
    """Called between two steps of what is done in steps; raises Forbidden when the rights no longer hold."""

    @property
    def is_local(self) -> bool:
        """Whether it is somebody who has the store itself, and is asked no questions. An admin who comes through a
        server has a name that counts."""
        return self.rights is ALL_RIGHTS

    def actor(self, reason: str | None = None) -> Actor:
        """Who does what follows; one for each call of a verb, whatever its number of steps."""
        account = None if self.is_local or self.by_configuration else self.by
        return Actor(by=self.by, call=uuid.uuid4().hex, reason=reason, account=account)

    def part(self, cls: type[PartT]) -> PartT:
        """Another part of ``control``, on the same store and in the same name, with the same rights."""
        return cls(
            store=self.store,
            clock=self.clock,
            wake_nodes=self.wake_nodes,
            by=self.by,
            rights=self.rights,
            ends_us=self.ends_us,
            by_configuration=self.by_configuration,
            go_on=self.go_on,
        )

    def require(self, role: Role, what: str) -> None:
        """Raise Forbidden unless who asks has this role. ``what`` ends "may not …": ``submit jobs``."""
        if not self.rights.permits(role):
            raise Forbidden(
                f"{self.by} is {_A[self.rights.role]} and may not {what}: that takes {_A[role]}; {ASK}"
            )

    def require_everywhere(self, role: Role, what: str) -> None:
        """Raise Forbidden unless who asks has this role, and without limits: for what concerns all jobs."""
        self.require(role, what)
        if not self.rights.everywhere:
            raise Forbidden(
                f"{self.by} is limited to {limits(self.rights)} and may not {what}, which is not limited to it; {ASK}"
            )

    def require_within(self, job: Job) -> None:
        """Raise NoSuchJob for a job out of sight: nobody learns that it is there."""
        if not self.rights.within.holds(job.collection, job.queue):
            raise NoSuchJob(job.id)


def limits(rights: Rights) -> str:
    """What somebody is limited to, as a sentence says it."""
    within = rights.within
    said = [
        f"{kind} {' or '.join(names) or 'none'}"
        for kind, names in (("collection", within.collections), ("queue", within.queues))
        if names is not None
    ]
    return " and ".join(said) or "nothing"
