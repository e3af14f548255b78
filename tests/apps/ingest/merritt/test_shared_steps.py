"""Steps of one job shared with services of Merritt, which the test plays: each does the states that are its own."""

import json
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from bridges.merritt.trees import locks
from spinney.bridges.merritt import STEPS, Batch, BatchState, Job, JobState, MerrittQueue

from .service import IngestService

OTHERS = {"one": ["Recording"], "some": ["Downloading", "Recording", "Notify"]}


def sharing(tmp_path: Path, hosts: str, others: list[str]) -> IngestService:
    ours = [str(state) for state in STEPS[:-1] if state not in others]
    settings = f'states = {json.dumps(ours)}\nserver = "https://ingest.example.org"\n'
    return IngestService(tmp_path / "elm", hosts, "elm", settings=settings)


def do_their_step(queue: MerrittQueue, states: list[str]) -> Job | None:
    """Do the step of the first job in one of these states that nobody holds."""
    for name in states:
        job = queue.jobs.acquire(JobState(name))
        if job is not None:
            return queue.jobs.set_status(job, STEPS[STEPS.index(job.state) + 1], unlock=True)
    return None


def is_reported(queue: MerrittQueue, batch: Batch) -> bool:
    return queue.batches.load(batch.id).state in (BatchState.COMPLETED, BatchState.FAILED)


def jobs_here(service: IngestService) -> list[str]:
    """The states of all jobs here that deposit an object."""
    return [job["state"] for job in service.jobs() if job["type"] == "ingest.object"]


@pytest.mark.parametrize("name", OTHERS)
def test_each_side_does_the_states_that_are_its_own(
    tmp_path: Path, hosts: str, queue: MerrittQueue, client: KazooClient, name: str
) -> None:
    others, seen = OTHERS[name], list[str]()
    service = sharing(tmp_path, hosts, others)
    try:
        batch = service.submit(queue, 2)
        service.start()

        def step() -> bool:
            job = do_their_step(queue, others)
            if job is not None:
                seen.append(str(job.last_successful_status))
                assert set(seen) <= set(others)
            return is_reported(queue, batch)

        service.until("the report", step)
        assert sorted(seen) == sorted(2 * others)
        assert queue.batches.load(batch.id).state is BatchState.COMPLETED
        assert queue.jobs.counts()[JobState.COMPLETED] == 2
        service.until("the jobs here to end", lambda: set(jobs_here(service)) == {"completed"})
        stored = service.spinney("ingest", "find", "--json").splitlines()
        assert len(stored) == 2
        if name == "one":
            assert len(jobs_here(service)) == 2  # each waited, and went on
            (job, _) = queue.jobs.list()
            assert job.inventory["manifest_url"].startswith("https://ingest.example.org/")
        service.until("no lock", lambda: locks(client) == [])
        assert client.get_children("/spinney/nodes/elm") == []
        assert queue.check() == []
    finally:
        service.close()


def test_a_job_that_others_have_is_kept_over_a_kill_and_more_are_taken_meanwhile(
    tmp_path: Path, hosts: str, queue: MerrittQueue, client: KazooClient
) -> None:
    service = sharing(tmp_path, hosts, ["Recording"])
    try:
        batch = service.submit(queue, 3)
        service.start()
        service.until("all to wait for others", lambda: len(queue.jobs.list(JobState.RECORDING)) == 3)
        service.until("all to be held here", lambda: jobs_here(service) == ["held"] * 3)
        assert locks(client) == []

        service.kill()
        service.until("a step of others", lambda: do_their_step(queue, ["Recording"]))
        service.start()
        service.until("the job to go on", lambda: queue.jobs.list(JobState.COMPLETED))
        failed = queue.jobs.acquire(JobState.RECORDING)
        assert failed is not None
        failed = queue.jobs.set_status(failed, JobState.FAILED, message="their inventory", unlock=True)
        service.until("its job here to end", lambda: "cancelled" in jobs_here(service))
        queue.jobs.requeue(queue.jobs.load(failed.id))

        def end() -> bool:
            do_their_step(queue, ["Recording"])
            return is_reported(queue, batch)

        service.until("the report", end)
        assert queue.batches.load(batch.id).state is BatchState.COMPLETED
        service.until(
            "all jobs here to end", lambda: not {"held", "running", "pending"} & {*jobs_here(service)}
        )
        assert sorted(jobs_here(service)) == ["cancelled"] + ["completed"] * 3
        assert len(service.spinney("ingest", "find", "--json").splitlines()) == 3
    finally:
        service.close()


def test_processing_and_storing_are_one_step(tmp_path: Path, hosts: str) -> None:
    service = sharing(tmp_path, hosts, ["Storing"])
    output = service.spinney("merritt", "compare", code=2)
    assert "Processing and Storing are one step here" in output
