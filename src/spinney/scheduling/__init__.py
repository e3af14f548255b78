"""Who is next and when. Pure functions: no clock, no store, no randomness but what is handed in.

``fairness`` whose turn it is among shares, and how work is dealt over slots
``quota``    how much one share may hold
``backoff``  how long a failed stage rests
``verdict``  what becomes of a job after an attempt that did not pass
``cron``     which time an expression names next, in a time zone
``recurrence``  when a schedule is due, and which times that have passed still count
"""
