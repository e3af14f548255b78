"""Requests for access in Merritt's queue, answered by packages of an ingest service of ours."""

import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from kazoo.client import KazooClient

from bridges.merritt.trees import locks
from spinney.bridges.merritt import AccessRequest, AccessState, Batch, BatchState, MerrittQueue

from .service import IngestService


@pytest.fixture
def service(running: IngestService) -> IngestService:
    """One for all tests of this module: each has an object of its own."""
    return running


@pytest.fixture
def client(its_client: KazooClient) -> KazooClient:
    return its_client


@pytest.fixture
def queue(its_queue: MerrittQueue) -> MerrittQueue:
    return its_queue


@pytest.fixture
def batch(service: IngestService, queue: MerrittQueue) -> Batch:
    """A batch of an object of one file, which the service has stored."""
    batch = service.submit(queue, 1)
    service.until("the report", lambda: queue.batches.load(batch.id).state is BatchState.COMPLETED)
    return batch


@pytest.fixture
def ark(queue: MerrittQueue, batch: Batch) -> str:
    """Its object."""
    (job_id,) = queue.batches.jobs(batch)["batch-completed"]
    return queue.jobs.load(job_id).identifiers["primary_id"]


def state(queue: MerrittQueue, request: AccessRequest) -> AccessState:
    return queue.access.load(request.queue, request.id).state


def names(request: AccessRequest) -> list[str]:
    """The files of the package to which the request's URL leads."""
    with zipfile.ZipFile(Path(unquote(urlsplit(request.token["url"]).path))) as package:
        return package.namelist()


def packing(service: IngestService) -> list[dict[str, Any]]:
    """The jobs that make packages."""
    return [job for job in service.jobs() if job["type"] == "ingest.access"]


def test_requests_are_answered_with_packages(
    service: IngestService, queue: MerrittQueue, client: KazooClient, ark: str
) -> None:
    asset = {"token": "t-1", "ark": ark, "delivery-node": 7}
    first, again = queue.access.create("small", asset), queue.access.create("large", {"ark": ark})
    unknown = queue.access.create("small", {"token": "t-2", "ark": "ark:/99999/fk4none"})
    odd = queue.access.create("small", {"token": "t-3", "ark": ark, "format": "rar"})
    plain = [
        {"version": "1", "format": None},
        {"version": 1.0},
        {"version": "", "format": ""},
        {"version": None},
    ]
    same = [queue.access.create("small", {"ark": ark, **fields}) for fields in plain]
    no_numbers = ("first", "1.5", True, [1], "9" * 5_000)
    wrong = [queue.access.create("small", {"ark": ark, "version": each}) for each in no_numbers]
    foreign = queue.access.create("small", {"token": "t-4"})

    service.until(
        "answers",
        lambda: (
            {state(queue, each) for each in (first, again, *same)} == {AccessState.COMPLETED}
            and {state(queue, each) for each in (unknown, odd, *wrong)} == {AccessState.FAILED}
        ),
    )

    first, again = (queue.access.load(each.queue, each.id) for each in (first, again))
    assert (first.token["token"], first.token["delivery-node"], first.token["status"]) == ("t-1", 7, 200)
    assert first.token["cloud-content-byte"] > 0
    assert again.token["url"] == first.token["url"]  # the same package
    assert any(name.endswith("/0.txt") for name in names(first))
    assert "not in the inventory" in queue.access.load("small", unknown.id).message
    assert "use one of zip" in queue.access.load("small", odd.id).message
    assert all("is not a whole number" in queue.access.load("small", each.id).message for each in wrong)
    assert queue.access.load("small", foreign.id) == foreign
    assert locks(client) == []


def test_a_request_outlives_a_kill_and_a_stopped_queue(
    service: IngestService, queue: MerrittQueue, client: KazooClient, ark: str
) -> None:
    before = len(packing(service))
    service.spinney("queue", "access-small", "--limit", "0")
    request = queue.access.create("small", {"ark": ark})
    service.until("a request that waits", lambda: state(queue, request) is AccessState.PROCESSING)
    service.kill()
    service.spinney("merritt", "lock", "queue", "accessSmall")
    service.start()
    later = queue.access.create("small", {"ark": ark, "format": "tar"})
    service.spinney("queue", "access-small", "--limit", "declared")
    large = queue.access.create("large", {"ark": ark})
    service.until("the other queue", lambda: state(queue, large) is AccessState.COMPLETED)
    assert state(queue, later) is AccessState.PENDING

    service.spinney("merritt", "unlock", "queue", "accessSmall")
    service.until(
        "both answers", lambda: {state(queue, each) for each in (request, later)} == {AccessState.COMPLETED}
    )

    assert any(name.endswith("/0.txt") for name in names(queue.access.load("small", request.id)))
    assert len(packing(service)) - before == 2  # one for each format
    assert locks(client) == []


def test_a_request_that_failed_is_requeued(
    service: IngestService, queue: MerrittQueue, batch: Batch, ark: str
) -> None:
    content = (service.queue / batch.uuid / "0.txt").read_bytes()
    files = (path for path in (service.place / "archive").rglob("*") if path.is_file())
    (stored,) = (path for path in files if path.read_bytes() == content)
    stored.write_bytes(content.upper())
    request = queue.access.create("small", {"ark": ark})
    service.until("the failure", lambda: state(queue, request) is AccessState.FAILED)
    failed = queue.access.load("small", request.id)
    assert "damaged" in failed.message
    assert failed.token["status"] == 500

    stored.write_bytes(content)
    queue.access.set_status(failed, AccessState.PROCESSING)

    service.until("the answer", lambda: state(queue, request) is AccessState.COMPLETED)
    assert queue.access.load("small", request.id).token["status"] == 200
