"""The tables. The schema is the design: what is ready, leased, parked are separate narrow tables.

Times are microseconds since 1970 UTC. Ids come from ``counters``, so that a block of them is one
statement. No index names a column of ``jobs`` that settling changes.
"""

from spinney.stores.sql.schema import fleet, jobs, people, webhooks
from spinney.stores.sql.schema.columns import metadata
from spinney.stores.sql.schema.operating import GUARDS

__all__ = ["GUARDS", "fleet", "jobs", "metadata", "people", "webhooks"]
