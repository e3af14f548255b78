"""The tables of a store are declared here; ``spinney.store.sql`` says how they work together.

``jobs``        jobs: their rows, their states, and what they wait for
``fleet``       nodes and external workers, folder roots, the leader
``operators``   holds, failures, schedules, retention, the audit
``accounts``    users, tokens and sign-ins, and the idempotency keys of requests
``webhooks``    webhooks and their deliveries
``statements``  what no declaration of a table says: a view, triggers, storage settings, initial rows
``columns``     the column types, and the catalogue of all tables

A job has a wide row in ``jobs`` and, unless it is completed, one row in one of the narrow tables ``ready`` (claimable),
``leases`` (claimed or running) and ``inactive_jobs`` (all other states). So a claim never touches the wide rows.

Columns that end in ``_us`` are times in microseconds since 1970 UTC. Ids come from ``counters``, so that one statement
reserves a block of them. No index contains a column of ``jobs`` that changes when a job settles: that keeps the most
frequent write to one page.

Specified by ``tests/store/test_upgrades.py`` (the revisions lead to exactly these tables) and
``tests/store/test_plans.py`` (each statement of the hot path has its index).
"""

from spinney.store.sql.schema import accounts, fleet, jobs, operators, webhooks  # noqa: F401 - they declare the tables
from spinney.store.sql.schema.columns import metadata as metadata
