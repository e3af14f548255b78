"""Which job is next, and when, is decided here by pure functions: clock, store and randomness are passed in.

``fairness``        which share is served next, and how jobs are dealt over slots
``quota``           how much one share may hold
``backoff``         how long a failed stage waits before it is retried
``retry_decision``  what becomes of a job after an attempt that did not pass
``cron``            the next time that an expression names, in a time zone
``recurrence``      when a schedule is due, and which times that have passed still count

The store calls them inside its transactions (``spinney.store.sql.claim``, ``spinney.store.sql.record``, the schedules'
part). Because nothing else enters a decision, every node decides alike, and so does one that repeats the decision after
a crash. Durations end in ``_s`` and are seconds; ``cron`` counts in seconds and ``recurrence`` in microseconds since
1970 UTC.

Specified by ``tests/scheduling``; ``tests/contract/test_shares.py`` and ``tests/contract/test_schedules.py`` specify
what a store makes of them.
"""
