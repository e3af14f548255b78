"""Jobs: what is accepted, where it stands, and what is in its way."""

from sqlalchemy import Column, Float, Index, Integer, Table, text

from spinney.store.sql.schema.columns import Chars, Flag, Id, metadata, where

meta = Table(
    "meta", metadata, Column("name", Chars, primary_key=True), Column("value", Chars, nullable=False)
)

counters = Table(
    "counters",
    metadata,
    Column("name", Chars, primary_key=True),
    Column("value", Id, nullable=False),
    sqlite_with_rowid=False,
)
"""job, fence, lane, share, node, hold: the last number given. registry: moves with types, queues, lanes, holds.
lift: how many holds have ended; lift_swept: up to which of them what they kept has been looked at afresh;
hold_sweep: when (µs) somebody last took a step of sweeping holds. removed: the highest number of a job whose row
retention has removed."""

types = Table(
    "types", metadata, Column("name", Chars, primary_key=True), Column("spec", Chars, nullable=False)
)
queues = Table(
    "queues", metadata, Column("name", Chars, primary_key=True), Column("spec", Chars, nullable=False)
)
queue_settings = Table(
    "queue_settings",
    metadata,
    Column("name", Chars, primary_key=True),
    Column("settings", Chars, nullable=False),
    Column("by", Chars, nullable=False),
    Column("at_us", Id, nullable=False),
)
"""What operators set of a queue wins over what is declared; JSON of those fields of a QueueSpec alone."""

shares = Table(
    "shares", metadata, Column("id", Id, primary_key=True), Column("name", Chars, nullable=False, unique=True)
)
"""Named shares; in jobs, ready and leases they are -id, so that they never meet a root's id."""

lanes = Table(
    "lanes",
    metadata,
    Column("id", Id, primary_key=True),
    Column("queue", Chars, nullable=False),
    Column("type", Chars, nullable=False),
    Column("stage", Chars, nullable=False),
    Column("asleep_until_us", Id),
    Column("probing", Flag, nullable=False, server_default=text("0")),
    Column("home", Id, nullable=False, server_default=text("0")),
    Index("lanes_by_place", "queue", "type", "stage", "home", unique=True),
)
"""A lane sleeps until a time (defer with lane=True); then one job probes before the others go on. ``home``: whose
nodes may serve it (see homes); 0: all."""

