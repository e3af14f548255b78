"""What a consumer takes of a queue with faults in it: one entry that cannot be read stops nothing else."""

from pathlib import Path
from typing import Any, cast

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

from bridges.merritt.trees import CONFIGURATION, locks, new_batch, new_job, put_batch
from spinney.apps.ingest.manifests import PayloadKind, Row, write
from spinney.apps.ingest.merritt.batches import BatchWork
from spinney.apps.ingest.merritt.consumer import MerrittConsumer
from spinney.apps.ingest.merritt.marks import Mark, new_claim
from spinney.apps.ingest.merritt.settings import Settings
from spinney.bridges.foreign import ForeignAway
from spinney.bridges.merritt import BatchState, JobState, MerrittQueue

NONE = cast(Any, None)


@pytest.fixture
def consumer(client: KazooClient, queue: MerrittQueue) -> MerrittConsumer:
    """A consumer of jobs, without a store; its lists are due at each look."""
    config = Settings(work=frozenset(["jobs"])).model_copy(update={"poll": 0})
    made = MerrittConsumer(
        client,
        "db",
        "oak",
        config,
        collection_of=lambda profile: profile,
        access=NONE,
        mirror=NONE,
    )
    made.begin("store", linked=False)
    return made


def taken(consumer: MerrittConsumer) -> list[str]:
    return [claim.entry for claim in consumer.claim(10)]


@pytest.mark.parametrize(
    "states", [(JobState.PENDING, JobState.ESTIMATING), (JobState.ESTIMATING, JobState.PENDING)]
)
def test_what_has_gone_furthest_is_taken_first_however_the_settings_name_the_states(
    queue: MerrittQueue, consumer: MerrittConsumer, states: tuple[JobState, ...]
) -> None:
    consumer.settings = consumer.settings.model_copy(update={"states": states})
    batch = new_batch(queue)
    pending, estimating = (queue.jobs.create(batch.id, CONFIGURATION) for _ in range(2))
    queue.jobs.set_status(estimating, JobState.ESTIMATING)

    assert taken(consumer) == [estimating.id, pending.id]


@pytest.mark.parametrize(
    ("node", "data"),
    [
        ("/batches/bid0000000000", None),
        ("/batches/bid0000000000/status", b"{"),
        ("/batches/bid0000000000/submission", b"[]"),
        ("/jobs/jid0000000001/configuration", b"{"),
        ("/jobs/jid0000000001/priority", b"first"),
        ("/jobs/jid0000000001/bid", None),
        ("/jobs/jid0000000001/status", b'{"status":"Pending","note":"' + b"x" * 20_000 + b'"}'),
        ("/jobs/jid0000000001/configuration", b'{"payload_type":"' + b"x" * 20_000 + b'"}'),
        ("/jobs/jid0000000001/identifiers", b'{"local_id":[' + b'"x",' * 9_000 + b'"x"]}'),
        ("/jobs/jid0000000001/identifiers", b'{"url":"http://[x"}'),
        ("/jobs/jid0000000001/identifiers", b'{"url":"file:///x%00"}'),
        ("/jobs/jid0000000001/identifiers", b'{"local_id":[[["x"]]]}'),
        pytest.param("/jobs/jid0000000001/identifiers", b"[" * 99_999, id="nested too deep"),
        ("/jobs/jid0000000001/status", b'{"status":"Pending","retry_count":"one"}'),
        ("/jobs/jid0000000001/status", b'{"status":"Pending","retry_count":1e999}'),
    ],
)
def test_a_job_that_cannot_be_read_does_not_stop_the_others(
    client: KazooClient, queue: MerrittQueue, consumer: MerrittConsumer, node: str, data: bytes | None
) -> None:
    broken = new_job(queue, identifiers={"primary_id": "ark:/1/2"})
    sound = queue.jobs.create(new_batch(queue).id, CONFIGURATION)
    if data is None:
        client.delete(node, recursive=True)
    else:
        client.set(node, data)

    first = taken(consumer)

    assert sound.id in first
    assert taken(consumer) == []
    if broken.id not in first:
        assert f"{broken.path}/lock" not in locks(client)
        assert client.get_children("/spinney/nodes/oak") == [sound.id]


