"""What a node ran lately, for the picture of its slots.

No index has the node of an attempt. So the newest jobs are looked through, and what the node runs now is read from its
leases; work on older jobs is not found."""

from collections.abc import Sequence
from typing import NamedTuple

from spinney.model.access import AccessScope
from spinney.model.jobs import Filter
from spinney.store.sql.read import filter_queries
from spinney.store.sql.registry.job_rows import VISIBLE
from spinney.store.sql.session import SqlPart

LOOKED_AT = 2_000
"""How many of the newest jobs are looked through."""
ATTEMPTS_MAX = 600
"""The most attempts that are read for the picture of slots."""


class NodeAttempt(NamedTuple):
    """An attempt that a node ran, or runs."""

    job_id: int
    type: str
    stage: str
    outcome: str | None
    """The outcome; None: the attempt runs."""
    started_us: int
    """When it began, in microseconds since 1970 UTC."""
    ended_us: int | None
    """When it ended, in microseconds since 1970 UTC; None: it runs."""


class SqlNodeAttempts(SqlPart):
    """Read the attempts that a node runs now or has ended lately, for the page of a node."""

    def running(self, node_id: int, within: AccessScope | None) -> list[NodeAttempt]:
        """Return the attempts that a node runs now on visible jobs, by slot, at most ``ATTEMPTS_MAX``."""
        where, values = filter_queries.conditions(Filter(within=within))
        conditions = " and ".join([VISIBLE, *where])
        sql = (
            "select l.job_id, jobs.type, lanes.stage, null, l.running_us, null from leases l "
            "cross join jobs join lanes on lanes.id = l.lane "
            f"where jobs.id = l.job_id and l.node_id = ? and l.running_us is not null and {conditions} "
            "order by l.slot limit ?"
        )
        return self._attempts(sql, (node_id, *values, ATTEMPTS_MAX))

    def ended(self, node_id: int, since_us: int, within: AccessScope | None) -> list[NodeAttempt]:
        """Return the attempts on visible jobs that a node ended since then, the latest first, at most
        ``ATTEMPTS_MAX``.

        Only those of the newest ``LOOKED_AT`` jobs. The last attempt of a job that passed is in the
        row of the job (``final_…``), and in ``attempts`` only after the job has been opened again, so
        the two parts do not overlap.
        """
        where, values = filter_queries.conditions(Filter(within=within))
        conditions = " and ".join(["jobs.id > (select coalesce(max(id), 0) from jobs) - ?", VISIBLE, *where])
        sql = (
            "select a.job_id, jobs.type, a.stage, a.outcome, a.started_us, a.ended_us as ended_us "
            "from jobs cross join attempts a where a.job_id = jobs.id "
            f"and a.node_id = ? and a.ended_us > ? and a.started_us > 0 and {conditions} "
            "union all select jobs.id, jobs.type, jobs.stage, 'ok', jobs.final_began_us, jobs.final_ended_us "
            "from jobs where jobs.final_fence is not null and jobs.node_id = ? and jobs.final_ended_us > ? "
            f"and {conditions} order by ended_us desc limit ?"
        )
        chosen = (node_id, since_us, LOOKED_AT, *values)
        return self._attempts(sql, (*chosen, *chosen, ATTEMPTS_MAX))

    def _attempts(self, sql: str, values: Sequence[object]) -> list[NodeAttempt]:
        with self._session.read() as tx:
            return [NodeAttempt(*row) for row in tx.all(sql, values)]
