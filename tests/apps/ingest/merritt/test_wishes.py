"""What operators of Merritt's queue wish for jobs that a consumer has taken."""

from kazoo.client import KazooClient

from bridges.merritt.trees import new_job
from spinney.bridges.merritt import JobState, MerrittQueue
from spinney.bridges.merritt.layout import job_pointer
from spinney.jobs import State

from .consumers import Start, here, report


def test_a_new_priority_is_heard_although_a_state_is_written_first(
    client: KazooClient, queue: MerrittQueue, start: Start
) -> None:
    oak, job = start("oak"), new_job(queue)
    (claim,) = oak.claim(1)
    # A tool that heeds no lock: node after node.
    client.set(f"{job.path}/priority", b"20")
    client.create(job_pointer(JobState.PENDING, 20, job.id))
    client.delete(job.pointers[0])

    assert report(oak, claim, here(State.RUNNING, "estimating")) == {}

    assert [wish.priority for wish in oak.wishes()] == [20]
    assert list(oak.wishes()) == []


def test_a_priority_that_could_not_be_passed_on_is_wished_again(
    client: KazooClient, queue: MerrittQueue, start: Start
) -> None:
    """Given a new priority, when the store is away as the bridge gives the order, then the wish comes again."""
    oak, job = start("oak"), new_job(queue)
    oak.claim(1)
    client.set(f"{job.path}/priority", b"20")

    assert next(iter(oak.wishes())).priority == 20  # and the round ends by an error

    assert [wish.priority for wish in oak.wishes()] == [20]
    assert list(oak.wishes()) == []


def test_a_priority_that_is_estimated_here_is_no_wish(queue: MerrittQueue, start: Start) -> None:
    oak, job = start("oak"), new_job(queue, priority=20)
    (claim,) = oak.claim(1)

    assert report(oak, claim, here(State.RUNNING, "provisioning")) == {}

    assert queue.jobs.load(job.id).priority == 5
    assert list(oak.wishes()) == []
