"""The circuit breaker: a stage that fails in job after job with one cause stops its type.

For types that have one (``TypeSpec.breaker``, K). In a row are the jobs whose attempts failed since an attempt
of that stage passed or failed with another cause; each job counts once, however often it is tried again. What
neither passed nor failed (deferred, handed back, lost with its node) counts for nothing. The K-th job lays an
automatic hold on the type, and the row begins anew; nothing is counted while that hold lies, so that what was
at work when it was laid does not lay another.

``streaks`` has a row for each stage that failed lately, and the registry knows which these are. So an attempt
that passes costs a statement only where there may be a row to end, and failing costs nothing where there is no
breaker. The row stays when a streak ends (with no jobs in it), for the registry must move when one comes or goes.
"""

import uuid
from collections.abc import Iterable

import orjson

from spinney.model.attempts.failures import Cause
from spinney.model.rights.operators import Actor
from spinney.model.settings.holds import Scope
from spinney.model.types import TypeSpec
from spinney.model.values.unreadable import json_list
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.transitions import hold_rows

ACTOR = "circuit breaker"
_REASON_MAX = 500
"""Characters of a hold's reason."""
IDLE_US = 86_400_000_000
"""A stage that has not failed for so long is one that does not fail."""


def failed(tx: Tx, registry: Registry, spec: TypeSpec, job_id: int, cause: Cause, now_us: int) -> None:
    """An attempt of a stage of this type, which has a breaker, has failed."""
    if spec.breaker is None or _broken(registry, spec.name):
        return
    stage = (spec.name, cause.stage)
    found = tx.one("select fingerprint, jobs from streaks where type = ? and stage = ?", stage)
    jobs = json_list(found[1]) if found is not None and found[0] == cause.fingerprint else []
    if job_id not in jobs:
        jobs.append(job_id)
    tripped = len(jobs) >= spec.breaker
    tx.run(
        "insert into streaks (type, stage, fingerprint, jobs, failed_us) values (?, ?, ?, ?, ?) "
        "on conflict (type, stage) do update set fingerprint = excluded.fingerprint, jobs = excluded.jobs, "
        "failed_us = excluded.failed_us",
        (*stage, cause.fingerprint, "[]" if tripped else orjson.dumps(jobs).decode(), now_us),
    )
    if found is None:
        registry.touch(tx)
    if tripped:
        reason = _reason(cause, len(jobs))
        actor = Actor(by=ACTOR, call=uuid.uuid4().hex, reason=reason)
        hold_rows.lay(tx, registry, Scope.TYPE, spec.name, reason, actor, None, True, now_us)


def passed(tx: Tx, stages: Iterable[tuple[str, str]]) -> None:
    """Attempts of these stages (of ``registry.streaks``) have passed: no streak goes on."""
    tx.many(
        "update streaks set jobs = '[]' where type = ? and stage = ? and jobs <> '[]'",
        list(stages),
    )


def forget(tx: Tx, registry: Registry, now_us: int) -> None:
    """Rows of stages that have not failed for long, and of those that have no breaker any more, go."""
    gone = [pair for pair in registry.streaks if not _watched(registry, *pair)]
    tx.many("delete from streaks where type = ? and stage = ?", gone)
    tx.run("delete from streaks where jobs = '[]' and failed_us < ?", (now_us - IDLE_US,))
    if gone or tx.changed():
        registry.touch(tx)


def _watched(registry: Registry, type_: str, stage: str) -> bool:
    spec = registry.types.get(type_)
    return spec is not None and spec.breaker is not None and spec.stage(stage) is not None


def _broken(registry: Registry, type_: str) -> bool:
    """Whether a breaker holds the type already."""
    return any(
        w.hold.automatic and w.hold.scope is Scope.TYPE and w.hold.name == type_ for w in registry.holds.wide
    )


def _reason(cause: Cause, jobs: int) -> str:
    times = "a job" if jobs == 1 else f"{jobs:,} jobs in a row"
    mark = f" (failure {cause.fingerprint})"
    return f"stage {cause.stage!r} failed in {times}: {cause}"[: _REASON_MAX - len(mark)] + mark
