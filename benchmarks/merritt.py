"""Merritt's queue in ZooKeeper: acquiring jobs beside many that have ended. Needs a ZooKeeper server of your own."""

import os
import statistics
import time
import uuid
from collections.abc import Mapping

from kazoo.client import KazooClient

from spinney.bridges.merritt import JobState, MerrittQueue, layout

COMPLETED = 16_700
"""Completed jobs, of six nodes each: 100,000 znodes."""
PENDING = 300
_TURNS = 9


def acquire() -> Mapping[str, float]:
    """Return jobs acquired a second in an empty queue, and beside 100,000 znodes of completed jobs.

    Each is moved to Estimating, as a consumer does. ``MERRITT_ZOOKEEPER`` names the server, as HOST:PORT; the figures
    are taken in a tree of their own, which is removed.
    """
    if "MERRITT_ZOOKEEPER" not in os.environ:
        print("merritt: left out; set MERRITT_ZOOKEEPER to the address of a server")
        return {}
    client = KazooClient(os.environ["MERRITT_ZOOKEEPER"], timeout=30)
    client.start()
    tree = f"/bench-{uuid.uuid4().hex[:8]}"
    client.ensure_path(tree)
    client.chroot = tree
    try:
        queue = MerrittQueue(client)
        queue.initialize()
        batch = queue.batches.create({"batchID": "bench", "profile": "bench"})
        alone = [_acquired(queue, batch.id) for _ in range(_TURNS)]
        _fill(client, batch.id)
        beside = [_acquired(queue, batch.id) for _ in range(_TURNS)]
    finally:
        client.chroot = ""
        client.delete(tree, recursive=True)
        client.stop()
        client.close()
    return {
        "acquired and moved/s, alone": statistics.median(alone),
        "acquired and moved/s, beside 100,000 znodes": statistics.median(beside),
        "ratio": statistics.median(beside) / statistics.median(alone),
    }


def _acquired(queue: MerrittQueue, batch_id: str) -> float:
    for _ in range(PENDING):
        queue.jobs.create(batch_id, {"profile_name": "bench"})
    began = time.perf_counter()
    for _ in range(PENDING):
        job = queue.jobs.acquire(JobState.PENDING)
        assert job is not None, "as many are acquired as were created"
        queue.jobs.set_status(job, JobState.ESTIMATING, unlock=True)
    return PENDING / (time.perf_counter() - began)


def _fill(client: KazooClient, batch_id: str) -> None:
    """Write completed jobs as they stand in the layout, without their way there."""
    nodes = {
        "bid": batch_id.encode(),
        "priority": b"05",
        "configuration": b"{}",
        "status": b'{"status": "Completed"}',
    }
    client.ensure_path(f"{layout.BATCHES}/{batch_id}/states/batch-completed")
    for start in range(0, COMPLETED, 100):
        together = client.transaction()
        for number in range(start, start + 100):
            job_id = f"jid9{number:09d}"
            together.create(f"{layout.JOBS}/{job_id}")
            for name, data in nodes.items():
                together.create(f"{layout.JOBS}/{job_id}/{name}", data)
            together.create(f"{layout.job_states_path(JobState.COMPLETED)}/05-{job_id}")
        together.commit()
