"""External stages: claimed, kept alive and settled by an external worker that is no node.

The caller's rights name the job types whose external stages may be claimed (``Rights.external``); the role
does not matter. An external worker belongs to the account that let it join, and only that account may act for
it. Fences tell which of its leases it has received (see ``spinney.model.external``), so that neither an
answer that got lost nor a worker that died and joined again leaves work behind:

* a lease that it has never received goes back with its next claim;
* a lease that it has received and no longer names goes back with its next heartbeat;
* when it is silent for longer than its lease period, the leader or a server takes everything back.
"""

from collections.abc import Iterable, Mapping, Sequence

from spinney.features.external import claim_rights
from spinney.features.external.settlements import error_text, message_text, result_text, without_secrets
from spinney.model.access import Role
from spinney.model.errors import NoSuchJob, Refused, StaleFence
from spinney.model.external import (
    CLAIM_MAX,
    ClaimedWork,
    ExternalLease,
    ExternalWorker,
    ExternalWorkerGone,
    HeartbeatReply,
    Settlement,
    WorkItem,
    node_name,
    parse_key,
    require_sane,
)
from spinney.model.jobs import ClaimRequest, LaneRequest, Lease, Record, SlotRequest
from spinney.model.outcomes import Outcome
from spinney.model.types import Isolation, StageSpec, TypeSpec
from spinney.model.values import durations
from spinney.model.values.durations import Duration
from spinney.model.values.names import EXTERNAL_PREFIX
from spinney.model.values.texts import without_nul
from spinney.model.values.unreadable import Unreadable, json_object, of_job
from spinney.service.redaction import Redactors
from spinney.service.service import Service
from spinney.store.external_timeouts import ended_record, overdue_of
from spinney.version import VERSION


