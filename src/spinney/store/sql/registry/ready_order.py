"""The order of jobs within a lane and priority: share and position, in Python and as SQL on ``jobs``.

Rows of ``ready`` are found by their key and not by the job, so whoever removes a row computes the key again
from the job's row. Both forms must give the same text: a difference would leave a row behind, or find none.
Therefore a queue's order and sharing cannot change while it has jobs (``Registry.register``)."""

from spinney.model.settings.queues import QueueSpec


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
    """Return the position of a job within its share; it is unique. Texts of digits (and dots) in which the
    order of characters is the order of work: the lineage, so that a tree is worked through depth first; the
    id for fifo; and for lifo its difference to the highest."""
    if queue.order == "default":
        return lineage
    return f"{job_id:012d}" if queue.order == "fifo" else f"{10**12 - 1 - job_id:012d}"
