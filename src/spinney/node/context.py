"""What the parts of a node share, from its start to its end.

Parts get this at their creation instead of opening stores or reading clocks themselves, so that the same
parts run under a simulator (``tests/simulation``)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from spinney.node.attempt_spans import AttemptSpans
from spinney.node.local_host import LocalHost
from spinney.node.measurements import NodeMeasurements
from spinney.node.settings import NodeSettings
from spinney.node.signals import NodeSignals, NodeStatus
from spinney.node.store_thread import StoreThread


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeContext:
    """The settings of a node, its two store threads, its signals and its clock. Each part gets it at its creation."""

    settings: NodeSettings
    host: LocalHost
    """This host, and how it can tell that processes of other nodes on it are gone."""
    writer: StoreThread
    """Makes the exchanges of records for leases, and all else that must not wait for a long read."""
    reader: StoreThread
    """Makes queries, and writes on which nothing waits, so that no exchange waits for them."""
    now_us: Callable[[], int]
    """Returns the time in microseconds since 1970 UTC."""
    signals: NodeSignals = field(default_factory=NodeSignals)
    """The signals by which parts of the node tell each other that something has happened."""
    status: NodeStatus = field(default_factory=NodeStatus)
    """What the node is doing, each field set by one part."""
    measurements: NodeMeasurements | None = None
    """The measurements for metrics; None: the node exposes no metrics, and measures nothing for them."""
    spans: AttemptSpans | None = None
    """The sender of spans; None: the node sends none."""

    @property
    def folder_root(self) -> Path:
        """Return the directory below which jobs have their folders."""
        return self.host.folder_root
