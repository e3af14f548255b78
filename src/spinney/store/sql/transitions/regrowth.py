"""Regrowth: ancestors and dependants of a job that is opened again continue with it: those that failed because of it,
and those that could run, wait for it again.

Ancestors wait again in the same transaction. Dependants may be very many, and each may have trees above it and other
dependants, so a transaction updates ``cascades.DEPENDANTS_STEP`` of them; the rest is left in ``met_needs``, like the
dependants of a settled job, and any process continues (``Regrowth.step``).

Between two steps the job may have settled again. Therefore a step reads its current state: dependants of an open job
wait for it; among the dependants of a settled job, waiting ones are placed anew, and those that failed because of needs
continue when none of these needs is bad any more. So the result is the same as if all had been updated at once.

A dependant that cannot be opened (an ancestor is cancelled, another job has its key by now) stays as it is: it is no
reason to refuse the operation, and must not stop a step."""

from typing import NamedTuple

from spinney.model.attempts.progress import again_stages, next_stage
from spinney.model.errors import Refused
from spinney.model.states import SETTLED, State
from spinney.model.types import TypeSpec
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.registry import job_rows
from spinney.store.sql.registry.job_rows import Row
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.transitions import cascades, placement, removal
from spinney.store.sql.transitions.cascades import Cascade


class _Need(NamedTuple):
    """A job whose dependants are to be updated."""

    job_id: int
    first_dependant: int
    """The first dependant that is not updated yet; 0: none is."""
    was_opened: bool
    """Whether this transaction has just opened the job; else its state is read."""


