"""Leadership: a row that names the node that does what one node does for all.

The row is a lease without a clock. It is valid as long as its node is active: one that drains or leaves gives it up in
that very transaction, and one that was declared dead has left. A node that finds it vacant takes it, in a transaction
that checks again, so that only one of many gets it. A node that is only silent keeps it until another one declares it
dead by its own clock. The leader's work may be done twice without harm, so nothing is fenced by it."""

from spinney.store.sql.connection.database import Tx
from spinney.store.sql.records import upsert

MAINTENANCE = "maintenance"


def leader(tx: Tx, dead: int | None = None) -> int | None:
    """Return the leader; None: there is none, it is no longer active, or it is ``dead``, a node that the
    caller has observed to be silent for longer than its lease."""
    node_id: int | None = tx.value(
        "select c.node_id from leadership c join nodes n on n.id = c.node_id where c.name = ? and n.state = 'active'",
        (MAINTENANCE,),
    )
    return None if node_id == dead else node_id


def take(tx: Tx, node_id: int, dead: int | None) -> int | None:
    """Make the node the leader if there is none and it is active; return the leader. ``dead``: a node that counts as no
    leader."""
    current = leader(tx, dead)
    if current is not None or tx.value("select state from nodes where id = ?", (node_id,)) != "active":
        return current
    upsert(tx, "leadership", "name", {"name": MAINTENANCE, "node_id": node_id})
    return node_id
