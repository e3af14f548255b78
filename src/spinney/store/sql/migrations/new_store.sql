CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

INSERT INTO "alembic_version" VALUES('0001');

CREATE TABLE attempts (
	job_id INTEGER NOT NULL, 
	fence INTEGER NOT NULL, 
	stage TEXT NOT NULL, 
	attempt INTEGER NOT NULL, 
	outcome TEXT NOT NULL, 
	node_id INTEGER NOT NULL, 
	started_us INTEGER NOT NULL, 
	ended_us INTEGER NOT NULL, 
	code INTEGER, 
	message TEXT, 
	error TEXT, 
	result TEXT, 
	superseded BOOLEAN, 
	PRIMARY KEY (job_id, fence)
)
 WITHOUT ROWID;

CREATE TABLE audit (
	seq INTEGER NOT NULL, 
	at_us INTEGER NOT NULL, 
	"by" TEXT NOT NULL, 
	verb TEXT NOT NULL, 
	what TEXT NOT NULL, 
	count INTEGER NOT NULL, 
	reason TEXT, 
	call TEXT NOT NULL, 
	link TEXT NOT NULL, 
	PRIMARY KEY (seq)
);

CREATE TABLE bridge_links (
	bridge TEXT NOT NULL, 
	entry TEXT NOT NULL, 
	claim TEXT NOT NULL, 
	job_id INTEGER, 
	position TEXT NOT NULL, 
	PRIMARY KEY (bridge, entry)
);

CREATE TABLE bridges (
	name TEXT NOT NULL, 
	system TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	mark TEXT NOT NULL, 
	seen_us INTEGER NOT NULL, 
	behind INTEGER NOT NULL, 
	behind_since_us INTEGER, 
	trouble TEXT, 
	trouble_us INTEGER, 
	in_trouble BOOLEAN NOT NULL, 
	PRIMARY KEY (name)
);

CREATE TABLE cancel_requests (
	job_id INTEGER NOT NULL, 
	lineage TEXT NOT NULL, 
	tree BOOLEAN NOT NULL, 
	"by" TEXT NOT NULL, 
	reason TEXT, 
	at_us INTEGER NOT NULL, 
	PRIMARY KEY (job_id)
);

CREATE TABLE children_left (
	parent_id INTEGER NOT NULL, 
	bad BOOLEAN NOT NULL, 
	child_id INTEGER NOT NULL, 
	PRIMARY KEY (parent_id, bad, child_id)
)
 WITHOUT ROWID;

CREATE TABLE counters (
	name TEXT NOT NULL, 
	value INTEGER NOT NULL, 
	PRIMARY KEY (name)
)
 WITHOUT ROWID;

INSERT INTO "counters" VALUES('fence',0);

INSERT INTO "counters" VALUES('fetch',0);

INSERT INTO "counters" VALUES('hold',0);

INSERT INTO "counters" VALUES('hold_sweep',0);

INSERT INTO "counters" VALUES('home',0);

INSERT INTO "counters" VALUES('inbox_arrival',0);

INSERT INTO "counters" VALUES('job',0);

INSERT INTO "counters" VALUES('lane',0);

INSERT INTO "counters" VALUES('lift',0);

INSERT INTO "counters" VALUES('lift_swept',0);

INSERT INTO "counters" VALUES('node',0);

INSERT INTO "counters" VALUES('registry',0);

INSERT INTO "counters" VALUES('removed',0);

INSERT INTO "counters" VALUES('share',0);

INSERT INTO "counters" VALUES('watermarks',0);

INSERT INTO "counters" VALUES('webhook',0);

INSERT INTO "counters" VALUES('webhook_event',0);

CREATE TABLE data (
	job_id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY (job_id, name)
)
 WITHOUT ROWID;

CREATE TABLE deleted_folders (
	job_id INTEGER NOT NULL, 
	at_us INTEGER NOT NULL, 
	home INTEGER DEFAULT 0 NOT NULL, 
	PRIMARY KEY (job_id)
);

CREATE TABLE external_workers (
	node_id INTEGER NOT NULL, 
	owner TEXT NOT NULL, 
	join_count INTEGER NOT NULL, 
	lease_s FLOAT NOT NULL, 
	lanes TEXT NOT NULL, 
	PRIMARY KEY (node_id)
);

CREATE TABLE failures (
	fingerprint TEXT NOT NULL, 
	type TEXT NOT NULL, 
	stage TEXT NOT NULL, 
	exception TEXT NOT NULL, 
	message TEXT NOT NULL, 
	first_us INTEGER NOT NULL, 
	last_us INTEGER NOT NULL, 
	PRIMARY KEY (fingerprint)
);

