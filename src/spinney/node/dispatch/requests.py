"""Requests of running attempts to the store: the verbs of the job handle (``spinney.define.job``).

Workers have no database connection. A request has the fence of its attempt; the supervisor knows its job,
adds both, and sends the answer or the error back. The store checks every write against the fence, so that an
attempt whose lease is gone gets ``StaleFence`` and changes nothing.

While the database is away a request is retried for a lease period, unless that might write something twice;
then its attempt gets the error, which is an exception like any other to the stage."""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import orjson

from spinney.define.job import options
from spinney.model.errors import (
    CommitUncertain,
    Refused,
    SpinneyError,
    StaleFence,
    UsageError,
)
from spinney.model.jobs import Job, Lease, Submission
from spinney.model.types import known_type
from spinney.model.values.unreadable import Unreadable
from spinney.node.context import NodeContext
from spinney.node.dispatch.progress_writer import ProgressWriter
from spinney.node.dispatch.slots import PoolWorker
from spinney.store.parts import Store

log = logging.getLogger(__name__)

T = TypeVar("T")

_SPAWN_MAX = 10_000
"""The most jobs of one request, so that transactions stay short."""
_CHILDREN_BYTES = 4 * 2**20
"""A page of children ends behind the one with which it becomes that long."""
_CHILDREN_STEP = 100
"""How many children are read at once."""


class Requests:
    """Serves the verbs. Reads use the reader's connection, so that they do not wait for writes. ``spawn`` starts a
    task."""

    def __init__(self, context: NodeContext, spawn: Callable[[Coroutine[Any, Any, Any]], object]) -> None:
        self._writer, self._reader, self._signals = context.writer, context.reader, context.signals
        self._now_us = context.now_us
        self._insist_s = context.settings.lease_period_s
        """How long an attempt waits for an unavailable database before it fails; for one that another program has
        locked it waits as long as that takes."""
        self._progress = ProgressWriter(context.writer, spawn)
        self.use_results: set[tuple[str, str]] = set()
        """The stages, as (type, stage), that have asked for the results of earlier ones."""

    async def answer(
        self, worker: PoolWorker, number: int, fence: int, verb: str, args: Mapping[str, Any]
    ) -> None:
        """Send the answer to a request of an attempt in this worker, or the error that the attempt raises. An
        unexpected error is logged here and becomes a UsageError there."""
        task = worker.held.get(fence)
        try:
            # Sent here, because an answer that is too long for a message is an error of its attempt, too.
            worker.child.answer(number, await self.serve(task.lease if task else None, fence, verb, args))
        except SpinneyError as error:
            log.info("refused %s of attempt %d: %s", verb, fence, error)
            if isinstance(error, CommitUncertain):
                # Not the stage's fault: if it ends by this, its attempt counts as interrupted and uses up none.
                worker.uncertain_requests = {
                    f: why for f, why in worker.uncertain_requests.items() if f in worker.held
                } | {fence: str(error)}
            worker.child.refuse(number, error)
        except Exception as error:
            # A request of one stage must not end the node.
            log.exception("request %s of attempt %d failed", verb, fence)
            worker.child.refuse(
                number, UsageError(f"the request {verb!r} failed ({error!r}); see the node's log")
            )

    async def serve(self, lease: Lease | None, fence: int, verb: str, args: Mapping[str, Any]) -> Any:
        """Return the answer to a request. Raises SpinneyError: StaleFence when its attempt has ended (``lease`` is
        None), UsageError when it is unknown or malformed, and whatever the store raises."""
        if lease is None:
            raise StaleFence(0, fence)
        serve: Callable[..., Awaitable[Any]] | None = getattr(self, f"_serve_{verb}", None)
        if serve is None:
            raise UsageError(f"there is no request {verb!r}; run the same version of Spinney everywhere")
        try:
            return await serve(lease, **args)
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(
                f"the request {verb!r} makes no sense ({error!r}); run the same version of Spinney everywhere"
            ) from error

    # --- reads: a method for each verb, with the arguments of the request ------------------

    async def _serve_get_data(self, lease: Lease, target: int, name: str | None) -> Any:
        _require_relative(lease, target)
        return _readable(await self._read(lambda store: store.get_data(target, name=name)))

    async def _serve_data_names(self, lease: Lease, target: int) -> Any:
        _require_relative(lease, target)
        return list(await self._read(lambda store: store.get_data(target)))

    async def _serve_results(self, lease: Lease) -> Any:
        """Return the results of earlier stages, and note that this stage uses them: with later leases of the
        stage they are sent along (``use_results``)."""
        self.use_results.add((lease.type, lease.stage))
        return _readable(await self._read(lambda store: store.results(lease.job_id)))

    async def _serve_type_schema(self, lease: Lease, type: str) -> Any:  # noqa: A002 - the verb's own word
        return dict(known_type(await self._read(lambda store: store.types()), type).schema)

    async def _serve_children(self, lease: Lease, after: int, limit: int) -> Any:
        return await self._read(lambda store: _children_page(store, lease.job_id, after, limit))

    # --- writes ---------------------------------------------------------------------------

    async def _serve_put_data(self, lease: Lease, target: int, name: str, value: str | None) -> Any:
        _require_relative(lease, target)
        await self._write(lambda store: store.put_data(lease.job_id, lease.fence, name, value, target))

    async def _serve_append_data(self, lease: Lease, target: int, name: str, value: str) -> Any:
        _require_relative(lease, target)
        return await self._write(
            lambda store: store.append_data(lease.job_id, lease.fence, name, value, target), twice=False
        )

    async def _serve_spawn(self, lease: Lease, submissions: list[Any]) -> Any:
        jobs, now_us = _submissions(submissions), self._now_us()
        return await self._spawn_jobs(
            jobs, lambda store: store.spawn(lease.job_id, lease.fence, jobs, now_us=now_us)
        )

    async def _serve_submit(self, lease: Lease, submissions: list[Any], beside: int | None) -> Any:
        jobs, now_us = _submissions(submissions), self._now_us()
        return await self._spawn_jobs(
            jobs,
            lambda store: store.submit_from(lease.job_id, lease.fence, jobs, beside=beside, now_us=now_us),
        )

    async def _spawn_jobs(
        self, submissions: list[Submission], verb: Callable[[Store], Sequence[int]]
    ) -> list[int]:
        """Create jobs and return their ids. Jobs with keys exist at once, so that nodes are woken, and
        a repeated request finds them by their keys; jobs without keys exist when the stage has passed, and a
        repeated request would create them twice."""
        keyed = any(s.keys for s in submissions)
        ids = await self._write(verb, twice=keyed)
        if keyed:
            self._signals.claimable()
            self._signals.work_for_peers()  # its parent has a slot of this node, perhaps the last one
        return list(ids)

    async def _serve_take_lock(
        self, lease: Lease, name: str, until: str, amount: int, capacity: int | None
    ) -> Any:
        now_us = self._now_us()
        return await self._write(
            lambda store: store.take_lock(
                lease.job_id, lease.fence, name, until, amount=amount, capacity=capacity, now_us=now_us
            )
        )

    async def _serve_prioritise(self, lease: Lease, priority: int) -> Any:
        await self._write(lambda store: store.prioritise(lease.job_id, lease.fence, priority))

    async def _serve_progress(self, lease: Lease, fraction: float, message: str | None) -> Any:
        await self._progress.report(lease, fraction, message)

    # --- an unavailable database ----------------------------------------------------------
    # Where another program has the database locked, the node keeps what it runs for as long as that takes
    # (``heartbeat``), and so must its attempts.

    async def _read(self, verb: Callable[[Store], T]) -> T:
        return await self._reader.insist(verb, for_s=self._insist_s, outlast_lock=True)

    async def _write(self, verb: Callable[[Store], T], *, twice: bool = True) -> T:
        """Run ``verb`` in the writer. ``twice=False``: a repeated call would write twice. Then the attempt gets the
        error when it is not known whether the call was committed, and counts as interrupted if it ends by that: the
        stage runs again."""
        return await self._writer.insist(verb, for_s=self._insist_s, twice=twice, outlast_lock=True)


