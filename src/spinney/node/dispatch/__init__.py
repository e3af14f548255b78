"""Dispatch turns claimed leases into recorded outcomes: which lanes, which slot and worker, and the group commits.

``assembly``         the parts below put together, and their tasks
``lanes``            the stages that this node serves, and how long their attempts take
``slots``            the slots of the node and the workers of its pool, with what each holds
``lookahead``        how much work a slot gets ahead of what runs
``dispatcher``       claim requests, leases to workers, rows to records: the hot path
``job_lists``        jobs in messages to a worker
``worker_pool``      the workers: started when needed, ended when idle, replaced when worn
``crash_suspects``   jobs that run alone, because one of them may have killed a worker
``requests``         what running attempts ask of the store
``progress_writer``  the progress that attempts report, written a few times a second at most
``limits``           attempts that are ended early, by a time limit or a cancel request
``ticker``           the tick: time limits, the size of the pool, cancel requests, stacks
``output``           the thread that reads workers' output and writes it to attempts' files
``records``          records made of workers' rows
``record_queue``     records that the store has not written yet
``recorder``         the loop that exchanges records for leases

All of it runs in the supervisor's event loop, except the pump (``output``), which has a thread. The loop never waits
for a disk or a database: the store is called through the two store threads. A lease belongs to one worker of the pool
(``slots``) until its row comes back; then it is a record in ``record_queue``, which drops it only when the store
has written it. A supervisor that dies loses the records that wait there: their leases still exist, so those stages run
again.

Specified by ``tests/node/test_claims.py``, ``tests/node/test_lookahead.py``, ``tests/node/test_job_lists.py`` (leases),
``tests/node/test_recorder.py`` (exchanges), ``tests/node/test_neighbours.py`` (shared workers),
``tests/node/test_output.py`` and ``tests/node/test_stacks.py``.
"""
