"""The table ``[node]`` of ``spinney.toml``: settings for the nodes that are started in this directory."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict

from spinney.config import FILE, table
from spinney.define.params.duration_field import DurationField
from spinney.settings_files import checked

TABLE = "node"
Duration = Annotated[float, DurationField()]
_FIELDS = {
    "lease": "lease_period_s",
    "drain": "drain_limit_s",
    "idle_end": "idle_end_s",
    "ignore": "ignored",
}
"""Keys whose setting has another name; durations are without their unit, as text may have one."""


class NodeTable(BaseModel):
    """What a node goes by unless its command says otherwise; every key may be left out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    slots: int | None = None
    """How many attempts run at once; by default as many as the node may use processors."""
    active: tuple[str, ...] | None = None
    """The only queues that it serves."""
    ignore: tuple[str, ...] | None = None
    """Queues that it does not serve."""
    lease: Duration | None = None
    """A node without a heartbeat for so long is dead; 15 s by default."""
    drain: Duration | None = None
    """How long running jobs may finish after SIGTERM; 60 s by default."""
    idle_end: Duration | None = None
    """An idle worker is ended after so long; 60 s by default."""
    run_dir: str | None = None
    """The directory for locks and sockets of this host's nodes; by default beside the database file."""
    worker_memory_bytes: int | None = None
    """A worker that has more resident memory between attempts is replaced; 2 GiB by default."""
    recycle_after_jobs: int | None = None
    """A worker is replaced after so many attempts; a million by default."""
    output_bytes: int | None = None
    """The most bytes that are kept of each output stream of one attempt; 10 MiB by default."""
    postmortem_bytes: int | None = None
    """The most bytes that are kept of the frames and variables of one failure; 1 MiB by default, 0: none."""
    postmortem_depth: int | None = None
    """How many levels of the parts of a variable are kept; 4 by default."""
    metrics: int | str | None = None
    """Where the node exposes metrics for Prometheus: a port of 127.0.0.1, or ``ADDRESS:PORT``; by default nowhere."""
    otlp: str | None = None
    """The collector of OpenTelemetry to which the spans of traced jobs are sent, ``http://HOST:4318/v1/traces``; by
    default none."""
    log_level: str | None = None
    """``debug``, ``info`` (the default), ``warning`` or ``error``."""


def read(directory: Path) -> Mapping[str, Any]:
    """Return the fields of ``NodeSettings`` that the file in this directory sets. Raises UsageError, which names the
    file and the key, for an unknown key or a value of another type; ``NodeSettings`` checks the values."""
    node_table = checked(NodeTable, table(TABLE, directory), f"{directory / FILE}: [{TABLE}]")
    values = node_table.model_dump(exclude_none=True)
    if "metrics" in values:
        values["metrics"] = str(values["metrics"])
    return {_FIELDS.get(key, key): value for key, value in values.items()}
