"""The order of jobs within a lane and priority: share and position, in Python and as SQL on ``jobs``."""

from spinney.model.types import QueueSpec

POSITIONS = {
    "default": "jobs.lineage",
    "fifo": "printf('%012d', jobs.id)",
    "lifo": "printf('%012d', 999999999999 - jobs.id)",
}
"""``position`` as SQL."""


def share_sql(queue: QueueSpec) -> str:
    """Return ``ready_share`` as SQL."""
    return "0" if queue.shared == "none" else "jobs.share"


def ready_share(queue: QueueSpec, share: int) -> int:
    """Return the share of a job in ``ready`` and ``leases``: 0 where the queue does not use shares."""
    return 0 if queue.shared == "none" else share


def position(queue: QueueSpec, job_id: int, lineage: str) -> str:
    """Return the position of a job within its share; it is unique."""
    if queue.order == "default":
        return lineage
    return f"{job_id:012d}" if queue.order == "fifo" else f"{10**12 - 1 - job_id:012d}"
