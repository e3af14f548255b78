"""Locks as operators see them: which jobs have which, capacities, and freeing a lock by hand.

``sql``       owners, waiting jobs and capacities, and the two changes
``commands``  the same with the rights of a caller
``cli``       the commands ``locks``, ``lock`` and ``unlock``
``page``      the page of locks and capacities

Jobs take and give back locks inside the transactions that claim and record them
(``spinney.store.sql.transitions.locks``); this package is for people alone. Freeing a lock deletes the owner's row and
wakes the next jobs, but does not end the owner's attempt: the operator answers for it that the owner is gone. A smaller
capacity takes nothing from a job that has the lock already.

The capacity of a lock is what an operator set, else what the stage names that takes it, else what an application
declares, else 1.

Specified by ``tests/contract/test_lock_admin.py`` (owners, waiting jobs and freeing),
``tests/contract/test_lock_amounts.py`` (capacities), ``tests/service/test_locks.py`` (rights),
``tests/node/test_unlocking.py`` (an attempt that goes on without its lock), ``tests/cli/test_locks.py`` (the commands)
and ``tests/server/pages/test_operator_pages.py`` (the page).
"""
