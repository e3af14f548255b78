"""Copies a whole store to another database: from SQLite to PostgreSQL, back, or to another of the same kind.

**What is copied**: every row of every table as it is, so that ids continue and the chain of the audit log stays whole;
not what belongs to one database (the counter ``turn``, marks of an upgrade). Job folders are not touched: the new store
has the token of the folder root.

**The source does not change meanwhile.** No node may be active and no job leased. Everything is read from one snapshot;
if anything was written to the source since before that, the copy is rolled back. No writer is blocked.

**An interrupted copy is no store.** The target is marked before anything is written; all rows follow in one
transaction, which removes the mark. Nothing works on a marked target, except another copy.

**The copy is verified**: for every table a digest over its rows, in the order of its key, is computed from what was
read from the source, and again from what the target returns.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import orjson
from sqlalchemy import Boolean, Column, Float, Integer, Table

from spinney.model.errors import Refused, StoreUnusable
from spinney.model.values.hints import first_of
from spinney.model.values.texts import counted
from spinney.store.sql import open_store
from spinney.store.sql.connection.database import DamagedText, Database, Tx
from spinney.store.sql.connection.schema_state import COPYING, INDEX, SCHEMA_VERSION, SchemaState
from spinney.store.sql.connection.sqlite import SqliteDatabase
from spinney.store.sql.schema import metadata

PAGE_BYTES = 4 * 2**20
"""The intended size of a page of rows, so that memory is bounded however wide rows are."""
PAGE_ROWS_LEAST, PAGE_ROWS_MOST = 50, 5_000
INT4 = range(-(2**31), 2**31)
"""What an ``Integer`` column of PostgreSQL holds; SQLite stores 64 bits in any column."""
_NAMED = 5
"""How many nodes a refusal names."""
_COPIED_ROWS: Mapping[str, str] = {
    "counters": "name <> 'turn'",
    "meta": f"name <> '{COPYING}' and name not like '{INDEX}%'",
}
"""The condition on the rows that are copied, for tables that have rows in an empty store already."""

OnProgress = Callable[[str, int, int], None]
"""Called with the action and table, the number of rows done, and the number of all its rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedTable:
    """A table that is identical in both databases."""

    table: str
    rows: int
    """How many rows were copied and read back."""
    digest: str
    """SHA-256 over the rows in the order of the key."""


def copy_store(
    source: str, target: str, *, on_progress: OnProgress = lambda *_: None
) -> Sequence[CopiedTable]:
    """Copy the store of one URL to the empty database of another, and return its tables.

    ``on_progress`` is called after each page of rows. The source is only read. Raises UsageError for a text that is no
    URL of a store, Refused (the target is not empty, nodes are at work), StoreUnusable.
    """
    if source == target:
        raise Refused("a store cannot be copied to where it is; name another place")
    with closing(open_store(source)) as old, closing(open_store(target)) as new:
        return copy(old.database, new.database, on_progress=on_progress)


def copy(
    source: Database, target: Database, *, on_progress: OnProgress = lambda *_: None
) -> Sequence[CopiedTable]:
    """Copy everything, and return the tables by name.

    The whole copy is one transaction of the target, read from one snapshot of the source. Whether the source
    was written to meanwhile is known by its data version, which is taken first and compared last.
    ``on_progress`` is called after each page. Raises Refused (nodes are at work, the target is not empty, the
    source was changed meanwhile) and StoreUnusable (a database cannot be read or written, or the target
    cannot represent a value). Then the target is no store.
    """
    from spinney.store.sql.migrations.upgrades import upgrade  # Alembic is slow to import and rarely needed

    version = source.data_version()
    with source.look() as tx:
        _require_nobody_at_work(source, tx)
        token = tx.value("select value from meta where name = 'folder_token'")
    schema_state = _require_own_schema(source)
    _require_room(target, token)
    upgrade(target, meta={COPYING: source.name})
    _require_one_schema(source, schema_state, target)
    with target.fill() as into:
        occupied = _table_with_rows(into)
        if occupied is None:
            with source.look_long() as snapshot:
                snapshot.exact()
                copied = [
                    _TableCopy(table, source, target, on_progress).copy(snapshot, into) for table in _tables()
                ]
            for copied_table in copied:
                _require_the_same(copied_table, into, target, on_progress)
            if source.data_version() != version:
                raise Refused(
                    f"{source.name} was changed while it was copied, so nothing was kept; stop whatever submits to it "
                    f"or works on it, then run the same command again"
                )
        into.run("delete from meta where name = ?", (COPYING,))
    # Somebody filled it after ``upgrade``. Raised only now that the mark of an unfinished copy is deleted.
    if occupied is not None:
        raise _not_empty(target, occupied)
    return copied


def _tables() -> Sequence[Table]:
    """Return all tables of a store, by name: both databases are read in the same order."""
    return [metadata.tables[name] for name in sorted(metadata.tables)]