CREATE TABLE fetches (
	id INTEGER NOT NULL, 
	home INTEGER NOT NULL, 
	job_id INTEGER NOT NULL, 
	path TEXT NOT NULL, 
	start INTEGER NOT NULL, 
	length INTEGER NOT NULL, 
	asked_us INTEGER NOT NULL, 
	answer TEXT, 
	PRIMARY KEY (id)
);

CREATE TABLE holds (
	id INTEGER NOT NULL, 
	scope TEXT NOT NULL, 
	name TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	"by" TEXT NOT NULL, 
	since_us INTEGER NOT NULL, 
	until_us INTEGER, 
	automatic BOOLEAN NOT NULL, 
	swept BOOLEAN DEFAULT 0 NOT NULL, 
	PRIMARY KEY (id)
);

CREATE TABLE homes (
	id INTEGER NOT NULL, 
	mark TEXT NOT NULL, 
	host TEXT NOT NULL, 
	path TEXT NOT NULL, 
	gone BOOLEAN DEFAULT 0 NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (mark)
);

CREATE TABLE idempotency (
	owner TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	first_id INTEGER NOT NULL, 
	last_id INTEGER NOT NULL, 
	held INTEGER DEFAULT 0 NOT NULL, 
	done BOOLEAN NOT NULL, 
	at_us INTEGER NOT NULL, 
	PRIMARY KEY (owner, "key")
);

CREATE TABLE inactive_jobs (
	job_id INTEGER NOT NULL, 
	state TEXT NOT NULL, 
	since_us INTEGER NOT NULL, 
	wake_us INTEGER, 
	waits_for TEXT, 
	priority INTEGER, 
	reason TEXT, 
	fingerprint TEXT, 
	wants_amount INTEGER, 
	wants_capacity INTEGER, 
	PRIMARY KEY (job_id)
);

CREATE TABLE inbox_arrivals (
	id INTEGER NOT NULL, 
	inbox TEXT NOT NULL, 
	name TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	size INTEGER NOT NULL, 
	sha256 TEXT, 
	identity TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	dropped_us INTEGER NOT NULL, 
	at_us INTEGER NOT NULL, 
	outcome TEXT NOT NULL, 
	job_id INTEGER, 
	reason TEXT, 
	PRIMARY KEY (id)
);

CREATE TABLE inboxes (
	name TEXT NOT NULL, 
	spec TEXT NOT NULL, 
	paused BOOLEAN NOT NULL, 
	since_us INTEGER NOT NULL, 
	scan_us INTEGER, 
	"by" TEXT NOT NULL, 
	node_id INTEGER, 
	problem TEXT, 
	PRIMARY KEY (name)
);

CREATE TABLE invites (
	user_name TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	ends_us INTEGER NOT NULL, 
	"by" TEXT NOT NULL, 
	PRIMARY KEY (user_name)
);

CREATE TABLE jobs (
	id INTEGER NOT NULL, 
	type TEXT NOT NULL, 
	state TEXT NOT NULL, 
	stage TEXT, 
	queue TEXT NOT NULL, 
	priority INTEGER NOT NULL, 
	share INTEGER NOT NULL, 
	lineage TEXT NOT NULL, 
	root_id INTEGER NOT NULL, 
	parent_id INTEGER, 
	params TEXT NOT NULL, 
	created_us INTEGER NOT NULL, 
	started_us INTEGER, 
	settled_us INTEGER, 
	attempts INTEGER DEFAULT 0 NOT NULL, 
	interruptions INTEGER DEFAULT 0 NOT NULL, 
	warnings INTEGER DEFAULT 0 NOT NULL, 
	code INTEGER, 
	node_id INTEGER, 
	collection TEXT, 
	submitter TEXT, 
	"key" TEXT, 
	queue_moved TEXT, 
	queue_named TEXT, 
	queue_parent TEXT, 
	spawn_stage TEXT, 
	superseded BOOLEAN, 
	at_us INTEGER, 
	special BOOLEAN, 
	trace TEXT, 
	final_fence INTEGER, 
	final_attempt INTEGER, 
	final_began_us INTEGER, 
	final_ended_us INTEGER, 
	final_result TEXT, 
	PRIMARY KEY (id)
);

CREATE TABLE keys (
	scope INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	job_id INTEGER NOT NULL, 
	forever BOOLEAN NOT NULL, 
	PRIMARY KEY (scope, "key")
)
 WITHOUT ROWID;

