"""Fields that are too large for a node: they become a file beside the payload, and are read from there again."""

import json
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from bridges.merritt.trees import CONFIGURATION, new_batch, new_job
from spinney.apps.ingest.merritt import orders, progress
from spinney.apps.ingest.merritt.batches import BatchWork
from spinney.apps.ingest.merritt.settings import Settings
from spinney.bridges.foreign import ForeignAway
from spinney.bridges.merritt import Job, JobState, MerrittQueue, MerrittZKNodeInvalid
from spinney.jobs import State

from .consumers import Start, here, report

BID = "bid-6ba7b810-9dad-11d1-80b4-00c04fd430c8"
IDS = [f"local-{number}" for number in range(2_000)]
PROCESSED = {"ark": "ark:/1/2", "local_ids": IDS, "who": "w" * 10_000, "what": "t", "when": "d", "version": 1}


def written(client: KazooClient, queue: MerrittQueue, folder: Path) -> Job:
    """Return a job whose identifiers and metadata are in files."""
    work, batch = BatchWork(client, queue, "oak", folder), new_batch(queue, BID)
    job = queue.jobs.create(batch.id, CONFIGURATION)
    progress.write_parts(
        queue,
        job,
        {"processing": PROCESSED},
        None,
        lambda name, data: work.write_beside(batch.id, name, data),
    )
    return queue.jobs.load(job.id)


def test_the_ark_stays_in_the_node_and_the_rest_is_read_from_the_file(
    client: KazooClient, queue: MerrittQueue, tmp_path: Path
) -> None:
    job = written(client, queue, tmp_path)
    file = tmp_path / BID / f"{job.id}-identifiers.json"
    assert job.identifiers == {"primary_id": "ark:/1/2", "url": file.as_uri()}
    assert json.loads(file.read_text()) == {"local_id": IDS}

    about = orders.object_order(job, BID, Settings(queue=tmp_path)).about

    assert (about.primary_id, list(about.local_ids)) == ("ark:/1/2", IDS)
    assert (about.creator, about.title) == ("w" * 10_000, "t")


def test_a_file_that_is_missing_or_elsewhere_is_not_read(
    client: KazooClient, queue: MerrittQueue, tmp_path: Path
) -> None:
    job = written(client, queue, tmp_path)
    (tmp_path / "other").mkdir()
    with pytest.raises(MerrittZKNodeInvalid, match="not below the folder"):
        orders.object_order(job, BID, Settings(queue=tmp_path / "other"))

    (tmp_path / BID / f"{job.id}-metadata.json").unlink()
    with pytest.raises(MerrittZKNodeInvalid, match="cannot be read"):
        orders.object_order(job, BID, Settings(queue=tmp_path))


def test_a_file_that_cannot_be_written_now_fails_no_job(
    queue: MerrittQueue, start: Start, tmp_path: Path
) -> None:
    """As when a disk is full for a while."""
    job, folder = new_job(queue), tmp_path / "queue"
    oak = start("oak", queue=folder)
    (claim,) = oak.claim(10)
    results = {"processing": PROCESSED}

    with pytest.raises(ForeignAway, match="cannot be written"):
        report(oak, claim, here(State.RUNNING, "recording"), results)
    assert queue.jobs.load(job.id).state is JobState.PENDING

    folder.mkdir()
    assert report(oak, claim, here(State.RUNNING, "recording"), results) == {}
    assert queue.jobs.load(job.id).identifiers["primary_id"] == "ark:/1/2"
