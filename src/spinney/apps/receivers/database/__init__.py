"""The database of one receiver is an SQLite file with what was detected, and in which files.

``receiver_database``  writing it, for which NumPy is needed
``snapshots``          reading it, without
``schema``             the tables

Each call that writes is one transaction, so that pages and exports see all of a job's work or nothing, and a killed job
is repeated. One job writes at a time (the lock ``receiver:NAME``); readers need no lock, and see one snapshot.

The database can be made again from the raw files, which are kept beside it: ``files`` has their paths.

Specified by ``tests/apps/receivers/test_detection.py`` and ``tests/apps/receivers/test_wrong_input.py``."""
