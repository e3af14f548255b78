"""Which node may serve which queue, by the queue's settings (``pinned``, ``barred``) and the node's own.

Both must allow it. ``pinned`` of a queue takes precedence over its ``barred``, but not over the node's settings: the
person who started a node for some queues only, or without some, knows what that host is for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spinney.model.errors import UsageError
from spinney.model.settings.queues import QueueSpec
from spinney.model.values import names


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSelection:
    """The queues that a node was started for, or without; by default all."""

    active: tuple[str, ...] = ()
    """The queues that the node serves; empty: any."""
    ignored: tuple[str, ...] = ()
    """The queues that the node does not serve."""

    def __post_init__(self) -> None:
        if self.active and self.ignored:
            raise UsageError(
                "a node is started for some queues (active) or without some (ignored), not both; what is not named "
                "as active is ignored anyway"
            )
        for queue in (*self.active, *self.ignored):
            names.name("queue", queue)

    @property
    def all(self) -> bool:
        """Return whether the node serves all queues."""
        return not self.active and not self.ignored

    def admits(self, queue: str) -> bool:
        """Return whether the node's settings allow this queue."""
        return queue in self.active if self.active else queue not in self.ignored

    def to_json(self) -> dict[str, Any]:
        """Return a value that ``from_json`` turns back into an equal one."""
        return {"active": self.active} if self.active else {"ignored": self.ignored}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "QueueSelection":
        """Return the selection of a value made by ``to_json``."""
        return cls(**{field: tuple(queues) for field, queues in value.items()})


ALL = QueueSelection()
NONE = QueueSelection(active=("unreadable",))
"""The selection of a node whose settings cannot be read: a name that no queue has."""


def may_serve(queue: QueueSpec, node: str, serves: QueueSelection) -> bool:
    """Return whether a node of this name with these settings may take jobs of the queue. Whether it takes
    jobs at all (it may drain) is not considered."""
    return queue.admits(node) and serves.admits(queue.name)