jobs = Table(
    "jobs",
    metadata,
    Column("id", Id, primary_key=True),
    Column("type", Chars, nullable=False),
    Column("state", Chars, nullable=False),
    Column("stage", Chars),
    Column("queue", Chars, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("share", Id, nullable=False),
    Column("lineage", Chars, nullable=False),
    Column("root_id", Id, nullable=False),
    Column("parent_id", Id),
    Column("params", Chars, nullable=False),
    Column("created_us", Id, nullable=False),
    Column("started_us", Id),
    Column("settled_us", Id),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("interruptions", Integer, nullable=False, server_default=text("0")),
    Column("warnings", Integer, nullable=False, server_default=text("0")),
    Column("code", Integer),
    Column("node_id", Id),
    Column("collection", Chars),
    Column("submitter", Chars),
    Column("key", Chars),
    Column("queue_moved", Chars),
    Column("queue_named", Chars),
    Column("queue_parent", Chars),
    Column("spawn_stage", Chars),
    Column("superseded", Flag),
    Column("at_us", Id),
    Column("special", Flag),
    Column("final_fence", Id),
    Column("final_attempt", Integer),
    Column("final_began_us", Id),
    Column("final_ended_us", Id),
    Column("final_result", Chars),
    Index("jobs_by_parent", "parent_id", **where("parent_id is not null")),
    Index("jobs_by_lineage", "root_id", "lineage", **where("parent_id is not null")),
    Index("jobs_by_kind", "type", "queue"),
    Index("jobs_by_collection", "collection", **where("collection is not null")),
    Index("jobs_by_submitter", "submitter", **where("submitter is not null")),
)
"""``queue`` is the one in force; ``queue_moved > queue_named > stage's > queue_parent > type's`` decide.
``spawn_stage``: the parent's stage that bore it. ``special``: it has a key or stands in a serial tree, so that
settling it takes more than its row; None for most. ``final_…``: the attempt with which a plain job
completed, kept here because this row is written anyway; ``history`` shows it among the others, and
opening the job again moves it there."""

ready = Table(
    "ready",
    metadata,
    Column("lane", Id, primary_key=True),
    Column("priority", Integer, primary_key=True),
    Column("share", Id, primary_key=True),
    Column("position", Chars, primary_key=True),
    Column("job_id", Id, nullable=False),
    sqlite_with_rowid=False,
)
"""What may be claimed, in the order of work. ``share`` is 0 where the queue does not share;
``position`` is unique: a lineage, or an id padded (fifo) or counted down (lifo)."""

low_watermarks = Table(
    "low_watermarks",
    metadata,
    Column("lane", Id, primary_key=True),
    Column("priority", Integer, nullable=False),
    Column("share", Id, nullable=False),
    Column("position", Chars, nullable=False),
)
"""See ``watermarks``: what stands before this place of the lane has gone. Lane 0: ``share`` is a fence of
``leases``."""

leases = Table(
    "leases",
    metadata,
    Column("job_id", Id, primary_key=True),
    Column("fence", Id, nullable=False),
    Column("node_id", Id, nullable=False),
    Column("slot", Integer, nullable=False),
    Column("lane", Id, nullable=False),
    Column("share", Id, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("parent_id", Id),
    Column("plain", Flag, nullable=False),
    Column("claimed_us", Id, nullable=False),
    Column("running_us", Id),
)
"""``share`` as in ``ready``. ``plain``: the job is not special (see jobs) and its lane has no locks."""

inactive_jobs = Table(
    "inactive_jobs",
    metadata,
    Column("job_id", Id, primary_key=True),
    Column("state", Chars, nullable=False),
    Column("since_us", Id, nullable=False),
    Column("wake_us", Id),
    Column("waits_for", Chars),
    Column("priority", Integer),
    Column("reason", Chars),
    Column("fingerprint", Chars),
    Column("wants_amount", Id),
    Column("wants_capacity", Id),
    Index("inactive_jobs_by_state", "state", "job_id"),
    Index("inactive_jobs_by_fingerprint", "fingerprint", "job_id", **where("fingerprint is not null")),
    Index("inactive_jobs_by_wake", "wake_us", **where("wake_us is not null")),
    Index("inactive_jobs_by_lock", "waits_for", "priority", "job_id", **where("waits_for like 'lock:%'")),
)

# ``wants_``: of the lock that it waits for, where it wants another amount than 1 or gave a capacity.
# A job that an operator's hold keeps has ``waits_for`` = 'hold'; one that its own stage parked has none.
# ``fingerprint``: of the failure that a job stands failed with; see failures.

# The view ``history`` (migration 0001) shows these and the final attempts kept in jobs as one. ``superseded``: None,
# it counts; true, it counts no more; false, a ``finish`` of which only its own stage counts, for later ones were
# asked for again.
attempts = Table(
    "attempts",
    metadata,
    Column("job_id", Id, primary_key=True),
    Column("fence", Id, primary_key=True),
    Column("stage", Chars, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("outcome", Chars, nullable=False),
    Column("node_id", Id, nullable=False),
    Column("started_us", Id, nullable=False),
    Column("ended_us", Id, nullable=False),
    Column("code", Integer),
    Column("message", Chars),
    Column("error", Chars),
    Column("result", Chars),
    Column("superseded", Flag),
    sqlite_with_rowid=False,
)

children_left = Table(
    "children_left",
    metadata,
    Column("parent_id", Id, primary_key=True),
    Column("bad", Flag, primary_key=True),
    Column("child_id", Id, primary_key=True),
    sqlite_with_rowid=False,
)
"""Children that are open (bad = 0) or settled otherwise than completed (bad = 1): the index that is
asked whether a parent may go on."""

needs = Table(
    "needs",
    metadata,
    Column("job_id", Id, primary_key=True),
    Column("need_id", Id, primary_key=True),
    Index("needs_by_need", "need_id"),
    sqlite_with_rowid=False,
)

met_needs = Table(
    "met_needs",
    metadata,
    Column("need_id", Id, primary_key=True),
    Column("next_id", Id, nullable=False),
)
"""Jobs that settled or were opened again while more needed them than one transaction looks at; those from
``next_id`` on still have to hear how it stands."""

serial_order = Table(
    "serial_order",
    metadata,
    Column("root_id", Id, primary_key=True),
    Column("lineage", Chars, primary_key=True),
    Column("job_id", Id, nullable=False),
    sqlite_with_rowid=False,
)
"""Open jobs of serial trees that would run; the first of a root may."""

cancel_requests = Table(
    "cancel_requests",
    metadata,
    Column("job_id", Id, primary_key=True),
    Column("lineage", Chars, nullable=False),
    Column("tree", Flag, nullable=False),
    Column("by", Chars, nullable=False),
    Column("reason", Chars),
    Column("at_us", Id, nullable=False),
)
"""Who is to be cancelled. Goes when the job has settled and, for a tree, nothing open is left below."""

locks = Table(
    "locks",
    metadata,
    Column("name", Chars, primary_key=True),
    Column("job_id", Id, primary_key=True),
    Column("fence", Id),
    Column("since_us", Id, nullable=False),
    Column("amount", Id, nullable=False, server_default=text("1")),
    Index("locks_by_job", "job_id"),
    sqlite_with_rowid=False,
)
"""``fence`` is None for a lock kept until its job settles. ``amount``: how much of its capacity the job has."""

lock_capacities = Table(
    "lock_capacities",
    metadata,
    Column("name", Chars, primary_key=True),
    Column("capacity", Integer, nullable=False),
    Column("declared", Id),
    Column("set_to", Id),
    Column("by", Chars),
    Column("at_us", Id),
)
"""``name``: a lock, or the beginning of a family with a ``*`` behind it. In force is ``set_to``, which ``by`` set, else
what an application declares; ``capacity`` says the same, as far as its type can, to code that knows no other."""

keys = Table(
    "keys",
    metadata,
    Column("scope", Id, primary_key=True),
    Column("key", Chars, primary_key=True),
    Column("job_id", Id, nullable=False),
    Column("forever", Flag, nullable=False),
    Index("keys_by_job", "job_id"),
    sqlite_with_rowid=False,
)
"""``scope`` is 0, or the parent whose child bears the key."""

data = Table(
    "data",
    metadata,
    Column("job_id", Id, primary_key=True),
    Column("name", Chars, primary_key=True),
    Column("value", Chars, nullable=False),
    sqlite_with_rowid=False,
)

progress = Table(
    "progress",
    metadata,
    Column("job_id", Id, primary_key=True),
    Column("fraction", Float, nullable=False),
    Column("message", Chars),
)

staging = Table(
    "staging",
    metadata,
    Column("first_id", Id, primary_key=True),
    Column("last_id", Id, nullable=False),
    Column("next_id", Id, nullable=False),
    Column("published", Integer, nullable=False),
    Column("parent_id", Id),
    Column("fence", Id),
    Column("beat_us", Id, nullable=False),
)
"""Jobs written in steps. ``published`` 0: hidden; 1: ``ready`` rows from ``next_id`` on still have to
follow; -1: hidden, to be dropped; 2: hidden, and at the top, though an attempt submits them. ``fence`` and
``parent_id``: of the attempt that must pass before they are born, and its job; of published ones the job that waits
for them."""
