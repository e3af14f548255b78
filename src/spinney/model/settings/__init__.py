"""What operators and applications set once, and the engine then follows, is described and checked here.

``queues``      limits, order and sharing of a queue, and which nodes may serve it
``holds``       an operator's order, with a reason, that nothing may start that it covers
``capacities``  how many jobs may have a lock at once, and which of several rules counts
``schedules``   jobs that are created again and again, and what happens to times that passed
``inboxes``     folders whose files become jobs, and each such file on its way
``retention``   how long settled jobs are kept
``webhooks``    URLs that are called when jobs settle, and each delivery

A value checks itself when it is made, so that a setting that cannot be meant is refused where it is entered and not
when the engine first uses it. Holds, capacities and webhooks are in force for the next transaction of every node
(``spinney.store.sql.registry``); schedules, inboxes and retention are read by the service that carries them out. What
applications declare counts only where no operator has set anything else.

Specified by ``tests/model/test_queues.py``, ``tests/contract/test_holds.py``,
``tests/contract/test_lock_amounts.py``, ``tests/contract/test_schedules.py``, ``tests/contract/test_inboxes.py``,
``tests/contract/test_retention.py`` and ``tests/contract/test_webhooks.py``.
"""
