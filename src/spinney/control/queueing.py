"""Queues, set otherwise at run time."""

from spinney.control.hand import Hand
from spinney.control.naming import require_queue
from spinney.model.operators import QueueChange, QueueInfo


class Queues(Hand):
    """Every change is audited, and obeyed by all nodes with the next thing that they do."""

    def change(self, name: str, change: QueueChange, *, reason: str | None = None) -> QueueInfo:
        """Set a queue's limit, default type, pins or bars, or take back what was set; how it stands then.

        Raises UsageError (a queue that nobody has named, a limit, a name), UnknownType, Refused (to be unpinned
        from, or unbarred for, a node that it is not).
        """
        done = self.store.queueing.change(name, change, self.author(reason), now_us=self.clock())
        self.nudge()
        return done

    def default_type(self, name: str) -> str:
        """The job type of what is submitted by this queue's name alone. Raises UsageError when it has none, and
        for a queue that nobody has named."""
        spec = self.store.queueing.in_force(name)
        if spec.type is None:
            require_queue(self.store, name)
        return spec.default_type()

    def strangers(self, nodes: tuple[str, ...]) -> list[str]:
        """Those of these names that no node has ever joined by: perhaps they are to come, perhaps mistyped."""
        known = self.store.bulk.names("node")
        return [node for node in nodes if node not in known]
