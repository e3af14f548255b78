"""Queues, set otherwise at run time."""

from spinney.model.access import Role
from spinney.model.errors import Forbidden
from spinney.model.rights.operators import QueueChange, QueueInfo
from spinney.model.types import QueueSpec
from spinney.service.filter_checks import require_queue
from spinney.service.order_scope import require_queue_within
from spinney.service.service import ASK, Service, limits


class Queues(Service):
    """Every change is audited, and obeyed by all nodes with the next thing that they do."""

    def change(self, name: str, change: QueueChange, *, reason: str | None = None) -> QueueInfo:
        """Set a queue's limit, default type, pins or bars, or take back what was set; how it stands then.

        Raises UsageError (a queue that nobody has named, a limit, a name), UnknownType, Refused (to be unpinned
        from, or unbarred for, a node that it is not), Forbidden.
        """
        self._require_wholly(name, "set")
        done = self.store.queue_admin.change(name, change, self.actor(reason), now_us=self.clock())
        self.wake_nodes()
        return done

    def create(self, spec: QueueSpec, *, reason: str | None = None) -> QueueInfo:
        """Make a queue that no application declares. It takes an operator without limits.

        Raises Refused (there is one), UnknownType, Forbidden.
        """
        self.require_everywhere(Role.OPERATOR, "make queues")
        done = self.store.queue_admin.create(spec, self.actor(reason), now_us=self.clock())
        self.wake_nodes()
        return done

    def delete(self, name: str, *, reason: str | None = None) -> None:
        """Take back all that is said of a queue in which nothing is left to do. It takes an admin without limits.

        Raises UsageError (a queue that nobody has named), Refused (somebody would miss it), Forbidden.
        """
        self.require_everywhere(Role.ADMIN, "delete queues")
        self.store.queue_admin.delete(name, self.actor(reason), now_us=self.clock())
        self.wake_nodes()

    def default_type(self, name: str) -> str:
        """The job type of what is submitted by this queue's name alone. Raises UsageError when it has none, and
        for a queue that nobody has named; Forbidden for one out of sight."""
        require_queue_within(self, name, "submit into")
        spec = self.store.queue_admin.in_force(name)
        if spec.type is None:
            require_queue(self.store, name, within=self.rights.within)
        return spec.default_type()

    def unknown_nodes(self, nodes: tuple[str, ...]) -> list[str]:
        """Those of these names that no node has ever joined by: perhaps they are to come, perhaps mistyped."""
        known = self.store.bulk.names("node")
        return [node for node in nodes if node not in known]

    def _require_wholly(self, name: str, what: str) -> None:
        """Raise Forbidden unless all jobs of the queue are within the limits of an operator."""
        self.require(Role.OPERATOR, f"{what} queues")
        within = self.rights.within
        if not within.everywhere and (within.collections is not None or name not in (within.queues or ())):
            raise Forbidden(
                f"{self.by} is limited to {limits(self.rights)} and may not {what} queue {name!r}, which is more; {ASK}"
            )
