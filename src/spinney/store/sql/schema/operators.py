"""The tables of operators' settings and records: holds, failures, schedules, retention, the audit.

Settings are rows that a command writes together with its entry in the audit. Those that claims and records
depend on (holds, streaks) are read with the registry, whose counter the command increments; the others by the
service that carries them out."""

from sqlalchemy import Column, Float, Index, Integer, text

from spinney.store.sql.schema.columns import Chars, Flag, Id, table, where

throughput = table(
    "throughput",
    Column("slice", Id, primary_key=True),
    Column("lane", Id, primary_key=True),
    Column("node_id", Id, primary_key=True),
    Column("ended", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    sqlite_with_rowid=False,
)
"""How many attempts of a lane ended in each ten seconds (``slice``), and how many of them failed. Figures for people,
which are kept for some minutes; nothing is decided by them."""

throughput_history = table(
    "throughput_history",
    Column("width_s", Integer, primary_key=True),
    Column("slice", Id, primary_key=True),
    Column("lane", Id, primary_key=True),
    Column("ended", Id, nullable=False),
    Column("failed", Id, nullable=False),
    Column("pending", Float),
    Column("running", Float),
    Column("wait_s", Float),
    Column("run_s", Float),
    sqlite_with_rowid=False,
)
"""What ``throughput`` had, rolled up for charts: slices of a minute for some hours, of a quarter of an hour for some
days, of an hour for some weeks (``width_s``, in seconds). ``pending``, ``running``: how many jobs there were, on the
average of the counts that were made in the slice, once a minute; null: none was made. ``wait_s``, ``run_s``: how long a
sample of jobs waited and ran. A row of lane 0 says that the slice was recorded, though no lane may have a row in it."""

deleted_folders = table(
    "deleted_folders",
    Column("job_id", Id, primary_key=True),
    Column("at_us", Id, nullable=False),
    Column("home", Id, nullable=False, server_default=text("0")),
)
"""Deleted and removed jobs whose folders may still exist. ``home``: the folder root whose nodes are to remove them; 0:
any."""

removals = table(
    "removals",
    Column("root_id", Id, primary_key=True),
    Column("looked", Chars, nullable=False),
    Column("going", Flag, nullable=False),
)
"""Trees whose retention time is over (see ``transitions.removal``). ``looked``: the lineage up to which all jobs were
found settled; ``going``: all were, and the tree is being removed."""

holds = table(
    "holds",
    Column("id", Id, primary_key=True),
    Column("scope", Chars, nullable=False),
    Column("name", Chars, nullable=False),
    Column("reason", Chars, nullable=False),
    Column("by", Chars, nullable=False),
    Column("since_us", Id, nullable=False),
    Column("until_us", Id),
    Column("automatic", Flag, nullable=False),
    Column("swept", Flag, nullable=False, server_default=text("0")),
    Index("holds_by_name", "scope", "name"),
    Index("holds_by_end", "until_us", **where("until_us is not null")),
)
"""Holds. ``scope``, ``name``: what it covers. ``automatic``: a circuit breaker laid it. ``swept``: all jobs that it
covers are held, so that claims need not check each job."""

failures = table(
    "failures",
    Column("fingerprint", Chars, primary_key=True),
    Column("type", Chars, nullable=False),
    Column("stage", Chars, nullable=False),
    Column("exception", Chars, nullable=False),
    Column("message", Chars, nullable=False),
    Column("first_us", Id, nullable=False),
    Column("last_us", Id, nullable=False),
)
"""Causes of failures, by fingerprint, with the times of the first and the last failure. They are kept for 30 days after
the last one."""

streaks = table(
    "streaks",
    Column("type", Chars, primary_key=True),
    Column("stage", Chars, primary_key=True),
    Column("fingerprint", Chars, nullable=False),
    Column("jobs", Chars, nullable=False),
    Column("failed_us", Id, nullable=False),
)
"""Consecutive failures with the same cause, of types that have a circuit breaker. ``jobs``: a JSON list of the jobs
that failed so, each once; empty when an attempt of the stage has passed since. An empty row stays for a while, so that
caches need not be refreshed each time (see ``record.circuit_breaker``)."""

schedules = table(
    "schedules",
    Column("name", Chars, primary_key=True),
    Column("spec", Chars, nullable=False),
    Column("paused", Flag, nullable=False),
    Column("next_us", Id),
    Column("last_job_id", Id),
    Column("by", Chars, nullable=False),
    Column("declared", Flag, nullable=False),
    Index("schedules_due", "next_us", **where("next_us is not null and paused = 0")),
)
"""Schedules. ``next_us``: the next nominal time that was not handled yet. ``last_job_id``: its latest job.
``declared``: it is as an application declares it; otherwise a person created or changed it."""

schedule_runs = table(
    "schedule_runs",
    Column("schedule", Chars, primary_key=True),
    Column("nominal_us", Id, primary_key=True),
    Column("job_id", Id),
    Column("outcome", Chars, nullable=False),
    Column("message", Chars),
    Index("schedule_runs_queued", "schedule", "nominal_us", **where("outcome = 'queued'")),
    sqlite_with_rowid=False,
)
"""The nominal times of schedules that were handled. The row is written in one transaction with its job and the
schedule's next time, so that no time makes two jobs."""

inboxes = table(
    "inboxes",
    Column("name", Chars, primary_key=True),
    Column("spec", Chars, nullable=False),
    Column("paused", Flag, nullable=False),
    Column("since_us", Id, nullable=False),
    Column("scan_us", Id),
    Column("by", Chars, nullable=False),
    Column("node_id", Id),
    Column("problem", Chars),
)
"""Inboxes. ``node_id``: the node that looks there, for as long as it is active. ``since_us``: when it was last made or
resumed, or a node took it up or left; from then on a node has some time to take it up. ``scan_us``: when somebody asked
to have everything taken that is there, until that is done. ``problem``: what keeps files from being taken."""

inbox_arrivals = table(
    "inbox_arrivals",
    Column("id", Id, primary_key=True),
    Column("inbox", Chars, nullable=False),
    Column("name", Chars, nullable=False),
    Column("kind", Chars, nullable=False),
    Column("size", Id, nullable=False),
    Column("sha256", Chars),
    Column("identity", Chars, nullable=False),
    Column("owner", Chars, nullable=False),
    Column("dropped_us", Id, nullable=False),
    Column("at_us", Id, nullable=False),
    Column("outcome", Chars, nullable=False),
    Column("job_id", Id),
    Column("reason", Chars),
    Index("inbox_arrivals_by_inbox", "inbox", "id"),
    Index("inbox_arrivals_by_digest", "inbox", "sha256", "id"),
    Index("inbox_arrivals_open", "inbox", "name", unique=True, **where("outcome in ('taking', 'rejecting')")),
)
"""What was dropped into inboxes. The row is written in one transaction with its job, which is held until the file is in
its folder, and only one of a name is open: so no file makes two jobs."""

bridges = table(
    "bridges",
    Column("name", Chars, primary_key=True),
    Column("system", Chars, nullable=False),
    Column("owner", Chars, nullable=False),
    Column("mark", Chars, nullable=False),
    Column("seen_us", Id, nullable=False),
    Column("behind", Integer, nullable=False),
    Column("behind_since_us", Id),
    Column("trouble", Chars),
    Column("trouble_us", Id),
    Column("in_trouble", Flag, nullable=False),
)
"""Bridges to other systems, as they last reported. ``owner``: the process that is to work under this name. ``mark``:
what distinguishes, in the other system, this store's bridge from another one of that name. ``behind``: links whose job
has changed and whose entry does not say so yet."""

bridge_links = table(
    "bridge_links",
    Column("bridge", Chars, primary_key=True),
    Column("entry", Chars, primary_key=True),
    Column("claim", Chars, nullable=False),
    Column("job_id", Id),
    Column("position", Chars, nullable=False),
)
"""Entries of other systems that a bridge has claimed and that are not finished, with their jobs. ``claim`` names one
taking of the entry. ``position``: what of the job has been passed on."""

retention = table(
    "retention",
    Column("type", Chars, primary_key=True),
    Column("state", Chars, primary_key=True),
    Column("keep_us", Id),
    Column("by", Chars, nullable=False),
)
"""Operators' settings of how long settled jobs are kept. ``keep_us``: null: for ever."""

audit = table(
    "audit",
    Column("seq", Id, primary_key=True),
    Column("at_us", Id, nullable=False),
    Column("by", Chars, nullable=False),
    Column("verb", Chars, nullable=False),
    Column("what", Chars, nullable=False),
    Column("count", Integer, nullable=False),
    Column("reason", Chars),
    Column("call", Chars, nullable=False),
    Column("link", Chars, nullable=False),
    Index("audit_by_call", "call", "seq"),
)
"""The entries of the audit; see ``spinney.model.operators.audits``. ``link``: the digest of the previous link and this
entry."""
