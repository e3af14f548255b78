"""The registry is each process's cache of what is declared and set, with the rules that every transaction needs of it.

``registry``        job types, queues and lanes, read again only when another process has changed them
``nodes``           nodes: joining, heartbeats, what they may claim, and the leases of a dead one
``homes``           folder roots of hosts, where folders are local, and which of them has a job's folder
``capacities``      capacities of locks
``hold_coverage``   which holds cover a job, for one row and for many in SQL
``webhook_events``  events for webhooks, written by the transaction that settles a job
``watermarks``      where a claim begins to read on PostgreSQL, so that it does not scan dead rows
``job_rows``        the row of a job, and the one function that changes the state of a single job
``ready_order``     the share and position of a job in ``ready``, in Python and in SQL

Every change of a declaration or setting increments ``counters.registry`` in its own transaction, and ``Session``
compares that number at the beginning of each transaction. So a setting is in force for the first transaction that
begins after it was committed, on every node, and a transaction of the hot path pays one look-up for that. The cache is
dropped after a rollback, because it may have rows that were never committed. These modules begin no transaction.

Specified by ``tests/contract/test_registration.py``, ``tests/contract/test_former_secrets.py``,
``tests/contract/test_nodes.py``, ``tests/contract/test_homes.py``, ``tests/contract/test_holds.py``,
``tests/contract/test_lock_amounts.py``, ``tests/contract/test_webhooks.py``, ``tests/contract/test_unreadable.py`` and
``tests/store/test_webhook_statements.py``.
"""
