"""Which queue and which shares were served last: what a store remembers from claim to claim."""

from collections.abc import Sequence


class Rotation:
    """The queue and the shares that were served last, by one store object.

    Each node has its own, and a restart forgets it: it decides whose turn is next among those that are equal,
    and nothing depends on that being exact. ``shares`` has an entry for each queue with shares."""

    def __init__(self) -> None:
        self.queue = ""
        self.shares: dict[str, int] = {}
        self.freed_us = 0
        """When a slot with a warm worker was last free for any job."""

    def queues_in_turn(self, names: Sequence[str]) -> list[str]:
        """Return these queues by name, beginning behind the one that was served last."""
        ordered = sorted(names)
        return [n for n in ordered if n > self.queue] + [n for n in ordered if n <= self.queue]
