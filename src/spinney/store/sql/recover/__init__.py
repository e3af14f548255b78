"""This package has what keeps a store in order without any caller: the leader, and housekeeping.

``leadership``      the row that names the node that does what one node does for all
``sweep_step``      one bounded transaction of housekeeping, and when the next one is due

The leader calls ``sweep_step`` (``spinney.node.services.maintenance``), but any process may: each step checks again
what it finds, so that two at once do no harm. The jobs of a dead node are returned by
``spinney.node.lifecycle.recovery``, which calls ``Store.recover``.

Specified by ``tests/store/test_leadership.py``, ``tests/contract/test_sweep.py`` and
``tests/contract/test_recovery.py``.
"""
