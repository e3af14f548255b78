"""Jobs that are settled, at work, or inactive: their own rows say why they do not run.

A lease is looked at before the state, because the row of a job that runs still says pending.
"""

from collections.abc import Callable, Mapping
from typing import Any

from spinney.features.explain.explanation import COUNTED, NAMED, Cause
from spinney.features.explain.sql.case import Case
from spinney.features.explain.sql.claimable import Claimable
from spinney.model.external import bare_name
from spinney.model.jobs import NodeInfo
from spinney.model.outcomes import Outcome
from spinney.model.states import SETTLED, State
from spinney.store.sql.registry import job_rows, nodes
from spinney.store.sql.transitions import placement


class Unclaimable(Case):
    """A job that is not pending, or has a lease."""

    def cause(self) -> Cause | None:
        """Return why it is not running; None: it is pending, and may be claimed."""
        for question in (self._settled, self._leased, self._cancelling):
            if (cause := question()) is not None:
                return cause
        inactive: dict[State, Callable[[], Cause]] = {
            State.HELD: self._held,
            State.SCHEDULED: self._scheduled,
            State.WAITING: self._waiting,
        }
        return inactive[self.row.state]() if self.row.state in inactive else None

    def _settled(self) -> Cause | None:
        """Return the cause for a settled job, with the reason and the job to retry or to ask about; None: it
        is open."""
        row = self.row
        if row.state not in SETTLED:
            return None
        if row.state in (State.COMPLETED, State.DELETED):
            return self._cause("settled", state=str(row.state))
        others: dict[str, Any] = {"retry": row.id}
        if row.state is State.FAILED and self.waits_for == "needs":
            others = self._failed_need()
        elif row.state is State.FAILED and self.waits_for == "children":
            others |= self._failed_children()
        return self._cause("settled", state=str(row.state), reason=self.reason, **others)

    def _failed_need(self) -> dict[str, Any]:
        """Return the job that is needed and did not complete, and the job to retry, or to explain: retried itself, this
        one would fail again at once while a job that it needs is failed, and to retry that one takes this one along."""
        _, broken = placement.needs_left(self.tx, self.row.id)
        if broken is None:
            return {"retry": self.row.id}
        need_id, state = broken
        need = {"need": need_id, "ending": placement.ending(state)}
        if state == State.DELETED:
            return need
        return need | {"explain" if job_rows.waits_for(self.tx, need_id) else "retry": need_id}

    def _failed_children(self) -> dict[str, Any]:
        """Return the first of its subjobs that did not complete, and how many did not, counted up to ``COUNTED``."""
        children = self.tx.all(
            "select child_id, jobs.state from children_left join jobs on jobs.id = child_id "
            "where children_left.parent_id = ? and bad = 1 order by child_id limit ?",
            (self.row.id, COUNTED),
        )
        if not children:
            return {}
        first, state = children[0]
        all_failed = all(child_state == State.FAILED for _, child_state in children)
        return {
            "child": first,
            "ending": placement.ending(state),
            "bad_children": len(children),
            "all_failed": all_failed,
        }

    def _leased(self) -> Cause | None:
        """Return the cause for a job with a lease: the node that has it is gone or silent, the job is cancelled, or it
        runs or is about to. None: it has no lease."""
        lease = self.tx.one(
            "select slot, running_us, fence, node_id from leases where job_id = ?", (self.row.id,)
        )
        if lease is None:
            return None
        slot, running_us, fence, node_id = lease
        present = nodes.all_nodes(self.tx)
        node = next((n for n in present if n.id == node_id), None)
        if node is None:
            return None
        external = node.is_external_worker
        owner: dict[str, Any] = {"external_worker": bare_name(node.name)} if external else {"node": node.name}
        if node.state == "left":
            return self._cause("recovering", **owner)
        if self._is_silent(node):
            silence = self._silence(node, present) | owner | {"slot": slot}
            return self._cause("silent", start_us=self._back_us(node, silence), **silence)
        if placement.cancel_reason(self.tx, self.row) is not None:
            return self._cause("cancelling", **owner)
        if external:
            return self._cause("running", **owner)
        # Short attempts are never marked as running: a job that is first in its slot runs, or is about to.
        ahead = running_us is None and self.tx.value(
            "select count(*) from leases where node_id = (select node_id from leases where job_id = ?1) "
            "and slot = ?2 and fence < ?3",
            (self.row.id, slot, fence),
        )
        if ahead:
            return self._cause("claimed", **owner, slot=slot, ahead=ahead)
        if running_us is None and node.is_degraded:  # it may be unable to start a worker
            owner["trouble"] = node.trouble
        return self._cause("running", **owner, slot=slot, begun=running_us is not None)

    def _back_us(self, node: NodeInfo, silence: Mapping[str, Any]) -> int | None:
        """Return when others take the job back from its silent node and it may start again; None: it is not known, or
        its type does not let it start again."""
        spec = self.registry.types.get(self.row.type)
        if silence["back"] != "later" or spec is None or spec.on_lost == "orphan":
            return None
        return node.seen_us + int(node.dead_after_s * 1e6)

    def _cancelling(self) -> Cause | None:
        """Return the cause for a job without a lease that is to be cancelled, by itself or with its tree;
        None: it is not."""
        reason = placement.cancel_reason(self.tx, self.row)
        return None if reason is None else self._cause("cancelling", reason=reason, tree=self.row.root_id)

    def _held(self) -> Cause:
        """Return the cause for a held job: the holds that cover it, a stage that has vanished, or a hold by
        its own stage."""
        if self.waits_for == "hold":
            holds = self._holds()
            return self._under(holds) if holds else self._cause("released")
        spec = self.registry.types.get(self.row.type)
        vanished = spec is not None and spec.stage(self.row.stage or "") is None
        return self._cause("vanished stage" if vanished else "own hold", reason=self.reason)

    def _scheduled(self) -> Cause:
        """Return the cause for a job that waits for a time: the one of its submission, the next attempt of a
        stage that failed, or the one to which its stage deferred it.

        Once that time has come, the cause is that of a pending job if no node may run it."""
        is_due = self.wake_us is not None and self.wake_us <= self.now_us
        if is_due and (cause := Claimable(self.tx, self.registry, self.row, self.now_us).unserved()):
            return cause
        if self.row.at_us is not None and self.row.at_us == self.wake_us:
            return self._until("scheduled")
        facts = {"stage": self.row.stage, "reason": self.reason}
        if self.row.attempts and not self._deferred():
            return self._until("retry", **facts, attempt=self.row.attempts)
        return self._until("scheduled", **facts)

    def _deferred(self) -> bool:
        """Return whether its last attempt deferred it; an earlier one may have failed."""
        last = self.tx.value(
            "select outcome from history where job_id = ? order by fence desc limit 1", (self.row.id,)
        )
        return bool(last == Outcome.DEFER)

    def _waiting(self) -> Cause:
        """Return the cause for a waiting job: needs, the serial order, children or a lock."""
        waits: dict[str | None, Callable[[], Cause]] = {
            "needs": self._for_needs,
            "serial": self._in_line,
            "children": self._for_children,
        }
        if self.waits_for in waits:
            return waits[self.waits_for]()
        if self.waits_for is not None and self.waits_for.startswith("lock:"):
            return self._for_lock(self.waits_for.removeprefix("lock:"))
        return self._cause("accepted")

    def _for_needs(self) -> Cause:
        """Return the cause for a job that waits for needs: one more than is named, so that the words can say
        that there are more."""
        needs = self.tx.all(
            "select n.need_id, j.state from needs n join jobs j on j.id = n.need_id where n.job_id = ? "
            "and j.state <> 'completed' order by n.need_id limit ?",
            (self.row.id, NAMED + 1),
        )
        return self._cause(
            "needs", needs=[need for need, _ in needs], states=[self._state(*need) for need in needs[:NAMED]]
        )

    def _for_children(self) -> Cause:
        """Return the cause for a job that waits for its children; the facts name the first open one, and count up to
        ``COUNTED`` of them."""
        children = self.tx.all(
            "select child_id from children_left where parent_id = ? and bad = 0 limit ?",
            (self.row.id, COUNTED),
        )
        if not children:
            return self._cause("children", tree=self.row.id)
        first: int = children[0][0]
        state = self._state(first, job_rows.find(self.tx, first).state)
        return self._cause("children", children=len(children), first=first, state=state)

    def _in_line(self) -> Cause:
        """Return the cause for a job that waits for its turn in a serial tree: the first in the order goes
        before it, unless this job is that one; then a later job still runs."""
        first = self.tx.value(
            "select job_id from serial_order where root_id = ? order by lineage limit 1", (self.row.root_id,)
        )
        if first == self.row.id or first is None:
            return self._cause("serial", tree=self.row.root_id, earlier=False)
        return self._cause("serial", tree=self.row.root_id, earlier=True, before=first)
