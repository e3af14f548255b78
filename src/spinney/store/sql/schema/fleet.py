"""Nodes and external workers, where folders are, and who leads."""

from sqlalchemy import Column, Float, Integer, Table, text

from spinney.store.sql.schema.columns import Chars, Flag, Id, metadata

nodes = Table(
    "nodes",
    metadata,
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
    Column("load", Chars),
    Column("serves", Chars),
    Column("trouble", Chars),
    Column("schema_version", Chars),
    Column("home", Id, nullable=False, server_default=text("0")),
    Column("lease_s", Float),
)
"""``load``: JSON of what it measures of its host. ``serves``: JSON of the queues it was started for or without; None:
all. ``trouble``: why it works worse than it should, while it does. ``schema_version``: for which its code was
written; None: an older one than those that say so. ``home``: where its jobs have their folders (see homes); 0: where
those of all have. ``lease_s``: the lease period of the node, written when it joins and never changed; None: a
node of an older schema, which has not said it, or an external worker, whose lease is in ``external_workers``."""

external_workers = Table(
    "external_workers",
    metadata,
    Column("node_id", Id, primary_key=True),
    Column("owner", Chars, nullable=False),
    Column("join_count", Integer, nullable=False),
    Column("lease_s", Float, nullable=False),
    Column("lanes", Chars, nullable=False),
)
"""Which nodes are none, but external workers that claim external stages: whose each is, how often it has joined (an
earlier joining counts no more), so long it may be silent, and the [type, stage] pairs that it runs, as JSON."""

homes = Table(
    "homes",
    metadata,
    Column("id", Id, primary_key=True),
    Column("mark", Chars, nullable=False, unique=True),
    Column("host", Chars, nullable=False),
    Column("path", Chars, nullable=False),
    Column("gone", Flag, nullable=False, server_default=text("0")),
)
"""In a store with local folders: the folder roots, each with the mark that is written in it, and where it was when a
node last joined with it. ``gone``: an operator has let go of it, so that everybody may go on with its jobs."""

fetches = Table(
    "fetches",
    metadata,
    Column("id", Id, primary_key=True),
    Column("home", Id, nullable=False),
    Column("job_id", Id, nullable=False),
    Column("path", Chars, nullable=False),
    Column("start", Id, nullable=False),
    Column("length", Integer, nullable=False),
    Column("asked_us", Id, nullable=False),
    Column("answer", Chars),
)
"""Questions for pieces of files, and for the names in a folder, to the nodes of a home, and their answers (JSON):
``fetches``. A minute later they are gone."""

node_settings = Table(
    "node_settings",
    metadata,
    Column("name", Chars, primary_key=True),
    Column("drained", Flag, nullable=False),
    Column("slots", Integer),
    Column("by", Chars, nullable=False),
    Column("reason", Chars),
    Column("at_us", Id, nullable=False),
)
"""What operators want of the nodes of a name, whichever incarnation comes: to claim nothing (``drained``), so many
slots (None: as it was started)."""

leadership = Table(
    "leadership",
    metadata,
    Column("name", Chars, primary_key=True),
    Column("node_id", Id),
)
"""Which node does what one does for all (``node.maintenance``): until it leaves, or is dead."""
