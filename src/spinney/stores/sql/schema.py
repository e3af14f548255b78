"""The tables. The schema is the design: what is ready, leased, parked are separate narrow tables.

Times are microseconds since 1970 UTC. Ids come from ``counters``, so that a block of them is one
statement. No index names a column of ``jobs`` that settling changes.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    Table,
    Text,
    text,
)

metadata = MetaData()
_Id = BigInteger().with_variant(Integer, "sqlite")
_Text = Text().with_variant(Text(collation="C"), "postgresql")
"""In the order of its bytes, as SQLite has it: lineages and positions are compared."""
_Flag = Boolean().with_variant(SmallInteger(), "postgresql")
"""0 or 1, as SQLite has it."""


def _where(condition: str) -> dict[str, Any]:
    return {f"{dialect}_where": text(condition) for dialect in ("sqlite", "postgresql")}


meta = Table("meta", metadata, Column("name", _Text, primary_key=True), Column("value", _Text, nullable=False))

counters = Table(
    "counters",
    metadata,
    Column("name", _Text, primary_key=True),
    Column("value", _Id, nullable=False),
    sqlite_with_rowid=False,
)
"""job, fence, lane, share, node, hold: the last number given. registry: moves with types, queues, lanes, holds.
lift: how many holds have ended; lift_swept: up to which of them what they kept has been looked at afresh;
hold_sweep: when (µs) somebody last took a step of sweeping holds. removed: the highest number of a job whose row
retention has removed."""

types = Table("types", metadata, Column("name", _Text, primary_key=True), Column("spec", _Text, nullable=False))
queues = Table(
    "queues", metadata, Column("name", _Text, primary_key=True), Column("spec", _Text, nullable=False)
)
queue_settings = Table(
    "queue_settings",
    metadata,
    Column("name", _Text, primary_key=True),
    Column("settings", _Text, nullable=False),
    Column("by", _Text, nullable=False),
    Column("at_us", _Id, nullable=False),
)
"""What operators set of a queue wins over what is declared; JSON of those fields of a QueueSpec alone."""

shares = Table(
    "shares", metadata, Column("id", _Id, primary_key=True), Column("name", _Text, nullable=False, unique=True)
)
"""Named shares; in jobs, ready and leases they are -id, so that they never meet a root's id."""

lanes = Table(
    "lanes",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("queue", _Text, nullable=False),
    Column("type", _Text, nullable=False),
    Column("stage", _Text, nullable=False),
    Column("asleep_until_us", _Id),
    Column("probing", _Flag, nullable=False, server_default=text("0")),
    Column("home", _Id, nullable=False, server_default=text("0")),
    Index("lanes_by_place", "queue", "type", "stage", "home", unique=True),
)
"""A lane sleeps until a time (defer with lane=True); then one job probes before the others go on. ``home``: whose
nodes may serve it (see homes); 0: all."""

