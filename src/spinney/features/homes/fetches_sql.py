"""Requests for files on other hosts, and their answers, as rows.

So no node needs a port, and the rights are those of the store. A request lives for about a minute (by the
clock of the process that expires it), and few are open at a time. None of these transactions is durable: a
request that a power failure takes is repeated by its reader.
"""

import base64
from collections.abc import Sequence

import orjson

from spinney.model.errors import Refused
from spinney.model.homes import PIECE_BYTES, DirectoryEntry, Fetch, FetchResult
from spinney.model.values.unreadable import Unreadable, json_object
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.registry import job_rows
from spinney.store.sql.registry.homes import whereabouts
from spinney.store.sql.session import SqlPart

AT_ONCE = 32
"""How many requests are open at a time, answered or not: with 64 kB each, some megabytes at most."""
KEPT_US = 60_000_000
"""The age at which requests expire, in microseconds."""


class SqlFetches(SqlPart):
    """Requests for pieces of files in job folders on another host, which the nodes there answer through
    the store.

    They are few and small: the caller waits for the answer and takes it away; those that nobody takes
    expire.
    """

    def expire(self, tx: Tx, now_us: int) -> None:
        """Remove, in the caller's transaction, requests and answers for which nobody waits any more."""
        if self._session.registry.homes.local:
            tx.run("delete from fetches where asked_us < ?", (now_us - KEPT_US,))

    def ask(self, job_id: int, path: str, *, start: int = 0, length: int, now_us: int) -> int:
        """Request a piece of a file, and return the id of the request.

        ``path`` is that within the job's folder; with ``length`` 0 the names in a directory are
        requested, from the ``start``-th on. Raises NoSuchJob, and Refused (the job has no folder on
        another host, no node has it, too many requests are open, or the path is not valid text).
        """
        if "\0" in path or path.encode("utf-8", "replace").decode() != path:
            raise Refused("such a path cannot be requested from another host; read it on the host itself")
        with self._session.write(durable=False) as tx:
            row = job_rows.find_visible(tx, job_id)
            home = whereabouts(tx, self._session.registry.homes, row)
            if home is None:
                raise Refused(f"job {job_id} has no folder on another host")
            if not tx.exists("select 1 from nodes where home = ? and state <> 'left' limit 1", (home.id,)):
                raise Refused(
                    f"the folder of job {job_id} is on {home}, where no node runs; start one "
                    f"there, or look there yourself"
                )
            self.expire(tx, now_us)
            if tx.value("select count(*) from fetches") >= AT_ONCE:
                raise Refused(
                    "too many files are being requested from other hosts just now; try again in a minute"
                )
            number: int = tx.take("fetch")
            tx.run(
                "insert into fetches (id, home, job_id, path, start, length, asked_us) values (?, ?, ?, ?, ?, ?, ?)",
                (number, home.id, job_id, path, start, min(length, PIECE_BYTES), now_us),
            )
            return number

    def due(self, home_id: int) -> Sequence[Fetch]:
        """Return the requests to the nodes of a home that are not answered yet, the oldest first."""
        with self._session.database.look() as tx:
            sql = "select id, job_id, path, start, length from fetches where home = ? and answer is null order by id"
            return [Fetch._make(row) for row in tx.all(sql, (home_id,))]

    def answer(self, fetch_id: int, result: FetchResult) -> None:
        """Store the answer to a request. The first answer counts; an answer to an expired request is ignored."""
        with self._session.write(durable=False) as tx:
            tx.run(
                "update fetches set answer = ? where id = ? and answer is null", (_to_text(result), fetch_id)
            )

    def take(self, fetch_id: int) -> FetchResult | None:
        """Return the answer and remove it; None while there is none. Raises Refused when the request
        has expired."""
        with self._session.database.look() as tx:
            row = tx.one("select answer from fetches where id = ?", (fetch_id,))
        if row is None:
            raise Refused("the request expired before a node answered it; try again")
        if row[0] is None:
            return None
        self.drop(fetch_id)
        return _from_text(row[0])

    def drop(self, fetch_id: int) -> None:
        """Remove a request for whose answer nobody waits any more, if it is still there."""
        with self._session.write(durable=False) as tx:
            tx.run("delete from fetches where id = ?", (fetch_id,))


def _to_text(result: FetchResult) -> str:
    data = None if result.data is None else base64.b64encode(result.data).decode()
    names = None if result.names is None else [list(entry) for entry in result.names]
    return orjson.dumps({"data": data, "names": names, "error": result.error}).decode()


def _from_text(text: str) -> FetchResult:
    value = json_object(text, "the answer")
    if isinstance(value, Unreadable):
        return FetchResult(error=str(value))
    names = value["names"]
    return FetchResult(
        data=None if value["data"] is None else base64.b64decode(value["data"]),
        names=None if names is None else tuple(DirectoryEntry(*entry) for entry in names),
        error=value["error"],
    )
