"""The life of jobs in plain dictionaries: what a store must agree with, written to be read.

A ``Model`` is told what was done and says where every job stands after it. It does not choose: which
job a claim gives is the store's decision, and ``claimed`` only judges whether it was lawful. What
operators must be refused raises ``Refusal`` and leaves everything as it was.

A lock is told by who has it; a job that waits for one is pending here. Who comes before whom, by priority, number or
share, has suites of its own; here shares only must not change what becomes of jobs.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from spinney.model.jobs import Lease
from spinney.model.outcomes import PASSED, Outcome
from spinney.model.states import State
from spinney.model.types import StageSpec, TypeSpec

from .memory_jobs import Held, ModelJob, NeedsChildren, Refusal

BAD = frozenset({State.FAILED, State.CANCELLED, State.ORPHANED})
BROKEN = BAD | {State.DELETED}
T = TypeVar("T")


class Model:
    """All jobs that are visible, by id."""

    def __init__(self, types: Mapping[str, TypeSpec], limits: Mapping[str, int]) -> None:
        self.types, self.limits = types, limits
        self.jobs: dict[int, ModelJob] = {}
        self.now_us = 0
        self.last_fence = 0
        self.asleep: dict[tuple[str, str], int] = {}
        """Stages that one of their jobs has put to sleep, and until when; then one probes, until one has run."""
        self._parents: list[int] = []
        self._needers: list[int] = []

    # --- what is done: making jobs --------------------------------------------------------

    def new(
        self,
        job_id: int,
        of: str,
        parent: int | None,
        queue: str,
        priority: int,
        needs: Sequence[int] = (),
        at_us: int | None = None,
    ) -> ModelJob:
        return ModelJob(job_id, of, parent, queue, priority, set(needs), at_us, self.types[of].stages[0].name)

    def submitted(self, made: Sequence[ModelJob]) -> None:
        self._born(made)
        self._drain()

    def key_owner(self, key: str) -> ModelJob | None:
        """Who has the key: while it is open, or until it is deleted."""
        of_key = (job for job in self.jobs.values() if job.key == key)
        return next((j for j in of_key if j.open or (j.forever and j.state is not State.DELETED)), None)

    def spawned(self, parent: ModelJob, made: Sequence[ModelJob]) -> None:
        for job in made:
            job.spawn_stage = parent.stage
        parent.unborn += made

    def spawned_at_once(self, parent: ModelJob, made: ModelJob, key: str) -> None:
        """A child with a key is born at once, whatever becomes of the attempt."""
        made.spawn_stage, made.child_key = parent.stage, key
        self._born([made])
        self._drain()

    def spawned_again(self, child: ModelJob) -> None:
        """Its key was given again: a superseded one counts again."""
        child.superseded = child.lingers = False

    def child_of_key(self, parent: ModelJob, key: str) -> ModelJob | None:
        of_key = (j for j in self.jobs.values() if (j.parent, j.child_key) == (parent.id, key))
        return next((j for j in of_key if j.state is not State.DELETED), None)

    def sent(self, by: ModelJob, made: Sequence[ModelJob]) -> None:
        """A running attempt submits jobs of their own."""
        by.unsent += made

    def prioritised(self, job: ModelJob, priority: int) -> None:
        job.priority = priority

    def may_spawn(self, job: ModelJob) -> bool:
        return not self._wished(job)

    # --- what is done: attempts -----------------------------------------------------------

    def claimed(self, leases: Sequence[Lease], node: int) -> None:
        """Judge what a claim gave: promises 2, 3 and 4, and the order of a serial tree."""
        for lease in leases:
            job = self.jobs[lease.job_id]
            assert job.lease is None, f"job {job.id} has an owner already"
            assert job.state is State.PENDING, f"job {job.id} was {job.state} when it was claimed"
            assert lease.stage == job.stage
            assert lease.stage not in job.passed, f"stage {lease.stage} of job {job.id} had passed"
            assert lease.attempt == job.attempts + 1
            assert lease.fence > self.last_fence, "fences only grow from claim to claim"
            assert not self._wished(job), f"job {job.id} is to be cancelled"
            assert not self._barred(job), f"job {job.id} overtook one of its serial tree"
            assert not self._locked_out(job), f"another has the lock of job {job.id}"
            assert not self._sleeps(job), f"stage {job.stage} of {job.type} sleeps, or one probes"
            job.lease = Held(lease.fence, node, lease.slot, self.now_us)
            job.keeps = job.keeps or any(lock.until == "job" for lock in self._spec(job).locks)
        assert len({lease.fence for lease in leases}) == len(leases), "and each is given once"
        self.last_fence = max([self.last_fence, *(lease.fence for lease in leases)])
        for queue, limit in self.limits.items():
            slots = {(j.lease.node, j.lease.slot) for j in self.leased() if j.lease and j.queue == queue}
            assert len(slots) <= limit, f"queue {queue} occupies {len(slots)} slots of {limit}"

    def claimable(self) -> list[ModelJob]:
        """What a free slot of a node that knows every lane could be given now."""
        full = {
            queue
            for queue, limit in self.limits.items()
            if len({(j.lease.node, j.lease.slot) for j in self.leased() if j.lease and j.queue == queue})
            >= limit
        }
        return [
            job
            for job in self.jobs.values()
            if job.state is State.PENDING
            and job.lease is None
            and job.queue not in full
            and not self._barred(job)
            and not self._locked_out(job)
            and not self._sleeps(job)
        ]

    def started(self, job: ModelJob) -> None:
        assert job.lease is not None
        job.lease.started = True

    def recorded(
        self,
        job: ModelJob,
        outcome: Outcome,
        *,
        retryable: bool = True,
        delay_s: float = 0,
        lane: bool = False,
    ) -> None:
        assert job.lease is not None
        fence, job.lease = job.lease.fence, None
        if outcome is not Outcome.RETURNED:
            job.ran_fence = fence
        unborn, job.unborn = job.unborn, []
        unsent, job.unsent = job.unsent, []
        if self._wished(job) and (unborn or outcome not in PASSED):
            self._settle(job, State.CANCELLED)  # its children would have to run for it to be done
        elif outcome in PASSED:
            self._stirs(job)
            self._born(unsent)  # nothing ties them to this job
            self._passed(job, outcome, unborn, fence)
        else:
            if lane:
                self.asleep[(job.type, job.stage or "")] = self.now_us + round(delay_s * 1e6)
            elif outcome is not Outcome.RETURNED:
                self._stirs(job)
            self._not_passed(job, outcome, retryable, delay_s)
            self._goes_back(job, fence)
        self._drain()

    def recovered(self, node: int) -> list[int]:
        """The node died; what it had marked as started is lost."""
        lost = [job for job in self.leased() if job.lease and job.lease.node == node]
        for job in lost:
            assert job.lease is not None
            began, fence = job.lease.started, job.lease.fence
            job.lease, job.unborn, job.unsent = None, [], []
            job.ran_fence = fence if began else job.ran_fence
            job.interruptions += began
            spec = self.types[job.type]
            if began and not self._wished(job):
                self._stirs(job)
            if self._wished(job):
                self._settle(job, State.CANCELLED)
            elif began and job.interruptions >= spec.poison_after:
                self._settle(job, State.FAILED)
            elif began and spec.on_lost == "orphan":
                self._settle(job, State.ORPHANED)
            else:
                self._place(job)
            self._goes_back(job, fence)
        self._drain()
        return [job.id for job in lost]

    # --- what is done: time and operators -------------------------------------------------

    def swept(self) -> None:
        for job in list(self.jobs.values()):
            if job.state is State.SCHEDULED and job.wake_us is not None and job.wake_us <= self.now_us:
                self._place(job)
        self._drain()
        for job in self.jobs.values():
            if job.tree_wish and not job.open and not any(j.open for j in self.below(job)):
                job.tree_wish = False

    def cancelled(self, job: ModelJob, *, tree: bool) -> None:
        self._whole(lambda: self._cancel(self.jobs[job.id], tree))

    def retried(self, job: ModelJob, stage: str | None = None) -> None:
        refused: set[int] = set()
        changed = self._retry_each([job.id], stage, refused)
        if changed and refused:
            again = sorted(refused - {job.id}) + [job.id] * (job.id in refused)
            refused.clear()
            self._retry_each(again, stage, refused)
        if job.id in refused or (refused and not changed):
            raise Refusal

    def rerun(self, job: ModelJob, stage: str | None = None) -> None:
        self._whole(lambda: self._rerun(self.jobs[job.id], stage))

    def _retry_each(self, ids: Sequence[int], stage: str | None, refused: set[int]) -> bool:
        """Retry each of them, wholly or not at all, and in its place the children because of which it failed, or would
        fail again. Returns whether anything was opened; ``refused`` gets those that were not."""
        changed = False
        for job_id in ids:
            if stage is not None or not self._failed_children(job_id):
                try:
                    self._whole(partial(self._retry, job_id, stage))
                    changed = True
                except NeedsChildren:
                    job = self.jobs[job_id]
                    job.state, job.because, job.interruptions = State.FAILED, "children", 0
                except Refusal:
                    refused.add(job_id)
                    continue
            for child in self._failed_children(job_id) if stage is None else ():
                if self.jobs[child].state in BAD and not self.jobs[child].superseded:
                    changed = self._retry_each([child], None, refused) or changed
        return changed

    def _failed_children(self, job_id: int) -> list[int]:
        job = self.jobs[job_id]
        because = job.state in BAD and job.because == "children"
        return [child.id for child in self._bad_children(job)] if because else []

    def released(self, job: ModelJob) -> None:
        if job.state is not State.HELD:
            raise Refusal
        self._place(job)
        self._drain()

    def deleted(self, job: ModelJob) -> set[int]:
        below = [j for j in self.below(job) if j.state is not State.DELETED]
        if job.state is State.DELETED or (job.open and job.state is not State.HELD):
            raise Refusal
        if any(j.open and j.state is not State.HELD for j in below):
            raise Refusal
        for gone in [*reversed(below), job]:
            self._bury(gone)
        self._drain()
        return {job.id, *(j.id for j in below)}

    # --- looking --------------------------------------------------------------------------

    def leased(self) -> list[ModelJob]:
        return [job for job in self.jobs.values() if job.lease is not None]

    def children(self, job: ModelJob) -> list[ModelJob]:
        """Those that count: neither superseded nor deleted."""
        return [
            j
            for j in self.jobs.values()
            if j.parent == job.id and not j.superseded and j.state is not State.DELETED
        ]

    def below(self, job: ModelJob) -> list[ModelJob]:
        """Everything below it, every parent before its children."""
        return [j for j in self.jobs.values() if job in self.above(j)]

    def above(self, job: ModelJob) -> Iterator[ModelJob]:
        while job.parent is not None:
            job = self.jobs[job.parent]
            yield job

    # --- rules: passed or not -------------------------------------------------------------

    def _spec(self, job: ModelJob) -> StageSpec:
        spec = self.types[job.type].stage(job.stage or "")
        assert spec is not None
        return spec

    def _next(self, job: ModelJob) -> str | None:
        if job.finished:
            return None
        return next((s.name for s in self.types[job.type].stages if s.name not in job.passed), None)

    def _passed(self, job: ModelJob, outcome: Outcome, unborn: Sequence[ModelJob], fence: int) -> None:
        assert job.stage is not None
        ran = job.stage
        job.passed.add(ran)
        job.finished = outcome is Outcome.FINISH
        job.attempts = job.interruptions = 0
        self._born(unborn)
        self._forget_early_reports(job, ran, fence)
        if not self._children_open(job):
            self._proceed(job)
            return
        job.stage = self._next(job) or job.stage
        if self._wished(job) and self._next(job) is not None:
            self._settle(job, State.CANCELLED)
        else:
            self._wait(job, "children")

    def _not_passed(self, job: ModelJob, outcome: Outcome, retryable: bool, delay_s: float) -> None:
        match outcome:
            case Outcome.RETURNED:
                self._place(job)
            case Outcome.HOLD:
                job.state = State.HELD
            case Outcome.DEFER:
                self._rest(job, delay_s)
            case Outcome.ERROR:
                job.attempts += 1
                if not retryable or job.attempts >= self._spec(job).max_attempts:
                    self._settle(job, State.FAILED)
                else:
                    self._rest(job, (1.0, 2.0, 3.0)[min(job.attempts, 3) - 1])
            case _:
                raise AssertionError(f"{outcome} is not told here")

    def _forget_early_reports(self, job: ModelJob, ran: str, fence: int) -> None:
        """What has told of children as they were before one was opened again runs once more."""
        if not job.finished:
            run_since = [child for child in self.children(job) if child.ran_fence > fence]
            for child in [*self._open_children(job), *run_since]:
                if child.spawn_stage != ran:
                    self._again(job, child)

    def _goes_back(self, job: ModelJob, fence: int) -> None:
        """After an attempt that did not pass, its job may have to report anew first."""
        if job.state is State.CANCELLED or job.stage is None:
            return
        self._forget_early_reports(job, job.stage, fence)
        if self._takes_its_next_stage(job) and job.state is not State.HELD:
            self._place(job)

    def _takes_its_next_stage(self, job: ModelJob) -> bool:
        following = self._next(job)
        if not job.open or following in (None, job.stage):
            return False
        job.stage, job.attempts = following, 0
        return True

    def _rest(self, job: ModelJob, seconds: float) -> None:
        job.state, job.wake_us = State.SCHEDULED, self.now_us + round(seconds * 1e6)

    # --- rules: locks, and stages that sleep ----------------------------------------------

    def _locked_out(self, job: ModelJob) -> bool:
        """Whether another has the lock that its stage must have."""
        others = (other for other in self.jobs.values() if other.place == job.place and other is not job)
        return bool(self._spec(job).locks) and any(
            other.keeps or (other.lease and self._spec(other).locks) for other in others
        )

    def _sleeps(self, job: ModelJob) -> bool:
        until_us = self.asleep.get((job.type, job.stage or ""))
        if until_us is None:
            return False
        probes = any(
            (j.type, j.stage) == (job.type, job.stage) and j.lease and j.lease.claimed_us >= until_us
            for j in self.leased()
        )
        return probes or until_us > self.now_us

    def _stirs(self, job: ModelJob) -> None:
        """An attempt of its stage has run: if it was the probe, the others go on."""
        lane = (job.type, job.stage or "")
        if self.asleep.get(lane, self.now_us + 1) <= self.now_us:
            del self.asleep[lane]

    # --- rules: where a job belongs -------------------------------------------------------

    def _born(self, made: Sequence[ModelJob]) -> None:
        for job in made:
            self.jobs[job.id] = job
        for job in made:
            self._place(job)

    def _place(self, job: ModelJob) -> None:
        job.wake_us = job.waits = None
        needs = [self.jobs[n].state for n in job.needs]
        if self._wished(job):
            self._settle(job, State.CANCELLED)
        elif job.at_us is not None and job.at_us > self.now_us:
            job.state, job.wake_us = State.SCHEDULED, job.at_us
        elif any(state in BROKEN for state in needs):
            self._settle(job, State.FAILED, because="needs")
        elif any(state is not State.COMPLETED for state in needs):
            self._wait(job, "needs")
        elif self._older_children_open(job, job.stage):
            self._wait(job, "children")
        elif self._strict(job) and any(c.spawn_stage != job.stage for c in self._bad_children(job)):
            self._settle(job, State.FAILED, because="children")
        else:
            job.state = State.PENDING

    def _wait(self, job: ModelJob, for_what: str) -> None:
        job.state, job.waits = State.WAITING, for_what

    def _proceed(self, job: ModelJob) -> None:
        """Its children have settled, or it has none: to its next stage or to its end."""
        following, failed_children = self._next(job), self._bad_children(job)
        if failed_children and (following is None or self._strict(job)):
            if self._wished(job):
                self._settle(job, State.CANCELLED)
            else:
                self._settle(job, State.FAILED, because="children")
        elif following is None:
            self._settle(job, State.COMPLETED)
        else:
            if following != job.stage:
                job.stage, job.attempts = following, 0
            self._place(job)

    def _settle(self, job: ModelJob, state: State, because: str | None = None) -> None:
        job.state, job.because, job.cancel_requested, job.keeps = state, because, False, False
        job.wake_us = job.waits = None
        job.lingers = False
        if state is State.COMPLETED:
            job.stage = None
        if job.parent is not None:
            self._parents.append(job.parent)
        self._needers.append(job.id)

    def _drain(self) -> None:
        """What a settled job means for its parent and for those that need it."""
        while self._parents or self._needers:
            while self._parents:
                parent = self.jobs[self._parents.pop()]
                waits = parent.state is State.WAITING and parent.waits == "children"
                if waits and not self._children_open(parent):
                    self._proceed(parent)
            while self._needers:
                need = self._needers.pop()
                for job in list(self.jobs.values()):
                    if need in job.needs and job.state is State.WAITING and job.waits == "needs":
                        self._place(job)

    # --- rules: children ------------------------------------------------------------------

    def _strict(self, job: ModelJob) -> bool:
        return self.types[job.type].children == "completed"

    def _children_open(self, job: ModelJob) -> bool:
        return any(self._open_children(job))

    def _older_children_open(self, job: ModelJob, stage: str | None) -> bool:
        return any(child.spawn_stage != stage for child in self._open_children(job))

    def _open_children(self, job: ModelJob) -> Iterator[ModelJob]:
        """Those for which it waits."""
        for child in self.jobs.values():
            if child.parent == job.id and child.open and (child.lingers or not child.superseded):
                yield child

    def _bad_children(self, job: ModelJob) -> list[ModelJob]:
        """Those that keep it from completing; a batch shrugs at what somebody cancelled."""
        bad = BAD if self._strict(job) else BAD - {State.CANCELLED}
        return [child for child in self.children(job) if child.state in bad]

    def _barred(self, job: ModelJob) -> bool:
        """In a serial tree: by one that runs, or by an earlier one that is open and does not itself wait."""
        above = list(self.above(job))
        if not above or not self.types[above[-1].type].serial:
            return False
        line = [j for j in self.below(above[-1]) if j.open and j.state is not State.WAITING and j is not job]
        return any(j.lease or self._lineage(j) < self._lineage(job) for j in line)

    def _lineage(self, job: ModelJob) -> list[int]:
        return [*reversed([j.id for j in self.above(job)]), job.id]

    def _wished(self, job: ModelJob) -> bool:
        return job.cancel_requested or job.tree_wish or any(j.tree_wish for j in self.above(job))

    # --- rules: operators -----------------------------------------------------------------

    def _whole(self, verb: Callable[[], T]) -> T:
        """A verb happens wholly or not at all."""
        before = copy.deepcopy(self.jobs)
        try:
            done = verb()
            self._drain()
        except Refusal:
            self.jobs = before
            self._parents, self._needers = [], []
            raise
        return done

    def _cancel(self, job: ModelJob, tree: bool) -> None:
        if not job.open or (self._children_open(job) and not tree):
            raise Refusal
        # To cancel it alone, too, takes nothing back of the wish that lies on its tree.
        job.cancel_requested, job.tree_wish = job.cancel_requested or not tree, job.tree_wish or tree
        for j in [*reversed(self.below(job) if tree else []), job]:
            if not j.open or j.lease is not None:
                continue
            if self._children_open(j):
                j.wake_us = None
                self._wait(j, "children")  # and for nothing else
            else:
                self._settle(j, State.CANCELLED)
                self._drain()

    def _retry(self, job_id: int, stage: str | None) -> None:
        job = self.jobs[job_id]
        if job.state not in BAD or self._wished(job):
            raise Refusal
        if stage is not None:
            self._supersede(job, stage, refuse_beyond=self._next(job))
        self._open(job)
        self._drain()
        older_bad = self._strict(job) and any(c.spawn_stage != job.stage for c in self._bad_children(job))
        waits = job.state is State.WAITING and older_bad
        if stage is None and (waits or self._failed_children(job_id)):
            raise NeedsChildren
        if job.state in BAD:
            raise Refusal  # it would fail again at once

    def _rerun(self, job: ModelJob, stage: str | None) -> None:
        if job.open or job.state is State.DELETED or self._wished(job):
            raise Refusal
        self._supersede(job, stage or self.types[job.type].stages[0].name)
        self._open(job)
        self._drain()
        if job.state in BAD:
            raise Refusal  # it would fail again at once

    def _supersede(self, job: ModelJob, stage: str, refuse_beyond: str | None = None) -> None:
        names = [s.name for s in self.types[job.type].stages]
        behind = names[names.index(stage) :]
        if refuse_beyond is not None and refuse_beyond not in behind:
            raise Refusal
        self._undo(job, set(behind))
        job.finished = False

    def _undo(self, job: ModelJob, stages: set[str]) -> None:
        """These stages are to run again; what they spawned counts no more."""
        job.passed -= stages
        for child in self.children(job):
            if child.spawn_stage in stages:
                child.superseded, child.lingers = True, child.open

    def _open(self, job: ModelJob) -> None:
        if job.key is not None and self.key_owner(job.key) not in (None, job):
            raise Refusal
        following = self._next(job)
        if following is None:
            if not self._again(job) and not self._bad_children(job):
                raise Refusal
            following = self._next(job)
        job.stage, job.attempts, job.interruptions, job.at_us, job.because = following, 0, 0, None, None
        job.state = State.WAITING
        self._regrow_above(job)
        if following is None:
            self._proceed(job)
        else:
            self._place(job)
        self._regrow_needers(job)

    def _again(self, job: ModelJob, child: ModelJob | None = None) -> bool:
        """Stages marked so run once more; when a child is opened, only those behind the stage that spawned it."""
        names = [s.name for s in self.types[job.type].stages]
        first = 0 if child is None or child.spawn_stage is None else names.index(child.spawn_stage) + 1
        again = {s.name for s in self.types[job.type].stages[first:] if s.again}
        if not job.finished:
            self._undo(job, again & job.passed)
        return bool(again)

    def _regrow_above(self, job: ModelJob) -> None:
        if job.parent is None or job.superseded:
            return
        parent = self.jobs[job.parent]
        if parent.state is State.CANCELLED:
            raise Refusal
        if parent.lease is not None or parent.state is State.DELETED:
            return
        by_itself = parent.state is State.FAILED and parent.because is None
        if parent.open or parent.state is State.ORPHANED or by_itself:
            self._again(parent, job)
            self._takes_its_next_stage(parent)
            if parent.state is State.PENDING:
                self._place(parent)
            return
        self._wait_again(parent, "children", job)
        self._regrow_needers(parent)
        self._regrow_above(parent)

    def _regrow_needers(self, need: ModelJob) -> None:
        for job in list(self.jobs.values()):
            if need.id in job.needs and job.state is State.PENDING and job.lease is None:
                self._place(job)
            mine = need.id in job.needs and job.state is State.FAILED and job.because == "needs"
            if mine and not self._cancelled_above(job):
                self._wait_again(job, "needs")
                self._regrow_above(job)
                self._regrow_needers(job)

    def _cancelled_above(self, job: ModelJob) -> bool:
        """Whether what it would open above it is cancelled."""
        if job.parent is None or job.superseded:
            return False
        parent = self.jobs[job.parent]
        if parent.state is State.CANCELLED:
            return True
        if parent.open or parent.state in (State.ORPHANED, State.DELETED):
            return False
        return (parent.state is not State.FAILED or parent.because is not None) and self._cancelled_above(
            parent
        )

    def _wait_again(self, job: ModelJob, for_what: str, child: ModelJob | None = None) -> None:
        self._again(job, child)
        job.stage, job.attempts, job.because = self._next(job), 0, None
        self._wait(job, for_what)

    def _bury(self, job: ModelJob) -> None:
        held, was = job.state is State.HELD, job.state
        job.state, job.waits, job.keeps = State.DELETED, None, False
        if was is State.COMPLETED:
            for entry in self.jobs.values():
                for needer in (entry, *entry.unborn, *entry.unsent):
                    needer.needs.discard(job.id)
        if job.parent is not None:
            self._parents.append(job.parent)
        if held:
            self._needers.append(job.id)
