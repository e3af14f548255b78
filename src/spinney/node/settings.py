"""The settings of a node, checked once at its start, with messages that say what to do.

They come from the command line and from the table ``[node]`` (``settings_table``), and travel as JSON from
the command to the guard and from there to the supervisor. Nothing below reads an option or the environment
for itself."""

import json
import math
import os
import re
import socket
from dataclasses import asdict, dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from spinney.model.errors import UsageError
from spinney.model.fleet import LEASE_MAX_S, POLL_S, SLOTS_MAX
from spinney.model.queue_selection import QueueSelection
from spinney.model.values import names
from spinney.model.values.paths import run_dir
from spinney.model.values.store_urls import is_postgres

_APP = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
LOCAL_ADDRESS = "127.0.0.1"
STARTER_VARIABLE = "SPINNEY_NODE_STARTER"
"""The environment variable in which a bridge gives its name to the node that it starts."""
_LEVELS = ("debug", "info", "warning", "error")


def _host_name() -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "-", socket.gethostname()).lstrip(".-") or "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """All settings of a node; most have a good default. Making them raises UsageError for a value that cannot
    work, and BadName for a name that cannot name a node. Fields that end in ``_s`` are seconds, and those in
    ``_bytes`` are bytes."""

    store: str
    """URL of the store, as ``sqlite:////var/lib/spinney/spinney.db``."""
    app: str
    """``module:attribute`` of the Spinney application whose stages run here."""
    name: str = field(default_factory=_host_name)
    """The node's name, which no other node of the store has at the same time; by default that of the host."""
    slots: int = field(default_factory=lambda: len(os.sched_getaffinity(0)))
    """How many attempts run at once, over all queues."""
    active: tuple[str, ...] = ()
    """The queues that it serves; empty: all, or all except ``ignored``."""
    ignored: tuple[str, ...] = ()
    """Queues that it does not serve."""
    folders: str
    """The folder root, below which jobs have their folders."""
    run_dir: str | None = None
    """The directory of locks, pages and sockets of this host's nodes; None: ``<database file>.run``."""
    replace: bool = False
    """Take over from a live node of the same name: that one drains while this one claims."""
    lease_period_s: float = 15.0
    """A node without a heartbeat for so long is dead; its guard has killed everything before. It is stored in the
    node's row, so that every other node judges it by this and not by its own lease; at most ``LEASE_MAX_S``."""
    beat_s: float = 1.0
    """Seconds between heartbeats."""
    poll_s: float = POLL_S
    """Seconds between polls of the store, beside the wake-ups."""
    tick_s: float = 0.1
    """Seconds between checks of running attempts: time limits, cancel requests, memory."""
    drain_limit_s: float = 60.0
    """Attempts that still run so long after the start of a drain are killed and handed back."""
    lookahead_s: float = 0.1
    """How much run time a slot gets ahead, by measured run times."""
    lookahead_jobs: int = 0
    """The most jobs that one slot gets ahead; 0: 400, or 800 where an exchange waits for a server."""
    list_size: int = 200
    """The most jobs in one message to a worker."""
    batch_records: int = 0
    """The most records in one transaction; 0: 600, or 1,000 where it waits for a server."""
    recycle_after_jobs: int = 1_000_000
    """A worker is replaced after so many attempts."""
    worker_memory_bytes: int = 2 * 1024**3
    """A worker that has more resident memory between attempts is replaced."""
    retention_s: float = 3600.0
    """Seconds between scans of all jobs, which remove those whose retention time is over."""
    idle_end_s: float = 60.0
    """An idle worker is ended after so long; one stays warm."""
    output_bytes: int = 10 * 1024**2
    """The most bytes that are kept of each output stream of one attempt."""
    postmortem_bytes: int = 2**20
    """The most bytes that are kept of the frames and variables of one failure; 0: none are kept."""
    postmortem_depth: int = 4
    """How many levels of the parts of a variable are kept."""
    metrics: str | None = None
    """Where the node exposes its metrics, as ``PORT`` (of 127.0.0.1) or ``ADDRESS:PORT``; None: nowhere."""
    otlp: str | None = None
    """The collector to which the spans of traced jobs are sent, as ``http://collector:4318/v1/traces``; None: none."""
    log_level: str = "info"
    """The lowest level that is logged: ``debug``, ``info``, ``warning`` or ``error``."""
    starter: str | None = field(default_factory=lambda: os.environ.get(STARTER_VARIABLE))
    """The bridge that has started the node, and starts it again; None: a person or systemd has started it."""

    def __post_init__(self) -> None:
        names.name("node", self.name)
        if self.name.startswith(names.EXTERNAL_PREFIX):
            raise UsageError(
                f"{self.name!r} cannot name a node: {names.EXTERNAL_PREFIX!r} begins the names of external "
                "workers, which are no nodes"
            )
        _ = self.serves, self.metrics_address()
        for setting, (in_a_file, on_a_server) in _BY_STORE.items():
            if getattr(self, setting) == 0:
                object.__setattr__(self, setting, on_a_server if is_postgres(self.store) else in_a_file)
        if not _APP.fullmatch(self.app):
            raise UsageError(
                f"{self.app!r} names no application; write it as module:attribute, for example jobs:app"
            )
        self._require_finite()
        for setting in _AT_LEAST_ONE:
            if getattr(self, setting) < 1:
                raise UsageError(f"{setting} is {getattr(self, setting)}; it must be 1 or more")
        for setting in _POSITIVE:
            if getattr(self, setting) <= 0:
                raise UsageError(f"{setting} is {getattr(self, setting)}; it must be more than 0")
        for setting, most in _AT_MOST.items():
            if getattr(self, setting) > most:
                raise UsageError(f"{setting} is {getattr(self, setting)}; it must be {most:,} or less")
        for setting in ("drain_limit_s", "postmortem_bytes"):
            if getattr(self, setting) < 0:
                raise UsageError(f"{setting} is {getattr(self, setting)}; it must be 0 or more")
        if self.lease_period_s < 3 * self.beat_s:
            raise UsageError(
                f"lease_period_s is {self.lease_period_s} with a heartbeat every {self.beat_s} s; "
                f"make it at least three heartbeats"
            )
        if self.lease_period_s > LEASE_MAX_S:
            raise UsageError(
                f"lease_period_s is {self.lease_period_s}; it must be {LEASE_MAX_S:g} or less, because a node of an "
                f"older version, which does not say its lease, is waited for so long"
            )
        if self.otlp is not None and not self.otlp.startswith(("http://", "https://")):
            raise UsageError(f"otlp is {self.otlp!r:.80}; write a URL, as in http://collector:4318/v1/traces")
        if self.log_level not in _LEVELS:
            raise UsageError(f"log_level is {self.log_level!r}; use one of {', '.join(_LEVELS)}")

    def metrics_address(self) -> tuple[str, int] | None:
        """Return address and port of ``metrics``; None: nothing is exposed. Without an address it is that of this host
        alone. Raises UsageError, also where prometheus-client is not installed."""
        if self.metrics is None:
            return None
        address, _, port = self.metrics.rpartition(":")
        if not (port.isascii() and port.isdigit() and int(port) < 2**16):
            raise UsageError(
                f"metrics is {self.metrics!r:.80}; write a port, or an address and a port, as in 192.0.2.7:9620"
            )
        if find_spec("prometheus_client") is None:
            raise UsageError(
                "a node that exposes metrics needs prometheus-client; install it with: pip install 'spinney[metrics]'"
            )
        return address.strip("[]") or LOCAL_ADDRESS, int(port)

    def _require_finite(self) -> None:
        for setting in fields(self):
            value = getattr(self, setting.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise UsageError(f"{setting.name} is {value}; give a finite number")

    @property
    def patience_s(self) -> float:
        """Return the time limit of a transaction with a server: a third of what the guard allows without a heartbeat,
        and more than any transaction needs on a busy host."""
        return min(10.0, max(2.0, self.lease_period_s / 4))

    @property
    def beat_patience_s(self) -> float:
        """Return the time limit of a heartbeat; several must fit before the guard's deadline."""
        return min(5.0, max(0.5, self.lease_period_s / 6))

    @property
    def serves(self) -> QueueSelection:
        """Return the queues that it is started for, or without. Raises UsageError when both are set."""
        return QueueSelection(active=self.active, ignored=self.ignored)

    def run_path(self) -> Path:
        """Return the run-time directory: as set, else beside the database file. Raises UsageError when neither is
        known."""
        if self.run_dir is not None:
            return Path(self.run_dir)
        path = run_dir(self.store)
        if path is None:
            raise UsageError(
                f"the store {self.store.partition('://')[0]!r} has no file to put the run-time directory "
                f"beside; set run_dir to a directory on a local disk"
            )
        return path

    def to_json(self) -> str:
        """Return the settings as JSON text, for ``from_json`` of the process that is started with them."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "NodeSettings":
        """Return the settings of a text made by ``to_json``; they are checked again."""
        value: dict[str, Any] = json.loads(text)
        lists: dict[str, Any] = {name: tuple(value[name]) for name in ("active", "ignored") if name in value}
        return cls(**{**value, **lists})


_AT_LEAST_ONE = (
    "slots",
    "lookahead_jobs",
    "list_size",
    "batch_records",
    "recycle_after_jobs",
    "worker_memory_bytes",
    "output_bytes",
    "postmortem_depth",
)
_BY_STORE = {"lookahead_jobs": (400, 800), "batch_records": (600, 1_000)}
"""With a database file, smaller exchanges let others write sooner; with a server each costs round trips
(docs/benchmarks.md)."""
_POSITIVE = ("lease_period_s", "beat_s", "poll_s", "tick_s", "lookahead_s", "retention_s", "idle_end_s")
_YEAR_S = 366 * 86_400.0
_AT_MOST = dict.fromkeys((*_POSITIVE, "drain_limit_s"), _YEAR_S) | {
    "slots": SLOTS_MAX,
    "postmortem_bytes": 64 * 2**20,
    "postmortem_depth": 20,
}