class External(Service):
    """The operations of an external worker, in the name of the account that let it join.

    Each method but ``join`` and ``all`` takes the worker's key. It raises NoSuchExternalWorker when the key is
    malformed or names a worker of another account, Forbidden when the account may not claim the worker's job types any
    more, and ExternalWorkerGone when the worker's leases have been taken back. Methods about one attempt also take its
    job and fence, and raise StaleFence when the attempt is not (or no longer) leased to this worker.
    """

    # --- joining and leaving --------------------------------------------------------------

    def join(
        self, name: str, lanes: Iterable[tuple[str, str]], *, slots: int = 1, lease_s: Duration = 60.0
    ) -> ExternalWorker:
        """Let an external worker join that runs these (job type, stage) pairs, up to ``slots`` attempts at once, and
        return it with its key.

        A worker of the same name and owner that has joined before is taken over: what it had begun counts as
        interrupted and goes back at once. ``lease_s``: when the worker sends nothing for so many seconds, its leases
        are taken back.

        Raises UsageError, BadName, UnknownType, Forbidden (a job type that may not be claimed), Refused (an external
        worker of somebody else has this name; the folders of the store are local).
        """
        pairs = tuple(dict.fromkeys((type_, stage) for type_, stage in lanes))
        node_name(name)
        lease_s = durations.seconds(lease_s, "the lease")
        require_sane(slots, lease_s, pairs)
        claim_rights.require_claims(self, pairs)
        worker = ExternalWorker(
            id=0,
            name=name,
            owner=self.by,
            join_count=0,
            slots=slots,
            lease_s=lease_s,
            lanes=pairs,
            serves=claim_rights.claimable_queues(self),
        )
        previous = self.store.external_workers.named(name)
        if previous is not None:
            if previous.owner != self.by and previous.state != "left":
                raise Refused(
                    f"another user has an external worker called {name}; give this one another name"
                )
            # One that is refused takes nothing from the one that is there.
            self.store.external_workers.require_stages(worker)
            self.store.recover(previous.id, None, now_us=self.clock())
        joined = self.store.external_workers.join(worker, self.actor(), version=VERSION, now_us=self.clock())
        if previous is not None:
            self.wake_nodes()
        return joined

    def leave(self, key: str) -> Sequence[int]:
        """Let the external worker leave, and return the jobs that it still had. They go back without using up an
        attempt; those of types that must not run twice count as lost. A repeated call is harmless."""
        external_worker = self._find(key)
        if external_worker.state != "left":
            self.store.external_workers.left(external_worker, self.actor(), now_us=self.clock())
        back = self.store.recover(external_worker.id, {}, now_us=self.clock())
        self.wake_nodes()
        return back

    def all(self) -> Sequence[ExternalWorker]:
        """Return the external workers: all for an operator without limits, else those of the caller."""
        external_workers = self.store.external_workers.all()
        if self.rights.everywhere and self.rights.permits(Role.OPERATOR):
            return external_workers
        return [external_worker for external_worker in external_workers if external_worker.owner == self.by]

    # --- leases ---------------------------------------------------------------------------

    def claim(self, key: str, *, seen: int, limit: int = 1) -> ClaimedWork:
        """Return up to ``limit`` attempts (at most ``CLAIM_MAX``) for free slots, chosen by the rules by
        which nodes get theirs.

        ``seen``: the highest fence that the worker has received so far, 0 at first; ``ClaimedWork.seen`` is
        the next one. A worker makes one claim at a time: leases of an earlier claim above ``seen``, which it
        has therefore not received, go back with this one. Claiming also counts as a heartbeat. Raises
        Forbidden when the account has been limited since the worker joined.
        """
        external_worker = self._beating(key)
        claim_rights.require_same_limits(self, external_worker)
        leases = self.store.external_workers.leases(external_worker.id)
        back = [_returned(lease) for lease in leases if lease.fence > seen]
        taken = {lease.slot for lease in leases if lease.fence <= seen}
        free = [slot for slot in range(external_worker.slots) if slot not in taken]
        most = max(0, min(limit, CLAIM_MAX))
        types = self.store.types()
        want = ClaimRequest(
            node_id=external_worker.id,
            slots=[SlotRequest(slot, 1, 0.0, True) for slot in free[:most]],
            lanes={
                lane: _want(stage)
                for lane in external_worker.lanes
                if (stage := self._stage(types, *lane)) is not None
            },
        )
        answer = self.store.flush_and_claim(back, want, now_us=self.clock())
        if answer.leases:
            # Durable before the external worker hears of it: it may be elsewhere, and outlive a loss of power here.
            self.store.started([lease.fence for lease in answer.leases], now_us=self.clock())
        if back or answer.work_for_others:
            self.wake_nodes()
        return ClaimedWork(
            work=self._works(answer.leases, types),
            seen=max([seen, *(lease.fence for lease in answer.leases)]),
        )

    def heartbeat(self, key: str, *, seen: int, fences: Iterable[int]) -> HeartbeatReply:
        """Renew the leases of the external worker, and return which attempts it still has.

        ``fences`` are the attempts on which it works; a lease up to ``seen`` that is not named goes back. The
        reply says which of the named ones to cancel, and which are lost: taken back, over their time limit,
        or settled.
        """
        external_worker, named = self._beating(key), set(fences)
        leases = self.store.external_workers.leases(external_worker.id)
        records = overdue_of(self.store, external_worker, leases, now_us=self.clock())
        over = {record.fence for record in records}
        records += self._left_out([g for g in leases if g.fence <= seen and g.fence not in named | over])
        if records:
            self.store.flush_and_claim(records, None, now_us=self.clock())
            self.wake_nodes()
        yours = [lease for lease in leases if lease.fence in named - over]
        return HeartbeatReply(
            yours=tuple(lease.fence for lease in yours),
            cancel=tuple(lease.fence for lease in yours if lease.cancel_requested_us is not None),
            lost=tuple(sorted(named - {lease.fence for lease in yours})),
            unheard=sum(lease.fence > seen and lease.fence not in named for lease in leases),
        )

    def settle(self, key: str, job_id: int, fence: int, settlement: Settlement) -> None:
        """Record the outcome of an attempt. When the answer was lost, the same settlement may be sent again.

        Secret parameters are redacted in its texts. Raises BadParameters (a result that is too large),
        Refused (``cancelled``, where nobody has requested that).
        """
        external_worker = self._find(key)
        result = result_text(settlement)
        lease = self._lease(external_worker, job_id, fence)
        if lease is None:
            self._require_same_outcome(external_worker, job_id, fence, settlement)
            return
        if settlement.outcome is Outcome.CANCELLED and lease.cancel_requested_us is None:
            raise Refused(
                f"nobody has requested that job {job_id} be cancelled; settle it as error, hold or returned, or cancel "
                f"the job first"
            )
        settlement = without_secrets(settlement, Redactors(self.store.types()).of(self.store.job(job_id)))
        began_us = 0 if settlement.outcome is Outcome.RETURNED else lease.running_us
        record = ended_record(
            lease, settlement.outcome, without_nul(message_text(settlement)), now_us=self.clock()
        )._replace(
            started_us=began_us,
            result=result,
            error=error_text(settlement),
            retryable=settlement.retryable,
            code=settlement.code,
            delay_s=settlement.delay_s,
            lane=settlement.lane,
            lock=settlement.lock,
        )
        if self.store.flush_and_claim([record], None, now_us=self.clock()).refused:
            # The same settlement may have been sent twice, and the other request was faster.
            self._require_same_outcome(external_worker, job_id, fence, settlement)
            return
        self.wake_nodes()

    # --- calls of a running attempt -------------------------------------------------------

    def attempt(self, key: str, job_id: int, fence: int) -> ExternalLease:
        """Return the lease of an attempt, for callers that write something beside the store, such as output."""
        lease = self._lease(self._find(key), job_id, fence)
        if lease is None:
            raise StaleFence(job_id, fence)
        return lease

    # --- ownership ------------------------------------------------------------------------

    def _find(self, key: str) -> ExternalWorker:
        """Return the caller's external worker with this key, also one that has left. Raises
        NoSuchExternalWorker, Forbidden, and ExternalWorkerGone when another has joined under the name
        since."""
        external_worker = self.store.external_workers.find(*parse_key(key), self.by)
        claim_rights.require_claims(self, external_worker.lanes)
        return external_worker

    def _beating(self, key: str) -> ExternalWorker:
        """Return the external worker, after a heartbeat in its name. Raises as ``_find`` does, and
        ExternalWorkerGone when it has left or was taken back."""
        external_worker = self._find(key)
        external_worker.require_joined()
        if not self.store.beat(external_worker.id, urgent=False, now_us=self.clock()):
            raise ExternalWorkerGone(
                f"external worker {external_worker.name} has just been taken back; stop what it does and "
                "let it join again"
            )
        return external_worker

    def _lease(self, external_worker: ExternalWorker, job_id: int, fence: int) -> ExternalLease | None:
        """Return the lease of an attempt of this worker; None: it has none (any more)."""
        leases = self.store.external_workers.leases(external_worker.id)
        return next((lease for lease in leases if (lease.job_id, lease.fence) == (job_id, fence)), None)

    def _require_same_outcome(
        self, external_worker: ExternalWorker, job_id: int, fence: int, settlement: Settlement
    ) -> None:
        """Raise StaleFence unless this attempt has been recorded with the same outcome for this external worker, so
        that the request is a repetition. A returned attempt has not begun, and leaves no record."""
        try:
            attempts = self.store.attempts(job_id)
        except NoSuchJob:
            raise StaleFence(job_id, fence) from None
        if settlement.outcome is Outcome.RETURNED:
            was_leased = fence <= self.store.external_workers.last_fence()
            same = was_leased and all(a.fence != fence for a in attempts)
        else:
            record = (fence, settlement.outcome, EXTERNAL_PREFIX + external_worker.name)
            same = any((a.fence, a.outcome, a.node) == record for a in attempts)
        if not same:
            raise StaleFence(job_id, fence)

    # --- claimed work ---------------------------------------------------------------------

    def _stage(self, types: Mapping[str, TypeSpec], type_: str, stage: str) -> StageSpec | None:
        """Return the external stage; None: the application has no such stage any more."""
        spec = types[type_].stage(stage) if type_ in types else None
        return None if spec is None or spec.isolation is not Isolation.EXTERNAL else spec

    def _works(self, leases: Sequence[Lease], types: Mapping[str, TypeSpec]) -> tuple[WorkItem, ...]:
        """Return the work for these leases, in their order. A job one of whose values cannot be read fails
        instead."""
        works = [self._work(lease, types) for lease in leases]
        wrong = [
            Record(
                lease.job_id,
                lease.fence,
                Outcome.ERROR,
                self.clock(),
                self.clock(),
                message=str(damage),
                retryable=False,
            )
            for lease, work in zip(leases, works, strict=True)
            if (damage := _damage(work)) is not None
        ]
        if wrong:
            self.store.flush_and_claim(wrong, None, now_us=self.clock())
        return tuple(work for work in works if _damage(work) is None)

    def _work(self, lease: Lease, types: Mapping[str, TypeSpec]) -> WorkItem:
        """Return the work for one lease: parameters, data and results of earlier stages, as the store has
        them now."""
        stage = types[lease.type].stage(lease.stage)
        return WorkItem(
            job_id=lease.job_id,
            fence=lease.fence,
            type=lease.type,
            stage=lease.stage,
            attempt=lease.attempt,
            params=json_object(lease.params, of_job(lease.job_id)),
            data=self.store.get_data(lease.job_id),
            results=self.store.results(lease.job_id),
            parent_id=lease.parent_id,
            root_id=lease.root_id,
            timeout_s=None if stage is None else stage.timeout_s,
            grace_s=0.0 if stage is None else stage.grace_s,
            trace=lease.trace,
        )

    def _left_out(self, leases: Sequence[ExternalLease]) -> list[Record]:
        """Return records for attempts that the worker had and no longer works on: they go back as when a node
        hands them back, or count as lost where their type forbids a second run."""
        types, now_us = (self.store.types() if leases else {}), self.clock()
        once = {
            lease.type for lease in leases if lease.type in types and types[lease.type].on_lost == "orphan"
        }
        return [
            ended_record(lease, Outcome.LOST, "its external worker no longer works on it", now_us=now_us)
            if lease.type in once
            else _returned(lease)
            for lease in leases
        ]


def _returned(lease: ExternalLease) -> Record:
    """Return the record of an attempt that goes back without having begun."""
    return Record(lease.job_id, lease.fence, Outcome.RETURNED, 0, 0)


def _damage(work: WorkItem) -> Unreadable | None:
    """Return the first value of a job that cannot be read; None: all can be."""
    values = (work.params, *work.data.values(), *work.results.values())
    return next((value for value in values if isinstance(value, Unreadable)), None)


def _want(stage: StageSpec) -> LaneRequest:
    """Return what a claim must know of a stage: the locks that it declares."""
    return LaneRequest(locks=tuple((lock.template, lock.until) for lock in stage.locks))
