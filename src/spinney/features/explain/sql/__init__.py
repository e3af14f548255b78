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

from spinney.features.explain.explanation import Cause
from spinney.features.explain.sql.claimable import Claimable
from spinney.features.explain.sql.unclaimable import Unclaimable
from spinney.store.sql.registry import job_rows
from spinney.store.sql.session import SqlPart


class SqlExplainer(SqlPart):
    """Explains why a job is not running."""

    def explain(self, job_id: int, *, now_us: int) -> Cause:
        """Return the one cause for which a job is not running now. Raises NoSuchJob, also for a job whose
        submission is still being written."""
        with self._session.look() as tx:
            row = job_rows.find_visible(tx, job_id)
            case = tx, self._session.registry, row, now_us
            return Unclaimable(*case).cause() or Claimable(*case).cause()
