"""State transitions of jobs are made here, inside the caller's transaction, with all their effects on other jobs.

``placement``       the state of an open job: one rule for new, returned, woken, released and reopened ones
``cascades``        the effects of a job's change on its parent, its dependants, locks and the serial order
``regrowth``        ancestors and dependants that continue because a job was opened again
``locks``           locks and their amounts: who has them, who gets them
``lock_waiters``    the queue of jobs that wait for a lock
``deadlocks``       cycles of jobs that wait for each other, found and broken when they close
``hold_rows``       holds: laid, ended, and noted for the sweep
``ready_moves``     many jobs moved out of ``ready`` by holds, and into it when held or scheduled ones go on
``cancel_moves``    many pending jobs of a tree cancelled at once
``lease_writes``    the leases of a claim, written lane by lane
``attempts``        requests of a running attempt, checked by its fence
``failures``        the causes of failures, by fingerprint
``job_operations``  operators' verbs on single jobs, one transaction's worth
``removal``         trees whose retention time is over
``trusted_clock``   the latest time at which a clock was trusted to delete what is old

Except for ``attempts`` these modules begin no transaction and commit none: submissions, records, claims, recoveries and
operators' verbs call them between their own statements. Each caller first writes the facts, adds
what changed to one ``Cascade``, and calls ``drain`` at the end; so an effect on another job is in the same transaction
as its cause, and a chain of any length is a work list and no recursion. What could concern very many jobs (dependants,
a cancelled tree) is left in a table and continued in steps by a sweep. Every change of a job's state must be in the
table of ``spinney.model.states``.

Specified by ``tests/contract``, by subject: ``tests/contract/test_needs.py``, ``tests/contract/test_serial.py``,
``tests/contract/test_locks.py``, ``tests/contract/test_deadlocks.py``, ``tests/contract/test_regrowth.py``,
``tests/contract/test_cancel.py``, ``tests/contract/test_cancel_moves.py``, ``tests/contract/test_delete.py``,
``tests/contract/test_holds.py``, ``tests/contract/test_retention.py``, ``tests/contract/test_trusted_clock.py``; and at
random by ``tests/contract/test_machine.py`` and ``tests/contract/test_holds_machine.py``.
"""
