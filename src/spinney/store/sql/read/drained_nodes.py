"""The explanation that nodes that could take a job are drained by an operator."""

import shlex
from collections.abc import Sequence

from spinney.model.jobs import NodeInfo
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.read.unserved_queues import Obstacle

_NAMED = 3


def drained(tx: Tx, type_: str, able: Sequence[NodeInfo]) -> Obstacle | None:
    """Return the obstacle that all of these nodes, which are active and could run the type, are drained; None: one is
    not."""
    if any(n.claims for n in able):
        return None
    names = list(dict.fromkeys(n.name for n in able))
    by, reason = tx.one("select by, reason from node_settings where name = ?", (names[0],))
    why = f" ({reason})" if reason else ""
    if len(names) == 1:
        sentence = f"node {names[0]}, which knows job type {type_!r}, is drained by {by}{why}"
    else:
        more = " and more" if len(names) > _NAMED else ""
        sentence = (
            f"all nodes that know job type {type_!r} are drained: {', '.join(names[:_NAMED])}{more}; "
            f"{names[0]} by {by}{why}"
        )
    return Obstacle("drained", sentence, f"spinney resume {shlex.quote(names[0])}", {"nodes": names})