CREATE TABLE lanes (
	id INTEGER NOT NULL, 
	queue TEXT NOT NULL, 
	type TEXT NOT NULL, 
	stage TEXT NOT NULL, 
	asleep_until_us INTEGER, 
	probing BOOLEAN DEFAULT 0 NOT NULL, 
	home INTEGER DEFAULT 0 NOT NULL, 
	PRIMARY KEY (id)
);

CREATE TABLE leadership (
	name TEXT NOT NULL, 
	node_id INTEGER, 
	PRIMARY KEY (name)
);

CREATE TABLE leases (
	job_id INTEGER NOT NULL, 
	fence INTEGER NOT NULL, 
	node_id INTEGER NOT NULL, 
	slot INTEGER NOT NULL, 
	lane INTEGER NOT NULL, 
	share INTEGER NOT NULL, 
	attempt INTEGER NOT NULL, 
	parent_id INTEGER, 
	plain BOOLEAN NOT NULL, 
	claimed_us INTEGER NOT NULL, 
	running_us INTEGER, 
	PRIMARY KEY (job_id)
);

CREATE TABLE lock_capacities (
	name TEXT NOT NULL, 
	declared INTEGER, 
	set_to INTEGER, 
	"by" TEXT, 
	at_us INTEGER, 
	PRIMARY KEY (name)
);

CREATE TABLE locks (
	name TEXT NOT NULL, 
	job_id INTEGER NOT NULL, 
	fence INTEGER, 
	since_us INTEGER NOT NULL, 
	amount INTEGER DEFAULT 1 NOT NULL, 
	PRIMARY KEY (name, job_id)
)
 WITHOUT ROWID;

CREATE TABLE login_failures (
	whose TEXT NOT NULL, 
	failures INTEGER NOT NULL, 
	last_us INTEGER NOT NULL, 
	PRIMARY KEY (whose)
);

CREATE TABLE low_watermarks (
	lane INTEGER NOT NULL, 
	priority INTEGER NOT NULL, 
	share INTEGER NOT NULL, 
	position TEXT NOT NULL, 
	PRIMARY KEY (lane)
);

CREATE TABLE met_needs (
	need_id INTEGER NOT NULL, 
	next_id INTEGER NOT NULL, 
	PRIMARY KEY (need_id)
);

CREATE TABLE meta (
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY (name)
);

INSERT INTO "meta" VALUES('works_with','0001');

CREATE TABLE needs (
	job_id INTEGER NOT NULL, 
	need_id INTEGER NOT NULL, 
	PRIMARY KEY (job_id, need_id)
)
 WITHOUT ROWID;

CREATE TABLE node_settings (
	name TEXT NOT NULL, 
	drained BOOLEAN NOT NULL, 
	slots INTEGER, 
	"by" TEXT NOT NULL, 
	reason TEXT, 
	at_us INTEGER NOT NULL, 
	PRIMARY KEY (name)
);

CREATE TABLE nodes (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	boot_id TEXT NOT NULL, 
	host TEXT NOT NULL, 
	pid INTEGER NOT NULL, 
	slots INTEGER NOT NULL, 
	state TEXT NOT NULL, 
	beat INTEGER NOT NULL, 
	started_us INTEGER NOT NULL, 
	seen_us INTEGER NOT NULL, 
	version TEXT NOT NULL, 
	types TEXT NOT NULL, 
	stages TEXT, 
	load TEXT, 
	serves TEXT, 
	trouble TEXT, 
	degraded_since_us INTEGER, 
	schema_version TEXT NOT NULL, 
	home INTEGER DEFAULT 0 NOT NULL, 
	lease_s FLOAT, 
	PRIMARY KEY (id)
);

CREATE TABLE progress (
	job_id INTEGER NOT NULL, 
	fence INTEGER NOT NULL, 
	fraction FLOAT NOT NULL, 
	message TEXT, 
	PRIMARY KEY (job_id)
);

CREATE TABLE queue_settings (
	name TEXT NOT NULL, 
	settings TEXT NOT NULL, 
	"by" TEXT NOT NULL, 
	at_us INTEGER NOT NULL, 
	PRIMARY KEY (name)
);

CREATE TABLE queues (
	name TEXT NOT NULL, 
	spec TEXT NOT NULL, 
	PRIMARY KEY (name)
);

CREATE TABLE ready (
	lane INTEGER NOT NULL, 
	priority INTEGER NOT NULL, 
	share INTEGER NOT NULL, 
	position TEXT NOT NULL, 
	job_id INTEGER NOT NULL, 
	PRIMARY KEY (lane, priority, share, position)
)
 WITHOUT ROWID;

