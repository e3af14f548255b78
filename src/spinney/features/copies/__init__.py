"""A consistent copy of a whole store in another database, and the proof that both are the same.

``sql``  the copy from one URL to another and its verification, table by table
``cli``  the command ``store copy``

A copy moves a store, for example from SQLite to PostgreSQL, and is no backup of a store at work: it is
refused while a node has not left or a job is leased. It needs both databases, so it has no command that a
server performs. Until the copy is complete the target is marked, and nothing opens it as a store. A crash
leaves such a marked target without rows, on which the same command starts anew; the source is never written
to.

Specified by ``tests/store/test_store_copy.py`` (all rows, the same, or nothing),
``tests/cli/test_store_copy.py`` (the command) and ``tests/node/test_moving.py`` (a node that takes up the
copied store).
"""
