"""Transactions on a connection to a SQLite file, and the functions that statements of the common dialect need there."""

import sqlite3
from collections.abc import Sequence
from typing import Any

import orjson

from spinney.store.sql.connection.database import DamagedText, Tx, damaged


class SqliteTx(Tx):
    """A transaction or a snapshot of a database file.

    Text that is not valid UTF-8, in a damaged file, does not make a query fail: the query runs again with a
    text factory that replaces what cannot be read (``damaged``), so that only that row is affected."""

    __slots__ = ("_connection", "_lenient", "many", "run")
    postgresql = False

    def __init__(self, connection: sqlite3.Connection) -> None:
        cursor = connection.cursor()
        super().__init__(cursor)
        self._connection, self.run, self.many = connection, cursor.execute, cursor.executemany
        self._lenient = True
        """Whether a query that met damaged text is run again with a text factory that reads it."""

    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def all(self, sql: str, args: Sequence[Any] = ()) -> list[Any]:
        try:
            rows: list[Any] = self.run(sql, args).fetchall()
        except sqlite3.OperationalError as error:
            self._read_damaged(error, sql)
            rows = self.run(sql, args).fetchall()
        return rows

    def one(self, sql: str, args: Sequence[Any] = ()) -> Any:
        try:
            return self.run(sql, args).fetchone()
        except sqlite3.OperationalError as error:
            self._read_damaged(error, sql)
            return self.run(sql, args).fetchone()

    def _read_damaged(self, error: sqlite3.OperationalError, sql: str) -> None:
        """Return when the query may be repeated: it met damaged text, and changes nothing. Raises DamagedText where
        texts are read exactly."""
        if "decode to UTF-8" not in str(error) or " returning " in sql:
            raise error
        if not self._lenient:
            raise DamagedText(str(error)) from error
        self._connection.text_factory = _text

    def exact(self) -> None:
        self._connection.text_factory = str
        self._lenient = False

    def columns(self, names: Sequence[str], source: str, args: Sequence[Any] = ()) -> list[Sequence[Any]]:
        # As texts, because the driver releases the interpreter's lock and waits for it at every row.
        lists = ", ".join(f"json_group_array({name})" for name in names)
        try:
            return list(map(orjson.loads, self.one(f"select {lists} {source}", args)))
        except (sqlite3.DataError, sqlite3.OperationalError, ValueError):
            # No text is longer than a billion bytes: the parameters of a thousand jobs may be. Or one is damaged.
            return [
                [damaged(value) if isinstance(value, bytes) else value for value in column]
                for column in super().columns(names, source, args)
            ]

    def take(self, counter: str, n: int = 1) -> int:
        # Two statements, because SQLite builds a table for the row of a ``returning``, which costs more.
        self.run("update counters set value = value + ? where name = ?", (n, counter))
        last: int = self.value("select value from counters where name = ?", (counter,))
        return last - n + 1


def _text(data: bytes) -> str:
    """Return text of the database; for invalid UTF-8, its placeholder (``damaged``)."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return damaged(data)


def add_functions(connection: sqlite3.Connection) -> None:
    """Let ``lower(x collate "default")`` work for all letters, as it does on PostgreSQL, where the schema's own
    collation compares bytes; SQLite's ``lower`` knows the letters of ASCII alone."""
    connection.create_function("lower", 1, _lower, deterministic=True)
    connection.create_collation("default", lambda a, b: (a > b) - (a < b))


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value
