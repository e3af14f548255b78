"""Holds, failures by cause, schedules, retention, and the audit."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Flag = sa.Boolean().with_variant(sa.SmallInteger(), "postgresql")

AUDIT_GUARDS = (
    "create trigger audit_follows before insert on audit "
    "when new.seq <> (select coalesce(max(seq), 0) + 1 from audit) "
    "begin select raise(abort, 'the audit is append-only: an entry follows the last one'); end",
    "create trigger audit_stays before update on audit "
    "begin select raise(abort, 'the audit is append-only: no entry may be changed'); end",
    "create trigger audit_keeps before delete on audit "
    "begin select raise(abort, 'the audit is append-only: no entry may be deleted'); end",
)
AUDIT_GUARDS_POSTGRESQL = (
    "create function audit_guard() returns trigger language plpgsql as $$ begin "
    "if tg_op = 'INSERT' then "
    "if new.seq = (select coalesce(max(seq), 0) + 1 from audit) then return new; end if; "
    "raise exception 'the audit is append-only: an entry follows the last one'; end if; "
    "raise exception 'the audit is append-only: no entry may be changed or deleted'; end $$",
    "create trigger audit_follows before insert on audit for each row execute function audit_guard()",
    "create trigger audit_stays before update or delete on audit for each row execute function audit_guard()",
    "create trigger audit_keeps before truncate on audit for each statement execute function audit_guard()",
)


def _where(condition: str) -> dict[str, Any]:
    return {f"{dialect}_where": sa.text(condition) for dialect in ("sqlite", "postgresql")}


def upgrade() -> None:
    """New tables, and the fingerprint of what stands failed."""
    op.add_column("inactive_jobs", sa.Column("fingerprint", Text, nullable=True))
    op.create_index(
        "inactive_jobs_by_fingerprint",
        "inactive_jobs",
        ["fingerprint", "job_id"],
        **_where("fingerprint is not null"),
    )
    op.create_index("jobs_by_kind", "jobs", ["type", "queue"])
    op.create_index("jobs_by_collection", "jobs", ["collection"], **_where("collection is not null"))
    op.create_index("jobs_by_submitter", "jobs", ["submitter"], **_where("submitter is not null"))
    op.create_table(
        "audit",
        sa.Column("seq", Id, nullable=False),
        sa.Column("at_us", Id, nullable=False),
        sa.Column("by", Text, nullable=False),
        sa.Column("verb", Text, nullable=False),
        sa.Column("what", Text, nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("reason", Text, nullable=True),
        sa.Column("call", Text, nullable=False),
        sa.Column("link", Text, nullable=False),
        sa.PrimaryKeyConstraint("seq"),
    )
    op.create_index("audit_by_call", "audit", ["call", "seq"])
    for guard in AUDIT_GUARDS if op.get_context().dialect.name == "sqlite" else AUDIT_GUARDS_POSTGRESQL:
        op.execute(guard)
    op.create_table(
        "failures",
        sa.Column("fingerprint", Text, nullable=False),
        sa.Column("type", Text, nullable=False),
        sa.Column("stage", Text, nullable=False),
        sa.Column("exception", Text, nullable=False),
        sa.Column("message", Text, nullable=False),
        sa.Column("first_us", Id, nullable=False),
        sa.Column("last_us", Id, nullable=False),
        sa.PrimaryKeyConstraint("fingerprint"),
    )
    op.create_table(
        "holds",
        sa.Column("id", Id, nullable=False),
        sa.Column("scope", Text, nullable=False),
        sa.Column("name", Text, nullable=False),
        sa.Column("reason", Text, nullable=False),
        sa.Column("by", Text, nullable=False),
        sa.Column("since_us", Id, nullable=False),
        sa.Column("until_us", Id, nullable=True),
        sa.Column("automatic", Flag, nullable=False),
        sa.Column("swept", Flag, nullable=False, server_default=sa.text("0")),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("holds_by_name", "holds", ["scope", "name"])
    op.create_index("holds_by_end", "holds", ["until_us"], **_where("until_us is not null"))
    op.create_table(
        "met_needs",
        sa.Column("need_id", Id, nullable=False),
        sa.Column("next_id", Id, nullable=False),
        sa.PrimaryKeyConstraint("need_id"),
    )
    op.create_table(
        "removals",
        sa.Column("root_id", Id, nullable=False),
        sa.Column("looked", Text, nullable=False),
        sa.Column("going", Flag, nullable=False),
        sa.PrimaryKeyConstraint("root_id"),
    )
    op.create_table(
        "throughput",
        sa.Column("slice", Id, nullable=False),
        sa.Column("lane", Id, nullable=False),
        sa.Column("node_id", Id, nullable=False),
        sa.Column("ended", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("slice", "lane", "node_id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "retention",
        sa.Column("type", Text, nullable=False),
        sa.Column("state", Text, nullable=False),
        sa.Column("keep_us", Id, nullable=True),
        sa.Column("by", Text, nullable=False),
        sa.PrimaryKeyConstraint("type", "state"),
    )
    op.create_table(
        "schedule_runs",
        sa.Column("schedule", Text, nullable=False),
        sa.Column("nominal_us", Id, nullable=False),
        sa.Column("job_id", Id, nullable=True),
        sa.Column("outcome", Text, nullable=False),
        sa.Column("message", Text, nullable=True),
        sa.PrimaryKeyConstraint("schedule", "nominal_us"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "schedule_runs_queued", "schedule_runs", ["schedule", "nominal_us"], **_where("outcome = 'queued'")
    )
    op.create_table(
        "schedules",
        sa.Column("name", Text, nullable=False),
        sa.Column("spec", Text, nullable=False),
        sa.Column("paused", Flag, nullable=False),
        sa.Column("next_us", Id, nullable=True),
        sa.Column("last_job_id", Id, nullable=True),
        sa.Column("by", Text, nullable=False),
        sa.Column("declared", Flag, nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_index("schedules_due", "schedules", ["next_us"], **_where("next_us is not null and paused = 0"))
    op.create_table(
        "streaks",
        sa.Column("type", Text, nullable=False),
        sa.Column("stage", Text, nullable=False),
        sa.Column("fingerprint", Text, nullable=False),
        sa.Column("jobs", Text, nullable=False),
        sa.Column("failed_us", Id, nullable=False),
        sa.PrimaryKeyConstraint("type", "stage"),
    )
    op.execute(
        "insert into counters (name, value) values ('hold', 0), ('lift', 0), ('lift_swept', 0), ('hold_sweep', 0), "
        "('removed', 0)"
    )
