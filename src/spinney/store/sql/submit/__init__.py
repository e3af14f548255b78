"""Jobs are created here: by a submission, or by a running stage.

``submissions``   the calls that create jobs, each in one transaction or, where it is long, in steps
``new_jobs``      a submission resolved and checked, and its rows written
``needs``         the needs of a call, checked
``job_inserts``   the rows of jobs that differ in id and parameters alone, by one statement
``spawns``        the jobs that a running attempt creates
``staging``       calls that are written in steps, and hidden until they are published
``idempotency``   the caller's key by which a submission may be repeated

All jobs of a call become visible together, or none. A call of more rows than one transaction should write goes by
``staging``: its rows are hidden from every query, one small transaction publishes them, and from then on they are
accepted, although their rows in ``ready`` follow in steps that any process may make. The jobs that a stage spawns
without keys are published by the transaction that records the stage as passed, so that a failed attempt leaves none.

Specified by ``tests/contract/test_submissions.py``, ``tests/contract/test_visibility.py``,
``tests/contract/test_idempotency.py``, ``tests/contract/test_keys.py``, ``tests/contract/test_children.py``,
``tests/contract/test_jobs_from_stages.py`` and ``tests/store/test_staging.py``.
"""
