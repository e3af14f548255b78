"""The first rows of lanes in ``ready``, for one claim.

A claim first has to know the most urgent priority that each lane has jobs of. It reads one row of each lane
by the primary key of ``ready``. On PostgreSQL it reads two, from the lane's low watermark on: they also
become the next watermarks, and show whether a lane has a single job, so that an idle node that claims it
needs no further query. With a file that is looked up separately, when only one lane has jobs."""

from spinney.store.sql.claim.candidates import Candidate, Candidates
from spinney.store.sql.connection.database import Tx, grouped, list_text
from spinney.store.sql.connection.postgres_dialect import array
from spinney.store.sql.registry.registry import Lane, Registry

_HEADS = (
    "select l.lane, r.priority, r.share, r.position, r.job_id from unnest(cast(? as bigint[]), cast(? as integer[]), "
    "cast(? as bigint[]), cast(? as text[])) as l(lane, priority, share, position) cross join lateral "
    "(select * from ready where ready.lane = l.lane and (ready.priority, ready.share, ready.position) "
    ">= (l.priority, l.share, l.position) order by ready.priority, ready.share, ready.position limit 2) r"
)
"""Selects the first two rows of each lane from a position on, for PostgreSQL."""
_FIRST_TWO = (
    "select priority, position, job_id, lane, share from ready where lane = ? "
    "order by priority, share, position limit 2"
)


class LaneHeads:
    """Reads the most urgent priority of lanes. ``candidates`` gets the first share of each, where that is read, too."""

    def __init__(self, tx: Tx, registry: Registry, candidates: Candidates) -> None:
        self._tx, self._registry, self._candidates = tx, registry, candidates
        self.alone: dict[int, tuple[int, Candidate]] = {}
        """Lanes with a single row, with its priority: an idle node that claims one job spares the other queries."""
        self.emptied: set[int] = set()
        """The lanes in ``alone`` whose row the claim has taken."""

    def note_taken(self, lane: Lane) -> None:
        """Note that the claim took the first rows of a lane: one with a single row is empty now."""
        if lane.id in self.alone:
            self.emptied.add(lane.id)

    def of(self, lanes: list[Lane], above: int) -> dict[int, int]:
        """Return the most urgent priority (greater than ``above``) of each lane that has jobs. ``above`` is
        -1 for the first look of a claim, which also finds lanes with a single row (``alone``)."""
        if not lanes:
            return {}
        if self._tx.postgresql:
            return self._marked_heads(lanes, above)
        sql = (
            "select l.value, (select r.priority from ready r where r.lane = l.value and r.priority > ? "
            "order by r.priority limit 1) "
            "from json_each(?) l"
        )
        ids = [lane.id for lane in lanes if lane.id not in self.emptied]
        if not ids:
            return {}
        rows = self._tx.all(sql, (above, list_text(ids)))
        heads = {lane: head for lane, head in rows if head is not None}
        if above < 0 and len(heads) == 1:
            (lane_id,) = heads
            first = self._tx.all(_FIRST_TWO, (lane_id,))
            self.alone = {lane_id: (first[0][0], first[0][1:])} if len(first) == 1 else {}
        elif above < 0:
            self.alone = {}
        return heads

    def _marked_heads(self, lanes: list[Lane], above: int) -> dict[int, int]:
        """Return what ``of`` returns, on PostgreSQL: each lane is read from its low watermark on. Now and then the
        first rows become the watermarks."""
        starts = [
            (x.id, *self._registry.watermarks.start(x.id, above)) for x in lanes if x.id not in self.emptied
        ]
        if not starts:
            return {}
        rows = self._tx.all(_HEADS, [array(column) for column in zip(*starts, strict=True)])
        rows_of = grouped((row[0], row[1:]) for row in sorted(rows))
        if above < 0:
            self._registry.watermarks.note(
                self._tx, {lane_id: rows[0][:3] for lane_id, rows in rows_of.items()}
            )
            self.alone = {
                lane_id: (priority, (position, job_id, lane_id, share))
                for lane_id, ((priority, share, position, job_id), *others) in rows_of.items()
                if not others
            }
        for lane_id, ((priority, share, _, _), *_) in rows_of.items():
            self._candidates.least[(lane_id, priority)] = share
        return {lane_id: rows[0][0] for lane_id, rows in rows_of.items()}
