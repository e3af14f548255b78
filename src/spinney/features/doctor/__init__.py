"""What must not be in a store, and its repair: rules over rows and folders, each with a check of its own.

``checks``        the values: a rule (``Check``) and what breaks it (``Violation``)
``sql``           the rules that the database can show, as a table
``folder_check``  the rules over the folders of jobs below one folder root
``view_check``    the rule over the tree of links to those folders (``spinney.folders.views``)
``service``       all checkers together: examination, repair round after round, recovery of a dead node
``commands``      rules, examination and repair as commands
``cli``           the command ``doctor``

An examination only reads, is safe beside nodes at work, and must raise no false alarm: what is lawful for a moment,
such as a job whose submission is still being written, is no violation. Each repair is a transaction of its own that
checks the rule again for its row, uses the operations of the engine, and writes its entry into the audit; a violation
whose repair could lose work has none, and its sentence says what a person should do. A folder without a job is set
aside, never deleted.

Rules that take long are ``deep`` and run only on request. The command examines the folders that its host sees; through
a server, the server does.

Specified by ``tests/contract/test_doctor.py`` (each rule: a store damaged so, reported, mended, and at work again),
``tests/contract/test_doctor_alarms.py`` (no false alarm), ``tests/store/test_doctor_plans.py`` (no statement walks a
growing table), ``tests/store/test_doctor_on_a_server.py`` (rules for PostgreSQL), ``tests/service/test_doctor.py``
(rounds of repairs), ``tests/node/test_doctor.py`` (beside nodes), ``tests/node/test_folder_check.py`` (folders),
``tests/node/test_views.py`` (links) and ``tests/cli/test_doctor.py`` (the command and its exit codes).
"""
