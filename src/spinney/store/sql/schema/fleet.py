"""The tables of nodes and external workers, of folder roots, and of the leader.

A node writes its own row, with each heartbeat; others write it only to say that it has left. Rows of nodes
that have left stay, because attempts and jobs name them. Times are those of the node's own clock: no lease
is taken away by comparing them with another clock."""

from sqlalchemy import Column, Float, Integer, text

from spinney.store.sql.schema.columns import Chars, Flag, Id, table

nodes = table(
    "nodes",
    Column("id", Id, primary_key=True),
    Column("name", Chars, nullable=False),
    Column("boot_id", Chars, nullable=False),
    Column("host", Chars, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("slots", Integer, nullable=False),
    Column("state", Chars, nullable=False),
    Column("beat", Id, nullable=False),
    Column("started_us", Id, nullable=False),
    Column("seen_us", Id, nullable=False),
    Column("version", Chars, nullable=False),
    Column("types", Chars, nullable=False),
    Column("stages", Chars),
    Column("load", Chars),
    Column("serves", Chars),
    Column("trouble", Chars),
    Column("degraded_since_us", Id),
    Column("schema_version", Chars, nullable=False),
    Column("home", Id, nullable=False, server_default=text("0")),
    Column("lease_s", Float),
)
"""The nodes, one row for each start of a node. ``state``: active, draining or left. ``beat``: the counter of its
heartbeats; ``seen_us``: the time of the last one by its own clock. ``slots``: how many stages it runs at a time.
``types``: JSON of the job types that it has. ``stages``: JSON of their stages (``type/stage``) in its code; null: an
external worker, or a node that did not say. ``load``: JSON of its measurements of its host. ``serves``: JSON of the
queues that it was started for or without; null: all. ``trouble``: why it works worse than it should, while it does.
``degraded_since_us``: the time of the heartbeat that first reported a trouble; null: none lasts. ``schema_version``:
the schema for which its code was written. ``home``: the folder root of its jobs (see ``homes``); 0: folders are shared.
``lease_s``: its lease period, written when it joins and never changed; null: a node of an older schema, or an external
worker, whose period is in ``external_workers``."""

external_workers = table(
    "external_workers",
    Column("node_id", Id, primary_key=True),
    Column("owner", Chars, nullable=False),
    Column("join_count", Integer, nullable=False),
    Column("lease_s", Float, nullable=False),
    Column("lanes", Chars, nullable=False),
)
"""The rows of ``nodes`` that are external workers, which claim external stages. ``owner``: the user or token for whom
it works. ``join_count``: how often it has joined; requests of an earlier join are refused. ``lease_s``: how long it may
be silent. ``lanes``: the [type, stage] pairs that it runs, as JSON."""

homes = table(
    "homes",
    Column("id", Id, primary_key=True),
    Column("mark", Chars, nullable=False, unique=True),
    Column("host", Chars, nullable=False),
    Column("path", Chars, nullable=False),
    Column("gone", Flag, nullable=False, server_default=text("0")),
)
"""The folder roots of a store with local folders. ``mark``: the random text in a file of the root. ``host``, ``path``:
where it was when a node last joined with it. ``gone``: an operator has released it, so that any node may run its
jobs."""

fetches = table(
    "fetches",
    Column("id", Id, primary_key=True),
    Column("home", Id, nullable=False),
    Column("job_id", Id, nullable=False),
    Column("path", Chars, nullable=False),
    Column("start", Id, nullable=False),
    Column("length", Integer, nullable=False),
    Column("asked_us", Id, nullable=False),
    Column("answer", Chars),
)
"""Requests for pieces of files, or for the names in a folder, to the nodes of a home, and their answers (JSON). They
are removed after a minute; see ``spinney.features.homes.fetches_sql``."""

stack_requests = table(
    "stack_requests",
    Column("fence", Id, primary_key=True),
    Column("job_id", Id, nullable=False),
    Column("node_id", Id, nullable=False),
    Column("asked_us", Id, nullable=False),
)
"""Requests for the stacks of running attempts. The node deletes a row when it has written the file, or when the attempt
has ended; the others are removed after a minute."""

node_settings = table(
    "node_settings",
    Column("name", Chars, primary_key=True),
    Column("drained", Flag, nullable=False),
    Column("slots", Integer),
    Column("by", Chars, nullable=False),
    Column("reason", Chars),
    Column("at_us", Id, nullable=False),
)
"""Operators' orders for the nodes of a name, which outlast restarts. ``drained``: claim nothing. ``slots``: the number
of slots; null: as the node was started with."""

leadership = table(
    "leadership",
    Column("name", Chars, primary_key=True),
    Column("node_id", Id),
)
"""The node that does the maintenance for all, until it leaves or is declared dead; see ``recover.leadership``."""
