"""Figures of a store: throughput, times and numbers of jobs by stage, queue, share and node.

Numbers of jobs and slots are exact, and of one snapshot. Rates count the attempts that finished within the
window. Times are measured on a sample of recent jobs, and are None where there is none. A caller who is
limited to some collections gets None for every figure that is not kept by collection."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spinney.model.values.limits import Limit

Percentiles = tuple[float, float, float]
"""Median, 90 % and 99 %, in seconds: the least times that so many attempts did not exceed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageStats:
    """Figures of a stage over all queues. Times are in seconds."""

    type: str
    stage: str
    pending: int
    running: int
    """Occupied slots."""
    ended: int | None
    """How many attempts ended within the window; None (as below): the caller is limited to some collections, and the
    figure is not kept by collection."""
    failures: int | None
    """How many of them ended with an error, at a time limit, or by the death of their worker or node."""
    rate: float | None
    """Finished attempts a second within the window."""
    sampled: int
    """How many attempts the times below are measured on: those of recent jobs, not of all."""
    wait_s: Percentiles | None
    """From a job's submission (or its time, or the end of the stage before) to its start; None: not known."""
    run_s: Percentiles | None
    """From the start of an attempt to its end, whatever it ended with; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStats:
    """Figures of a queue: how many of its jobs are in each open state or failed, as of one snapshot."""

    queue: str
    limit: int | None
    """How many slots it may occupy now."""
    pending: int
    running: int
    """Occupied slots."""
    scheduled: int
    waiting: int
    held: int
    failed: int
    rate: float | None
    """Finished attempts a second within the window; None: the figure is not kept by collection."""
    limit_setting: Limit | None = None
    """The limit as it is set: a number, or a part such as ``50%``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareStats:
    """Slots that one share of a queue occupies."""

    queue: str
    share: str | None
    """Its name, or the id of the job that it is named after; None: the queue does not use shares."""
    running: int
    """Occupied slots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStats:
    """Figures of a node or of an external worker: its slots, how many are occupied, and when it was seen last."""

    node: str
    state: str
    slots: int
    running: int
    """Occupied slots."""
    leases: int
    """How many jobs it has claimed, including those ahead."""
    seen_us: int
    presumed_dead: bool
    """Whether it has been silent for longer than its lease, so that other nodes would have taken its jobs back."""
    is_external_worker: bool
    """Whether it only runs external stages, and is no node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """One snapshot for ``stats`` and ``top``."""

    at_us: int
    window_s: float
    """The window of the rates: at least the requested one, in whole slices of ten seconds."""
    rate: float | None
    """Finished attempts a second within the window, over all queues; None: the figure is not kept by collection."""
    states: Mapping[str, int]
    """How many jobs are in each state, exactly."""
    queues: Sequence[QueueStats]
    stages: Sequence[StageStats]
    shares: Sequence[ShareStats]
    """The shares, those with the most slots first."""
    nodes: Sequence[NodeStats]
