"""Where a job stands within its lane and priority: its share and its position, in Python and as SQL over ``jobs``."""

from spinney.model.types import QueueSpec

POSITIONS = {
    "default": "jobs.lineage",
    "fifo": "printf('%012d', jobs.id)",
    "lifo": "printf('%012d', 999999999999 - jobs.id)",
}
"""What ``position`` says, as SQL."""


def share_sql(queue: QueueSpec) -> str:
    """What ``ready_share`` says, as SQL."""
    return "0" if queue.shared == "none" else "jobs.share"


def ready_share(queue: QueueSpec, share: int) -> int:
    """The share by which a job stands in ``ready`` and ``leases``: none where the queue does not share."""
    return 0 if queue.shared == "none" else share


def position(queue: QueueSpec, job_id: int, lineage: str) -> str:
    """Where a job stands within its share; unique."""
    if queue.order == "default":
        return lineage
    return f"{job_id:012d}" if queue.order == "fifo" else f"{10**12 - 1 - job_id:012d}"
