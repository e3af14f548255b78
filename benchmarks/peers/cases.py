"""What is measured of each peer."""

import time
from collections.abc import Callable, Mapping

from benchmarks.peers.place import Place, Submitter
from benchmarks.place import percentile

TRIES, GAP_S = 200, 0.02
SMALL, BIG, SECONDS, SLOTS = 50, 5_000, 0.005, 8


def bulk_and_drain(place: Place, jobs: int) -> Mapping[str, float]:
    """Jobs a second of a submission, by a process that has submitted one before, and of the worker that runs them, once
    a tenth as many have warmed it up."""
    warm_up = jobs // 10
    with place.submitter() as submitter:
        submitter.singly(1, 0.0)
        bulk = (jobs + warm_up) / submitter.bulk(jobs + warm_up)
        with place.worker("drain") as worker:
            place.wait_for(1 + jobs + warm_up, worker)
            submitter.wait_for_none()
            ended = time.time_ns()
    began = sorted(began for _, began, _ in place.records())[1 + warm_up]
    return {"bulk": bulk, "drain": jobs / ((ended - began) / 1e9)}


def start(place: Place, jobs: int) -> Mapping[str, float]:
    """Milliseconds from before the submission to the job's first line, of a worker that has nothing else to do."""
    with place.submitter() as submitter, place.worker("drain") as worker:
        submitter.singly(20, GAP_S)
        place.wait_for(20, worker)
        submitter.singly(TRIES, GAP_S)
        place.wait_for(20 + TRIES, worker)
    delays = [(began - tag) / 1e6 for tag, began, _ in place.records()[20:]]
    return {"start median": percentile(delays, 0.5), "start p99": percentile(delays, 0.99)}


def fairness(place: Place, jobs: int) -> Mapping[str, float]:
    """The time of a small batch behind a big one, over its time alone."""
    with place.submitter() as submitter, place.worker(str(SLOTS)) as worker:
        submitter.bulk(200, seconds=SECONDS)
        place.wait_for(200, worker)
        alone = []
        for tag in (1, 2, 3):
            time.sleep(0.5)
            began, count = _submit_small(submitter, tag), 200 + SMALL * tag
            place.wait_for(count, worker)
            alone.append(_end(place, tag) - began)
        submitter.bulk(BIG, seconds=SECONDS, tag=4)
        began = _submit_small(submitter, 5)
        place.wait_for(200 + 4 * SMALL + BIG, worker)
        behind = _end(place, 5) - began
    return {"alone": min(alone) / 1e6, "behind": behind / 1e6, "times": behind / min(alone)}


def _submit_small(submitter: Submitter, tag: int) -> int:
    began = time.time_ns()
    submitter.bulk(SMALL, seconds=SECONDS, tag=tag)
    return began


def _end(place: Place, wanted: int) -> int:
    return max(ended for tag, _, ended in place.records() if tag == wanted)


CASES: Mapping[str, Callable[[Place, int], Mapping[str, float]]] = {
    "drain": bulk_and_drain,
    "start": start,
    "fairness": fairness,
}
"""By the name that chooses them: each measures one place, which is used for nothing else."""
