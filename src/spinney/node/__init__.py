"""A node: a guard, a supervisor, its workers.

The guard (``guard``) is the parent of everything and a child subreaper; it runs nothing of the
user's. It starts the supervisor (``supervisor``), which claims, hands out, records and recovers,
and which never runs user code either. User code runs in workers (``executors``).
"""