jobs = Table(
    "jobs",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("type", _Text, nullable=False),
    Column("state", _Text, nullable=False),
    Column("stage", _Text),
    Column("queue", _Text, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("share", _Id, nullable=False),
    Column("lineage", _Text, nullable=False),
    Column("root_id", _Id, nullable=False),
    Column("parent_id", _Id),
    Column("params", _Text, nullable=False),
    Column("created_us", _Id, nullable=False),
    Column("started_us", _Id),
    Column("settled_us", _Id),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("interruptions", Integer, nullable=False, server_default=text("0")),
    Column("warnings", Integer, nullable=False, server_default=text("0")),
    Column("code", Integer),
    Column("node_id", _Id),
    Column("collection", _Text),
    Column("submitter", _Text),
    Column("key", _Text),
    Column("queue_moved", _Text),
    Column("queue_named", _Text),
    Column("queue_parent", _Text),
    Column("birth_stage", _Text),
    Column("superseded", _Flag),
    Column("at_us", _Id),
    Column("special", _Flag),
    Column("final_fence", _Id),
    Column("final_attempt", Integer),
    Column("final_began_us", _Id),
    Column("final_ended_us", _Id),
    Column("final_result", _Text),
    Index("jobs_by_parent", "parent_id", **_where("parent_id is not null")),
    Index("jobs_by_lineage", "root_id", "lineage", **_where("parent_id is not null")),
    Index("jobs_by_kind", "type", "queue"),
    Index("jobs_by_collection", "collection", **_where("collection is not null")),
    Index("jobs_by_submitter", "submitter", **_where("submitter is not null")),
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
    Column("position", _Text, primary_key=True),
    Column("job_id", _Id, nullable=False),
    sqlite_with_rowid=False,
)
"""What may be claimed, in the order of work. ``share`` is 0 where the queue does not share;
``position`` is unique: a lineage, or an id padded (fifo) or counted down (lifo)."""

low_marks = Table(
    "low_marks",
    metadata,
    Column("lane", _Id, primary_key=True),
    Column("priority", Integer, nullable=False),
    Column("share", _Id, nullable=False),
    Column("position", _Text, nullable=False),
)
"""See ``marks``: what stands before this place of the lane has gone. Lane 0: ``share`` is a fence of ``leases``."""

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
    Column("plain", _Flag, nullable=False),
    Column("claimed_us", _Id, nullable=False),
    Column("running_us", _Id),
)
"""``share`` as in ``ready``. ``plain``: the job is not special (see jobs) and its lane has no locks."""