# --- preconditions ---------------------------------------------------------------------------


def _require_nobody_at_work(source: Database, tx: Tx) -> None:
    """Raise Refused while a node has not left, dead ones among them, or a job is leased."""
    nodes = tx.all("select name, host, state from nodes where state <> 'left' order by id")
    if nodes:
        named = first_of((f"{name} on {host} ({state})" for name, host, state in nodes), _NAMED)
        raise Refused(
            f"nodes work on {source.name}: {named}; end them with SIGTERM and wait until they have left, or, "
            f"when one is dead, run 'spinney doctor --repair --dead {nodes[0][0]}'"
        )
    leased = tx.value("select count(*) from leases")
    if leased:
        raise Refused(
            f"{counted(leased, 'job is', 'jobs are')} still leased in {source.name}; start a node there, "
            f"which takes them back, end it with SIGTERM, and run the same command again"
        )


def _require_own_schema(source: Database) -> SchemaState:
    """Return the state of the source's schema. Raises StoreUnusable unless it is that of this version."""
    schema_state = source.schema_state()
    if schema_state is None or schema_state.schema != SCHEMA_VERSION:
        raise StoreUnusable(
            f"{source.name} has schema {schema_state.schema if schema_state else 'none'}, this Spinney "
            f"copies {SCHEMA_VERSION} "
            f"alone; use the version that upgraded it"
        )
    return schema_state


def _require_room(target: Database, token: str) -> None:
    """Raise Refused unless the target is an empty database, or one on which an earlier copy was interrupted. ``token``:
    the folder token of the source, by which a copy of it is recognized."""
    schema_state = target.schema_state()
    if schema_state is None or COPYING in schema_state.meta:
        return
    if schema_state.meta.get("folder_token") == token:
        raise Refused(f"{target.name} is the same store, or a copy of it; name another place")
    if schema_state.schema != SCHEMA_VERSION:
        raise Refused(
            f"{target.name} is a store already, of schema {schema_state.schema or 'none'}; name another place"
        )
    with target.look() as tx:
        occupied = _table_with_rows(tx)
    if occupied is not None:
        raise _not_empty(target, occupied)


def _table_with_rows(tx: Tx) -> str | None:
    """Return a table that has rows although there should be none yet; None: there is none."""
    for table in _tables():
        if table.name not in _COPIED_ROWS and tx.exists(f"select 1 from {table.name} limit 1"):
            return table.name
    return None


def _not_empty(target: Database, table: str) -> Refused:
    """Return the refusal of a target in whose ``table`` something stands."""
    return Refused(f"{target.name} is a store that is not empty (see its {table}); name another place")


def _require_one_schema(source: Database, theirs: SchemaState, target: Database) -> None:
    """Raise Refused unless both databases have the same schema, and the source has no upgrade that is not
    finished."""
    ours = target.schema_state()
    if ours is None or (ours.schema, ours.works_with) != (theirs.schema, theirs.works_with):
        raise Refused(
            f"{source.name} has an upgrade that is not finished; run 'spinney init --finish' there, then copy it"
        )


# --- a table ----------------------------------------------------------------------------------


class _TableCopy:
    """The copy of one table, page by page, with a digest of its rows."""

    def __init__(self, table: Table, source: Database, target: Database, on_progress: OnProgress) -> None:
        self._table, self._source, self._target, self._on_progress = table, source, target, on_progress

    def copy(self, snapshot: Tx, into: Tx) -> CopiedTable:
        """Copy the rows of the table in the order of its key, and return their number and digest as they were
        read.

        Rows that an empty store already has (``_COPIED_ROWS``) are deleted first.
        """
        name, columns = self._table.name, ", ".join(column.name for column in self._table.columns)
        if name in _COPIED_ROWS:
            into.run(f"delete from {name} where {_COPIED_ROWS[name]}")
        total: int = snapshot.value(f"select count(*) from {name} where {_copied_rows(self._table)}")
        rows, digest = 0, sha256()
        for page in self._readable(_pages(snapshot, self._table)):
            self._require_keepable(page)
            if name == "audit":
                self._require_whole(page, rows)
            into.insert(name, columns, page)
            digest.update(_canonical(page))
            rows += len(page)
            self._on_progress(f"{name}: copied", rows, total)
        return CopiedTable(table=name, rows=rows, digest=digest.hexdigest())

    def _readable(self, pages: "Iterator[list[Any]]") -> "Iterator[list[Any]]":
        """Yield the pages of the source. Raises StoreUnusable for a text that is not valid."""
        try:
            yield from pages
        except DamagedText as error:
            raise StoreUnusable(
                f"a row of {self._table.name} in {self._source.name} holds a value that is not text ({error}); "
                f"'spinney doctor' may say more, and a backup helps"
            ) from error

    def _require_whole(self, page: list[Any], before: int) -> None:
        """Raise StoreUnusable where the audit log has a gap: the triggers of the target would refuse the next entry."""
        for seq, row in enumerate(page, start=before + 1):
            if row[0] != seq:
                raise StoreUnusable(
                    f"the audit of {self._source.name} has entry {row[0]} where {seq} is due; 'spinney audit verify' "
                    f"says what is wrong; a backup helps"
                )

    # --- values that do not fit ---------------------------------------------------------------

    def _require_keepable(self, page: list[Any]) -> None:
        """Raise StoreUnusable for a value that the target would store as something else, or refuse. SQLite stores
        values of any type in any column."""
        on_server = not isinstance(self._target, SqliteDatabase)
        for column, values in zip(self._table.columns, zip(*page, strict=True), strict=True):
            misfit = _misfit(column, values, on_server=on_server)
            if misfit is not None:
                position, value = misfit
                raise StoreUnusable(
                    f"{self._table.name} of {self._source.name} has {value} in the column {column.name} of the row "
                    f"{_named(self._table, page[position])}, which {self._target.name} cannot store; correct or "
                    f"delete it, then copy again"
                )


