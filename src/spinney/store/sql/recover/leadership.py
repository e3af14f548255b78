"""Who does what one does for all: a row that names a node.

The row is a lease without a clock. It counts as long as its node is active: one that drains or leaves gives it up
by saying so, in that very transaction, and one that was declared dead has left. Whoever finds it vacant takes it,
in a transaction that looks again, so that of many one gets it. A node that only went silent keeps it until somebody
says that it is dead, by a watch of his own. What is done under it may be done twice without harm, so nothing is
fenced by it.
"""

from spinney.store.sql.connection.database import Tx

MAINTENANCE = "maintenance"


def leader(tx: Tx, dead: int | None = None) -> int | None:
    """The leader; None: nobody, or one that does so no longer (``dead``: nor does this one)."""
    found: int | None = tx.value(
        "select c.node_id from leadership c join nodes n on n.id = c.node_id where c.name = ? and n.state = 'active'",
        (MAINTENANCE,),
    )
    return None if found == dead else found


def take(tx: Tx, node_id: int, dead: int | None) -> int | None:
    """Let the node lead if nobody does and it may; returns who leads now."""
    found = leader(tx, dead)
    if found is not None or tx.value("select state from nodes where id = ?", (node_id,)) != "active":
        return found
    tx.run(
        "insert into leadership (name, node_id) values (?, ?) on conflict (name) do update set "
        "node_id = excluded.node_id",
        (MAINTENANCE, node_id),
    )
    return node_id
