"""What tests share: a tree as text, batches and jobs, and items put into a state."""

import json
from typing import Any

from kazoo.client import KazooClient

from spinney.bridges.merritt import Batch, BatchState, Job, JobState, MerrittQueue
from spinney.bridges.merritt.layout import PERMANENT, batch_pointer, job_pointer
from spinney.bridges.merritt.nodes import subtree

SUBMISSION = {
    "batchID": "bid-7f1c",
    "profile": "ucsd_lib_content",
    "submitter": "dpr",
    "filename": "two.checkm",
}
CONFIGURATION = {
    "profile_name": "ucsd_lib_content",
    "submitter": "dpr",
    "payload_url": "https://depot/1.zip",
    "payload_type": "container",
    "response_type": "json",
}


def locks(client: KazooClient) -> list[str]:
    """Return the locks of items, while others may come and go."""
    return [
        path
        for top in ("/jobs", "/batches", "/access")
        for path in subtree(client, top)
        if path.endswith("/lock")
    ]


def tree(client: KazooClient) -> dict[str, bytes]:
    """Return the data of all nodes that are not permanent."""
    paths, level = [], [path for path in PERMANENT if path.count("/") == 1]
    while (
        level
    ):  # of each level all nodes are asked for at once, which costs a fraction of one after the other
        paths += level
        requests = [(path, client.get_children_async(path)) for path in level]
        level = [f"{path}/{name}" for path, names in requests for name in names.get()]
    wanted = sorted(path for path in paths if path not in PERMANENT)
    answers = [(path, client.get_async(path)) for path in wanted]
    return {path: answer.get()[0] or b"" for path, answer in answers}


def new_batch(queue: MerrittQueue, uuid: str = "", **submission: Any) -> Batch:
    return queue.batches.create({"batchID": uuid, "profile": "p", **submission} if uuid else {"profile": "p"})


def new_job(queue: MerrittQueue, **options: Any) -> Job:
    """Create a job in a batch of its own."""
    return queue.jobs.create(new_batch(queue).id, CONFIGURATION, **options)


def put_job(client: KazooClient, queue: MerrittQueue, job: Job, state: JobState, **status: Any) -> Job:
    """Put a job into a state whatever state it is in, as a test needs it, node after node."""
    for pointer in job.pointers:
        if client.exists(pointer):
            client.delete(pointer)
    fields = {**job.status, "status": state.value, **status}
    client.set(f"{job.path}/status", json.dumps(fields).encode())
    client.ensure_path(job_pointer(state, job.priority, job.id))
    client.ensure_path(batch_pointer(job.bid, state, job.id))
    return queue.jobs.load(job.id)


def put_batch(client: KazooClient, queue: MerrittQueue, batch: Batch, state: BatchState) -> Batch:
    """Put a batch into a state whatever state it is in."""
    client.set(f"{batch.path}/status", json.dumps({**batch.status, "status": state.value}).encode())
    return queue.batches.load(batch.id)


def finish_job(
    client: KazooClient, queue: MerrittQueue, job: Job, state: JobState = JobState.COMPLETED
) -> Job:
    """Move a job to its end, by its last step."""
    job = put_job(client, queue, job, JobState.NOTIFY)
    return queue.jobs.set_status(job, state)