def _misfit(column: "Column[Any]", values: Sequence[Any], *, on_server: bool) -> tuple[int, str] | None:
    """Return the position of a value that does not fit the column, and what it is; None: all fit.

    What counts as fitting depends on the target: on a server an ``Integer`` has 32 bits, a flag is 0 or 1,
    and a text has no character U+0000.
    """
    kind, noun = _kind(column)
    if not {type(value) for value in values} <= {kind, type(None)}:
        position = next(n for n, value in enumerate(values) if type(value) not in (kind, type(None)))
        return position, f"a value that is no {noun}"
    if not on_server:
        return None
    if kind is str:
        return next(
            ((n, "the character U+0000") for n, value in enumerate(values) if value and "\0" in value), None
        )
    if not isinstance(column.type, Boolean) and type(column.type) is not Integer:
        return None  # 64 bits, as everywhere
    good: Any = (0, 1) if isinstance(column.type, Boolean) else INT4
    return next(
        ((n, f"{value}") for n, value in enumerate(values) if value is not None and value not in good), None
    )


def _kind(column: "Column[Any]") -> tuple[type, str]:
    """Return the Python type of a column's values, and what people call it."""
    if isinstance(column.type, Float):
        return float, "number"
    if isinstance(column.type, Integer | Boolean):
        return int, "whole number"
    return str, "text"


def _named(table: Table, row: Sequence[Any]) -> str:
    """Return the key of a row in words."""
    return ", ".join(
        f"{c.name} {value}" for c, value in zip(table.columns, row, strict=True) if c.primary_key
    )


# --- reading ----------------------------------------------------------------------------------


def _require_the_same(copied: CopiedTable, into: Tx, target: Database, on_progress: OnProgress) -> None:
    """Read a table back from the target, and raise StoreUnusable unless its rows and digest are those of the source."""
    table, rows, digest = metadata.tables[copied.table], 0, sha256()
    for page in _pages(into, table):
        digest.update(_canonical(page))
        rows += len(page)
        on_progress(f"{table.name}: read back", rows, copied.rows)
    if (rows, digest.hexdigest()) != (copied.rows, copied.digest):
        raise StoreUnusable(
            f"{table.name} does not read back from {target.name} as it was copied ({rows:,} rows of {copied.rows:,}), "
            f"so nothing was kept; look at the disk and the log of its database"
        )


def _canonical(page: list[Any]) -> bytes:
    """Return the rows as JSON lists, one a line: equal rows give equal bytes, whichever database they come from."""
    return b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in page)


def _copied_rows(table: Table) -> str:
    """Return the condition on the rows of a table that are copied."""
    return _COPIED_ROWS.get(table.name, "1 = 1")


def _pages(tx: Tx, table: Table) -> "Iterator[list[Any]]":
    """Yield all rows of a table in the order of its key, some megabytes at a time.

    Each page begins behind the last key, so that the index of the key is read on and nothing is sorted or
    skipped.
    """
    names = [column.name for column in table.columns]
    key = [column.name for column in table.primary_key]
    places = [names.index(name) for name in key]
    select = f"select {', '.join(names)} from {table.name} where {_copied_rows(table)}"
    order = f"order by {', '.join(key)} limit ?"
    behind = f"and ({', '.join(key)}) > ({', '.join('?' for _ in key)})"
    limit, after = PAGE_ROWS_LEAST, ()
    while page := tx.all(f"{select} {behind if after else ''} {order}", (*after, limit)):
        yield page
        if len(page) < limit:
            return
        after = tuple(page[-1][place] for place in places)
        limit = _next_size(page)


def _next_size(page: list[Any]) -> int:
    """Return how many rows the next page has, judged by the length of the texts in this one."""
    text = sum(len(value) for row in page for value in row if type(value) is str) // len(page)
    return max(PAGE_ROWS_LEAST, min(PAGE_ROWS_MOST, PAGE_BYTES // (text + 8 * len(page[0]))))
