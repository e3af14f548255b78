"""The background services of a node are loops that run from its joining to its leaving, each with one purpose.

``loop``                the skeleton of all: a step that is repeated, also while the database is away
``store_poll``          detects commits of other processes, since wake-ups may be lost
``notifications``       receives wake-ups from PostgreSQL
``peer_waker``          wakes other nodes for work that this one leaves
``maintenance``         what the leader does for all: due jobs, dead nodes, cleanup
``orders``              operators' orders for this node: drain, more or fewer slots
``holds``               recalls leases that a hold covers, and sweeps held jobs
``retention``           removes jobs whose retention time is over
``inboxes``             takes up inboxes whose folder this node sees
``intake``              the steps by which a file in an inbox becomes a job
``throughput_history``  rolls up throughput for charts
``metrics``             the node's own ``/metrics``
``folders``             the folders of jobs: their root, views, removal, and reads from other hosts

The supervisor starts them as tasks of its event loop when the node has joined, and cancels them when it leaves; a
service that fails by an unexpected error ends the node, except those that only make figures for people
(``throughput_history``, ``metrics``). Work on files is done in threads. They call the store mostly through the reader's
thread, so that no exchange of records and leases waits for them. What the leader alone does may be done by two
nodes for a moment and must do no harm then.

Specified by ``tests/node/test_holds.py``, ``tests/node/test_retention.py``, ``tests/node/test_inboxes.py``,
``tests/node/test_intake.py``, ``tests/node/test_notifications.py``, ``tests/node/test_node_wakeup.py``,
``tests/node/test_schedules.py``, ``tests/node/test_fleet.py``, ``tests/node/test_throughput_history.py`` and
``tests/node/test_metrics.py``.
"""
