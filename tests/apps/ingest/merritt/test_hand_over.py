"""Jobs that are with Merritt's services between two steps of ours, for consumers of ours in one process."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kazoo.client import KazooClient

from bridges.merritt.trees import CONFIGURATION, locks, new_batch, new_job
from spinney.apps.ingest.merritt.consumer import MerrittConsumer
from spinney.bridges.foreign import Claim
from spinney.bridges.merritt import STEPS, Job, JobState, MerrittQueue
from spinney.errors import UsageError
from spinney.jobs import State

from .consumers import Start, here, report


def hand_over(queue: MerrittQueue, consumer: MerrittConsumer) -> Claim:
    """Take a new job, do its steps up to Storing, and leave Recording to others."""
    new_job(queue)
    (claim,) = consumer.claim(10)
    assert report(consumer, claim, here(State.HELD, "notify")) == {}
    assert queue.jobs.load(claim.entry).state is JobState.RECORDING
    assert consumer.parked == 1
    return claim


def record(queue: MerrittQueue, *, unlock: bool = True) -> Job:
    """Do the step of Merritt's inventory."""
    job = queue.jobs.acquire(JobState.RECORDING)
    assert job is not None
    return queue.jobs.set_status(job, JobState.NOTIFY, unlock=unlock)


def taken(consumer: MerrittConsumer) -> list[str]:
    consumer._job_lists.note_change()
    return [claim.entry for claim in consumer.claim(10)]


def held(consumer: MerrittConsumer) -> list[tuple[str, str]]:
    return [(claim.entry, claim.claim) for claim in consumer.claimed()]


def orders(consumer: MerrittConsumer) -> list[str]:
    return [str(wish.order) for wish in consumer.wishes()]


@contextmanager
def requests(client: KazooClient) -> Iterator[list[str]]:
    """Record the paths of all requests to ZooKeeper."""
    paths, call = list[str](), client._call

    def recorded(request: Any, answer: Any) -> Any:
        paths.append(request.path)
        return call(request, answer)

    client._call = recorded
    yield paths
    client._call = call


def lose_connection(consumer: MerrittConsumer) -> None:
    """As after an error of the connection, in which the session lived on."""
    consumer._owned.forget_locks()


def test_a_job_that_comes_back_belongs_to_the_consumer_that_handed_it_over(
    queue: MerrittQueue, start: Start
) -> None:
    oak, elm = start("oak"), start("elm")
    claim = hand_over(queue, oak)
    record(queue)

    assert taken(elm) == []  # although its watch fired first

    assert orders(oak) == ["release"]
    assert held(oak) == [(claim.entry, claim.claim)]
    assert taken(elm) == []


def test_a_job_whose_consumer_is_gone_is_taken_by_another(queue: MerrittQueue, start: Start) -> None:
    oak, elm = start("oak"), start("elm")
    claim = hand_over(queue, oak)
    record(queue)
    oak.client.stop()

    assert taken(elm) == [claim.entry]

    oak.client.start()
    oak.begin(oak.node, linked=True)
    assert orders(oak) == []
    assert taken(oak) == []


def test_a_consumer_goes_on_with_what_it_handed_over_before_it_was_killed(
    queue: MerrittQueue, start: Start
) -> None:
    oak = start("oak")
    claim = hand_over(queue, oak)
    job = record(queue, unlock=False)
    oak.client.stop()
    again = start("oak")

    assert held(again) == [(claim.entry, claim.claim)]  # others have not let it go yet
    assert orders(again) == []

    queue.jobs.unlock(job)
    assert orders(again) == ["release"]
    assert orders(again) == ["release"]  # until its job has ended
    assert report(again, claim, here(State.COMPLETED, None)) == {}
    assert queue.jobs.load(job.id).state is JobState.COMPLETED


def test_a_job_that_has_come_back_is_lost_with_its_lock(
    client: KazooClient, queue: MerrittQueue, start: Start
) -> None:
    oak = start("oak")
    claim = hand_over(queue, oak)
    job = record(queue)
    assert orders(oak) == ["release"]

    lose_connection(oak)
    client.delete(job.lock_path)
    queue.jobs.lock(queue.jobs.load(job.id))  # and another service notifies

    assert list(report(oak, claim, here(State.COMPLETED, None))) == [job.id]


def test_a_step_that_is_left_to_others_after_a_restart_is_not_done_here_too(
    client: KazooClient, queue: MerrittQueue, start: Start
) -> None:
    oak = start("oak", STEPS[:-1])
    job = new_job(queue)
    (claim,) = oak.claim(10)
    report(oak, claim, here(State.RUNNING, "downloading"))
    oak.client.stop()

    again = start("oak", tuple(state for state in STEPS[:-1] if state is not JobState.DOWNLOADING))

    assert held(again) == []
    assert client.get_children("/spinney/nodes/oak") == []
    assert locks(client) == []
    assert queue.jobs.load(job.id).state is JobState.DOWNLOADING


