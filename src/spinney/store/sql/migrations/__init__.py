"""A store's schema is created and upgraded here, with Alembic; the revisions are in ``versions``.

``new_store``    a new SQLite store from a script, without the cost of importing Alembic
``upgrades``     the revisions that a store lacks, in two parts: before and after its nodes are replaced
``init_script``  the same as an SQL script for a database administrator

Only ``spinney init`` and the copy of a store to another place create or upgrade a schema. Any other node or command
that meets a schema with which it cannot work refuses to (``spinney.store.sql.connection.schema_state``) and names the
command. A revision is one file in ``versions``; after it was added, ``python -m
spinney.store.sql.migrations.new_store`` writes the script of new stores anew, and a test compares both.

Specified by ``tests/store/test_upgrades.py``, ``tests/store/test_upgrade_beside_nodes.py``,
``tests/node/test_upgrading.py`` (under load) and ``tests/store/test_grants.py`` (the script).
"""
