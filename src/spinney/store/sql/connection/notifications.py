"""Wake-ups through PostgreSQL: NOTIFY on a channel for each schema, and LISTEN on a separate connection.

A notification says "look at the store", and who sent it. It promises nothing: polling alone would do. It is sent after
the commit, in a transaction of its own, because a transaction with a NOTIFY takes a lock of the whole cluster while it
commits, and the hot transactions must not wait for that (``PostgresDatabase.notify``).
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import psycopg
from psycopg import sql

from spinney.model.errors import StoreUnusable

_NAME_BYTES = 63


def channel(schema: str) -> str:
    """Return the channel of a store. Several stores in one database have different ones."""
    name = f"spinney_{schema}"
    # No schema of a store has a # in its name, so a shortened name equals no other.
    return name if len(name) <= _NAME_BYTES else f"spinney#{sha256(schema.encode()).hexdigest()[:40]}"


class PostgresListener:
    """Listens to one channel (``spinney.store.contract.Listener``). It owns the connection, which is in no
    transaction, because a session gets notifications only between transactions."""

    def __init__(self, connection: "psycopg.Connection[Any]", schema: str, name: str) -> None:
        self._connection, self._name = connection, name
        connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel(schema))))

    def fileno(self) -> int:
        return self._connection.fileno()

    def poll(self) -> Sequence[str]:
        # Through libpq itself, because the driver's generator waits and would need one turn of the loop for each.
        pgconn, senders = self._connection.pgconn, []
        try:
            pgconn.consume_input()
            while (notification := pgconn.notifies()) is not None:
                senders.append(notification.extra.decode(errors="replace"))
        except psycopg.Error as error:
            message = " ".join(str(error).split())
            raise StoreUnusable(
                f"{self._name} has ended the connection that listens ({message}); polling goes on, and it is made again"
            ) from error
        return senders

    def close(self) -> None:
        self._connection.close()
