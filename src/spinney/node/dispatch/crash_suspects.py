"""Jobs of which one may have killed a worker that they shared.

When a worker of ``thread`` and ``async`` stages dies by itself (a segfault, ``os._exit``, the kernel's
out-of-memory killer) with more than one attempt in it, it is not known which one caused it: memory is shared, and the
thread that crashed need not be the one that corrupted it. So none of them is blamed. All go back uncounted, and each
runs once more alone, in a worker of its own. A job that ends normally there is cleared; a job that kills that worker,
too, has died by itself, which uses up an attempt and counts towards poison, and the next attempt is alone as well. So a
guilty job fails in spite of its neighbours, and costs them at most one more run on each node.

A job that blocked the event loop of a shared worker until the worker was ended is known by name, and runs alone from
then on. So does a job that exceeded its time limit while another one blocked the loop: alone it shows whether it
exceeds the limit by itself.

The list belongs to the node and is lost with it. Another node that claims the guilty job detects it in the same way,
once."""

from collections.abc import Iterable

_MOST = 10_000
"""The most suspects; older ones are forgotten: other nodes may have run them, so that nothing clears them on this
node."""


class CrashSuspects:
    """Ids of jobs that must not share a worker, the oldest first. False when there are none, which is the
    usual case and costs one test for each lease."""

    def __init__(self) -> None:
        self._jobs: dict[int, None] = {}

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __contains__(self, job_id: int) -> bool:
        return job_id in self._jobs

    def add(self, job_ids: Iterable[int]) -> None:
        """Suspect these jobs: each runs alone until it has ended normally. Beyond ``_MOST`` the oldest are
        forgotten."""
        self._jobs.update(dict.fromkeys(job_ids))
        for oldest in list(self._jobs)[: max(0, len(self._jobs) - _MOST)]:
            del self._jobs[oldest]

    def clear(self, job_id: int) -> None:
        """Clear a job that has ended normally while it ran alone."""
        self._jobs.pop(job_id, None)
