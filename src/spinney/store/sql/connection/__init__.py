"""The databases themselves are reached here: SQLite and PostgreSQL, the order among writers, and the schema's version.

``database``             the interface that all statements use (``Database``, ``Tx``), and the common dialect of SQL
``sqlite``               the store in one SQLite file
``sqlite_tx``            its transactions, which also read damaged text
``sqlite_file``          where that file may be, and what the driver's errors about it mean
``write_queue``          the order among processes that write to one SQLite file
``lock_wait``            the wait for a file that a foreign program has locked
``postgres``             the store in a schema of a PostgreSQL database
``postgres_connection``  connections to PostgreSQL, also through a pooler, and the driver's errors as sentences
``postgres_dialect``     statements of the common dialect as PostgreSQL takes them
``notifications``        wake-ups by NOTIFY and LISTEN
``vacuum_schedule``      when a node vacuums the two hot tables of PostgreSQL itself
``grants``               the rights of database roles in a store's schema
``online_ddl``           changes of tables of PostgreSQL while nodes work
``schema_state``         the version of a schema, and whether this code may work with it
``engines``              SQLAlchemy on these connections, for migrations only

Both databases give the same guarantee, on which all of ``spinney.store.sql`` is built: there is one writer at a time,
and a transaction sees everything that was committed before it began to write. SQLite's write lock is preceded by
``write_queue``; on PostgreSQL each write transaction first updates the row ``turn`` of ``counters``. A ``Database``
belongs to one thread at a time. When the connection to a PostgreSQL server is lost before a commit,
``StoreUnavailable`` is raised (nothing was done); when it is lost during the commit, ``CommitUncertain``.

Specified by ``tests/store/test_write_queue.py``, ``tests/store/test_checkpoints.py``,
``tests/store/test_urgent_writes.py`` (SQLite), ``tests/store/test_postgres_dialect.py``,
``tests/store/test_lost_answers.py``, ``tests/store/test_notifications.py``, ``tests/store/test_vacuum_schedule.py``,
``tests/store/test_grants.py`` (PostgreSQL), ``tests/store/test_schema_state.py`` and
``tests/node/test_locked_file.py``.
"""