def _submissions(rows: list[Any]) -> list[Submission]:
    """Return the submissions of a request. Raises UsageError for more jobs than one transaction may
    create."""
    submissions = [options.from_json(row) for row in rows]
    if sum(len(s.params) for s in submissions) > _SPAWN_MAX:
        raise UsageError(f"one request may make up to {_SPAWN_MAX} jobs; send more requests")
    return submissions


def _require_relative(lease: Lease, target: int) -> None:
    """Raise Refused unless the target is the job itself, its parent or its root."""
    if target not in (lease.job_id, lease.parent_id, lease.root_id):
        raise Refused(
            f"job {lease.job_id} may use data of itself, its parent and its root, not of job {target}"
        )


def _children_page(store: Store, job_id: int, after: int, limit: int) -> list[list[Any]]:
    """Return up to ``limit`` children as rows, fewer when they are large, and none only when there are no more. They
    are read in steps, because each may have parameters of a megabyte."""
    page: list[list[Any]] = []
    page_bytes = 0
    while len(page) < limit and page_bytes < _CHILDREN_BYTES:
        step = min(_CHILDREN_STEP, limit - len(page))
        jobs = store.children(job_id, after=page[-1][0] if page else after, limit=step)
        for job in jobs:
            row = _row(job)
            page.append(row)
            page_bytes += len(orjson.dumps(row))
            if page_bytes >= _CHILDREN_BYTES:
                break
        if len(jobs) < step:
            break
    return page


def _row(job: Job) -> list[Any]:
    return [job.id, job.type, job.state, job.stage, job.code, job.message, job.warnings, job.params]


def _readable(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values. Raises Refused where one cannot be read, because a stage would act on it."""
    for value in values.values():
        if isinstance(value, Unreadable):
            raise Refused(f"{value}; correct or delete it before the stage runs again")
    return dict(values)
