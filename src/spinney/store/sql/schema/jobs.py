"""The tables of jobs: their rows, their states, and what they wait for.

A job's way through them: its row in ``jobs`` is written at submission, with one in ``ready`` if it may start.
A claim deletes that, and writes one in ``leases``. The record of its attempt deletes the lease, and either
completes the row in ``jobs``, or writes one in ``inactive_jobs`` (it waits, or has failed), or one in
``ready`` again for the next stage. Other tables have rows only of jobs that use them: keys, needs, children,
locks, data, cancel requests."""

from sqlalchemy import Column, Float, Index, Integer, text

from spinney.store.sql.schema.columns import Chars, Flag, Id, table, where

meta = table("meta", Column("name", Chars, primary_key=True), Column("value", Chars, nullable=False))
"""Facts about the store: the token of its folder roots, whether folders are local, and the marks of
``schema_state``."""

counters = table(
    "counters",
    Column("name", Chars, primary_key=True),
    Column("value", Id, nullable=False),
    sqlite_with_rowid=False,
)
"""Numbers by name. ``job``, ``fence``, ``lane``, ``share``, ``node``, ``hold``, ``home``, ``fetch``,
``inbox_arrival``, ``webhook``, ``webhook_event``: the last id that was assigned. ``registry``,
``watermarks``: incremented when a process has to refresh its cache of declarations, or of watermarks.
``turn``: on PostgreSQL, the row that writers lock. ``lift``: how many holds have ended; ``lift_swept``: up to
which of them the sweep is complete; ``hold_sweep``: when a process last did a step of it. ``removed``: the
highest id of a job whose row retention has removed. ``clock_trusted``, ``clock_jumped``: two rows that
``spinney.store.sql.transitions.trusted_clock`` makes when it first needs them."""

types = table("types", Column("name", Chars, primary_key=True), Column("spec", Chars, nullable=False))
queues = table("queues", Column("name", Chars, primary_key=True), Column("spec", Chars, nullable=False))
"""``types`` and ``queues``: what applications declare, as JSON (``TypeSpec``, ``QueueSpec``)."""
queue_settings = table(
    "queue_settings",
    Column("name", Chars, primary_key=True),
    Column("settings", Chars, nullable=False),
    Column("by", Chars, nullable=False),
    Column("at_us", Id, nullable=False),
)
"""Operators' settings of queues, which override declarations: JSON of those fields of a ``QueueSpec`` that are set."""

shares = table(
    "shares", Column("id", Id, primary_key=True), Column("name", Chars, nullable=False, unique=True)
)
"""The names of shares. Other tables contain the negative id, so that it never equals the id of a root job."""

lanes = table(
    "lanes",
    Column("id", Id, primary_key=True),
    Column("queue", Chars, nullable=False),
    Column("type", Chars, nullable=False),
    Column("stage", Chars, nullable=False),
    Column("asleep_until_us", Id),
    Column("probing", Flag, nullable=False, server_default=text("0")),
    Column("home", Id, nullable=False, server_default=text("0")),
    Index("lanes_by_place", "queue", "type", "stage", "home", unique=True),
)
"""Lanes: each is the jobs of one queue, type and stage (and home), which a claim treats alike. A lane sleeps until a
time (``defer`` with ``lane=True``); then one job probes before the others go on (``probing``). ``home``: the folder
root whose nodes may serve it; 0: all nodes."""

jobs = table(
    "jobs",
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
    Column("trace", Chars),
    Column("final_fence", Id),
    Column("final_attempt", Integer),
    Column("final_began_us", Id),
    Column("final_ended_us", Id),
    Column("final_result", Chars),
    # Partial indexes, because most jobs are roots without a label: they cost such a job nothing.
    Index("jobs_by_parent", "parent_id", **where("parent_id is not null")),
    Index("jobs_by_lineage", "root_id", "lineage", **where("parent_id is not null")),
    Index("jobs_by_kind", "type", "queue"),
    Index("jobs_by_collection", "collection", **where("collection is not null")),
    Index("jobs_by_submitter", "submitter", **where("submitter is not null")),
)
"""The jobs. ``queue`` is the one in force, the first that is there of ``queue_moved`` (by an operator), ``queue_named``
(by the submitter), the stage's, ``queue_parent`` and the type's. ``lineage``: the path of ids from the root.
``spawn_stage``: the parent's stage that spawned the job. ``superseded``: that stage ran again without it. ``special``:
the job has a key or is in a serial tree, so that more than its row changes when it settles; null for most. ``trace``:
the ``traceparent`` of its submission. ``final_…``: the attempt with which a plain job completed, which is stored here
because this row is written anyway; the view ``history`` shows it among the others, and a retry or rerun moves it to
``attempts``."""

ready = table(
    "ready",
    Column("lane", Id, primary_key=True),
    Column("priority", Integer, primary_key=True),
    Column("share", Id, primary_key=True),
    Column("position", Chars, primary_key=True),
    Column("job_id", Id, nullable=False),
    sqlite_with_rowid=False,
)
"""The claimable jobs; the primary key is the order of work. ``share`` is 0 where the queue has no shares. ``position``
is unique: a lineage, or the id with leading zeros (fifo) or counted down (lifo)."""

low_watermarks = table(
    "low_watermarks",
    Column("lane", Id, primary_key=True),
    Column("priority", Integer, nullable=False),
    Column("share", Id, nullable=False),
    Column("position", Chars, nullable=False),
)
"""A place of each lane in ``ready`` before which there are only dead rows; see ``registry.watermarks``. In the row of
lane 0, ``share`` is such a fence of ``leases``."""

