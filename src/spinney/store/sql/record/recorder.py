"""Record the outcomes of attempts: first the facts, then the state changes that follow, in the transaction of the
flush.

In most records a stage of a plain job has passed. Those of the last stage are written by set statements
(``_complete_plain``), and those of earlier ones, too (``plain_advances``); the others one by one (``_record``), in the
order of the flush. The ways differ in speed, and leave the same rows; ``plain_advances`` names
the exceptions.

A record takes a job from its lease to its next state, in this order: the lease is deleted and the locks of
the attempt are released; the attempt enters the history; jobs that it spawned are published, or dropped when
it did not pass; then the job's own state is decided. A crash before the commit leaves the lease, and recovery
sends the job back."""

from collections.abc import Mapping, Sequence

import orjson

from spinney.define.params.redaction import Redactor, has_secrets, redaction_schema
from spinney.model.attempts import remarks
from spinney.model.attempts.failures import Cause, cause
from spinney.model.attempts.progress import again_stages, next_stage
from spinney.model.jobs import ClaimRequest, Lease, Record
from spinney.model.outcomes import PASSED, WITHOUT_RUN, Outcome
from spinney.model.states import FAILED_OR_ORPHANED, SETTLED, State
from spinney.model.types import TypeSpec
from spinney.model.values.unreadable import json_object, of_job
from spinney.scheduling.retry_decision import RetryDecision, decide
from spinney.store.sql.connection.database import RowChange, grouped, list_text
from spinney.store.sql.connection.postgres_dialect import each_row
from spinney.store.sql.record import circuit_breaker, next_stages, plain_advances, special_jobs, throughput
from spinney.store.sql.record.plain_completions import Ended, HeldLease, LeaseRow, complete
from spinney.store.sql.registry import hold_coverage, job_rows, nodes
from spinney.store.sql.registry.job_rows import Row
from spinney.store.sql.registry.registry import Lane
from spinney.store.sql.registry.webhook_events import SettledJob, tell
from spinney.store.sql.submit import staging
from spinney.store.sql.transitions import failures, placement, ready_moves, regrowth
from spinney.store.sql.transitions.cascades import Cascade

# In characters; a longer message of an attempt is cut.
MESSAGE_MAX = 2_000
_LEASE = ("job_id", "fence", "node_id", "slot", "lane", "attempt", "parent_id", "plain")
_LEASES = "from json_each(?) j cross join leases where job_id = j.value"
_LEASES_POSTGRESQL = f"from json_each(?) j cross join {each_row('leases', 'job_id = j.value')}"
_Assignments = dict[str, int | None]
"""Assignments to columns of ``jobs``, and their arguments."""
_FROM_ZERO: _Assignments = {"attempts = ?": 0, "interruptions = ?": 0}
_COMPLETED_CHILD = RowChange("children_left", "parent_id = ? and bad = 0 and child_id = ?")


