"""Reconciliation of a node with the store after a connection was lost during a commit.

It runs in a write transaction, which waits for the one in doubt: that one has been committed by then, or
never will be. The node compares the answer with what it sent: a record that is in the history was committed,
a lease that it does not know was granted in the answer that it has not received (``spinney.node``).
"""

from collections.abc import Sequence

from spinney.model.jobs import Reconciliation, Record
from spinney.store.sql.connection.database import Tx, list_text


def reconcile(tx: Tx, node_id: int, records: Sequence[Record]) -> Reconciliation:
    """Return the node's leases and recorded fences; see ``Store.reconcile``.

    An attempt that has ended is in ``attempts``, or, as the final one of a plain job, in its row in ``jobs``.
    Both are looked up by job and compared by fence, because neither has an index on fences."""
    jobs = list_text([r.job_id for r in records])
    ended = {
        *tx.all(
            "select a.job_id, a.fence from json_each(?) j join attempts a on a.job_id = j.value", (jobs,)
        ),
        *tx.all("select jobs.id, final_fence from json_each(?) j join jobs on jobs.id = j.value", (jobs,)),
    }
    return Reconciliation(
        leased=tx.all("select job_id, fence from leases where node_id = ? order by fence", (node_id,)),
        recorded=frozenset(r.fence for r in records if (r.job_id, r.fence) in ended),
    )
