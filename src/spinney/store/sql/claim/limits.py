"""Limits of queues during one claim: which slots each limited queue occupies, those of the claim included."""

from itertools import islice

from spinney.store.sql.connection.database import Tx
from spinney.store.sql.registry import nodes
from spinney.store.sql.registry.registry import Registry


class Limits:
    """The limits as one claim sees them. The occupied slots of all limited queues are read from ``leases`` together,
    when one of these queues is first looked at, and those that the claim gives out are added. What counts is slots, not
    leases: jobs that wait behind another one of the same queue in a slot occupy no second one."""

    def __init__(self, tx: Tx, registry: Registry, node_id: int) -> None:
        self._tx, self._registry, self._node_id = tx, registry, node_id
        self._occupying: dict[str, set[tuple[int, int]]] | None = None
        self._serving = nodes.ServingSlots(tx)

    def limit(self, queue: str) -> int | None:
        """Return how many slots the queue may occupy; None: any."""
        return self._serving.limit(self._registry.queue(queue))

    def _occupied(self, queue: str) -> set[tuple[int, int]]:
        if self._occupying is None:
            self._occupying = self._registry.occupied_by_limited(self._tx)
        return self._occupying.setdefault(queue, set())

    def occupy(self, queue: str, slots: list[int]) -> None:
        """Note that jobs of the queue were assigned to these slots of the node. A queue without a limit is
        not counted."""
        if self.limit(queue) is not None:
            self._occupied(queue).update((self._node_id, slot) for slot in slots)

    def below(self, queue: str) -> bool:
        """Return whether the queue may occupy one more slot."""
        limit = self.limit(queue)
        return limit is None or (limit > 0 and len(self._occupied(queue)) < limit)

    def has_room(self, queue: str, slot: int) -> bool:
        """Return whether this slot may get a job of the queue."""
        if self.below(queue):
            return True
        # A slot of the queue may get more of its jobs, but not while it has too many because its limit was lowered: if
        # they were filled ahead again and again, they would never become fewer.
        limit, occupied = self.limit(queue) or 0, self._occupied(queue)
        return len(occupied) <= limit and (self._node_id, slot) in occupied

    def split(self, queue: str, tickets: list[int]) -> tuple[list[int], list[int]]:
        """Return the tickets of slots that the queue may occupy, and the others, both in their order. Slots
        that it occupies already come first, then as many more as the limit leaves."""
        limit, node = self.limit(queue), self._node_id
        if limit is None:
            return tickets, []
        occupied = self._occupied(queue)
        slots = {slot for slot in tickets if (node, slot) in occupied} if len(occupied) <= limit else set()
        more = (slot for slot in dict.fromkeys(tickets) if (node, slot) not in occupied)
        slots.update(islice(more, max(0, limit - len(occupied))))
        return [t for t in tickets if t in slots], [t for t in tickets if t not in slots]