CREATE TABLE removals (
	root_id INTEGER NOT NULL, 
	looked TEXT NOT NULL, 
	going BOOLEAN NOT NULL, 
	PRIMARY KEY (root_id)
);

CREATE TABLE retention (
	type TEXT NOT NULL, 
	state TEXT NOT NULL, 
	keep_us INTEGER, 
	"by" TEXT NOT NULL, 
	PRIMARY KEY (type, state)
);

CREATE TABLE saved_filters (
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	"query" TEXT NOT NULL, 
	PRIMARY KEY (owner, name)
)
 WITHOUT ROWID;

CREATE TABLE schedule_runs (
	schedule TEXT NOT NULL, 
	nominal_us INTEGER NOT NULL, 
	job_id INTEGER, 
	outcome TEXT NOT NULL, 
	message TEXT, 
	PRIMARY KEY (schedule, nominal_us)
)
 WITHOUT ROWID;

CREATE TABLE schedules (
	name TEXT NOT NULL, 
	spec TEXT NOT NULL, 
	paused BOOLEAN NOT NULL, 
	next_us INTEGER, 
	last_job_id INTEGER, 
	"by" TEXT NOT NULL, 
	declared BOOLEAN NOT NULL, 
	PRIMARY KEY (name)
);

CREATE TABLE serial_order (
	root_id INTEGER NOT NULL, 
	lineage TEXT NOT NULL, 
	job_id INTEGER NOT NULL, 
	PRIMARY KEY (root_id, lineage)
)
 WITHOUT ROWID;

CREATE TABLE server_secrets (
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	made_us INTEGER NOT NULL, 
	PRIMARY KEY (name)
);

CREATE TABLE sessions (
	digest TEXT NOT NULL, 
	user_name TEXT NOT NULL, 
	created_us INTEGER NOT NULL, 
	seen_us INTEGER NOT NULL, 
	idle_us INTEGER NOT NULL, 
	ends_us INTEGER NOT NULL, 
	address TEXT, 
	agent TEXT, 
	PRIMARY KEY (digest)
);

CREATE TABLE shares (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);

CREATE TABLE stack_requests (
	fence INTEGER NOT NULL, 
	job_id INTEGER NOT NULL, 
	node_id INTEGER NOT NULL, 
	asked_us INTEGER NOT NULL, 
	PRIMARY KEY (fence)
);

CREATE TABLE staging (
	first_id INTEGER NOT NULL, 
	last_id INTEGER NOT NULL, 
	next_id INTEGER NOT NULL, 
	published INTEGER NOT NULL, 
	parent_id INTEGER, 
	fence INTEGER, 
	beat_us INTEGER NOT NULL, 
	PRIMARY KEY (first_id)
);

CREATE TABLE streaks (
	type TEXT NOT NULL, 
	stage TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	jobs TEXT NOT NULL, 
	failed_us INTEGER NOT NULL, 
	PRIMARY KEY (type, stage)
);

CREATE TABLE throughput (
	slice INTEGER NOT NULL, 
	lane INTEGER NOT NULL, 
	node_id INTEGER NOT NULL, 
	ended INTEGER NOT NULL, 
	failed INTEGER NOT NULL, 
	PRIMARY KEY (slice, lane, node_id)
)
 WITHOUT ROWID;

CREATE TABLE throughput_history (
	width_s INTEGER NOT NULL, 
	slice INTEGER NOT NULL, 
	lane INTEGER NOT NULL, 
	ended INTEGER NOT NULL, 
	failed INTEGER NOT NULL, 
	pending FLOAT, 
	running FLOAT, 
	wait_s FLOAT, 
	run_s FLOAT, 
	PRIMARY KEY (width_s, slice, lane)
)
 WITHOUT ROWID;

CREATE TABLE tokens (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	rights TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	created_us INTEGER NOT NULL, 
	"by" TEXT NOT NULL, 
	expires_us INTEGER, 
	revoked_us INTEGER, 
	used_us INTEGER, 
	PRIMARY KEY (id)
);

CREATE TABLE types (
	name TEXT NOT NULL, 
	spec TEXT NOT NULL, 
	PRIMARY KEY (name)
);

CREATE TABLE users (
	name TEXT NOT NULL, 
	rights TEXT NOT NULL, 
	password TEXT, 
	password_us INTEGER, 
	created_us INTEGER NOT NULL, 
	"by" TEXT NOT NULL, 
	disabled BOOLEAN DEFAULT 0 NOT NULL, 
	PRIMARY KEY (name)
);

