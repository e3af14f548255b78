"""Every verb that writes, each with what it needs: for tests that kill its writer.

Run as a program, it makes a victim of each line ``HOSTS<tab>VERB<tab>before|after``, and prints its exit code: one that
has loaded everything already, since it is forked.
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

from kazoo.client import KazooClient, TransactionRequest

from bridges.merritt.trees import CONFIGURATION, finish_job, new_batch, new_job, put_batch
from spinney.bridges.merritt import AccessState, BatchState, JobState, MerrittQueue

Prepare = Callable[[KazooClient, MerrittQueue], Any]
Verb = Callable[[MerrittQueue], Any]


def _one_job(client: KazooClient, queue: MerrittQueue) -> None:
    new_job(queue)


def _failed_job(client: KazooClient, queue: MerrittQueue) -> None:
    finish_job(client, queue, new_job(queue), JobState.FAILED)


def _done(client: KazooClient, queue: MerrittQueue) -> None:
    job = finish_job(client, queue, new_job(queue))
    batch = queue.batches.load(job.bid)
    put_batch(client, queue, batch, BatchState.PROCESSING)


def _completed(client: KazooClient, queue: MerrittQueue) -> None:
    job = finish_job(client, queue, new_job(queue))
    put_batch(client, queue, queue.batches.load(job.bid), BatchState.COMPLETED)


def _report(queue: MerrittQueue) -> None:
    batch = queue.batches.acquire_for_reporting()
    assert batch
    queue.batches.finish_reporting(batch, [], ["jid0000000001"])


def _job(queue: MerrittQueue) -> Any:
    return queue.jobs.load(queue.jobs.ids()[0])


VERBS: dict[str, tuple[Prepare, Verb, int]] = {
    "create batch": (lambda *_: None, lambda q: new_batch(q, "bid-x"), 1),
    "create job": (lambda _, q: new_batch(q), lambda q: q.jobs.create("bid0000000000", CONFIGURATION), 1),
    "create request": (lambda *_: None, lambda q: q.access.create("small", {"token": "t"}), 1),
    "acquire batch": (lambda _, q: new_batch(q), lambda q: q.batches.acquire_pending(), 1),
    "acquire job": (_one_job, lambda q: q.jobs.acquire(JobState.PENDING), 1),
    "acquire request": (lambda _, q: q.access.create("small", {}), lambda q: q.access.acquire("small"), 1),
    "next state": (_one_job, lambda q: q.jobs.set_status(_job(q), JobState.ESTIMATING, priority=9), 1),
    "hold": (_one_job, lambda q: q.jobs.hold(_job(q)), 1),
    "fail": (_one_job, lambda q: q.jobs.fail(_job(q), "m", break_locks=True), 1),
    "requeue": (_failed_job, lambda q: q.jobs.requeue(_job(q)), 1),
    "set parts": (_one_job, lambda q: q.jobs.set_parts(_job(q), inventory={"mode": "add"}, store={}), 1),
    "priority": (_one_job, lambda q: q.jobs.set_priority(_job(q), 77), 1),
    "report": (_done, _report, 2),
    "delete job": (_completed, lambda q: q.jobs.delete(_job(q)), 1),
    "delete batch": (_completed, lambda q: q.batches.delete_completed(), 1),
    "request state": (
        lambda _, q: q.access.create("small", {}),
        lambda q: q.access.set_status(q.access.load("small", "qid0000000000"), AccessState.PROCESSING),
        1,
    ),
    "storage lock": (lambda *_: None, lambda q: q.locks.lock_storage("ark:/1/2"), 1),
}
"""What must be there, the verb, and how many transactions it writes."""


def _die_at(commit: Callable[[TransactionRequest], Any], when: str) -> Callable[[TransactionRequest], Any]:
    def dying(request: TransactionRequest) -> Any:
        answer = commit(request) if when == "after" else None
        os.kill(os.getpid(), signal.SIGKILL)
        return answer

    return dying


def _be_killed(hosts: str, name: str, when: str) -> None:
    client = KazooClient(hosts, timeout=1.0)
    client.start()
    TransactionRequest.commit = _die_at(TransactionRequest.commit, when)
    VERBS[name][1](MerrittQueue(client))


if __name__ == "__main__":
    for line in sys.stdin:
        if (victim := os.fork()) == 0:
            try:
                _be_killed(*line.rstrip("\n").split("\t"))
            except Exception:  # noqa: BLE001 - a child must not go on in the loop
                traceback.print_exc()
            finally:
                os._exit(1)
        print(os.waitstatus_to_exitcode(os.waitpid(victim, 0)[1]), flush=True)
