"""The tables of a store; ``spinney.store.sql`` says how they work together.

A job has a wide row in ``jobs`` and, unless it is completed, one row in one of the narrow tables ``ready`` (claimable),
``leases`` (claimed or running) and ``inactive_jobs`` (all other states). So a claim never touches the wide rows.

Columns that end in ``_us`` are times in microseconds since 1970 UTC. Ids come from ``counters``, so that one statement
reserves a block of them. No index contains a column of ``jobs`` that changes when a job settles: that keeps the most
frequent write to one page.
"""

from spinney.store.sql.schema import accounts, fleet, jobs, operators, webhooks
from spinney.store.sql.schema.columns import metadata
from spinney.store.sql.schema.statements import COUNTERS, GUARDS, HISTORY, POSTGRES_STORAGE

__all__ = [
    "COUNTERS",
    "GUARDS",
    "HISTORY",
    "POSTGRES_STORAGE",
    "accounts",
    "fleet",
    "jobs",
    "metadata",
    "operators",
    "webhooks",
]
