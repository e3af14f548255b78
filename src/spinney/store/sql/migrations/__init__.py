"""A store's schema is created and upgraded here, with Alembic; the revisions are in ``versions``.

``new_store``    a new SQLite store from a script, without the cost of importing Alembic
``upgrades``     the revisions that a store lacks, in two parts: before and after its nodes are replaced
``init_script``  the same as an SQL script for a database administrator

``spinney init`` calls this package, and nothing else does: a node or a command that meets an old or a newer schema
refuses to work (``spinney.store.sql.connection.schema_state``) and names the command. A revision is one file in
``versions``; after it was added, ``python -m spinney.store.sql.migrations.new_store`` writes the script of new stores
anew, and a test compares both.

Specified by ``tests/store/test_upgrades.py``, ``tests/store/test_upgrade_beside_nodes.py``,
``tests/node/test_upgrading.py`` (under load) and ``tests/store/test_grants.py`` (the script).
"""
