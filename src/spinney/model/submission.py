"""The submission of jobs, and its limits of size. It has a module apart from ``jobs``, whose other classes workers need
not load."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spinney.model.lineage import WIDTH
from spinney.model.types import require_priority
from spinney.model.values import names

JOB_ID_MAX = 10**WIDTH - 1
"""The largest id of a job: a lineage has no room for more digits."""
PARAMS_MAX_BYTES = 2**20
"""The longest parameters of one job, as JSON text."""
DATA_MAX_BYTES = 2**16
"""The longest entry of ``job.data``, as JSON text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One or many jobs that differ in nothing but their parameters (and keys).

    Submissions of one call become visible together, or none does. A field that is None is taken from the parent, the
    type or the defaults."""

    type: str
    params: Sequence[str] = ("{}",)
    """A JSON object as text for every job."""
    queue: str | None = None
    """The queue, for all stages."""
    priority: int | None = None
    """From 0 (first) to 99 (last)."""
    share: str | None = None
    """The party that the jobs count against in queues that are shared out; None: that of their tree, or for new roots
    one of this call."""
    collection: str | None = None
    submitter: str | None = None
    """The submitter: the user in whose name the jobs are submitted."""
    keys: Sequence[str] | None = None
    """A unique key for every job, as many as ``params``."""
    forever: bool = False
    """Keys stay taken until their job is deleted, not only until it settles."""
    at_us: int | None = None
    """The job does not start before this time."""
    needs: tuple[int, ...] = ()
    """Ids of jobs that must complete first; ``-k`` means the k-th job (from 1) of this call."""
    data: Mapping[str, str] = field(default_factory=dict)
    """The initial ``job.data``: name to JSON text."""
    trace: str | None = None
    """The ``traceparent`` of the span in which they are submitted."""


def check_option(option: str, value: Any, *, where: str = "") -> None:
    """Raise BadName or UsageError unless this can be the queue, priority, share, collection, submitter or key of a job.
    ``where``: what the message about a priority begins with."""
    if option == "priority":
        require_priority(value, where=where)
    elif option in ("queue", "collection"):
        names.name(option, value)
    else:
        names.label(option, value)
