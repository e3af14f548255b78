"""The order of jobs within a lane and priority: share and position, in Python and as SQL on ``jobs``."""

from spinney.model.types import QueueSpec


def padded(number: str) -> str:
    """Return the SQL of a number with leading zeros to twelve digits, as in a lineage (``JOB_ID_MAX``)."""
    return f"substr('' || (1000000000000 + {number}), 2)"


POSITIONS = {
    "default": "jobs.lineage",
    "fifo": padded("jobs.id"),
    "lifo": padded("999999999999 - jobs.id"),
}
"""``position`` as SQL."""


def share_sql(queue: QueueSpec) -> str:
    """Return the expression for ``ready_share`` as SQL: 0 where the queue has no shares."""
    return "0" if queue.shared == "none" else "jobs.share"


def ready_share(queue: QueueSpec, share: int) -> int:
    """Return the share of a job in ``ready`` and ``leases``: 0 where the queue does not use shares."""
    return 0 if queue.shared == "none" else share


def position(queue: QueueSpec, job_id: int, lineage: str) -> str:
    """Return the position of a job within its share; it is unique."""
    if queue.order == "default":
        return lineage
    return f"{job_id:012d}" if queue.order == "fifo" else f"{10**12 - 1 - job_id:012d}"
