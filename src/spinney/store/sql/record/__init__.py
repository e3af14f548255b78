"""The outcomes of attempts are recorded here, many in one transaction, with everything that follows from them.

``recorder``           the records of one flush: first facts, then state changes
``special_jobs``       which jobs have rows in other tables, and are not plain
``plain_completions``  the fast path for jobs whose last stage has simply passed
``plain_advances``     the fast path for jobs that simply go to their next stage
``next_stages``        a job that keeps its slot and lease for its next stage
``circuit_breaker``    failures of one stage in a row, which put a hold on its type
``throughput``         ended attempts by lane and node, for people only

``SqlStore.flush_and_claim`` calls ``Recorder.run`` before it claims. A record whose fence is no longer in ``leases`` is
refused and changes nothing: that attempt has lost its lease, and another may have run since. The fast paths must leave
the same rows as the path for single records. What becomes of a job after an attempt that did not pass is decided by
``spinney.scheduling.retry_decision``; what becomes of other jobs is a ``Cascade`` (``spinney.store.sql.transitions``)
in the same transaction.

Specified by ``tests/contract/test_outcomes.py``, ``tests/contract/test_late_records.py``,
``tests/contract/test_hand_over.py``, ``tests/contract/test_breaker.py``, ``tests/store/test_plain_completions.py`` and
``tests/store/test_plain_advances.py``.
"""
