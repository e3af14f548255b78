"""Nodes as operators see them, and the orders that operators give.

Orders are kept by the name of a node (``node_settings``), so that they outlast its restarts and hold for all
its incarnations together. The claim reads them in its own transaction (``nodes.claimant``): when a verb has
returned, no claim contradicts it, whether the node has heard of it or not.
"""

from collections.abc import Sequence
from typing import Any

from spinney.model.errors import Refused, UsageError
from spinney.model.fleet import (
    DIED,
    DIED_SHOWN_US,
    SLOTS_MAX,
    NodeOrders,
    NodeStatus,
)
from spinney.model.rights.actor import Actor
from spinney.model.values.hints import did_you_mean, some_of
from spinney.store.sql.audit import note
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.records import upsert
from spinney.store.sql.recover import leadership
from spinney.store.sql.registry import nodes
from spinney.store.sql.session import SqlPart

_DIED_TEXT = "it died, or could not be reached for longer than its lease; its jobs were taken back"
"""What people read for a node that others have declared dead."""


class SqlFleet(SqlPart):
    """The nodes, and operators' orders for them. Every order is audited in its own transaction.

    An order is kept by the node's name, so it outlasts restarts. No claim contradicts it from the moment
    the method returns; the node itself learns of it within two seconds.
    """

    def all(self, *, now_us: int) -> Sequence[NodeStatus]:
        """Return the nodes in the order in which they joined.

        These are the nodes that have not left, those that left with leases still on them, and those
        that died within the last day and have not come back; external workers are among them.
        ``now_us`` decides which are silent or presumed dead.
        """
        with self._session.look() as tx:
            used = dict(tx.all("select node_id, count(distinct slot) from leases group by node_id"))
            started = dict(tx.all("select id, slots from nodes"))
            drains = {
                name: (by, reason)
                for name, by, reason in tx.all("select name, by, reason from node_settings where drained = 1")
            }
            leader = leadership.leader(tx)
            return [
                NodeStatus(
                    id=node.id,
                    node=node.name,
                    host=node.host,
                    pid=node.pid,
                    version=node.version,
                    state=node.state_shown(now_us),
                    seen_us=node.seen_us,
                    started_us=node.started_us,
                    slots=node.slots,
                    slots_started=started[node.id],
                    used=used.get(node.id, 0),
                    leases=node.leases,
                    types=node.types,
                    serves=node.serves,
                    load=node.load,
                    is_leader=node.id == leader,
                    trouble=_DIED_TEXT if node.trouble == DIED else node.trouble,
                    lease_s=node.lease_s,
                    drained_by=drains.get(node.name, (None, None))[0],
                    drained_reason=drains.get(node.name, (None, None))[1],
                )
                for node in sorted(
                    (*nodes.all_nodes(tx), *nodes.died_since(tx, now_us - DIED_SHOWN_US)),
                    key=lambda node: node.id,
                )
            ]

    def orders(self, name: str) -> NodeOrders:
        """Return the orders for the nodes of this name; the defaults where there are none."""
        with self._session.look() as tx:
            return _orders(tx, name)

    def drain(self, name: str, actor: Actor, *, now_us: int) -> NodeOrders:
        """Stop a node from taking new jobs, and return its orders.

        What runs finishes, what has not begun goes back, and the node stays. A repeated call sets the
        new reason. Raises Refused when no node of this name has ever joined.
        """
        with self._session.write() as tx:
            _require_known(tx, name)
            values = {"name": name, "drained": 1, "by": actor.by, "reason": actor.reason, "at_us": now_us}
            upsert(tx, "node_settings", "name", values)
            note(tx, now_us, actor, "drain", {"node": name}, 1)
            return _orders(tx, name)

    def resume(self, name: str, actor: Actor, *, now_us: int) -> NodeOrders:
        """Let a drained node take jobs again, and return its orders. Raises Refused when it is not
        drained, or has never joined."""
        with self._session.write() as tx:
            _require_known(tx, name)
            if not _orders(tx, name).drained:
                raise Refused(f"node {name} is not drained; 'spinney nodes' shows what each node does")
            tx.run("update node_settings set drained = 0 where name = ?", (name,))
            # The doctor counts from here how long an inbox has had no node: this one needs a moment to scan its own.
            tx.run("update inboxes set since_us = ?", (now_us,))
            note(tx, now_us, actor, "resume", {"node": name}, 1)
            _delete_empty(tx, name)
            return _orders(tx, name)

    def set_slots(self, name: str, slots: int | None, actor: Actor, *, now_us: int) -> NodeOrders:
        """Set the number of slots of a name, over all its incarnations, and return its orders.

        None: as each was started with. While more are occupied, nothing is claimed. Raises Refused
        (no node of this name has joined) and UsageError (an invalid number).
        """
        if slots is not None and not 1 <= slots <= SLOTS_MAX:
            raise UsageError(
                f"{slots} cannot be a number of slots; give 1 to {SLOTS_MAX:,}, or let the node take nothing new with "
                f"'spinney drain {name}'"
            )
        with self._session.write() as tx:
            _require_known(tx, name)
            # Who drained the node, when and why, stays.
            drain = {"drained": 0, "by": actor.by, "reason": actor.reason, "at_us": now_us}
            upsert(tx, "node_settings", "name", {"name": name, "slots": slots, **drain}, kept=drain)
            note(tx, now_us, actor, "slots", {"node": name, "slots": slots}, 1)
            _delete_empty(tx, name)
            return _orders(tx, name)


def _orders(tx: Tx, name: str) -> NodeOrders:
    """Return the orders for a name, as the transaction sees them."""
    row: Any = tx.one("select drained, slots from node_settings where name = ?", (name,))
    return NodeOrders() if row is None else NodeOrders(drained=bool(row[0]), slots=row[1])


def _delete_empty(tx: Tx, name: str) -> None:
    """Delete the row of a name without orders."""
    tx.run("delete from node_settings where name = ? and drained = 0 and slots is null", (name,))


def _require_known(tx: Tx, name: str) -> None:
    """Raise Refused for a name that no node has ever had, which is a typing error."""
    if tx.exists("select 1 from nodes where name = ? limit 1", (name,)):
        return
    names = tx.column("select distinct name from nodes")
    raise Refused(
        f"no node {name!r} has ever joined{did_you_mean(name, names)}; those that have are: {some_of(names)}"
    )
