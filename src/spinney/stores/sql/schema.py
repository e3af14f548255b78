"""The tables. The schema is the design: what is ready, leased, parked are separate narrow tables.

Times are microseconds since 1970 UTC. Ids come from ``counters``, so that a block of them is one
statement. No index names a column of ``jobs`` that settling changes.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    text,
)

metadata = MetaData()
_Id = BigInteger().with_variant(Integer, "sqlite")

meta = Table("meta", metadata, Column("name", Text, primary_key=True), Column("value", Text, nullable=False))

counters = Table(
    "counters",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", _Id, nullable=False),
    sqlite_with_rowid=False,
)
"""job, fence, lane, share, node: the last number given. registry: moves with types, queues, lanes."""

types = Table("types", metadata, Column("name", Text, primary_key=True), Column("spec", Text, nullable=False))
queues = Table(
    "queues", metadata, Column("name", Text, primary_key=True), Column("spec", Text, nullable=False)
)
shares = Table(
    "shares", metadata, Column("id", _Id, primary_key=True), Column("name", Text, nullable=False, unique=True)
)
"""Named shares; in jobs, ready and leases they are -id, so that they never meet a root's id."""

lanes = Table(
    "lanes",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("queue", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("stage", Text, nullable=False),
    Column("asleep_until_us", _Id),
    Column("probing", Boolean, nullable=False, server_default=text("0")),
    Index("lanes_by_name", "queue", "type", "stage", unique=True),
)
"""A lane sleeps until a time (defer with lane=True); then one job probes before the others go on."""

jobs = Table(
    "jobs",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("type", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("stage", Text),
    Column("queue", Text, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("share", _Id, nullable=False),
    Column("lineage", Text, nullable=False),
    Column("root_id", _Id, nullable=False),
    Column("parent_id", _Id),
    Column("params", Text, nullable=False),
    Column("created_us", _Id, nullable=False),
    Column("started_us", _Id),
    Column("settled_us", _Id),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("interruptions", Integer, nullable=False, server_default=text("0")),
    Column("warnings", Integer, nullable=False, server_default=text("0")),
    Column("code", Integer),
    Column("node_id", _Id),
    Column("collection", Text),
    Column("submitter", Text),
    Column("key", Text),
    Column("queue_moved", Text),
    Column("queue_named", Text),
    Column("queue_parent", Text),
    Column("birth_stage", Text),
    Column("superseded", Boolean),
    Column("at_us", _Id),
    Column("special", Boolean),
    Column("final_fence", _Id),
    Column("final_attempt", Integer),
    Column("final_began_us", _Id),
    Column("final_ended_us", _Id),
    Column("final_result", Text),
    Index("jobs_by_parent", "parent_id", sqlite_where=text("parent_id is not null")),
    Index("jobs_by_lineage", "root_id", "lineage", sqlite_where=text("parent_id is not null")),
)
"""``queue`` is the one in force; ``queue_moved > queue_named > stage's > queue_parent > type's`` decide.
``birth_stage``: the parent's stage that bore it. ``special``: it has a key or stands in a serial tree, so that
settling it takes more than its row; None for most. ``final_…``: the attempt with which a plain job
completed, kept here because this row is written anyway; ``history`` shows it among the others, and
opening the job again moves it there."""

ready = Table(
    "ready",
    metadata,
    Column("lane", _Id, primary_key=True),
    Column("priority", Integer, primary_key=True),
    Column("share", _Id, primary_key=True),
    Column("position", Text, primary_key=True),
    Column("job_id", _Id, nullable=False),
    sqlite_with_rowid=False,
)
"""What may be claimed, in the order of work. ``share`` is 0 where the queue does not share;
``position`` is unique: a lineage, or an id padded (fifo) or counted down (lifo)."""

leases = Table(
    "leases",
    metadata,
    Column("job_id", _Id, primary_key=True),
    Column("fence", _Id, nullable=False),
    Column("node_id", _Id, nullable=False),
    Column("slot", Integer, nullable=False),
    Column("lane", _Id, nullable=False),
    Column("share", _Id, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("parent_id", _Id),
    Column("plain", Boolean, nullable=False),
    Column("claimed_us", _Id, nullable=False),
    Column("running_us", _Id),
)
"""``share`` as in ``ready``. ``plain``: the job is not special (see jobs) and its lane has no locks."""

parked = Table(
    "parked",
    metadata,
    Column("job_id", _Id, primary_key=True),
    Column("state", Text, nullable=False),
    Column("since_us", _Id, nullable=False),
    Column("wake_us", _Id),
    Column("waits_for", Text),
    Column("priority", Integer),
    Column("reason", Text),
    Index("parked_by_state", "state", "job_id"),
    Index("parked_by_wake", "wake_us", sqlite_where=text("wake_us is not null")),
    Index("parked_by_lock", "waits_for", "priority", "job_id", sqlite_where=text("waits_for like 'lock:%'")),
)

# The view ``history`` (migration 0001) shows these and the final attempts kept in jobs as one.
attempts = Table(
    "attempts",
    metadata,
    Column("job_id", _Id, primary_key=True),
    Column("fence", _Id, primary_key=True),
    Column("stage", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("node_id", _Id, nullable=False),
    Column("started_us", _Id, nullable=False),
    Column("ended_us", _Id, nullable=False),
    Column("code", Integer),
    Column("message", Text),
    Column("error", Text),
    Column("result", Text),
    Column("superseded", Boolean),
    sqlite_with_rowid=False,
)

children_left = Table(
    "children_left",
    metadata,
    Column("parent_id", _Id, primary_key=True),
    Column("bad", Boolean, primary_key=True),
    Column("child_id", _Id, primary_key=True),
    sqlite_with_rowid=False,
)
"""Children that are open (bad = 0) or settled otherwise than completed (bad = 1): the index that is
asked whether a parent may go on."""

needs = Table(
    "needs",
    metadata,
    Column("job_id", _Id, primary_key=True),
    Column("need_id", _Id, primary_key=True),
    Index("needs_by_need", "need_id"),
    sqlite_with_rowid=False,
)

serial_line = Table(
    "serial_line",
    metadata,
    Column("root_id", _Id, primary_key=True),
    Column("lineage", Text, primary_key=True),
    Column("job_id", _Id, nullable=False),
    sqlite_with_rowid=False,
)
"""Open jobs of serial trees that would run; the first of a root may."""

wishes = Table(
    "wishes",
    metadata,
    Column("job_id", _Id, primary_key=True),
    Column("lineage", Text, nullable=False),
    Column("tree", Boolean, nullable=False),
    Column("by", Text, nullable=False),
    Column("reason", Text),
    Column("at_us", _Id, nullable=False),
)
"""Who is to be cancelled. Goes when the job has settled and, for a tree, nothing open is left below."""

locks = Table(
    "locks",
    metadata,
    Column("name", Text, primary_key=True),
    Column("job_id", _Id, primary_key=True),
    Column("fence", _Id),
    Column("since_us", _Id, nullable=False),
    Index("locks_by_job", "job_id"),
    sqlite_with_rowid=False,
)
"""``fence`` is None for a lock kept until its job settles."""

lock_capacities = Table(
    "lock_capacities",
    metadata,
    Column("name", Text, primary_key=True),
    Column("capacity", Integer, nullable=False),
)

keys = Table(
    "keys",
    metadata,
    Column("scope", _Id, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("job_id", _Id, nullable=False),
    Column("forever", Boolean, nullable=False),
    Index("keys_by_job", "job_id"),
    sqlite_with_rowid=False,
)
"""``scope`` is 0, or the parent whose child bears the key."""

data = Table(
    "data",
    metadata,
    Column("job_id", _Id, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
    sqlite_with_rowid=False,
)

progress = Table(
    "progress",
    metadata,
    Column("job_id", _Id, primary_key=True),
    Column("fraction", Float, nullable=False),
    Column("message", Text),
)

staging = Table(
    "staging",
    metadata,
    Column("first_id", _Id, primary_key=True),
    Column("last_id", _Id, nullable=False),
    Column("next_id", _Id, nullable=False),
    Column("published", Integer, nullable=False),
    Column("parent_id", _Id),
    Column("fence", _Id),
    Column("beat_us", _Id, nullable=False),
)
"""Jobs written in steps. ``published`` 0: hidden; 1: ``ready`` rows from ``next_id`` on still have to
follow; -1: hidden, to be dropped. ``fence``: of the attempt that spawned them and must pass before they
are born."""

nodes = Table(
    "nodes",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("name", Text, nullable=False),
    Column("boot_id", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("slots", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("beat", _Id, nullable=False),
    Column("started_us", _Id, nullable=False),
    Column("seen_us", _Id, nullable=False),
    Column("version", Text, nullable=False),
    Column("types", Text, nullable=False),
)

tombs = Table(
    "tombs", metadata, Column("job_id", _Id, primary_key=True), Column("at_us", _Id, nullable=False)
)
"""Deleted jobs whose folders may still be there."""
