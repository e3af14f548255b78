"""Nodes: to be let rest, to go on, and how many slots each has."""

from spinney.model.access import Role
from spinney.model.fleet import NodeOrders
from spinney.model.values import names
from spinney.service.service import Service


class Fleet(Service):
    """Every change is audited, and in force for every claim when the verb returns. Nodes serve all, so it takes an
    operator without limits; others get Forbidden."""

    def drain(self, name: str, *, reason: str | None = None) -> NodeOrders:
        """Let the node take nothing new: what it runs finishes, what it has not begun goes back. It stays, and
        ``resume`` lets it go on. Raises BadName, UsageError (the reason), Refused (no node has this name)."""
        self.require_everywhere(Role.OPERATOR, "drain nodes")
        _require_named(name)
        if reason is not None:
            names.label("reason", reason)
        done = self.store.fleet.drain(name, self.actor(reason), now_us=self.clock())
        self.wake_nodes()
        return done

    def resume(self, name: str, *, reason: str | None = None) -> NodeOrders:
        """Let a drained node go on. Raises BadName, Refused (it is not drained, or no node has this name)."""
        self.require_everywhere(Role.OPERATOR, "resume nodes")
        _require_named(name)
        done = self.store.fleet.resume(name, self.actor(reason), now_us=self.clock())
        self.wake_nodes()
        return done

    def set_slots(self, name: str, slots: int | None, *, reason: str | None = None) -> NodeOrders:
        """So many slots for the node; None: as it was started. What runs in slots that go finishes.
        Raises BadName, UsageError (no number of slots), Refused (no node has this name)."""
        self.require_everywhere(Role.OPERATOR, "set the slots of nodes")
        _require_named(name)
        done = self.store.fleet.set_slots(name, slots, self.actor(reason), now_us=self.clock())
        self.wake_nodes()
        return done


def _require_named(name: str) -> None:
    names.name("node", name)
