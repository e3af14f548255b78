"""Where everything lies in ZooKeeper: the paths of Merritt's queue layout.

    /batches/BID/{submission, status, status-report, lock}
    /batches/BID/states/{batch-processing, batch-failed, …}/JID     the batch's jobs, by state
    /batch-uuids/UUID                                               the batch of a uuid
    /jobs/JID/{bid, configuration, priority, space_needed, status, lock, …}
    /jobs/states/STATE/PP-JID                                       the jobs of a state, in order of priority
    /access/{small, large}/QID/{token, status, lock}
    /locks/{queue, storage, inventory, collections, localid}/NAME

Numbers of items have ten digits, so that names sort as numbers do."""

import re
from typing import Final

from spinney.bridges.merritt.states import JobState

BATCHES: Final = "/batches"
BATCH_UUIDS: Final = "/batch-uuids"
JOBS: Final = "/jobs"
JOB_STATES: Final = "/jobs/states"
ACCESS: Final = "/access"
ACCESS_QUEUES: Final = ("small", "large")
LOCKS: Final = "/locks"
QUEUE_LOCKS: Final = ("ingest", "accessSmall", "accessLarge")
LOCK_KINDS: Final = ("queue", "storage", "inventory", "collections", "localid")

BATCH_JOB_STATES: Final = ("batch-processing", "batch-failed", "batch-completed", "batch-deleted")
"""The lists of a batch's jobs. Open jobs of whatever state stand in the first."""
_BATCH_JOB_STATE = {
    JobState.FAILED: "batch-failed",
    JobState.COMPLETED: "batch-completed",
    JobState.DELETED: "batch-deleted",
}

PERMANENT: Final = (
    BATCHES,
    BATCH_UUIDS,
    JOBS,
    JOB_STATES,
    *(f"{JOB_STATES}/{state.lower()}" for state in JobState),
    ACCESS,
    *(f"{ACCESS}/{queue}" for queue in ACCESS_QUEUES),
    LOCKS,
    *(f"{LOCKS}/{kind}" for kind in LOCK_KINDS),
)
"""The nodes that stand as long as the queue does, each after its parent."""

PRIORITIES: Final = range(100)
"""All priorities; the lowest is served first."""


def job_states_path(state: JobState) -> str:
    """Return the node under which every job of this state has a child."""
    return f"{JOB_STATES}/{state.lower()}"


def job_pointer(state: JobState, priority: int, job_id: str) -> str:
    """Return the node by which a job is found in its state, in the order of priorities."""
    return f"{job_states_path(state)}/{priority:02d}-{job_id}"


def batch_job_state(state: JobState) -> str:
    """Return under which of a batch's four nodes a job of this state stands."""
    return _BATCH_JOB_STATE.get(state, "batch-processing")


def batch_pointer(batch_id: str, state: JobState, job_id: str) -> str:
    """Return the node by which a job is found in its batch."""
    return f"{BATCHES}/{batch_id}/states/{batch_job_state(state)}/{job_id}"


def sequence_name(prefix: str, number: int) -> str:
    """Return a name as ZooKeeper makes it for sequential nodes: the prefix and ten digits."""
    return f"{prefix}{number:010d}"


def object_lock_name(ark: str) -> str:
    """Return the name of the lock of an object: each slash, with a colon before it, becomes ``_``."""
    return re.sub(":?/", "_", ark)


def is_name(text: str) -> bool:
    """Tell whether a text can be the name of a node, as each uuid of a batch is to be. ZooKeeper refuses control
    characters, and those from U+FFF0 on."""
    return text not in ("", ".", "..") and "/" not in text and text.isprintable() and max(text) < "\ufff0"


def parent(path: str) -> str:
    """Return the path of the node above."""
    return path.rpartition("/")[0] or "/"


def name(path: str) -> str:
    """Return the last part of a path."""
    return path.rpartition("/")[2]
