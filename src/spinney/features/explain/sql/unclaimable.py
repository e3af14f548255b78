"""What is over, at work, or stands aside: its own rows say why."""

from collections.abc import Callable

from spinney.features.explain.sql.case import COUNTED, NAMED, Case, jobs_of
from spinney.model.fleet import UNHEARD_US
from spinney.model.outcomes import Outcome
from spinney.model.rights.operators import Explanation
from spinney.model.states import SETTLED, State
from spinney.store.sql.connection import rows
from spinney.store.sql.read import external_explanations
from spinney.store.sql.transitions import placement


class Unclaimable(Case):
    """Of any job but those that may be claimed."""

    def answer(self) -> Explanation | None:
        """None: it may be claimed."""
        for question in (self._settled, self._leased, self._cancelling):
            if (found := question()) is not None:
                return found
        unclaimable: dict[State, Callable[[], Explanation]] = {
            State.HELD: self._held,
            State.SCHEDULED: self._scheduled,
            State.WAITING: self._waiting,
        }
        there = unclaimable.get(self.row.state)
        return None if there is None else there()

    def _settled(self) -> Explanation | None:
        row = self.row
        if row.state not in SETTLED:
            return None
        if row.state is State.COMPLETED:
            return self._say("settled", "it has completed", command=f"spinney rerun {row.id}")
        if row.state is State.DELETED:
            return self._say("settled", "it is deleted")
        waits_for, _, reason = self.inactive_row or (None, None, None)
        sentence = ("it failed" if row.state is State.FAILED else f"it was {row.state}") + (
            f": {reason}" if reason else ""
        )
        command: str | None = f"spinney retry {row.id}"
        if row.state is State.FAILED and waits_for == "needs":
            command = self._mend_need()
        return self._say("settled", sentence, command=command)

    def _mend_need(self) -> str | None:
        """It would fail again at once while the job that it needs stands failed; opened, that takes it along."""
        _, broken = placement.needs_left(self.tx, self.row.id)
        if broken is None:
            return f"spinney retry {self.row.id}"
        need_id, state = broken
        if state == State.DELETED:
            return None
        because = self.tx.value("select waits_for from inactive_jobs where job_id = ?", (need_id,))
        return f"spinney {'explain' if because else 'retry'} {need_id}"

    def _leased(self) -> Explanation | None:
        found = self.tx.one(
            "select l.slot, l.running_us, l.fence, n.name, n.seen_us, n.state, p.lease_s from leases l "
            "join nodes n on n.id = l.node_id left join external_workers p on p.node_id = n.id where l.job_id = ?",
            (self.row.id,),
        )
        if found is None:
            return None
        slot, running_us, fence, node, seen_us, state, lease_s = found
        if lease_s is not None:
            silent = self._since(seen_us) if self.now_us - seen_us > lease_s * 1e6 else None
            cancel_reason = placement.cancel_reason(self.tx, self.row) is not None
            return self._hindered(
                external_explanations.at_work(
                    node, left=state == "left", silent=silent, cancelling=cancel_reason
                )
            )
        if state == "left":
            return self._say(
                "recovering", f"node {node}, which had it, is gone; it is being taken back", node=node
            )
        if self.now_us - seen_us > UNHEARD_US:
            return self._say(
                "silent",
                f"node {node} has it in slot {slot}, but has given no sign of life for "
                f"{self._since(seen_us)}; if it is dead, start it again",
                command="spinney node",
                node=node,
                slot=slot,
            )
        if placement.cancel_reason(self.tx, self.row) is not None:
            return self._say("cancelling", f"it runs on node {node} and is being cancelled", node=node)
        if running_us is not None:
            return self._say("running", f"it runs on node {node}, slot {slot}", node=node, slot=slot)
        before = self.tx.value(
            "select count(*) from leases where node_id = (select node_id from leases where job_id = ?1) "
            "and slot = ?2 and fence < ?3",
            (self.row.id, slot, fence),
        )
        # Short attempts are never marked as running, so claimed says: it runs, or it is about to.
        if not before:
            return self._say("running", f"node {node} has it in slot {slot}", node=node, slot=slot)
        return self._say(
            "claimed",
            f"node {node} has it in slot {slot}, behind {jobs_of(before)} that it runs first",
            node=node,
            slot=slot,
            before=before,
        )

    def _cancelling(self) -> Explanation | None:
        cancel_reason = placement.cancel_reason(self.tx, self.row)
        if cancel_reason is None:
            return None
        return self._say(
            "cancelling", f"it is being {cancel_reason}", command=f"spinney tree {self.row.root_id}"
        )

    def _held(self) -> Explanation:
        waits_for, _, reason = self.inactive_row or (None, None, None)
        if waits_for == "hold":
            holds = self._holds()
            if not holds:
                return self._say(
                    "released",
                    "no hold covers it any more; it goes on with the next sweep",
                    command=f"spinney release {self.row.id}",
                )
            return self._under(holds)
        spec = self.registry.types.get(self.row.type)
        vanished = spec is not None and spec.stage(self.row.stage or "") is None
        return self._say(
            "vanished stage" if vanished else "own hold",
            f"it is held: {reason or 'by its own stage'}",
            command=f"spinney release {self.row.id}",
        )

    def _scheduled(self) -> Explanation:
        _, wake_us, reason = self.inactive_row or (None, None, None)
        if self.row.at_us is not None and self.row.at_us == wake_us:
            return self._until("scheduled", "it is scheduled for a time still to come", wake_us)
        told = f": {reason}" if reason else ""
        if self.row.attempts and not self._deferred():
            return self._until(
                "retry",
                f"attempt {self.row.attempts} of stage {self.row.stage!r} failed and it waits before the "
                f"next{told}",
                wake_us,
            )
        return self._until("scheduled", f"its stage {self.row.stage!r} put it off{told}", wake_us)

    def _deferred(self) -> bool:
        """Whether its last attempt put it off; an earlier one may have failed."""
        last = self.tx.value(
            "select outcome from history where job_id = ? order by fence desc limit 1", (self.row.id,)
        )
        return bool(last == Outcome.DEFER)

    def _waiting(self) -> Explanation:
        waits_for = self.inactive_row[0] if self.inactive_row else None
        if waits_for == "needs":
            return self._for_needs()
        if waits_for == "serial":
            return self._in_line()
        if waits_for is not None and waits_for.startswith("lock:"):
            return self._for_lock(waits_for.removeprefix("lock:"))
        if waits_for == "children":
            return self._for_children()
        return self._say("accepted", "it is accepted and will be put in its place in a moment")

    def _for_needs(self) -> Explanation:
        found = self.tx.all(
            "select n.need_id, j.state from needs n join jobs j on j.id = n.need_id where n.job_id = ? "
            "and j.state <> 'completed' order by n.need_id limit ?",
            (self.row.id, NAMED + 1),
        )
        if not found:
            return self._say("needs", "all jobs that it needs have settled; it goes on in a moment")
        named = ", ".join(f"{need_id} ({self._shown(need_id, state)})" for need_id, state in found[:NAMED])
        more = " and more" if len(found) > NAMED else ""
        return self._say(
            "needs",
            f"it needs job {named}{more}",
            command=f"spinney explain {found[0][0]}",
            needs=[n for n, _ in found],
        )

    def _for_children(self) -> Explanation:
        found = self.tx.all(
            "select child_id from children_left where parent_id = ? and bad = 0 limit ?",
            (self.row.id, COUNTED),
        )
        open_ = [child for (child,) in found]
        if not open_:
            return self._say(
                "children", "its subjobs are being put in place", command=f"spinney tree {self.row.id}"
            )
        count = f"{len(open_):,}" if len(open_) < COUNTED else f"{COUNTED:,} or more"
        state = self._shown(open_[0], rows.find(self.tx, open_[0]).state)
        noun = "subjob" if len(open_) == 1 else "subjobs"
        return self._say(
            "children",
            f"it waits for {count} {noun}, the first of them {open_[0]} ({state})",
            command=f"spinney explain {open_[0]}",
            children=len(open_),
            first=open_[0],
        )

    def _in_line(self) -> Explanation:
        first = self.tx.value(
            "select job_id from serial_order where root_id = ? order by lineage limit 1", (self.row.root_id,)
        )
        if first == self.row.id or first is None:
            return self._say("serial", f"a later job of its serial tree {self.row.root_id} is still running")
        return self._say(
            "serial",
            f"job {first} comes before it in the serial tree {self.row.root_id}",
            command=f"spinney explain {first}",
            before=first,
        )