parked = Table(
    "parked",
    metadata,
    Column("job_id", _Id, primary_key=True),
    Column("state", _Text, nullable=False),
    Column("since_us", _Id, nullable=False),
    Column("wake_us", _Id),
    Column("waits_for", _Text),
    Column("priority", Integer),
    Column("reason", _Text),
    Column("fingerprint", _Text),
    Column("wants_amount", _Id),
    Column("wants_capacity", _Id),
    Index("parked_by_state", "state", "job_id"),
    Index(
        "parked_by_fingerprint", "fingerprint", "job_id", **_where("fingerprint is not null")
    ),
    Index("parked_by_wake", "wake_us", **_where("wake_us is not null")),
    Index("parked_by_lock", "waits_for", "priority", "job_id", **_where("waits_for like 'lock:%'")),
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
    Column("job_id", _Id, primary_key=True),
    Column("fence", _Id, primary_key=True),
    Column("stage", _Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("outcome", _Text, nullable=False),
    Column("node_id", _Id, nullable=False),
    Column("started_us", _Id, nullable=False),
    Column("ended_us", _Id, nullable=False),
    Column("code", Integer),
    Column("message", _Text),
    Column("error", _Text),
    Column("result", _Text),
    Column("superseded", _Flag),
    sqlite_with_rowid=False,
)

children_left = Table(
    "children_left",
    metadata,
    Column("parent_id", _Id, primary_key=True),
    Column("bad", _Flag, primary_key=True),
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

met_needs = Table(
    "met_needs",
    metadata,
    Column("need_id", _Id, primary_key=True),
    Column("next_id", _Id, nullable=False),
)
"""Jobs that settled or were opened again while more needed them than one transaction looks at; those from
``next_id`` on still have to hear how it stands."""

serial_line = Table(
    "serial_line",
    metadata,
    Column("root_id", _Id, primary_key=True),
    Column("lineage", _Text, primary_key=True),
    Column("job_id", _Id, nullable=False),
    sqlite_with_rowid=False,
)
"""Open jobs of serial trees that would run; the first of a root may."""

wishes = Table(
    "wishes",
    metadata,
    Column("job_id", _Id, primary_key=True),
    Column("lineage", _Text, nullable=False),
    Column("tree", _Flag, nullable=False),
    Column("by", _Text, nullable=False),
    Column("reason", _Text),
    Column("at_us", _Id, nullable=False),
)
"""Who is to be cancelled. Goes when the job has settled and, for a tree, nothing open is left below."""

locks = Table(
    "locks",
    metadata,
    Column("name", _Text, primary_key=True),
    Column("job_id", _Id, primary_key=True),
    Column("fence", _Id),
    Column("since_us", _Id, nullable=False),
    Column("amount", _Id, nullable=False, server_default=text("1")),
    Index("locks_by_job", "job_id"),
    sqlite_with_rowid=False,
)
"""``fence`` is None for a lock kept until its job settles. ``amount``: how much of its capacity the job has."""

lock_capacities = Table(
    "lock_capacities",
    metadata,
    Column("name", _Text, primary_key=True),
    Column("capacity", Integer, nullable=False),
    Column("declared", _Id),
    Column("set_to", _Id),
    Column("by", _Text),
    Column("at_us", _Id),
)
"""``name``: a lock, or the beginning of a family with a ``*`` behind it. In force is ``set_to``, which ``by`` set, else
what an application declares; ``capacity`` says the same, as far as its type can, to code that knows no other."""

keys = Table(
    "keys",
    metadata,
    Column("scope", _Id, primary_key=True),
    Column("key", _Text, primary_key=True),
    Column("job_id", _Id, nullable=False),
    Column("forever", _Flag, nullable=False),
    Index("keys_by_job", "job_id"),
    sqlite_with_rowid=False,
)
"""``scope`` is 0, or the parent whose child bears the key."""

data = Table(
    "data",
    metadata,
    Column("job_id", _Id, primary_key=True),
    Column("name", _Text, primary_key=True),
    Column("value", _Text, nullable=False),
    sqlite_with_rowid=False,
)

progress = Table(
    "progress",
    metadata,
    Column("job_id", _Id, primary_key=True),
    Column("fraction", Float, nullable=False),
    Column("message", _Text),
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
follow; -1: hidden, to be dropped; 2: hidden, and at the top, though an attempt submits them. ``fence`` and
``parent_id``: of the attempt that must pass before they are born, and its job; of published ones the job that waits
for them."""

nodes = Table(
    "nodes",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("name", _Text, nullable=False),
    Column("boot_id", _Text, nullable=False),
    Column("host", _Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("slots", Integer, nullable=False),
    Column("state", _Text, nullable=False),
    Column("beat", _Id, nullable=False),
    Column("started_us", _Id, nullable=False),
    Column("seen_us", _Id, nullable=False),
    Column("version", _Text, nullable=False),
    Column("types", _Text, nullable=False),
    Column("load", _Text),
    Column("serves", _Text),
    Column("trouble", _Text),
    Column("schema_version", _Text),
    Column("home", _Id, nullable=False, server_default=text("0")),
)
"""``load``: JSON of what it measures of its host. ``serves``: JSON of the queues it was started for or without; None:
all. ``trouble``: why it works worse than it should, while it does. ``schema_version``: for which its code was
written; None: an older one than those that say so. ``home``: where its jobs have their folders (see homes); 0: where
those of all have."""

parties = Table(
    "parties",
    metadata,
    Column("node_id", _Id, primary_key=True),
    Column("owner", _Text, nullable=False),
    Column("joins", Integer, nullable=False),
    Column("lease_s", Float, nullable=False),
    Column("lanes", _Text, nullable=False),
)
"""Which nodes are none, but parties that claim external stages: whose each is, how often it has joined (an earlier
joining counts no more), so long it may be silent, and the [type, stage] pairs that it runs, as JSON."""

homes = Table(
    "homes",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("mark", _Text, nullable=False, unique=True),
    Column("host", _Text, nullable=False),
    Column("path", _Text, nullable=False),
    Column("gone", _Flag, nullable=False, server_default=text("0")),
)
"""In a store with local folders: the folder roots, each with the mark that is written in it, and where it was when a
node last joined with it. ``gone``: an operator has let go of it, so that everybody may go on with its jobs."""

fetches = Table(
    "fetches",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("home", _Id, nullable=False),
    Column("job_id", _Id, nullable=False),
    Column("path", _Text, nullable=False),
    Column("start", _Id, nullable=False),
    Column("length", Integer, nullable=False),
    Column("asked_us", _Id, nullable=False),
    Column("answer", _Text),
)
"""Questions for pieces of files, and for the names in a folder, to the nodes of a home, and their answers (JSON):
``fetching``. A minute later they are gone."""

node_settings = Table(
    "node_settings",
    metadata,
    Column("name", _Text, primary_key=True),
    Column("drained", _Flag, nullable=False),
    Column("slots", Integer),
    Column("by", _Text, nullable=False),
    Column("reason", _Text),
    Column("at_us", _Id, nullable=False),
)
"""What operators want of the nodes of a name, whichever incarnation comes: to claim nothing (``drained``), so many
slots (None: as it was started)."""

chores = Table(
    "chores",
    metadata,
    Column("name", _Text, primary_key=True),
    Column("node_id", _Id),
)
"""Which node does what one does for all (``housekeeping``): until it leaves, or is dead."""

pace = Table(
    "pace",
    metadata,
    Column("slice", _Id, primary_key=True),
    Column("lane", _Id, primary_key=True),
    Column("node_id", _Id, primary_key=True),
    Column("ended", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    sqlite_with_rowid=False,
)
"""How many attempts of a lane ended in each ten seconds (``slice``), and how many of them failed: a measure for
people, by which nothing is decided. Kept for some minutes."""

tombs = Table(
    "tombs",
    metadata,
    Column("job_id", _Id, primary_key=True),
    Column("at_us", _Id, nullable=False),
    Column("home", _Id, nullable=False, server_default=text("0")),
)
"""Deleted and removed jobs whose folders may still be there. ``home``: whose nodes are to look (see homes); 0: any."""

removals = Table(
    "removals",
    metadata,
    Column("root_id", _Id, primary_key=True),
    Column("looked", _Text, nullable=False),
    Column("going", _Flag, nullable=False),
)
"""Trees whose time is over (see ``removing``). ``looked``: the lineage up to which all were found settled;
``going``: all were, and the tree is being removed."""

holds = Table(
    "holds",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("scope", _Text, nullable=False),
    Column("name", _Text, nullable=False),
    Column("reason", _Text, nullable=False),
    Column("by", _Text, nullable=False),
    Column("since_us", _Id, nullable=False),
    Column("until_us", _Id),
    Column("automatic", _Flag, nullable=False),
    Column("swept", _Flag, nullable=False, server_default=text("0")),
    Index("holds_by_name", "scope", "name"),
    Index("holds_by_end", "until_us", **_where("until_us is not null")),
)
"""``swept``: all that it covers has been set to held, so that claims need not look at each job."""

failures = Table(
    "failures",
    metadata,
    Column("fingerprint", _Text, primary_key=True),
    Column("type", _Text, nullable=False),
    Column("stage", _Text, nullable=False),
    Column("exception", _Text, nullable=False),
    Column("message", _Text, nullable=False),
    Column("first_us", _Id, nullable=False),
    Column("last_us", _Id, nullable=False),
)

streaks = Table(
    "streaks",
    metadata,
    Column("type", _Text, primary_key=True),
    Column("stage", _Text, primary_key=True),
    Column("fingerprint", _Text, nullable=False),
    Column("jobs", _Text, nullable=False),
    Column("failed_us", _Id, nullable=False),
)
"""Failures in a row with the same cause, of types that have a circuit breaker. ``jobs``: a JSON list of the jobs
that failed so, each once; empty when an attempt of the stage has passed since. The row stays for a while, so that
the registry need not move each time (see ``breaking``)."""

schedules = Table(
    "schedules",
    metadata,
    Column("name", _Text, primary_key=True),
    Column("spec", _Text, nullable=False),
    Column("paused", _Flag, nullable=False),
    Column("next_us", _Id),
    Column("last_job_id", _Id),
    Column("by", _Text, nullable=False),
    Column("declared", _Flag, nullable=False),
    Index("schedules_due", "next_us", **_where("next_us is not null and paused = 0")),
)
"""``next_us``: the first nominal time for which nothing has been decided. ``declared``: it is as an application
declares it; else a person made or changed it."""

schedule_runs = Table(
    "schedule_runs",
    metadata,
    Column("schedule", _Text, primary_key=True),
    Column("nominal_us", _Id, primary_key=True),
    Column("job_id", _Id),
    Column("outcome", _Text, nullable=False),
    Column("message", _Text),
    Index("schedule_runs_queued", "schedule", "nominal_us", **_where("outcome = 'queued'")),
    sqlite_with_rowid=False,
)
"""One job a nominal time: the pair is unique, and written in one transaction with the job and the schedule's
next time."""

retention = Table(
    "retention",
    metadata,
    Column("type", _Text, primary_key=True),
    Column("state", _Text, primary_key=True),
    Column("keep_us", _Id),
    Column("by", _Text, nullable=False),
)

audit = Table(
    "audit",
    metadata,
    Column("seq", _Id, primary_key=True),
    Column("at_us", _Id, nullable=False),
    Column("by", _Text, nullable=False),
    Column("verb", _Text, nullable=False),
    Column("what", _Text, nullable=False),
    Column("count", Integer, nullable=False),
    Column("reason", _Text),
    Column("call", _Text, nullable=False),
    Column("link", _Text, nullable=False),
    Index("audit_by_call", "call", "seq"),
)
"""See ``spinney.model.audits``: ``link`` is the digest over the link before and this entry."""

users = Table(
    "users",
    metadata,
    Column("name", _Text, primary_key=True),
    Column("rights", _Text, nullable=False),
    Column("password", _Text),
    Column("password_us", _Id),
    Column("created_us", _Id, nullable=False),
    Column("by", _Text, nullable=False),
    Column("disabled", _Flag, nullable=False, server_default=text("0")),
)
"""``rights``: JSON of ``model.access.Rights``. ``password``: its argon2 hash; None: none opens anything."""

tokens = Table(
    "tokens",
    metadata,
    Column("id", _Text, primary_key=True),
    Column("owner", _Text, nullable=False),
    Column("name", _Text, nullable=False),
    Column("rights", _Text, nullable=False),
    Column("digest", _Text, nullable=False),
    Column("created_us", _Id, nullable=False),
    Column("by", _Text, nullable=False),
    Column("expires_us", _Id),
    Column("revoked_us", _Id),
    Column("used_us", _Id),
    Index("tokens_by_name", "owner", "name", unique=True, **_where("revoked_us is null")),
    Index("tokens_by_expiry", "expires_us", **_where("expires_us is not null")),
    Index("tokens_by_revocation", "revoked_us", **_where("revoked_us is not null")),
)
"""``owner``: a user, or empty: a machine's. ``digest``: SHA-256 of the secret, which nobody keeps."""

sessions = Table(
    "sessions",
    metadata,
    Column("digest", _Text, primary_key=True),
    Column("user_name", _Text, nullable=False),
    Column("created_us", _Id, nullable=False),
    Column("seen_us", _Id, nullable=False),
    Column("idle_us", _Id, nullable=False),
    Column("ends_us", _Id, nullable=False),
    Column("address", _Text),
    Column("agent", _Text),
    Index("sessions_by_user", "user_name"),
    Index("sessions_by_end", "ends_us"),
)
"""``digest``: SHA-256 of what the browser has. It ends at ``ends_us``, or ``idle_us`` after it was last seen."""

login_failures = Table(
    "login_failures",
    metadata,
    Column("whose", _Text, primary_key=True),
    Column("failures", Integer, nullable=False),
    Column("last_us", _Id, nullable=False),
    Index("login_failures_by_time", "last_us"),
)
"""``whose``: SHA-256 of a user name or of an address, whether there is such a user or not (people type passwords
there). Kept for a day."""

invites = Table(
    "invites",
    metadata,
    Column("user_name", _Text, primary_key=True),
    Column("digest", _Text, nullable=False),
    Column("ends_us", _Id, nullable=False),
    Column("by", _Text, nullable=False),
)
"""Links that set a password, once. ``user_name``: whose; empty: they make the first admin. ``digest``: SHA-256 of the
secret in it."""

server_secrets = Table(
    "server_secrets",
    metadata,
    Column("name", _Text, primary_key=True),
    Column("value", _Text, nullable=False),
    Column("made_us", _Id, nullable=False),
)
"""What all servers of a store sign with; 32 random bytes each, in hexadecimal."""

idempotency = Table(
    "idempotency",
    metadata,
    Column("owner", _Text, primary_key=True),
    Column("key", _Text, primary_key=True),
    Column("digest", _Text, nullable=False),
    Column("first_id", _Id, nullable=False),
    Column("last_id", _Id, nullable=False),
    Column("held", _Id, nullable=False, server_default=text("0")),
    Column("done", _Flag, nullable=False),
    Column("at_us", _Id, nullable=False),
    Index("idempotency_by_time", "at_us"),
)
"""Submissions with a key of the submitter's program, and the jobs that each made: written with them. ``done`` 0: they
are being written in steps under the ``staging`` row of ``first_id``. Kept for a day."""

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("name", _Text, nullable=False, unique=True),
    Column("spec", _Text, nullable=False),
    Column("secret", _Text, nullable=False),
    Column("mark", _Text, nullable=False),
    Column("paused", _Text),
    Column("resumed_us", _Id),
    Column("by", _Text, nullable=False),
    Column("at_us", _Id, nullable=False),
)
"""``spec``: JSON of what a Webhook is set to, and of what its maker may see. ``secret``: read by nobody but who signs.
``mark``: random, the beginning of its deliveries' ids. ``paused``: why it is told nothing for now;
``resumed_us``: since when it is told again."""

webhook_events = Table(
    "webhook_events",
    metadata,
    Column("seq", _Id, primary_key=True),
    Column("webhook_id", _Id, nullable=False),
    Column("job_id", _Id),
    Column("event", _Text, nullable=False),
    Column("batch", _Flag, nullable=False),
    Column("at_us", _Id, nullable=False),
    Column("next_us", _Id),
    Column("outcome", _Text, nullable=False),
    Column("tries", Integer, nullable=False, server_default=text("0")),
    Column("first_us", _Id),
    Column("tried_us", _Id),
    Column("status", Integer),
    Column("answer", _Text),
    Index("webhook_events_by_webhook", "webhook_id", "seq"),
    Index("webhook_events_due", "webhook_id", "next_us", **_where("next_us is not null")),
)
"""What a webhook is to be told, written by the transaction that settled the job. ``next_us``: when it is due, or, while
somebody sends it, when his turn is over; None: nothing is left to do. ``first_us``: of its first try in this term."""

GUARDS = {
    "audit_follows": (
        "create trigger audit_follows before insert on audit "
        "when new.seq <> (select coalesce(max(seq), 0) + 1 from audit) "
        "begin select raise(abort, 'the audit is append-only: an entry follows the last one'); end"
    ),
    "audit_stays": (
        "create trigger audit_stays before update on audit "
        "begin select raise(abort, 'the audit is append-only: no entry may be changed'); end"
    ),
    "audit_keeps": (
        "create trigger audit_keeps before delete on audit "
        "begin select raise(abort, 'the audit is append-only: no entry may be deleted'); end"
    ),
}
"""Triggers that keep the audit from accidents: a statement of somebody's, a tool that rewrites rows. Who can
write to the file can drop them, and is found out by the chain (``spinney audit verify``)."""
