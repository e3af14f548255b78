"""Previews: how many jobs a wide hold would hold, and how many would continue if some holds were released.

Both are of one snapshot and promise nothing. They count by the same conditions as the sweep itself.
"""

from collections.abc import Collection

from spinney.model.settings.holds import Hold, HoldPreview, Scope
from spinney.store.sql.connection.database import Tx, list_text
from spinney.store.sql.registry import hold_coverage, job_rows
from spinney.store.sql.registry.hold_coverage import HELD_BY_HOLD, WideHold
from spinney.store.sql.registry.registry import Registry

_PAGE = 1_000
"""How many held jobs are looked at by one query."""
_OPEN = "('scheduled', 'pending', 'held', 'waiting')"
"""The states of jobs that have not begun their next attempt, as their own rows have them. The state of a
leased job in its row is still ``pending``: it would be held at its next start."""


def of_laying(tx: Tx, scope: Scope, name: str) -> HoldPreview:
    """Return how many jobs would be held after the sweep, and how many others would be held when they
    would start.

    Held at once are those in ``ready``, and those that other holds keep out of it; the others, such as
    scheduled jobs, wait for something else first. ``name``: for a tree, the number of its top. Raises
    NoSuchJob for a tree without its top.
    """
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
    """Return how many held jobs no other hold would cover without these. Reads all held jobs, in pages.

    A page is checked first for holds on single jobs, then for the wide holds that remain. Some of the
    jobs may have to wait for something else after their release.
    """
    lifted = list_text(hold_ids)
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
