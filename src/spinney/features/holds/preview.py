"""Previews: how many jobs a wide hold would hold, and how many would go on if some holds were released."""

from collections.abc import Collection

import orjson

from spinney.model.settings.holds import Hold, HoldPreview, Scope
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.registry import hold_coverage, job_rows
from spinney.store.sql.registry.hold_coverage import HELD_BY_HOLD, WideHold
from spinney.store.sql.registry.registry import Registry

_PAGE = 1_000
_OPEN = "('scheduled', 'pending', 'held', 'waiting')"


def of_laying(tx: Tx, scope: Scope, name: str) -> HoldPreview:
    """Return how many jobs would be held after the sweep, and how many others would be held when they would start."""
    lineage = job_rows.find(tx, int(name)).lineage if scope is Scope.TREE else None
    hold = Hold(id=0, scope=scope, name=name, reason="", by="", since_us=0)
    condition, binds = hold_coverage.clause([WideHold(hold, False, lineage)])
    held: int = tx.value(
        f"select (select count(*) from ready r join jobs on jobs.id = r.job_id where {condition}) + (select count(*) "
        "from inactive_jobs p join jobs on jobs.id = p.job_id where p.state = 'held' and "
        f"p.waits_for = ? and {condition})",
        (*binds, HELD_BY_HOLD, *binds),
    )
    covered: int = tx.value(
        f"select count(*) from jobs where state in {_OPEN} and {job_rows.VISIBLE} and {condition}", binds
    )
    return HoldPreview(jobs=held, later=max(0, covered - held))


def of_lifting(tx: Tx, registry: Registry, hold_ids: Collection[int]) -> HoldPreview:
    """Return how many held jobs no other hold would cover. Reads all held jobs, in pages."""
    lifted = orjson.dumps(sorted(hold_ids)).decode()
    remaining = hold_coverage.ActiveHolds(
        [wide for wide in registry.holds.wide if wide.hold.id not in hold_ids]
    )
    jobs = after = 0
    while True:
        page = tx.all(
            "select p.job_id, exists (select 1 from holds h where h.scope = 'job' and h.name = cast(p.job_id as text) "
            "and h.id not in (select j.value from json_each(?) j)) from inactive_jobs p "
            "where p.state = 'held' and p.waits_for = ? and p.job_id > ? order by p.job_id limit ?",
            (lifted, HELD_BY_HOLD, after, _PAGE),
        )
        free = [job_id for job_id, held_alone in page if not held_alone]
        jobs += len(free) - len(hold_coverage.among(tx, remaining, remaining.wide, free))
        if len(page) < _PAGE:
            return HoldPreview(jobs=jobs, later=0)
        after = page[-1][0]
