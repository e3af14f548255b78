"""Assigns a settled tree to another collection: its root first, then the jobs below it in bounded steps.

The root's own row says which collection the tree belongs to; each step copies it from there. So of two
assignments at the same time the later one to change the root decides, and an interrupted one is continued by
repeating it.
"""

from spinney.model.errors import Refused
from spinney.model.rights.actor import Actor
from spinney.model.states import SETTLED, State
from spinney.store.sql.audit import note
from spinney.store.sql.registry import job_rows
from spinney.store.sql.session import SqlPart

STEP = 500
"""How many jobs one transaction assigns."""


class SqlCollections(SqlPart):
    """Collections of jobs: labels to which rights, holds and filters refer."""

    def assign(self, root_id: int, collection: str | None, actor: Actor, *, now_us: int) -> None:
        """Assign a settled job without a parent to a collection, or to none; ``assign_below`` does the jobs below it.

        Only settled jobs: those that are open may be held, shown and charged by their collection while they run. Raises
        NoSuchJob; Refused for an open job, and for one with a parent."""
        with self._session.write() as tx:
            row = job_rows.find_visible(tx, root_id)
            if row.root_id != row.id:
                raise Refused(f"job {root_id} is a subjob; assign the whole tree: name job {row.root_id}")
            if row.state not in SETTLED:
                raise Refused(
                    f"job {root_id} is {row.state}; wait until it has settled, or cancel it, then assign it"
                )
            if row.state is State.DELETED:
                raise Refused(f"job {root_id} is deleted; only existing jobs have a collection")
            before = tx.value("select collection from jobs where id = ?", (root_id,))
            tx.run("update jobs set collection = ? where id = ?", (collection, root_id))
            note(tx, now_us, actor, "relabel", {"job": root_id, "from": before, "to": collection}, 1)

    def assign_below(self, root_id: int, *, after: str) -> str | None:
        """Assign the next jobs below a root to its collection: those behind the lineage ``after`` (empty: the
        first ones), at most ``STEP``.

        Return the lineage behind which to continue; None: nothing is left. The order is that of the index on
        root and lineage.
        """
        with self._session.write() as tx:
            rows = tx.all(
                "select lineage from jobs where parent_id is not null and root_id = ? and lineage > ? "
                "order by lineage limit ?",
                (root_id, after, STEP),
            )
            if not rows:
                return None
            last: str = rows[-1][0]
            tx.run(
                "update jobs set collection = (select collection from jobs where id = ?1) "
                "where parent_id is not null and root_id = ?1 and lineage > ?2 and lineage <= ?3",
                (root_id, after, last),
            )
            return last if len(rows) == STEP else None
