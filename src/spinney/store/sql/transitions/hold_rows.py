"""The rows of ``holds``, written in the transaction of the caller: an operator's command, a circuit breaker, the clock,
or a verb on a held job.

A hold on a single job moves that job at once. A wide hold (on a queue, a type, a tree …) only gets its row
here, and ``counters.registry`` is incremented: from the commit on no node claims what it covers, and a sweep
moves the jobs between ``ready`` and held in steps (``spinney.features.holds``). The end of a wide hold is
swept in the same way: ``counters.lift`` says how many have ended."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from spinney.model.errors import Refused
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Hold, Scope
from spinney.model.states import SETTLED, State
from spinney.store.sql.audit import note
from spinney.store.sql.connection.database import Tx, list_text
from spinney.store.sql.records import insert
from spinney.store.sql.registry import hold_coverage, job_rows
from spinney.store.sql.registry.hold_coverage import HELD_BY_HOLD, HOLDS
from spinney.store.sql.registry.job_rows import Row
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.transitions.cascades import Cascade

ENDED_STEP = 100
"""How many expired holds end in one transaction."""
CLOCKWORK = "spinney"
"""The name in which expired holds end."""


def lay(
    tx: Tx,
    registry: Registry,
    scope: Scope,
    name: str,
    reason: str,
    actor: Actor,
    until_us: int | None,
    automatic: bool,
    now_us: int,
) -> Hold:
    """Create a hold on more than one job, with an audit entry. The same hold by the same person (a repeated command) is
    not created again; only its end changes. ``until_us``: when it ends by itself; None: never. ``automatic``: a circuit
    breaker creates it."""
    hold = _put(tx, scope, name, reason, actor, until_us, automatic, now_us)
    note(tx, now_us, actor, "hold", audit_entry(hold), 1)
    stamp_sweep(tx, now_us)
    registry.touch(tx)
    return hold


def hold_one(
    tx: Tx, registry: Registry, row: Row, reason: str, actor: Actor, until_us: int | None, now_us: int
) -> Hold:
    """Create a hold on a single open job; the caller writes the audit entry. A pending job becomes held at once, a
    running one after its stage. Raises Refused when the job has settled. ``until_us``: when it ends by itself; None:
    never."""
    if row.state in SETTLED:
        raise Refused(f"job {row.id} is {row.state}; only an open job can be held")
    hold = _put(tx, Scope.JOB, str(row.id), reason, actor, until_us, False, now_us)
    _tell(tx, registry)
    if row.state is State.PENDING and job_rows.leased_fence(tx, row.id) is None:
        cascade = Cascade(tx, registry, now_us)
        cascade.withdraw(row)
        cascade.set_aside(row, State.HELD, waits_for=HELD_BY_HOLD, reason=str(hold))
        cascade.drain()
    return hold


def hold_new(tx: Tx, registry: Registry, job_ids: Sequence[int], actor: Actor, now_us: int) -> None:
    """Hold each of these jobs by a hold of its own, in the transaction that creates them, so that none can
    start before what its submitter still has to do. ``actor``: in whose name and for what reason."""
    for job_id in job_ids:
        row = job_rows.find(tx, job_id)
        if row.state not in SETTLED:  # a job that needs a failed one has failed already
            hold = hold_one(tx, registry, row, actor.reason or "", actor, None, now_us)
            note(tx, now_us, actor, "hold", audit_entry(hold), 1)


def end_what_is_over(tx: Tx, registry: Registry, now_us: int) -> bool:
    """End up to ``ENDED_STEP`` expired holds, each with an audit entry; return whether there were any. It
    runs no query before the first of all holds ends, a time that the registry knows."""
    if registry.holds.ends_us is None or registry.holds.ends_us > now_us:
        return False
    over = HOLDS.all(
        tx, "where until_us is not null and until_us <= ? order by until_us limit ?", (now_us, ENDED_STEP)
    )
    end(tx, registry, over, now_us)
    for hold in over:
        _note_end(tx, hold, "its time is over", now_us)
    return bool(over)


def _note_end(tx: Tx, hold: Hold, why: str, now_us: int) -> None:
    """Note in the audit that a hold has ended without anybody's release."""
    note(tx, now_us, Actor(by=CLOCKWORK, call=f"hold {hold.id}", reason=why), "release", audit_entry(hold), 1)


