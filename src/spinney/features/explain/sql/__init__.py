"""The one cause for which a job is not running now, with its facts, as of one snapshot.

``case``         one job in one snapshot, and the causes that all kinds share: holds and locks
``unclaimable``  jobs that are settled, at work or inactive: their own rows tell the cause, or, for a scheduled
                 job whose time has come, ``obstacles``
``claimable``    pending jobs: the questions that a claim asks, in its order
``obstacles``    why no node or external worker may run a pending job, or one whose time has come, at all

The questions are asked in the order in which the engine asks them; the first that stops the job is the answer. What a
claim would do on the same snapshot must agree: a job that is ``next`` is claimed, one with any other cause but ``turn``
is not. So whoever changes what a claim admits (``spinney.store.sql.claim``) changes ``claimable`` or ``obstacles`` with
it.

Specified by ``tests/contract/test_explainer.py`` (which compares each cause with a claim).
"""

from dataclasses import replace

from spinney.features.explain.explanation import Cause
from spinney.features.explain.sql.claimable import Claimable
from spinney.features.explain.sql.unclaimable import Unclaimable
from spinney.model.jobs import Filter
from spinney.model.lineage import ancestors, superseded_by
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.read import filter_queries
from spinney.store.sql.registry import job_rows
from spinney.store.sql.registry.job_rows import Row
from spinney.store.sql.session import SqlPart


class SqlExplainer(SqlPart):
    """Explains why a job is not running."""

    def explain(self, job_id: int, *, now_us: int) -> Cause:
        """Return the one cause for which a job is not running now. Raises NoSuchJob, also for a job whose
        submission is still being written."""
        with self._session.look() as tx:
            row = job_rows.find_visible(tx, job_id)
            case = tx, self._session.registry, row, now_us
            cause = Unclaimable(*case).cause() or Claimable(*case).cause()
            above = _superseded_by(tx, row)
        return cause if above is None else replace(cause, facts={**cause.facts, "superseded_by": above})


def _superseded_by(tx: Tx, row: Row) -> int | None:
    """Return the job that was set to run again without this one or one above it, if there is one."""
    line = (*ancestors(row.lineage), row.id)
    superseded = Filter(ids=line, superseded=True)
    return superseded_by(row.lineage, filter_queries.ids(tx.all, superseded, limit=len(line)))
