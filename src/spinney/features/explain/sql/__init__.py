"""Why a job is not running now: one cause with its facts, as of one snapshot.

The questions are asked in the order in which the engine asks them; the first that stops the job is the answer. What a
claim would do on the same snapshot must agree (``tests/contract/test_explainer.py``): a job that is ``next`` is
claimed, one with any other cause but ``turn`` is not.
"""

from spinney.features.explain.cause import Cause
from spinney.features.explain.sql.claimable import Claimable
from spinney.features.explain.sql.unclaimable import Unclaimable
from spinney.store.sql.registry import job_rows
from spinney.store.sql.session import Session


class SqlExplainer:
    """Explains why a job is not running."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def explain(self, job_id: int, *, now_us: int) -> Cause:
        """Return the one cause for which a job is not running now. Raises NoSuchJob."""
        with self._session.look() as tx:
            row = job_rows.find(tx, -1 if job_rows.is_hidden(tx, job_id) else job_id)
            case = tx, self._session.registry, row, now_us
            return Unclaimable(*case).cause() or Claimable(*case).cause()
