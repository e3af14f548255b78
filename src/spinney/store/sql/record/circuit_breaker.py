"""The circuit breaker: a stage that fails in several jobs in a row with one cause stops its type.

For types that have one (``TypeSpec.breaker``, K). A streak has the jobs whose attempts failed since an attempt of that
stage passed or failed with another cause; each job counts once, however often it is retried. Attempts that neither
passed nor failed (deferred, handed back, lost with their node) do not count. The K-th job creates an automatic hold on
the type, and the streak begins anew; nothing is counted while that hold is active, so that jobs that were running do
not create another one.

``streaks`` has a row for each stage that failed recently, and the registry has their keys. So an attempt that passes
costs a statement only where there may be a streak to end, and a failure costs nothing where there is no breaker. The
row stays when a streak ends (with no jobs in it), because the registry must change when a row is added or removed."""

from collections.abc import Iterable

from spinney.model.attempts.failures import Cause
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Scope
from spinney.model.types import TypeSpec
from spinney.model.values.unreadable import json_list
from spinney.store.sql.connection.database import RowChange, Tx, list_text
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.transitions import hold_rows

ACTOR = "circuit breaker"
_REASON_MAX = 500
"""The longest reason of a hold, in characters."""
IDLE_US = 86_400_000_000
"""After so long without a failure, the row of a stage is removed."""
_ENDED = RowChange("streaks", "type = ? and stage = ? and jobs <> '[]'", set="jobs = '[]'")
_UNWATCHED = RowChange("streaks", "type = ? and stage = ?")


def failed(tx: Tx, registry: Registry, spec: TypeSpec, job_id: int, cause: Cause, now_us: int) -> None:
    """Count a failed attempt of a stage of this type, which has a breaker; the K-th job in a row holds the
    type.

    A failure with another cause than the one before begins a new streak. The audit gets the entry of the
    hold, in the name of the circuit breaker."""
    if spec.breaker is None or _broken(registry, spec.name):
        return
    stage = (spec.name, cause.stage)
    streak = tx.one("select fingerprint, jobs from streaks where type = ? and stage = ?", stage)
    jobs = json_list(streak[1]) if streak is not None and streak[0] == cause.fingerprint else []
    if job_id not in jobs:
        jobs.append(job_id)
    tripped = len(jobs) >= spec.breaker
    tx.run(
        "insert into streaks (type, stage, fingerprint, jobs, failed_us) values (?, ?, ?, ?, ?) "
        "on conflict (type, stage) do update set fingerprint = excluded.fingerprint, jobs = excluded.jobs, "
        "failed_us = excluded.failed_us",
        (*stage, cause.fingerprint, "[]" if tripped else list_text(jobs), now_us),
    )
    if streak is None:
        registry.touch(tx)
    if tripped:
        reason = _reason(cause, len(jobs))
        actor = Actor(by=ACTOR, reason=reason)
        hold_rows.lay(tx, registry, Scope.TYPE, spec.name, reason, actor, None, True, now_us)


def passed(tx: Tx, stages: Iterable[tuple[str, str]]) -> None:
    """End the streaks of these stages (of ``registry.streaks``), because attempts have passed."""
    tx.change(_ENDED, list(stages))


def watches(registry: Registry, type_: str, stage: str) -> bool:
    """Return whether attempts of this stage that pass have to be reported to ``passed``: the stage has a streak, or its
    type a circuit breaker."""
    return (type_, stage) in registry.streaks or _watched(registry, type_, stage)


def forget(tx: Tx, registry: Registry, now_us: int) -> None:
    """Remove the rows of stages that have not failed for ``IDLE_US`` and have no streak, or have no breaker
    any more. Only the sweep does so: each removal makes every process read its registry again."""
    unwatched = [pair for pair in registry.streaks if not _watched(registry, *pair)]
    tx.change(_UNWATCHED, unwatched)
    tx.run("delete from streaks where jobs = '[]' and failed_us < ?", (now_us - IDLE_US,))
    if unwatched or tx.changed():
        registry.touch(tx)


def _watched(registry: Registry, type_: str, stage: str) -> bool:
    spec = registry.types.get(type_)
    return spec is not None and spec.breaker is not None and spec.stage(stage) is not None


def _broken(registry: Registry, type_: str) -> bool:
    """Return whether a breaker already holds the type."""
    return any(
        w.hold.automatic and w.hold.scope is Scope.TYPE and w.hold.name == type_ for w in registry.holds.wide
    )


def _reason(cause: Cause, jobs: int) -> str:
    times = "a job" if jobs == 1 else f"{jobs:,} jobs in a row"
    mark = f" (failure {cause.fingerprint})"
    return f"stage {cause.stage!r} failed in {times}: {cause}"[: _REASON_MAX - len(mark)] + mark