def test_marks_that_cannot_be_read_are_passed_over_with_one_warning(
    client: KazooClient, queue: MerrittQueue, consumer: MerrittConsumer, caplog: pytest.LogCaptureFixture
) -> None:
    sound = new_job(queue)
    assert taken(consumer) == [sound.id]
    marks = [b"", b"{", b"[]", b"{}", b"\xff", b'{"claim":5}', b'{"claim":"0.a","phase":"dancing"}']
    for number, data in enumerate(marks):
        client.create(f"/spinney/nodes/oak/jid{number + 100:010}", data)

    for _ in range(2):
        assert [claim.entry for claim in consumer.claimed()] == [sound.id]

    assert caplog.text.count("cannot be read, and is passed over; delete this node") == len(marks)


def test_a_job_with_an_oversized_status_of_others_is_failed_with_its_reason(
    client: KazooClient, queue: MerrittQueue, consumer: MerrittConsumer
) -> None:
    job = new_job(queue)
    client.set(job.status_path, b'{"status":"Pending","note":"' + b"x" * 20_000 + b'"}')
    client.set(f"{job.path}/configuration", b'{"payload_type":"tape"}')

    assert taken(consumer) == []

    failed = queue.jobs.load(job.id)
    assert (failed.state, "no kind of payload" in failed.message) == (JobState.FAILED, True)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"payload_url": "http://[::1/x.zip"}, "Invalid IPv6 URL"),
        ({"local_id": 4711}, "the local id 4711 is neither text nor a list of texts"),
        ({"local_id": [4711]}, "the local id [4711] is neither text nor a list of texts"),
        ({"local_id": {"a": "b"}}, "neither text nor a list of texts"),
        ({"primary_id": 4711}, "configuration: primary_id: Input should be a valid string; submit it again"),
    ],
)
def test_a_job_whose_configuration_is_odd_fails_with_its_reason_and_does_not_stop_the_others(
    queue: MerrittQueue, consumer: MerrittConsumer, fields: dict[str, Any], reason: str
) -> None:
    odd = queue.jobs.create(new_batch(queue).id, CONFIGURATION | fields)
    sound = new_job(queue)

    assert taken(consumer) == [sound.id]

    failed = queue.jobs.load(odd.id)
    assert (failed.state, reason in failed.message) == (JobState.FAILED, True), failed.message


def test_a_job_that_others_have_locked_is_left_to_them_although_it_describes_no_object(
    queue: MerrittQueue, consumer: MerrittConsumer, caplog: pytest.LogCaptureFixture
) -> None:
    # Such as the job of a mirrored object whose payload its batch holds.
    odd = queue.jobs.lock(queue.jobs.create(new_batch(queue).id, CONFIGURATION | {"payload_url": ""}))

    assert taken(consumer) == []

    assert caplog.messages == []
    assert queue.jobs.load(odd.id).state is JobState.PENDING
    # Once nobody has it, it fails.
    queue.jobs.unlock(odd)
    assert taken(consumer) == []
    failed = queue.jobs.load(odd.id)
    assert (failed.state, queue.locks.holder(odd.lock_path)) == (JobState.FAILED, None)


def test_a_fault_that_nobody_foresaw_passes_over_one_job_and_names_it(
    queue: MerrittQueue, consumer: MerrittConsumer, caplog: pytest.LogCaptureFixture
) -> None:
    odd = queue.jobs.create(new_batch(queue).id, CONFIGURATION | {"profile_name": "odd"})
    first, second = new_job(queue), new_job(queue)
    collections = {"ucsd_lib_content": "c"}
    consumer.collection_of = lambda profile: collections[profile]

    consumer.claim(1)
    assert taken(consumer) == [second.id]
    assert first.id in consumer._owned

    consumer._marks.write(odd.id, Mark(new_claim(odd)))  # as of one that was taken before
    assert {claim.entry for claim in consumer.claimed()} == {first.id, second.id}
    assert {queue.jobs.load(odd.id).state} == {JobState.PENDING}
    assert [line for line in caplog.messages if "passed over" in line] == [
        f"{consumer.name}: job {odd.id} is passed over: 'odd'"
    ]


