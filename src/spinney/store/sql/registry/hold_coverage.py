"""Which holds cover a job: the rule, for a single row and for many rows in SQL.

The wide holds (all but those on single jobs) are read with the registry, so that a transaction pays nothing when there
are none. Holds on single jobs are never listed, because there may be a hundred thousand of them: the placement of a job
looks up its own holds by their index, and a claim need not, because a new hold removes a pending job from ``ready`` at
once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from spinney.model.lineage import ancestors
from spinney.model.settings.holds import Hold, Scope
from spinney.model.states import State
from spinney.store.sql.connection.database import Tx, grouped, list_text
from spinney.store.sql.records import RowMap
from spinney.store.sql.registry.job_rows import Row

HELD_BY_HOLD = "hold"
"""``inactive_jobs.waits_for`` of a job that a hold covers; a job that its own stage holds has none."""
LANE_SCOPES = frozenset({Scope.EVERYTHING, Scope.QUEUE, Scope.TYPE})
"""Holds that stop whole lanes; for the others each job has to be checked."""
HOLDS = RowMap(Hold, "holds", prefix="holds.")


class WideHold(NamedTuple):
    """A hold on more than one job."""

    hold: Hold
    swept: bool
    """Whether all jobs that it covered in ``ready`` are held, so that claims need not check for it."""
    lineage: str | None
    """The lineage of the top job, for a hold on a tree; None for other scopes, and where that job is
    missing."""


@dataclass(frozen=True, eq=False)
class ActiveHolds:
    """The active holds, as the current transaction sees them. ``registry.holds`` is always up to date."""

    wide: Sequence[WideHold] = ()
    """The holds on more than one job, the oldest first."""
    jobs: bool = False
    """Whether there are holds on single jobs."""
    ends_us: int | None = None
    """The earliest time at which a hold ends by itself."""
    last: int = 0
    """The id of the newest hold."""
    lift: int = 0
    lift_swept: int = 0
    """How many wide holds have ended, and up to which of them their jobs were released."""

    @cached_property
    def unswept(self) -> tuple[WideHold, ...]:
        return tuple(w for w in self.wide if not w.swept)

    @cached_property
    def asking(self) -> tuple[WideHold, ...]:
        """Holds for which a claim has to check each candidate, until they are swept."""
        return tuple(w for w in self.unswept if w.hold.scope not in LANE_SCOPES)

    @cached_property
    def _by_name(self) -> Mapping[tuple[Scope, str], list[Hold]]:
        return grouped(((w.hold.scope, w.hold.name), w.hold) for w in self.wide)

    @cached_property
    def scopes(self) -> frozenset[Scope]:
        return frozenset(w.hold.scope for w in self.wide)

    @property
    def any(self) -> bool:
        """Return whether any job may be covered."""
        return bool(self.wide) or self.jobs

    @property
    def due(self) -> bool:
        """Return whether there is something to sweep, besides holds that end by time: a hold whose jobs are
        not all held yet, or the end of one whose jobs do not all go on yet."""
        return bool(self.unswept) or self.lift > self.lift_swept

    def stops(self, queue: str, type_: str) -> bool:
        """Return whether a hold stops all lanes of this queue and type. Such lanes are left out by a claim as
        a whole, whether they were swept or not."""
        named = self._by_name
        return bool(named) and (
            (Scope.EVERYTHING, "") in named or (Scope.QUEUE, queue) in named or (Scope.TYPE, type_) in named
        )

    def over(
        self, queue: str, type_: str, collection: str | None, submitter: str | None, lineage: str, job_id: int
    ) -> list[Hold]:
        """Return the wide holds that cover such a job, oldest first."""
        names = [
            (Scope.EVERYTHING, ""),
            (Scope.QUEUE, queue),
            (Scope.TYPE, type_),
            (Scope.COLLECTION, collection),
            (Scope.SUBMITTER, submitter),
        ]
        if Scope.TREE in self.scopes:
            names += [(Scope.TREE, str(top)) for top in (*ancestors(lineage), job_id)]
        covering = [
            hold for scope, name in names if name is not None for hold in self._by_name.get((scope, name), ())
        ]
        return sorted(covering, key=lambda hold: hold.id)


# What a registry has before its first refresh.
NONE = ActiveHolds()
_WIDE = ", ".join(f"'{scope}'" for scope in Scope if scope is not Scope.JOB)


def read(tx: Tx) -> ActiveHolds:
    """Read the holds in force, those that cover many jobs and those on single ones, as the registry keeps them."""
    rows = tx.all(
        f"select {HOLDS.columns}, holds.swept, jobs.lineage from holds "
        "left join jobs on jobs.id = case when holds.scope = 'tree' then cast(holds.name as bigint) end "
        f"where holds.scope in ({_WIDE}) order by holds.id"
    )
    counted = dict(tx.all("select name, value from counters where name in ('hold', 'lift', 'lift_swept')"))
    # One may be missing in a damaged store, as in ``Registry.refresh``.
    jobs, ends_us = known_of_single_ones(tx)
    return ActiveHolds(
        tuple(WideHold(HOLDS.read(row), bool(swept), lineage) for *row, swept, lineage in rows),
        jobs=jobs,
        ends_us=ends_us,
        last=counted.get("hold", 0),
        lift=counted.get("lift", 0),
        lift_swept=counted.get("lift_swept", 0),
    )


def known_of_single_ones(tx: Tx) -> tuple[bool, int | None]:
    """Return whether there are holds on single jobs, and when the first of all holds ends."""
    any_ = tx.exists("select 1 from holds where scope = 'job' limit 1")
    return any_, tx.value("select min(until_us) from holds where until_us is not null")


# --- one job ----------------------------------------------------------------------------------


def first(tx: Tx, holds: ActiveHolds, row: Row, queue: str) -> Hold | None:
    """Return a hold that covers a job in this queue; None: there is none."""
    if not holds.any:
        return None
    if holds.wide:
        covering = _wide_over(tx, holds, row, queue)
        if covering:
            return covering[0]
    return next(iter(on_job(tx, row.id)), None) if holds.jobs else None


def holds_of(tx: Tx, holds: ActiveHolds, row: Row) -> list[Hold]:
    """Return all holds that cover a job, oldest first."""
    covering = _wide_over(tx, holds, row, row.queue) + on_job(tx, row.id)
    return sorted(covering, key=lambda hold: hold.id)


def on_job(tx: Tx, job_id: int) -> list[Hold]:
    """Return the holds on this single job, oldest first."""
    return HOLDS.all(tx, "where scope = 'job' and name = ? order by id", (str(job_id),))


def stands_held(tx: Tx, job_id: int) -> bool:
    """Return whether the job is held by a hold, or was and is not swept yet."""
    row = tx.one("select state, waits_for from inactive_jobs where job_id = ?", (job_id,))
    return row is not None and tuple(row) == (State.HELD, HELD_BY_HOLD)


def _wide_over(tx: Tx, holds: ActiveHolds, row: Row, queue: str) -> list[Hold]:
    labels: tuple[str | None, str | None] = (None, None)
    if Scope.COLLECTION in holds.scopes or Scope.SUBMITTER in holds.scopes:
        labels = tx.one("select collection, submitter from jobs where id = ?", (row.id,))
    return holds.over(queue, row.type, *labels, row.lineage, row.id)


# --- many -------------------------------------------------------------------------------------


def clause(wide: Iterable[WideHold]) -> tuple[str, list[str]]:
    """Return the rule as an SQL condition on ``jobs``, and its values. It matches the jobs for which
    ``ActiveHolds.over`` returns one of these holds. Names of one scope are passed as one list, so that the
    statement stays the same however many holds there are."""
    names = grouped((w.hold.scope, w.lineage or w.hold.name) for w in wide)
    if Scope.EVERYTHING in names:
        return "1 = 1", []
    terms = [_TERMS[scope] for scope in names]
    return f"({' or '.join(terms) or '1 = 0'})", [list_text(n) for n in names.values()]


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
    """Return which of these jobs one of these ``wide`` holds covers, each with its oldest hold."""
    if not wide or not ids:
        return {}
    condition, binds = clause(wide)
    rows = tx.all(
        "select jobs.id, jobs.queue, jobs.type, jobs.collection, jobs.submitter, jobs.lineage "
        f"from jobs where jobs.id in (select j.value from json_each(?) j) and {condition}",
        (list_text(ids), *binds),
    )
    return {
        id_: holds.over(queue, type_, collection, submitter, lineage, id_)[0]
        for id_, queue, type_, collection, submitter, lineage in rows
    }


def among_single(tx: Tx, ids: Sequence[int]) -> dict[int, Hold]:
    """Return which of these jobs have a hold of their own, each with its oldest one: rows come latest first,
    and a later row of a job replaces the one before."""
    rows = tx.all(
        f"select l.value, {HOLDS.columns} from json_each(?) l "
        "join holds on holds.scope = 'job' and holds.name = cast(l.value as text) order by holds.id desc",
        (list_text(ids),),
    )
    return {job_id: HOLDS.read(row) for job_id, *row in rows}


def covered(tx: Tx, holds: ActiveHolds, ids: Sequence[int]) -> dict[int, Hold]:
    """Return which of these jobs any hold covers, each with one of its holds."""
    if not holds.any:
        return {}
    return (among_single(tx, ids) if holds.jobs else {}) | among(tx, holds, holds.wide, ids)