CREATE TABLE webhook_events (
	seq INTEGER NOT NULL, 
	webhook_id INTEGER NOT NULL, 
	job_id INTEGER, 
	event TEXT NOT NULL, 
	batch BOOLEAN NOT NULL, 
	at_us INTEGER NOT NULL, 
	next_us INTEGER, 
	outcome TEXT NOT NULL, 
	tries INTEGER DEFAULT 0 NOT NULL, 
	first_us INTEGER, 
	tried_us INTEGER, 
	status INTEGER, 
	answer TEXT, 
	PRIMARY KEY (seq)
);

CREATE TABLE webhooks (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	spec TEXT NOT NULL, 
	secret TEXT NOT NULL, 
	mark TEXT NOT NULL, 
	paused TEXT, 
	resumed_us INTEGER, 
	"by" TEXT NOT NULL, 
	at_us INTEGER NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);

CREATE INDEX audit_by_call ON audit (call, seq);

CREATE INDEX holds_by_end ON holds (until_us) WHERE until_us is not null;

CREATE INDEX holds_by_name ON holds (scope, name);

CREATE INDEX idempotency_by_time ON idempotency (at_us);

CREATE INDEX inactive_jobs_by_fingerprint ON inactive_jobs (fingerprint, job_id) WHERE fingerprint is not null;

CREATE INDEX inactive_jobs_by_lock ON inactive_jobs (waits_for, priority, job_id) WHERE waits_for like 'lock:%';

CREATE INDEX inactive_jobs_by_state ON inactive_jobs (state, job_id);

CREATE INDEX inactive_jobs_by_wake ON inactive_jobs (wake_us) WHERE wake_us is not null;

CREATE INDEX inbox_arrivals_by_digest ON inbox_arrivals (inbox, sha256, id);

CREATE INDEX inbox_arrivals_by_inbox ON inbox_arrivals (inbox, id);

CREATE UNIQUE INDEX inbox_arrivals_open ON inbox_arrivals (inbox, name) WHERE outcome in ('taking', 'rejecting');

CREATE INDEX jobs_by_collection ON jobs (collection) WHERE collection is not null;

CREATE INDEX jobs_by_kind ON jobs (type, queue);

CREATE INDEX jobs_by_lineage ON jobs (root_id, lineage) WHERE parent_id is not null;

CREATE INDEX jobs_by_parent ON jobs (parent_id) WHERE parent_id is not null;

CREATE INDEX jobs_by_submitter ON jobs (submitter) WHERE submitter is not null;

CREATE INDEX keys_by_job ON keys (job_id);

CREATE UNIQUE INDEX lanes_by_place ON lanes (queue, type, stage, home);

CREATE INDEX locks_by_job ON locks (job_id);

CREATE INDEX login_failures_by_time ON login_failures (last_us);

CREATE INDEX needs_by_need ON needs (need_id);

CREATE INDEX schedule_runs_queued ON schedule_runs (schedule, nominal_us) WHERE outcome = 'queued';

CREATE INDEX schedules_due ON schedules (next_us) WHERE next_us is not null and paused = 0;

CREATE INDEX sessions_by_end ON sessions (ends_us);

CREATE INDEX sessions_by_user ON sessions (user_name);

CREATE INDEX tokens_by_expiry ON tokens (expires_us) WHERE expires_us is not null;

CREATE UNIQUE INDEX tokens_by_name ON tokens (owner, name) WHERE revoked_us is null;

CREATE INDEX tokens_by_revocation ON tokens (revoked_us) WHERE revoked_us is not null;

CREATE INDEX webhook_events_by_webhook ON webhook_events (webhook_id, seq);

CREATE INDEX webhook_events_due ON webhook_events (webhook_id, next_us) WHERE next_us is not null;

CREATE VIEW history as
select job_id, fence, stage, attempt, outcome, node_id, started_us, ended_us, code, message, error, result,
       superseded
from attempts
union all
select id, final_fence, stage, final_attempt, 'ok', node_id, final_began_us, final_ended_us, null, null, null,
       final_result, null
from jobs where final_fence is not null;

CREATE TRIGGER audit_follows before insert on audit when new.seq <> (select coalesce(max(seq), 0) + 1 from audit) begin select raise(abort, 'the audit is append-only: an entry follows the last one'); end;

CREATE TRIGGER audit_stays before update on audit begin select raise(abort, 'the audit is append-only: no entry may be changed'); end;

CREATE TRIGGER audit_keeps before delete on audit begin select raise(abort, 'the audit is append-only: no entry may be deleted'); end;
