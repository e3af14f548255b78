"""Which node may serve which queue: the queue's word (pins and bars) and the node's own.

Both must allow it. A queue's pin wins over its own bar of the same node, but not over the node: whoever started
it for some queues alone, or without some, knows what that host is for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spinney.model.errors import UsageError
from spinney.model.types import QueueSpec
from spinney.model.values import names


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSelection:
    """The queues that a node was started for, or without; unless one is named: all."""

    active: tuple[str, ...] = ()
    """These alone; empty: any."""
    ignored: tuple[str, ...] = ()
    """All but these."""

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
        """Whether nothing is said."""
        return not self.active and not self.ignored

    def admits(self, queue: str) -> bool:
        """Whether the node serves this queue, as far as the node is asked."""
        return queue in self.active if self.active else queue not in self.ignored

    def to_json(self) -> dict[str, Any]:
        """A value that ``from_json`` turns back into an equal one."""
        return {"active": self.active} if self.active else {"ignored": self.ignored}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "QueueSelection":
        """What a value made by ``to_json`` says."""
        return cls(**{which: tuple(queues) for which, queues in value.items()})


ALL = QueueSelection()
NONE = QueueSelection(active=("unreadable",))
"""Of a node of which nobody knows what it may serve: a name that no queue has."""


def may_serve(queue: QueueSpec, node: str, serves: QueueSelection) -> bool:
    """Whether a node of this name, started so, may take jobs of the queue."""
    return queue.admits(node) and serves.admits(queue.name)