class Regrowth:
    """The regrowth of one transaction. ``reopened`` has the jobs that wait again, in the order in which they
    do. It updates at most ``cascades.DEPENDANTS_STEP`` dependants, over all its calls; the caller drains
    ``cascade``."""

    def __init__(self, cascade: Cascade) -> None:
        self.tx, self.registry, self.cascade = cascade.tx, cascade.registry, cascade
        self.reopened: list[int] = []
        self._needs: list[_Need] = []
        self._room = cascades.DEPENDANTS_STEP
        """How many more dependants this transaction may update."""

    # --- changes -----------------------------------------------------------------

    def reopen_ancestors(self, row: Row) -> None:
        """Let settled ancestors wait for this child again, up to one that is open or failed by a stage of its own.
        Raises Refused for a cancelled one."""
        child = row
        while child.parent_id is not None:
            superseded, spawn_stage = self.tx.one(
                "select superseded, spawn_stage from jobs where id = ?", (child.id,)
            )
            if superseded:  # its parent does not count it any more
                return
            parent = job_rows.existing(self.tx, child.parent_id)
            if parent is None:
                return
            self.tx.run(
                "delete from children_left where parent_id = ? and bad = 1 and child_id = ?",
                (parent.id, child.id),
            )
            self.tx.run(
                "insert into children_left (parent_id, bad, child_id) values (?, 0, ?) on conflict do nothing",
                (parent.id, child.id),
            )
            if parent.state is State.CANCELLED:
                raise Refused(f"job {parent.id} above it is cancelled; retry that one first, or rerun it")
            if parent.state is State.PENDING and job_rows.leased_fence(self.tx, parent.id) is not None:
                # Its attempt may report what was; the record looks for that (``placement.older_stages_run_since``).
                self.tx.run("update leases set plain = ? where job_id = ?", (False, parent.id))
                return
            by_itself = parent.state is State.FAILED and job_rows.waits_for(self.tx, parent.id) is None
            if parent.state not in SETTLED or parent.state is State.ORPHANED or by_itself:
                self._report_again(parent, spawn_stage)
                return
            if parent.state is State.DELETED:
                return
            self._wait_again(
                parent, "children", "waits for its subjobs, of which some run again", spawn_stage
            )
            self._needs.append(_Need(parent.id, 0, True))
            child = parent

    def reopen_dependants(self, job_id: int) -> None:
        """Let dependants that failed because of it or could run wait for it again, and their dependants, as many as one
        step allows."""
        self._needs.append(_Need(job_id, 0, True))
        self._update_dependants()

    def update_left(self, need_ids: list[int]) -> None:
        """Update those dependants of these jobs that an earlier transaction has left."""
        for need_id in need_ids:
            next_id = self.tx.value("delete from met_needs where need_id = ? returning next_id", (need_id,))
            if next_id is not None:
                self._needs.append(_Need(need_id, next_id, False))
        self._update_dependants()

    def step(self) -> bool:
        """Continue with the dependants that earlier transactions left, up to one step; return False when there are
        none."""
        worked = False
        while self._room > 0:
            need_id = self.tx.value("select need_id from met_needs order by need_id limit 1")
            if need_id is None:
                break
            worked = True
            self.update_left([need_id])
        self.cascade.drain()
        return worked

    # --- dependants --------------------------------------------------------------------------

    def _update_dependants(self) -> None:
        """Update dependants as far as there is room, and leave the others in ``met_needs``. ``_needs`` grows meanwhile,
        because a dependant that waits again has dependants of its own."""
        while self._needs:
            need_id, first, was_opened = self._needs.pop()
            room = max(0, self._room)
            dependant_ids = cascades.dependants(self.tx, need_id, first, room + 1)
            now, later = dependant_ids[:room], dependant_ids[room:]
            self._room -= max(1, len(now))
            if later:
                cascades.leave_dependants(self.tx, need_id, later[0])
            opened = (
                was_opened or self.tx.value("select state from jobs where id = ?", (need_id,)) not in SETTLED
            )
            for dependant_id in now:
                if not opened:
                    self.cascade.need_settled(dependant_id)
                self._regrow(dependant_id, opened)

    def _regrow(self, dependant_id: int, opened: bool) -> None:
        """Let one dependant wait for its need again, when it is claimable, or failed because of its needs.
        ``opened``: the need is open; else it has settled, and the dependant waits again only if none of its
        needs is bad now. What cannot be opened is left as it was (see the module)."""
        tx = self.tx
        row = job_rows.existing(tx, dependant_id)
        if row is None:
            return
        if opened and row.state is State.PENDING and job_rows.leased_fence(tx, row.id) is None:
            self.cascade.withdraw(row)
            self.cascade.place(row)
            return
        if row.state is not State.FAILED or job_rows.waits_for(tx, row.id) != "needs":
            return
        if not opened and placement.needs_left(tx, row.id)[1] is not None:
            return
        reopened, needs = len(self.reopened), len(self._needs)
        try:
            with tx.savepoint():
                if not removal.spare(tx, row):
                    return
                self._wait_again(row, "needs", "waits for jobs that it needs, of which some run again")
                self.reopen_ancestors(row)
        except Refused:
            # Caches must not keep what the savepoint has rolled back.
            self.registry.refresh(tx)
            del self.reopened[reopened:], self._needs[needs:]
            return
        self._needs.append(_Need(row.id, 0, True))

    def _wait_again(self, row: Row, waits_for: str, reason: str, spawn_stage: str | None = None) -> None:
        """Let a settled job wait again: for a subjob of this stage, or (None) for a job that it needs. The time for
        which it lay settled is not part of how long it takes: a job that waits for subjobs counts as started now, any
        other when its next attempt begins."""
        job_rows.move_final(self.tx, row.id)
        spec = self.registry.types.get(row.type)
        if spec is not None:
            stage = supersede_again(self.tx, row, spec, spawn_stage)
            self.tx.run("update jobs set stage = ? where id = ?", (stage, row.id))
        retake_key(self.tx, self.registry, row)
        self.cascade.wait(row, waits_for, reason)
        started_us = self.cascade.now_us if waits_for == "children" else None
        self.tx.run(
            "update jobs set settled_us = null, started_us = ?, attempts = 0 where id = ?",
            (started_us, row.id),
        )
        self.reopened.append(row.id)

    def _report_again(self, row: Row, spawn_stage: str | None) -> None:
        """Let a job that does not wait again, because it is open or failed by itself, run stages marked ``again`` once
        more that passed before a subjob of this stage was opened again. One that was about to run is placed anew: it
        waits for the subjob now. A settled one keeps its stage, which failed; a retry computes the next."""
        if row.state is State.PENDING:
            self.cascade.withdraw(row)
        spec = self.registry.types.get(row.type)
        stage = None if spec is None else supersede_again(self.tx, row, spec, spawn_stage)
        moved = row.state not in SETTLED and stage not in (None, row.stage)
        if moved:
            self.tx.run("update jobs set stage = ?, attempts = 0 where id = ?", (stage, row.id))
        if row.state is State.PENDING:
            self.cascade.place(row._replace(stage=stage or row.stage))
        elif moved:
            self.cascade.wait_for_no_lock(row._replace(stage=stage))


# --- steps for a single job -------------------------------------------------------------------


def retake_key(tx: Tx, registry: Registry, row: Row) -> None:
    """Take the key of a job that is opened again. Raises DuplicateKey when another job has it."""
    if row.key is None or tx.exists("select 1 from keys where job_id = ?", (row.id,)):
        return
    job_rows.take_key(tx, registry.key_scope(row.type), row.key, row.id, forever=False)


def supersede_again(tx: Tx, row: Row, spec: TypeSpec, spawn_stage: str | None = None) -> str | None:
    """Supersede those of its stages marked ``again`` that have passed, with the subjobs that they spawned, so that they
    run once more, unless one of its stages has ended with ``finish``; return its next stage. ``spawn_stage``: only
    stages behind this one, whose subjob is opened again: that subjob goes on counting."""
    passed = job_rows.passed_stages(tx, row.id, spec)
    finished = "select 1 from attempts where job_id = ? and outcome = 'finish' and superseded is null"
    again = passed.intersection(again_stages(spec, spawn_stage))
    if again and not tx.exists(finished, (row.id,)):
        job_rows.supersede(tx, row.id, again)
        passed -= again
    return next_stage(spec, passed)
