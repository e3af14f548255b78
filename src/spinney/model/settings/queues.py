"""Settings of queues, as applications declare them and operators change them.

They are stored as JSON. Unknown fields are refused and not ignored as those of job types: a setting that a node of an
older version does not understand must not be passed over."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spinney.model.errors import UsageError
from spinney.model.types import check_count
from spinney.model.values import limits, names
from spinney.model.values.limits import Limit


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSpec:
    """The settings of a queue. A queue that nobody declared has these defaults."""

    name: str
    limit: Limit | None = None
    """The most slots that its jobs may occupy over the whole cluster, or a part of all slots (``limits``); None: no
    limit; 0: nothing starts."""
    order: str = "default"
    """``default`` (earliest lineage first), ``fifo`` or ``lifo``."""
    sharing: str | None = None
    """``shares``, ``quota`` or ``none``; None: ``none`` for fifo and lifo, else ``shares``."""
    turn: int = 1
    """With ``quota``: how many jobs of one share may start in one turn; a share may hold as many slots however many
    shares there are."""
    type: str | None = None
    """The job type of submissions that name only the queue; None: they are refused."""
    pinned: tuple[str, ...] = ()
    """Names of the only nodes that may serve it; empty: any. It takes precedence over ``barred``."""
    barred: tuple[str, ...] = ()
    """Names of nodes that may not serve it."""

    def __post_init__(self) -> None:
        names.name("queue", self.name)
        if self.type is not None:
            names.name("job type", self.type)
        _check_nodes(f"queue {self.name!r}", "pinned", self.pinned)
        _check_nodes(f"queue {self.name!r}", "barred", self.barred)
        if self.limit is not None:
            limits.check(f"queue {self.name!r}", self.limit)
        if self.order not in ("default", "fifo", "lifo"):
            raise UsageError(f"queue {self.name!r}: order must be default, fifo or lifo")
        if self.sharing not in (None, "shares", "quota", "none"):
            raise UsageError(f"queue {self.name!r}: sharing must be shares, quota or none")
        check_count(f"queue {self.name!r}", "turn", self.turn)
        if self.turn > 1 and self.sharing != "quota":
            raise UsageError(
                f"queue {self.name!r}: turn is for queues with sharing 'quota'; set both or neither"
            )

    @property
    def shared(self) -> str:
        """Return how slots are shared in this queue: ``sharing``, or what its order has by default when none is set."""
        return self.sharing or ("shares" if self.order == "default" else "none")

    def admits(self, node: str) -> bool:
        """Return whether the queue's settings allow a node of this name."""
        return node in self.pinned if self.pinned else node not in self.barred

    def default_type(self) -> str:
        """Return the job type of submissions that name only the queue. Raises UsageError when it has none."""
        if self.type is None:
            raise UsageError(
                f"queue {self.name!r} has no default job type; name the type, or give the queue one with "
                f"'spinney queue {self.name} --type TYPE'"
            )
        return self.type

    def to_json(self) -> dict[str, Any]:
        """Return a value that ``from_json`` turns back into an equal spec. Newer fields are included only when they are
        set, so that nodes of a version that does not know a field refuse only queues that use it."""
        optional = {field: getattr(self, field) for field in ("type", "pinned", "barred")}
        always = {"name": self.name, "limit": self.limit, "order": self.order, "sharing": self.sharing}
        turn = {"turn": self.turn} if self.turn > 1 else {}
        return always | {field: value for field, value in optional.items() if value} | turn

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "QueueSpec":
        """Return the spec of a value made by ``to_json``, or of some of its fields. Raises for unknown fields: settings
        of a newer version must not be ignored."""
        spec_fields: dict[str, Any] = {f: tuple(v) if isinstance(v, list) else v for f, v in value.items()}
        return cls(**spec_fields)


SETTABLE = frozenset({"limit", "type", "pinned", "barred"})
"""The fields of a QueueSpec that operators set at run time. Order and sharing are not: they are in the keys of the
ready rows."""


def _check_nodes(where: str, option: str, nodes: object) -> None:
    """Raise UsageError or BadName unless these are names of nodes, each once."""
    if not isinstance(nodes, tuple):
        raise UsageError(f'{where}: {option} must be a tuple of node names such as ("oak",), not {nodes!r}')
    for node in nodes:
        names.name("node", node)
    if len(set(nodes)) < len(nodes):
        raise UsageError(f"{where}: {option} names a node twice, in {', '.join(nodes)}; name each once")
