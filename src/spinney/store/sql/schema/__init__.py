"""The tables. The schema is the design: what is ready, leased, inactive are separate narrow tables.

Times are microseconds since 1970 UTC. Ids come from ``counters``, so that a block of them is one
statement. No index names a column of ``jobs`` that settling changes.
"""

from spinney.store.sql.schema import accounts, fleet, jobs, webhooks
from spinney.store.sql.schema.columns import metadata
from spinney.store.sql.schema.operators import GUARDS

__all__ = ["GUARDS", "accounts", "fleet", "jobs", "metadata", "webhooks"]