class Recorder:
    """The records of one flush, and what follows from them, made for one transaction."""

    def __init__(self, cascade: Cascade, draw: float) -> None:
        self.tx, self.registry, self.now_us = cascade.tx, cascade.registry, cascade.now_us
        self.cascade, self.draw = cascade, draw
        self.refused: list[Record] = []
        self.kept_leases: list[Lease] = []
        self._may_stay: list[tuple[Row, str, HeldLease, bool]] = []
        """Jobs that the node would continue in their slots, with their next stages, and ``checked`` of
        ``next_stages.keep``."""
        self._special: set[int] = set()
        """The jobs of this flush with rows in other tables (``special_jobs``). Others have no locks and no cancel
        requests, and have spawned nothing that is hidden."""
        self._causes: dict[str, Cause] = {}
        """The causes of jobs that this flush fails, by fingerprint."""

    def run(self, records: Sequence[Record], claim_request: ClaimRequest | None) -> None:
        """Write all records, and drain the cascade. ``refused`` has afterwards those whose lease is gone, of which
        nothing was written; ``kept_leases`` those of jobs that continue in their slot. ``claim_request``: that of the
        same node; without one no job keeps its slot.

        Records and leases are indexed here (of a record 0 job, 1 fence, 2 outcome, 3 start, …), because there
        are thousands a second, and a look-up by name costs more."""
        if not records:
            return
        held = self._leases(records)
        self._special, any_needs = special_jobs.among(self.tx, records)
        lanes = [self.registry.lanes[lane_id] for lane_id in {lease[4] for lease in held.values()}]
        last = {lane.id for lane in lanes if self._last(lane)}
        inner = {lane.id for lane in lanes if plain_advances.is_inner(self.registry, lane)}
        plain, advancing, others, returned = [], [], [], []
        ok, back = Outcome.OK, Outcome.RETURNED
        for record in records:
            lease = held.pop(record[1], None)
            if lease is None or lease[0] != record[0]:
                self.refused.append(record)
            elif not lease[7] or record[0] in self._special:
                others.append((record, HeldLease(*lease)))
            elif record[2] is ok and lease[4] in last and self._silent(record):
                plain.append((record, lease))
            elif record[2] is ok and lease[4] in inner and self._silent(record):
                advancing.append((record, lease))
            elif record[2] is back and not record[3]:
                returned.append((record, lease))
            else:
                others.append((record, HeldLease(*lease)))
        if plain:
            self._complete_plain(plain)
        if returned:
            self._return_plain(returned)
        remaining: list[Ended] = []
        if advancing:
            keep = claim_request is not None
            remaining, staying = plain_advances.advance(
                self.cascade, advancing, keep=keep, any_needs=any_needs
            )
            self._may_stay = [(row, stage, HeldLease(*lease), True) for row, stage, lease in staying]
        one_by_one = {r.fence: h for r, h in others} | {r.fence: HeldLease(*h) for r, h in remaining}
        watched = {lane.id for lane in lanes if circuit_breaker.watches(self.registry, lane.type, lane.stage)}
        passed = {r[1]: h[4] for r, h in plain + advancing if h[4] in watched} if watched else {}
        if one_by_one or passed:
            self._in_order(records, one_by_one, passed, claim_request)
        if self._may_stay and claim_request is not None:
            self._keep_slots(claim_request)
        throughput.note(self.tx, plain + advancing, others, self.now_us)
        if self._causes:
            failures.remember(self.tx, self._causes.values(), self.now_us)
        self.cascade.drain()

    def _keep_slots(self, claim_request: ClaimRequest) -> None:
        """Continue jobs in their slots with their next stages, and let those for which a rule forbids that go on as
        others do. Where a limit or a lock leaves room for some of them, it is for the most urgent ones."""
        self.cascade.drain_jobs()  # what becomes ready by the records of this flush may be more urgent
        claimants = {
            node_id: nodes.claimant(self.tx, node_id)
            for node_id in {lease.node_id for _, _, lease, _ in self._may_stay}
        }
        for row, stage, lease, checked in sorted(self._may_stay, key=lambda staying: staying[0].priority):
            claimant = claimants[lease.node_id]
            kept = next_stages.keep(self.cascade, row, stage, lease, claim_request, claimant, checked=checked)
            if kept is not None:
                self.kept_leases.append(kept)
            else:
                self.cascade.proceed(row, leased=True)

    def _leases(self, records: Sequence[Record]) -> dict[int, LeaseRow]:
        """Return the leases of these jobs, by fence. That of another attempt of a job has another fence, so
        that the record finds none."""
        ids = list_text([r[0] for r in records])
        leases = _LEASES_POSTGRESQL if self.tx.postgresql else _LEASES
        columns = self.tx.columns(_LEASE, leases, (ids,))
        return dict(zip(columns[1], zip(*columns, strict=True), strict=True))

    @staticmethod
    def _silent(record: Record) -> bool:
        """Return whether the record has no message, code or remark, so that the job's row suffices."""
        return record[6] is None and record[9] is None and record[14] is None

    def _last(self, lane: Lane) -> bool:
        """Return whether an attempt that passes in this lane completes its job, and nothing else follows.
        After a probe the lane has to be woken, too.

        The attempts of the job are not read, so a stage that a newer version of the type has inserted before this
        one is not run any more by a job that is at this one already. It is run if the record goes the other way
        (it has a message, say), and then this stage is not run again."""
        spec = self.registry.types.get(lane.type)
        return spec is not None and spec.stages[-1].name == lane.stage and not lane.probing

    # --- many records at once -----------------------------------------------------------------------------

    def _complete_plain(self, records: list[Ended]) -> None:
        """Complete jobs whose last stage has simply passed: one row each is written."""
        tx, now = self.tx, self.now_us
        complete(tx, records, now)
        tx.delete_listed("leases", "job_id", list_text([r[0] for r, _ in records]))
        children = [(h[6], r[0]) for r, h in records if h[6] is not None]
        if children:
            tx.change(_COMPLETED_CHILD, children)
            for parent_id in {p for p, _ in children}:
                self.cascade.parent_changed(parent_id)
        if self.registry.subscriptions:
            lanes_ = self.registry.lanes
            settled = [
                SettledJob(r[0], lanes_[h[4]].type, lanes_[h[4]].queue, h[6] is None) for r, h in records
            ]
            tell(tx, self.registry.subscriptions, settled, State.COMPLETED, now)

    def _return_plain(self, records: list[Ended]) -> None:
        """Return jobs that had not begun to ``ready``, uncounted. Jobs that a hold covers by now become held."""
        held = hold_coverage.covered(self.tx, self.registry.holds, [r[0] for r, _ in records])
        groups = grouped((h[4], r[0]) for r, h in records if r[0] not in held)
        self.registry.filled.update(groups)
        for lane_id, ids in groups.items():
            placement.enter(self.tx, self.registry, lane_id, ids)
        self.tx.delete_listed("leases", "job_id", list_text([r[0] for r, _ in records]))
        ready_moves.to_held(self.cascade, held, leased=True)

    # --- one by one -----------------------------------------------------------------------

    def _in_order(
        self,
        records: Sequence[Record],
        leases: dict[int, HeldLease],
        passed: Mapping[int, int],
        claim_request: ClaimRequest | None,
    ) -> None:
        """Write the records of these leases, in the order of the flush, and end the streaks of stages where others have
        passed between them. ``passed``: the lanes of those others, by fence."""
        ended: set[int] = set()
        for record in records:
            lease = leases.pop(record.fence, None)
            if lease is not None:
                self._end_streaks(ended)
                self._record(record, lease, claim_request)
            elif record.fence in passed:
                ended.add(passed[record.fence])
        self._end_streaks(ended)

    def _end_streaks(self, lane_ids: set[int]) -> None:
        """End the streaks of the stages of these lanes, and forget the lanes."""
        lanes = [self.registry.lanes[lane_id] for lane_id in lane_ids]
        stages = self.registry.streaks.intersection([(lane.type, lane.stage) for lane in lanes])
        if stages:
            circuit_breaker.passed(self.tx, stages)
        lane_ids.clear()

    def _record(self, record: Record, lease: HeldLease, claim_request: ClaimRequest | None) -> None:
        """Write one record of an attempt that still has its lease. One that never began and was handed back,
        lost or killed with its worker leaves no row in the history."""
        tx, c = self.tx, self.cascade
        special = record.job_id in self._special
        tx.run("delete from leases where job_id = ?", (record.job_id,))
        if special:
            c.free_locks(record.job_id, record.fence)
        row = job_rows.existing(tx, record.job_id)
        if row is None:
            staging.disown(tx, record.fence)
            self.refused.append(record)
            return
        lane = self.registry.lanes[lease.lane]
        record = self._redacted(record, row.type)
        if row.parent_id is not None:
            c.line_moved(row.root_id)
        began = record.started_us > 0
        if began or record.outcome not in WITHOUT_RUN:
            self._history(record, lease, lane)
        start: _Assignments = {}
        if began:
            start = {
                "started_us = coalesce(started_us, ?)": record.started_us,
                "node_id = ?": lease.node_id,
            }
            row = row._replace(node_id=lease.node_id)
        if record.outcome in PASSED:
            if (lane.type, lane.stage) in self.registry.streaks:
                circuit_breaker.passed(tx, [(lane.type, lane.stage)])
            cancel_reason = self._cancel_reason(row)
            if cancel_reason is not None and staging.spawns_children(tx, record.fence):
                # Its children would have to run before it can complete, and are not created any more. So the stage has
                # not passed: a retry runs it again, and spawns them and submits its jobs again.
                staging.disown(tx, record.fence)
                self._supersede(row, record.fence)
                self._change(row, start)
                c.settle(row, State.CANCELLED, reason=cancel_reason, leased=True)
                return
            warned = int(record.outcome is Outcome.WARNING)
            self._change(
                row, {**start, "code = ?": record.code, "warnings = warnings + ?": warned, **_FROM_ZERO}
            )
            row = row._replace(attempts=0, interruptions=0)
            if special:
                staging.publish_spawned(tx, self.registry, record.fence, self.now_us)
            self._wake_lane(lane)
            self._passed(row, record, lease, claim_request)
            return
        if special:
            staging.disown(tx, record.fence)
        self._not_passed(row, record, lease, lane, start)

    def _cancel_reason(self, row: Row) -> str | None:
        return placement.cancel_reason(self.tx, row) if row.id in self._special else None

    def _change(self, row: Row, assignments: _Assignments) -> None:
        """Write what an attempt leaves in the row of its job, in one statement."""
        if assignments:
            self.tx.run(
                f"update jobs set {', '.join(assignments)} where id = ?", (*assignments.values(), row.id)
            )

    def _redacted(self, record: Record, type_: str) -> Record:
        """Redact the job's secrets in a record, because its texts go to places where they are not redacted: causes of
        failures, a breaker's hold, the audit, and filters by message."""
        spec = self.registry.types.get(type_)
        if (not record.message and not record.error) or spec is None:
            return record
        schema = redaction_schema(spec)
        if not has_secrets(schema):
            return record
        params = self.tx.value("select params from jobs where id = ?", (record.job_id,))
        redactor = Redactor.for_params(schema, json_object(params, of_job(record.job_id)))
        error = (
            None if not record.error else orjson.dumps(redactor.value(orjson.loads(record.error))).decode()
        )
        return record._replace(
            message=None if record.message is None else redactor.text(record.message), error=error
        )

    def _history(self, record: Record, lease: HeldLease, lane: Lane) -> None:
        message = remarks.behind(record.message[:MESSAGE_MAX] if record.message else None, record.remark)
        result = None if record.outcome is Outcome.NOT_APPLICABLE else record.result
        self.tx.run(
            "insert into attempts (job_id, fence, stage, attempt, outcome, node_id, started_us, ended_us, code, "
            "message, error, result) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                record.job_id,
                record.fence,
                lane.stage,
                lease.attempt,
                record.outcome,
                lease.node_id,
                record.started_us,
                record.ended_us,
                record.code,
                message,
                record.error,
                result,
            ),
        )

    # --- passed ---------------------------------------------------------------------------

    def _passed(self, row: Row, record: Record, lease: HeldLease, claim_request: ClaimRequest | None) -> None:
        """Take a job on whose stage has passed: it waits for open children of its stages, goes to its next
        stage (in the same slot, if the node wants that and the rules allow it), or settles."""
        tx, c = self.tx, self.cascade
        spec = self.registry.types.get(row.type)
        stage = row.stage
        if spec is not None:
            passed = job_rows.passed_stages(tx, row.id, spec)
            if record.outcome is not Outcome.FINISH and not passed.isdisjoint(again_stages(spec)):
                self._supersede_early_reports(row, spec, lease)
                passed = job_rows.passed_stages(tx, row.id, spec)
            stage = next_stage(spec, passed)
        if placement.open_children(tx, row.id):
            cancel_reason = self._cancel_reason(row)
            if stage is not None:
                tx.run("update jobs set stage = ? where id = ?", (stage, row.id))
                row = row._replace(stage=stage)
            if cancel_reason is None or stage is None:
                c.wait_for_children(row, leased=True)
                return
            c.settle(row, State.CANCELLED, reason=cancel_reason, leased=True)
            return
        if (
            stage is not None
            and record.keep
            and claim_request is not None
            and not placement.is_serial(tx, self.registry, row)
        ):
            self._may_stay.append((row, stage, lease, False))
            return
        c.go_to(row, stage, leased=True)

    def _supersede_early_reports(self, row: Row, spec: TypeSpec, lease: HeldLease) -> None:
        """Supersede stages marked ``again`` that passed before a child of an earlier stage was opened again, or
        meanwhile, because they have reported an outdated state: they run once more when that child has settled, and
        spawn their children anew. This does not apply after a ``finish``, after which no more stages run.

        A child that has settled again by now is recognized by an attempt of its own since; one that was opened and
        settled without any (it was cancelled, say) makes no report outdated."""
        spawn_stages = placement.older_stages_with_open(self.tx, row)
        if not lease.plain:  # opening a child again makes the lease of its parent not plain
            spawn_stages += placement.older_stages_run_since(self.tx, row, lease.fence)
        for spawn_stage in dict.fromkeys(spawn_stages):
            regrowth.supersede_again(self.tx, row, spec, spawn_stage)

    def _supersede(self, row: Row, fence: int) -> None:
        self.tx.run("update attempts set superseded = 1 where job_id = ? and fence = ?", (row.id, fence))

    # --- not passed -----------------------------------------------------------------------

    def _not_passed(
        self, row: Row, record: Record, lease: HeldLease, lane: Lane, start: _Assignments
    ) -> None:
        """Decide what follows an attempt that did not pass (``scheduling.retry_decision``), count it, and do
        that. A cancel request takes precedence. A job whose type or stage is not registered any more fails,
        except when it was only handed back. ``start``: what the row of the job gets of the start of the attempt, if it
        has begun."""
        tx, c, began = self.tx, self.cascade, bool(start)
        cancel_reason = self._cancel_reason(row)
        if cancel_reason is not None:
            self._change(row, start)
            c.settle(row, State.CANCELLED, reason=cancel_reason, leased=True)
            return
        spec = self.registry.types.get(row.type)
        stage = spec.stage(lane.stage) if spec else None
        if spec is None or stage is None:
            decided = RetryDecision(
                state=State.PENDING if record.outcome is Outcome.RETURNED else State.FAILED
            )
        else:
            decided = decide(
                spec,
                stage,
                record.outcome,
                attempt=lease.attempt,
                interruptions=row.interruptions,
                started=began,
                retryable=record.retryable,
                defer_s=record.delay_s,
                draw=self.draw,
            )
        counted: _Assignments = {}
        if decided.attempt_used:
            counted["attempts = attempts + ?"] = 1
        if decided.interruption:
            counted["interruptions = interruptions + ?"] = 1
        self._change(row, {**start, **counted})
        if record.outcome is Outcome.DEFER and record.lane:
            self._sleep_lane(lane, decided.delay_s)
        elif began:
            self._wake_lane(lane)
        why = self._why(row, record, lane, decided)
        if why is not None and spec is not None and decided.attempt_used:
            circuit_breaker.failed(tx, self.registry, spec, row.id, why, self.now_us)
        if spec is not None and not lease.plain and self._goes_back(row, spec, lease, decided.state):
            return
        self._apply(row, record, decided, why)

    def _goes_back(self, row: Row, spec: TypeSpec, lease: HeldLease, state: State) -> bool:
        """Supersede early reports (``_supersede_early_reports``) also after an attempt of a later stage that did not
        pass. Return whether the job goes back to one of them at once, whatever ``state`` was decided for it."""
        again = again_stages(spec)
        if not again or job_rows.passed_stages(self.tx, row.id, spec).isdisjoint(again):
            return False
        self._supersede_early_reports(row, spec, lease)
        stage = job_rows.next_stage(self.tx, row.id, spec)
        if state in SETTLED or stage in (None, row.stage):
            return False
        self.tx.run("update jobs set stage = ?, attempts = 0 where id = ?", (stage, row.id))
        if state is State.HELD:
            return False
        self.cascade.place(row._replace(stage=stage, attempts=0), leased=True)
        return True

    def _why(self, row: Row, record: Record, lane: Lane, decided: RetryDecision) -> Cause | None:
        """Return the cause of a failure, where it is needed for failed jobs or a breaker; else None."""
        spec = self.registry.types.get(row.type)
        watched = decided.attempt_used and spec is not None and spec.breaker is not None
        if decided.state not in FAILED_OR_ORPHANED and not watched:
            return None
        return cause(row.type, lane.stage, record, poison=decided.poison, reason=decided.reason)

    def _apply(self, row: Row, record: Record, decided: RetryDecision, why: Cause | None) -> None:
        """Bring the job into the state that was decided. A job that its own stage holds gets no
        ``waits_for``, by which it is told from one that an operator's hold covers. ``why``: the cause, for
        jobs that fail."""
        tx, c = self.tx, self.cascade
        reason = record.message or decided.reason
        if decided.state is State.PENDING or (decided.state is State.SCHEDULED and decided.delay_s <= 0):
            c.place(row, leased=True)
        elif decided.state is State.SCHEDULED:
            wake_us = self.now_us + round(decided.delay_s * 1e6)
            c.set_aside(row, State.SCHEDULED, wake_us=wake_us, reason=reason, leased=True)
        elif decided.state is State.HELD:
            c.set_aside(row, State.HELD, reason=reason, leased=True)
        elif decided.state is State.WAITING:
            lock = record.lock or ""
            c.wait(
                row,
                f"lock:{lock}",
                f"waits for the lock {lock!r}",
                lock_request=record.lock_request,
                leased=True,
            )
            # Since it was refused, the lock, or some of it, may have become free.
            wide = record.lock_request is not None or self.registry.capacities.in_force(lock) > 1
            if wide or not tx.exists("select 1 from locks where name = ?", (lock,)):
                c.lock_freed(lock)
        else:
            settled_reason = (
                f"{decided.reason}: {record.message}" if decided.reason and record.message else reason
            )
            mark = None
            if why is not None:
                mark = why.fingerprint
                self._causes[mark] = why
            code = {"code": record.code}
            c.settle(row, decided.state, reason=settled_reason, fingerprint=mark, leased=True, also=code)

    # --- sleeping lanes -----------------------------------------------------------------

    def _sleep_lane(self, lane: Lane, delay_s: float) -> None:
        """Put the stage to sleep in all queues and homes: until then no claim takes its jobs, and then one
        probes."""
        until = self.now_us + round(delay_s * 1e6)
        self.tx.run(
            "update lanes set asleep_until_us = ?, probing = 1 where type = ? and stage = ?",
            (until, lane.type, lane.stage),
        )
        self.registry.touch(self.tx)

    def _wake_lane(self, lane: Lane) -> None:
        """Wake the lane, because its probe has run: the other jobs continue."""
        if lane.probing and (lane.asleep_until_us is None or lane.asleep_until_us <= self.now_us):
            self.tx.run(
                "update lanes set asleep_until_us = null, probing = 0 where type = ? and stage = ?",
                (lane.type, lane.stage),
            )
            self.registry.touch(self.tx)
