"""Requests for the stacks of running attempts, as rows: the node that runs the attempt answers by a file in
the job's folder, and deletes the row.

A row is not durable and expires after a minute, so neither a crash of the caller nor one of the node leaves
anything.
"""

from collections.abc import Sequence

from spinney.model.errors import Refused
from spinney.store.sql.connection.database import list_text
from spinney.store.sql.session import SqlPart

KEPT_US = 60_000_000
"""The age at which requests expire, in microseconds."""


class SqlStackRequests(SqlPart):
    """Requests for stacks by the fence of the attempt: at most one for each, however many people ask."""

    def ask(self, job_id: int, *, now_us: int) -> int:
        """Request the stacks of the attempt of a job that runs now, and return its fence.

        A request that is open already is replaced. Raises Refused when no attempt runs, or when it
        runs in an external worker.
        """
        with self._session.write(durable=False) as tx:
            lease = tx.one(
                "select fence, node_id from leases where job_id = ? and running_us is not null", (job_id,)
            )
            if lease is None:
                raise Refused(
                    f"no attempt of job {job_id} is running; 'spinney show {job_id}' shows its state"
                )
            fence, node_id = lease
            if tx.exists("select 1 from external_workers where node_id = ?", (node_id,)):
                raise Refused(
                    f"job {job_id} runs in an external worker, whose stacks no node can take; look there"
                )
            tx.run("delete from stack_requests where fence = ? or asked_us < ?", (fence, now_us - KEPT_US))
            tx.run(
                "insert into stack_requests (fence, job_id, node_id, asked_us) values (?, ?, ?, ?)",
                (fence, job_id, node_id, now_us),
            )
            return int(fence)

    def due(self, node_id: int) -> Sequence[int]:
        """Return the fences of attempts of a node whose stacks are requested."""
        with self._session.database.look() as tx:
            return tx.column("select fence from stack_requests where node_id = ?", (node_id,))

    def is_due(self, fence: int, *, job_id: int) -> bool:
        """Return whether the node has not answered the request yet."""
        with self._session.database.look() as tx:
            return tx.exists("select 1 from stack_requests where fence = ? and job_id = ?", (fence, job_id))

    def drop(self, fences: Sequence[int]) -> None:
        """Remove requests that are answered, or whose attempts have ended."""
        with self._session.write(durable=False) as tx:
            tx.delete_listed("stack_requests", "fence", list_text(fences))