def test_a_job_that_is_cancelled_while_others_have_it_fails_when_it_comes_back(
    client: KazooClient, queue: MerrittQueue, start: Start
) -> None:
    oak = start("oak")
    claim = hand_over(queue, oak)
    assert report(oak, claim, here(State.CANCELLED, "notify", "a wrong file")) == {}
    assert (held(oak), oak.parked) == ([], 0)

    record(queue)
    assert (taken(oak), held(oak)) == ([], [])

    job = queue.jobs.load(claim.entry)
    assert (job.state, job.message) == (JobState.FAILED, "a wrong file")
    assert client.get_children("/spinney/nodes/oak") == []


def test_a_job_that_was_cancelled_and_is_retried_meanwhile_goes_on(queue: MerrittQueue, start: Start) -> None:
    oak = start("oak")
    claim = hand_over(queue, oak)
    for state in (State.CANCELLED, State.HELD):
        assert report(oak, claim, here(state, "notify")) == {}

    record(queue)

    assert orders(oak) == ["release"]
    assert held(oak) == [(claim.entry, claim.claim)]


def test_a_profile_that_cannot_be_read_for_a_moment_ends_no_job_that_runs(
    client: KazooClient, queue: MerrittQueue, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    faults = list[str]()

    def collection(profile: str) -> str:
        if faults:
            raise UsageError(faults[0])
        return profile

    oak = start("oak", collection_of=collection)
    job = new_job(queue)
    (claim,) = oak.claim(10)
    faults.append("p.toml: a typo")

    for _ in range(2):
        assert [each.entry for each in oak.claimed({(claim.entry, claim.claim)})] == [job.id]
        assert held(oak) == []  # one without a job here waits
    assert queue.jobs.load(job.id).state is JobState.PENDING
    assert caplog.text.count("a typo") == 1

    faults.clear()
    assert held(oak) == [(claim.entry, claim.claim)]


def test_a_batch_that_cannot_be_read_ends_no_job(
    client: KazooClient, queue: MerrittQueue, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    oak = start("oak")
    running = new_job(queue)
    (claim,) = oak.claim(10)
    waiting = queue.jobs.create(new_batch(queue).id, CONFIGURATION)
    for each in (running, waiting):
        client.set(f"/batches/{each.bid}/submission", b"[]")

    for _ in range(2):
        assert taken(oak) == []
        assert [each.entry for each in oak.claimed({(claim.entry, claim.claim)})] == [running.id]

    assert [each.state for each in queue.jobs.list()] == [JobState.PENDING] * 2
    assert caplog.text.count(f"{waiting.id} is passed over") == 1
    assert locks(client) == [f"{running.path}/lock"]


def test_jobs_that_stand_as_they_stood_are_read_together_and_others_are_taken_or_lost(
    client: KazooClient, queue: MerrittQueue, start: Start
) -> None:
    oak, batch = start("oak"), new_batch(queue)
    for _ in range(6):
        queue.jobs.create(batch.id, CONFIGURATION)
    ours, away, back, unlocked, stolen, failed = claims = oak.claim(6)
    for claim in (away, back):
        report(oak, claim, here(State.HELD, "notify"))
    assert held(oak) == [(claim.entry, claim.claim) for claim in claims]
    with requests(oak.client) as paths:
        oak.claimed({(claim.entry, claim.claim) for claim in claims})
    assert (
        len(set(paths)) == len(paths) == 23
    )  # marks and their list, four locks, a status and a priority each

    job = queue.jobs.load(back.entry)
    queue.jobs.set_status(job, JobState.NOTIFY)
    for claim in (unlocked, stolen, failed):
        client.delete(queue.jobs.load(claim.entry).lock_path)
    queue.jobs.lock(queue.jobs.load(stolen.entry))
    queue.jobs.fail(queue.jobs.load(failed.entry), "an operator")

    assert held(oak) == [(claim.entry, claim.claim) for claim in (ours, away, back, unlocked)]
    assert sorted(client.get_children("/spinney/nodes/oak")) == [
        claim.entry for claim in (ours, away, back, unlocked)
    ]
    own = [queue.jobs.load(claim.entry).lock_path for claim in (ours, back, unlocked)]
    assert set(own) < set(locks(client))


def test_parked_jobs_have_a_bound_and_are_looked_at_in_one_round(
    queue: MerrittQueue, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    oak, batch = start("oak"), new_batch(queue)
    for _ in range(3):
        queue.jobs.create(batch.id, CONFIGURATION)
    for claim in oak.claim(3):
        report(oak, claim, here(State.HELD, "notify"))
    assert oak.parked == 3
    with requests(oak.client) as paths:
        assert orders(oak) == []
    assert len(paths) == 6  # a status and a priority each

    monkeypatch.setattr("spinney.apps.ingest.merritt.consumer.MOST_PARKED", 2)
    assert oak.parked == 2