def end_of_gone(tx: Tx, registry: Registry, holds: Sequence[Hold], now_us: int) -> None:
    """End holds whose jobs are gone; the ends of wide ones are noted in the audit."""
    end(tx, registry, holds, now_us)
    for hold in holds:
        if hold.scope is not Scope.JOB:
            _note_end(tx, hold, "its job was deleted", now_us)


def end(tx: Tx, registry: Registry, holds: Sequence[Hold], now_us: int) -> None:
    """Delete these holds. A single job continues at once, unless another hold covers it; others follow by the
    sweep.

    The caller writes an audit entry for each wide one, in the same transaction: by it a release is found that
    was interrupted before all jobs were swept (``SqlHolds.lifted``)."""
    if not holds:
        return
    tx.delete_listed("holds", "id", list_text([hold.id for hold in holds]))
    wide = sum(hold.scope is not Scope.JOB for hold in holds)
    if wide:
        tx.take("lift", wide)
        stamp_sweep(tx, now_us)
        registry.touch(tx)
    else:
        _tell(tx, registry)
    cascade = Cascade(tx, registry, now_us)
    for hold in holds:
        if hold.scope is Scope.JOB and hold_coverage.stands_held(tx, int(hold.name)):
            cascade.place(job_rows.find(tx, int(hold.name)))
    cascade.drain()


def end_those_on(tx: Tx, registry: Registry, job_id: int, now_us: int, *scopes: Scope) -> int:
    """End the holds on this very job, and on its tree when it is deleted; return how many there were."""
    holds = [
        hold
        for scope in scopes
        for hold in HOLDS.all(tx, "where scope = ? and name = ?", (scope, str(job_id)))
    ]
    end_of_gone(tx, registry, holds, now_us)
    return len(holds)


def _tell(tx: Tx, registry: Registry) -> None:
    """Update other caches after holds on single jobs have changed, only if it matters to them: whether there are any,
    and when the first hold ends."""
    if hold_coverage.known_of_single_ones(tx) != (registry.holds.jobs, registry.holds.ends_us):
        registry.touch(tx)


def stamp_sweep(tx: Tx, now_us: int) -> None:
    """Note that a sweep is in progress: the process that creates or releases a hold sweeps first."""
    tx.run("update counters set value = ? where name = 'hold_sweep'", (now_us,))


def _put(
    tx: Tx,
    scope: Scope,
    name: str,
    reason: str,
    actor: Actor,
    until_us: int | None,
    automatic: bool,
    now_us: int,
) -> Hold:
    same = HOLDS.one(
        tx,
        "where scope = ? and name = ? and by = ? and reason = ? and automatic = ? limit 1",
        (scope, name, actor.by, reason, automatic),
    )
    if same is not None:
        tx.run("update holds set until_us = ? where id = ?", (until_us, same.id))
        return replace(same, until_us=until_us)
    hold = Hold(
        id=tx.take("hold"),
        scope=scope,
        name=name,
        reason=reason,
        by=actor.by,
        since_us=now_us,
        until_us=until_us,
        automatic=automatic,
    )
    insert(tx, "holds", asdict(hold))
    return hold


def audit_entry(hold: Hold) -> dict[str, Any]:
    """Return the hold's fields for an audit entry."""
    entry = {"hold": hold.id, "scope": str(hold.scope), "name": hold.name, "reason": hold.reason}
    return entry | ({"until_us": hold.until_us} if hold.until_us is not None else {})