def test_polling_leaves_one_watch_a_list(client: KazooClient, consumer: MerrittConsumer) -> None:
    for _ in range(5):
        consumer._job_lists.note_change()
        assert taken(consumer) == []

    assert {len(watches) for watches in client._child_watchers.values()} == {1}


def test_who_may_not_read_the_queue_is_away(client: KazooClient, consumer: MerrittConsumer) -> None:
    client.set_acls("/locks/queue", [make_digest_acl("someone", "else", all=True)])
    client.set_acls("/jobs/states/pending", [make_digest_acl("someone", "else", all=True)])

    with pytest.raises(ForeignAway, match="NoAuth"):
        consumer.claim(1)


def test_a_batch_that_cannot_be_reported_does_not_stop_the_others(
    client: KazooClient, queue: MerrittQueue
) -> None:
    """The first has a report that is too large for a node, and no folder for it is set."""
    for jobs in (1_000, 1):
        batch = put_batch(client, queue, new_batch(queue), BatchState.PROCESSING)
        client.ensure_path(f"{batch.path}/states/batch-processing")
        for number in range(jobs):
            client.ensure_path(f"{batch.path}/states/batch-completed/jid{number:010d}")

    BatchWork(client, queue, "oak", None).report_ended()

    first, second = queue.batches.list()
    assert (first.state, second.state) == (BatchState.REPORTING, BatchState.COMPLETED)
    assert locks(client) == []


def test_a_batch_with_an_unreadable_job_keeps_its_mark_and_gets_its_other_jobs_later(
    client: KazooClient, queue: MerrittQueue, tmp_path: Path
) -> None:
    """Its consumer died when it had created one of three jobs."""
    work = BatchWork(client, queue, "oak", tmp_path)
    rows = [Row(url=f"https://files.example.org/{number}", name=f"{number}") for number in range(3)]
    (tmp_path / "bid-1").mkdir()
    with (tmp_path / "bid-1" / "batch.checkm").open("wb") as stream:
        write(rows, PayloadKind.SINGLE_FILE_BATCH_MANIFEST, stream)
    order = {"filename": "batch.checkm", "type": "batchManifestFile"}
    new_batch(queue, "bid-1", **order)
    batch = queue.batches.acquire_pending()
    assert batch is not None
    job = queue.jobs.create(batch.id, {**CONFIGURATION, "number": 2})
    client.ensure_path(f"/spinney/batches/{batch.id}")
    queue.batches.unlock(batch)
    whole, _ = client.get(f"{job.path}/configuration")
    client.set(f"{job.path}/configuration", b"{")
    work.read_pending()
    assert len(queue.jobs.ids()) == 1

    client.set(f"{job.path}/configuration", whole)
    work.read_pending()

    assert sorted(each.configuration["number"] for each in queue.jobs.list()) == [1, 2, 3]
    assert (client.get_children("/spinney/batches"), locks(client)) == ([], [])


def test_an_object_of_a_manifest_that_no_node_can_take_fails_alone(
    client: KazooClient, queue: MerrittQueue, tmp_path: Path
) -> None:
    long = Row(url="https://files.example.org/" + "x" * 8_000, name="/".join(["y" * 200] * 15))
    rows = [Row(url="https://files.example.org/0", name="0"), long]
    (tmp_path / "bid-1").mkdir()
    with (tmp_path / "bid-1" / "batch.checkm").open("wb") as stream:
        write(rows, PayloadKind.SINGLE_FILE_BATCH_MANIFEST, stream)
    new_batch(queue, "bid-1", filename="batch.checkm", type="batchManifestFile")
    client.ensure_path("/spinney/batches")

    BatchWork(client, queue, "oak", tmp_path).read_pending()

    sound, failed = queue.jobs.list()
    assert (sound.state, failed.state) == (JobState.PENDING, JobState.FAILED)
    assert "10000 at most" in failed.message
