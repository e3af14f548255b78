"""Which holds cover a job: the one rule, for a row in hand and for many in SQL.

The wide holds (all but those on single jobs) are read with the registry, so that a transaction pays nothing
for there being none. Holds on single jobs are never listed, for there may be a hundred thousand of them:
whoever places a job looks for its own in their index, and a claim need not, because laying one takes a
pending job out of ``ready`` at once.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from spinney.model.lineage import ancestors
from spinney.model.settings.holds import Hold, Scope
from spinney.model.states import State
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.connection.rows import Row

if TYPE_CHECKING:
    from spinney.store.sql.registry.registry import Registry

HELD_BY_HOLD = "hold"
"""``inactive_jobs.waits_for`` of a job that a hold keeps; one that its own stage parked has none."""
LANE_SCOPES = frozenset({Scope.EVERYTHING, Scope.QUEUE, Scope.TYPE})
"""Under such a hold whole lanes stand still; under the others each job has to be asked."""
COLUMNS = "id, scope, name, reason, by, since_us, until_us, automatic"
"""Of ``holds``, in the order of ``hold``."""


class WideHold(NamedTuple):
    """A hold on more than one job."""

    hold: Hold
    swept: bool
    lineage: str | None
    """Of the job at the top, where it lies on a tree."""


class ActiveHolds:
    """What is in force, as the current transaction sees it. ``registry.holds`` is always up to date."""

    __slots__ = (
        "_by_name",
        "asking",
        "ends_us",
        "jobs",
        "last",
        "lift",
        "lift_swept",
        "scopes",
        "unswept",
        "wide",
    )

    def __init__(
        self,
        wide: Sequence[WideHold] = (),
        *,
        jobs: bool = False,
        ends_us: int | None = None,
        last: int = 0,
        lift: int = 0,
        lift_swept: int = 0,
    ) -> None:
        self.wide = tuple(wide)
        """Oldest first."""
        self.jobs = jobs
        """Whether there is any on a single job."""
        self.ends_us = ends_us
        """When the first of all ends by itself."""
        self.last = last
        """The number of the last that was laid."""
        self.lift, self.lift_swept = lift, lift_swept
        self.unswept = tuple(w for w in wide if not w.swept)
        self.asking = tuple(w for w in self.unswept if w.hold.scope not in LANE_SCOPES)
        """Those about which a claim has to ask each candidate, until they are swept."""
        self.scopes = frozenset(w.hold.scope for w in wide)
        self._by_name: dict[tuple[Scope, str], list[Hold]] = {}
        for w in wide:
            self._by_name.setdefault((w.hold.scope, w.hold.name), []).append(w.hold)

    @property
    def any(self) -> bool:
        """Whether a job that is placed may be covered."""
        return bool(self.wide) or self.jobs

    @property
    def due(self) -> bool:
        """Whether there is something to sweep, besides holds whose time is over."""
        return bool(self.unswept) or self.lift > self.lift_swept

    def stops(self, queue: str, type_: str) -> bool:
        """Whether a whole lane of this queue and type stands still."""
        named = self._by_name
        return bool(named) and (
            (Scope.EVERYTHING, "") in named or (Scope.QUEUE, queue) in named or (Scope.TYPE, type_) in named
        )

    def over(
        self, queue: str, type_: str, collection: str | None, submitter: str | None, lineage: str, job_id: int
    ) -> list[Hold]:
        """The wide ones that cover such a job, oldest first."""
        names = [
            (Scope.EVERYTHING, ""),
            (Scope.QUEUE, queue),
            (Scope.TYPE, type_),
            (Scope.COLLECTION, collection),
            (Scope.SUBMITTER, submitter),
        ]
        if Scope.TREE in self.scopes:
            names += [(Scope.TREE, str(top)) for top in (*ancestors(lineage), job_id)]
        found = [
            hold for scope, name in names if name is not None for hold in self._by_name.get((scope, name), ())
        ]
        return sorted(found, key=lambda hold: hold.id)


NONE = ActiveHolds()
_WIDE = ", ".join(f"'{scope}'" for scope in Scope if scope is not Scope.JOB)


def read(tx: Tx) -> ActiveHolds:
    """What is in force now."""
    found = tx.all(
        "select h.id, h.scope, h.name, h.reason, h.by, h.since_us, h.until_us, h.automatic, h.swept, jobs.lineage "
        "from holds h left join jobs on jobs.id = case when h.scope = 'tree' then cast(h.name as bigint) end "
        f"where h.scope in ({_WIDE}) order by h.id"
    )
    counted = dict(tx.all("select name, value from counters where name in ('hold', 'lift', 'lift_swept')"))
    jobs, ends_us = known_of_single_ones(tx)
    return ActiveHolds(
        [WideHold(hold(r[:8]), bool(r[8]), r[9]) for r in found],
        jobs=jobs,
        ends_us=ends_us,
        last=counted["hold"],
        lift=counted["lift"],
        lift_swept=counted["lift_swept"],
    )


def known_of_single_ones(tx: Tx) -> tuple[bool, int | None]:
    """All that is known of them without looking for one: whether there are any, and when the first ends (of
    all holds)."""
    any_ = tx.value("select 1 from holds where scope = 'job' limit 1") is not None
    return any_, tx.value("select min(until_us) from holds where until_us is not null")


def hold(row: Sequence[Any]) -> Hold:
    """A hold from its row, ``COLUMNS``."""
    id_, scope, name, reason, by, since_us, until_us, automatic = row
    return Hold(
        id=id_,
        scope=Scope(scope),
        name=name,
        reason=reason,
        by=by,
        since_us=since_us,
        until_us=until_us,
        automatic=bool(automatic),
    )


# --- one job ----------------------------------------------------------------------------------


def first(tx: Tx, registry: "Registry", row: Row, queue: str) -> Hold | None:
    """A hold that covers a job which would stand in this queue now; None: there is none."""
    holds = registry.holds
    if not holds.any:
        return None
    if holds.wide:
        found = _wide_over(tx, holds, row, queue)
        if found:
            return found[0]
    return next(iter(on_job(tx, row.id)), None) if holds.jobs else None


def holds_of(tx: Tx, registry: "Registry", row: Row) -> list[Hold]:
    """All that cover a job, oldest first."""
    found = _wide_over(tx, registry.holds, row, row.queue) + on_job(tx, row.id)
    return sorted(found, key=lambda hold: hold.id)


def on_job(tx: Tx, job_id: int) -> list[Hold]:
    """Those on this single job, oldest first."""
    found = tx.all(
        f"select {COLUMNS} from holds where scope = 'job' and name = ? order by id", (str(job_id),)
    )
    return [hold(row) for row in found]


def stands_held(tx: Tx, job_id: int) -> bool:
    """Whether a hold keeps the job, now or until a sweep finds that none does any more."""
    found = tx.one("select state, waits_for from inactive_jobs where job_id = ?", (job_id,))
    return found is not None and tuple(found) == (State.HELD, HELD_BY_HOLD)


def _wide_over(tx: Tx, holds: ActiveHolds, row: Row, queue: str) -> list[Hold]:
    labels: tuple[str | None, str | None] = (None, None)
    if Scope.COLLECTION in holds.scopes or Scope.SUBMITTER in holds.scopes:
        labels = tx.one("select collection, submitter from jobs where id = ?", (row.id,))
    return holds.over(queue, row.type, *labels, row.lineage, row.id)


# --- many -------------------------------------------------------------------------------------


def clause(wide: Iterable[WideHold]) -> tuple[str, list[str]]:
    """The rule as an SQL condition over ``jobs``, and what is to be bound in it."""
    names: dict[Scope, list[str]] = {}
    for w in wide:
        names.setdefault(w.hold.scope, []).append(w.lineage or w.hold.name)
    if Scope.EVERYTHING in names:
        return "1 = 1", []
    terms = [_TERMS[scope] for scope in names]
    return f"({' or '.join(terms) or '1 = 0'})", [orjson.dumps(n).decode() for n in names.values()]


_TERMS: Mapping[Scope, str] = {
    Scope.TREE: (
        "exists (select 1 from json_each(?) /* text */ j where jobs.lineage = j.value "
        "or (jobs.lineage > j.value || '.' and jobs.lineage < j.value || '/'))"
    ),
    **{
        scope: f"jobs.{scope} in (select j.value from json_each(?) /* text */ j)"
        for scope in (Scope.QUEUE, Scope.TYPE, Scope.COLLECTION, Scope.SUBMITTER)
    },
}


def among(tx: Tx, holds: ActiveHolds, wide: Sequence[WideHold], ids: Sequence[int]) -> dict[int, Hold]:
    """Of these jobs those that one of these ``wide`` holds covers, each with the oldest hold over it."""
    if not wide or not ids:
        return {}
    condition, binds = clause(wide)
    found = tx.all(
        "select jobs.id, jobs.queue, jobs.type, jobs.collection, jobs.submitter, jobs.lineage "
        f"from json_each(?) l cross join jobs where jobs.id = l.value and {condition}",
        (orjson.dumps(ids).decode(), *binds),
    )
    return {
        id_: holds.over(queue, type_, collection, submitter, lineage, id_)[0]
        for id_, queue, type_, collection, submitter, lineage in found
    }


def among_single(tx: Tx, ids: Sequence[int]) -> dict[int, Hold]:
    """Of these jobs those on which a hold of their own lies."""
    found = tx.all(
        f"select l.value, {', '.join(f'h.{c}' for c in COLUMNS.split(', '))} from json_each(?) l "
        "join holds h on h.scope = 'job' and h.name = cast(l.value as text) order by h.id desc",
        (orjson.dumps(ids).decode(),),
    )
    return {row[0]: hold(row[1:]) for row in found}


def covered(tx: Tx, holds: ActiveHolds, ids: Sequence[int]) -> dict[int, Hold]:
    """Of these jobs those that any hold covers, each with one over it."""
    if not holds.any:
        return {}
    return (among_single(tx, ids) if holds.jobs else {}) | among(tx, holds, holds.wide, ids)
