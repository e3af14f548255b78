"""Decide which job is next, and when. Pure functions: clock, store and randomness are passed in.

``fairness`` which share is served next, and how jobs are dealt over slots
``quota``    how much one share may hold
``backoff``  how long a failed stage waits before it is retried
``retry_decision``  what becomes of a job after an attempt that did not pass
``cron``     the next time that an expression names, in a time zone
``recurrence``  when a schedule is due, and which times that have passed still count
"""