leases = table(
    "leases",
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
"""The claimed and running jobs. ``fence``: the number of the lease; every call of the attempt has it, and is refused
when the job has another lease by then. ``share`` as in ``ready``. ``plain``: the job is not special (see ``jobs``), its
lane has no locks, and no child of the job was opened again since. ``running_us``: when its node marked it as started;
null: only claimed."""

inactive_jobs = table(
    "inactive_jobs",
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

"""The jobs that are neither claimable nor leased nor completed, with the reason in ``reason``. ``wake_us``: when the
job is to be looked at again. ``waits_for``: ``hold`` for a job that an operator's hold keeps (null for one that its own
stage held), ``lock:NAME`` for a lock; ``wants_…``: of that lock, where the amount is not 1 or a capacity was given.
``fingerprint``: the cause of its failure, in ``failures``."""

attempts = table(
    "attempts",
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
"""The attempts that ended, except the final one of a plain job (see ``jobs``); the view ``history`` shows both.
``superseded``: null, it counts; 1, it does not count any more; 0, a ``finish`` of which only its own stage counts,
because later stages are to run again."""

children_left = table(
    "children_left",
    Column("parent_id", Id, primary_key=True),
    Column("bad", Flag, primary_key=True),
    Column("child_id", Id, primary_key=True),
    sqlite_with_rowid=False,
)
"""Children that are open (``bad`` = 0) or have settled otherwise than completed (``bad`` = 1), by which it is decided
whether a parent may go on."""

needs = table(
    "needs",
    Column("job_id", Id, primary_key=True),
    Column("need_id", Id, primary_key=True),
    Index("needs_by_need", "need_id"),
    sqlite_with_rowid=False,
)
"""The jobs (``need_id``) that must complete before a job starts."""

met_needs = table(
    "met_needs",
    Column("need_id", Id, primary_key=True),
    Column("next_id", Id, nullable=False),
)
"""Jobs that settled or were opened again and have more dependants than one transaction updates. Those from ``next_id``
on are still to be updated."""

serial_order = table(
    "serial_order",
    Column("root_id", Id, primary_key=True),
    Column("lineage", Chars, primary_key=True),
    Column("job_id", Id, nullable=False),
    sqlite_with_rowid=False,
)
"""Runnable jobs of serial trees. Only the first of each root may run."""

cancel_requests = table(
    "cancel_requests",
    Column("job_id", Id, primary_key=True),
    Column("lineage", Chars, nullable=False),
    Column("tree", Flag, nullable=False),
    Column("by", Chars, nullable=False),
    Column("reason", Chars),
    Column("at_us", Id, nullable=False),
)
"""Jobs that are to be cancelled, with all jobs below where ``tree`` is 1. A row is removed when the job has settled
and, for a tree, no job below it is open."""

locks = table(
    "locks",
    Column("name", Chars, primary_key=True),
    Column("job_id", Id, primary_key=True),
    Column("fence", Id),
    Column("since_us", Id, nullable=False),
    Column("amount", Id, nullable=False, server_default=text("1")),
    Index("locks_by_job", "job_id"),
    sqlite_with_rowid=False,
)
"""The owners of locks. ``fence``: the lease with which the lock ends; null: it is kept until the job settles.
``amount``: how much of the lock's capacity the job has."""

lock_capacities = table(
    "lock_capacities",
    Column("name", Chars, primary_key=True),
    Column("declared", Id),
    Column("set_to", Id),
    Column("by", Chars),
    Column("at_us", Id),
)
"""Capacities of locks. ``name``: a lock, or the prefix of a family followed by ``*``. In force is ``set_to``, which the
operator ``by`` has set, else ``declared``, by an application."""

keys = table(
    "keys",
    Column("scope", Id, primary_key=True),
    Column("key", Chars, primary_key=True),
    Column("job_id", Id, nullable=False),
    Column("forever", Flag, nullable=False),
    Index("keys_by_job", "job_id"),
    sqlite_with_rowid=False,
)
"""Deduplication keys of jobs. ``scope``: 0, -1 for internal types, or the parent among whose children the key is
unique. ``forever``: the key stays taken after the job has settled."""

data = table(
    "data",
    Column("job_id", Id, primary_key=True),
    Column("name", Chars, primary_key=True),
    Column("value", Chars, nullable=False),
    sqlite_with_rowid=False,
)
"""The data that stages store for their job, as JSON."""

progress = table(
    "progress",
    Column("job_id", Id, primary_key=True),
    Column("fence", Id, nullable=False),
    Column("fraction", Float, nullable=False),
    Column("message", Chars),
)
"""The last progress note of a job. It is shown while the lease with this ``fence`` lasts."""

staging = table(
    "staging",
    Column("first_id", Id, primary_key=True),
    Column("last_id", Id, nullable=False),
    Column("next_id", Id, nullable=False),
    Column("published", Integer, nullable=False),
    Column("parent_id", Id),
    Column("fence", Id),
    Column("beat_us", Id, nullable=False),
)
"""Ranges of jobs that are written in steps; see ``submit.staging``. ``published``: 0, they are hidden; 1, they are
accepted, and those from ``next_id`` on are still to be placed; -1, they are hidden and to be dropped; 2, they are
hidden jobs of an attempt that have no parent. ``fence``, ``parent_id``: the attempt that must pass before they are
published, and its job; after publication ``parent_id`` is the job that waits for them. ``beat_us``: the last sign of
life of their writer."""
