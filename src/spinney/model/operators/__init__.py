"""What operators order is described here, and what they read.

``bulk_orders``  verbs on many jobs at once, and the states of jobs that they take
``bulk_runs``    what such a verb would do, and has done
``audits``       the hash chain of the audit
``stats``        throughput, times and numbers of jobs
``queues``       queues with their settings, and changes of these
``locks``        locks with their owners, and capacities

These classes cross the border between the store and people: the command line, the pages and the API show the same
values and send the same orders. Each value that has figures is of one snapshot. Whether a caller may give an order is
not decided here (``spinney.model.rights``).

Specified by ``tests/contract/test_bulk.py``, ``tests/contract/test_audit.py``, ``tests/contract/test_statistics.py``,
``tests/contract/test_queue_admin.py`` and ``tests/contract/test_lock_admin.py``.
"""
