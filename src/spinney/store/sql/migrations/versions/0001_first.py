"""The first schema."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Flag = sa.Boolean().with_variant(sa.SmallInteger(), "postgresql")
COUNTERS = ("job", "fence", "lane", "share", "node", "registry")

HISTORY = """
create view history as
select job_id, fence, stage, attempt, outcome, node_id, started_us, ended_us, code, message, error, result,
       superseded
from attempts
union all
select id, final_fence, stage, final_attempt, 'ok', node_id, final_began_us, final_ended_us, null, null, null,
       final_result, null
from jobs where final_fence is not null
"""


def _where(condition: str) -> dict[str, Any]:
    return {f"{dialect}_where": sa.text(condition) for dialect in ("sqlite", "postgresql")}


def upgrade() -> None:
    """Tables, the view over all attempts, the counters at zero."""
    op.create_table(
        "attempts",
        sa.Column("job_id", Id, nullable=False),
        sa.Column("fence", Id, nullable=False),
        sa.Column("stage", Text, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("outcome", Text, nullable=False),
        sa.Column("node_id", Id, nullable=False),
        sa.Column("started_us", Id, nullable=False),
        sa.Column("ended_us", Id, nullable=False),
        sa.Column("code", sa.Integer(), nullable=True),
        sa.Column("message", Text, nullable=True),
        sa.Column("error", Text, nullable=True),
        sa.Column("result", Text, nullable=True),
        sa.Column("superseded", Flag, nullable=True),
        sa.PrimaryKeyConstraint("job_id", "fence"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "children_left",
        sa.Column("parent_id", Id, nullable=False),
        sa.Column("bad", Flag, nullable=False),
        sa.Column("child_id", Id, nullable=False),
        sa.PrimaryKeyConstraint("parent_id", "bad", "child_id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "counters",
        sa.Column("name", Text, nullable=False),
        sa.Column("value", Id, nullable=False),
        sa.PrimaryKeyConstraint("name"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "data",
        sa.Column("job_id", Id, nullable=False),
        sa.Column("name", Text, nullable=False),
        sa.Column("value", Text, nullable=False),
        sa.PrimaryKeyConstraint("job_id", "name"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "jobs",
        sa.Column("id", Id, nullable=False),
        sa.Column("type", Text, nullable=False),
        sa.Column("state", Text, nullable=False),
        sa.Column("stage", Text, nullable=True),
        sa.Column("queue", Text, nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("share", Id, nullable=False),
        sa.Column("lineage", Text, nullable=False),
        sa.Column("root_id", Id, nullable=False),
        sa.Column("parent_id", Id, nullable=True),
        sa.Column("params", Text, nullable=False),
        sa.Column("created_us", Id, nullable=False),
        sa.Column("started_us", Id, nullable=True),
        sa.Column("settled_us", Id, nullable=True),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("interruptions", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("warnings", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("code", sa.Integer(), nullable=True),
        sa.Column("node_id", Id, nullable=True),
        sa.Column("collection", Text, nullable=True),
        sa.Column("submitter", Text, nullable=True),
        sa.Column("key", Text, nullable=True),
        sa.Column("queue_moved", Text, nullable=True),
        sa.Column("queue_named", Text, nullable=True),
        sa.Column("queue_parent", Text, nullable=True),
        sa.Column("spawn_stage", Text, nullable=True),
        sa.Column("superseded", Flag, nullable=True),
        sa.Column("at_us", Id, nullable=True),
        sa.Column("special", Flag, nullable=True),
        sa.Column("final_fence", Id, nullable=True),
        sa.Column("final_attempt", sa.Integer(), nullable=True),
        sa.Column("final_began_us", Id, nullable=True),
        sa.Column("final_ended_us", Id, nullable=True),
        sa.Column("final_result", Text, nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "jobs_by_lineage",
        "jobs",
        ["root_id", "lineage"],
        unique=False,
        **_where("parent_id is not null"),
    )
    op.create_index("jobs_by_parent", "jobs", ["parent_id"], unique=False, **_where("parent_id is not null"))
    op.create_table(
        "keys",
        sa.Column("scope", Id, nullable=False),
        sa.Column("key", Text, nullable=False),
        sa.Column("job_id", Id, nullable=False),
        sa.Column("forever", Flag, nullable=False),
        sa.PrimaryKeyConstraint("scope", "key"),
        sqlite_with_rowid=False,
    )
    op.create_index("keys_by_job", "keys", ["job_id"], unique=False)
    op.create_table(
        "lanes",
        sa.Column("id", Id, nullable=False),
        sa.Column("queue", Text, nullable=False),
        sa.Column("type", Text, nullable=False),
        sa.Column("stage", Text, nullable=False),
        sa.Column("asleep_until_us", Id, nullable=True),
        sa.Column("probing", Flag, server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("lanes_by_name", "lanes", ["queue", "type", "stage"], unique=True)
    op.create_table(
        "leases",
        sa.Column("job_id", Id, nullable=False),
        sa.Column("fence", Id, nullable=False),
        sa.Column("node_id", Id, nullable=False),
        sa.Column("slot", sa.Integer(), nullable=False),
        sa.Column("lane", Id, nullable=False),
        sa.Column("share", Id, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("parent_id", Id, nullable=True),
        sa.Column("plain", Flag, nullable=False),
        sa.Column("claimed_us", Id, nullable=False),
        sa.Column("running_us", Id, nullable=True),
        sa.PrimaryKeyConstraint("job_id"),
    )
    op.create_table(
        "lock_capacities",
        sa.Column("name", Text, nullable=False),
        sa.Column("capacity", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "locks",
        sa.Column("name", Text, nullable=False),
        sa.Column("job_id", Id, nullable=False),
        sa.Column("fence", Id, nullable=True),
        sa.Column("since_us", Id, nullable=False),
        sa.PrimaryKeyConstraint("name", "job_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("locks_by_job", "locks", ["job_id"], unique=False)
    op.create_table(
        "meta",
        sa.Column("name", Text, nullable=False),
        sa.Column("value", Text, nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "needs",
        sa.Column("job_id", Id, nullable=False),
        sa.Column("need_id", Id, nullable=False),
        sa.PrimaryKeyConstraint("job_id", "need_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("needs_by_need", "needs", ["need_id"], unique=False)
    op.create_table(
        "nodes",
        sa.Column("id", Id, nullable=False),
        sa.Column("name", Text, nullable=False),
        sa.Column("boot_id", Text, nullable=False),
        sa.Column("host", Text, nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("state", Text, nullable=False),
        sa.Column("beat", Id, nullable=False),
        sa.Column("started_us", Id, nullable=False),
        sa.Column("seen_us", Id, nullable=False),
        sa.Column("version", Text, nullable=False),
        sa.Column("types", Text, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "inactive_jobs",
        sa.Column("job_id", Id, nullable=False),
        sa.Column("state", Text, nullable=False),
        sa.Column("since_us", Id, nullable=False),
        sa.Column("wake_us", Id, nullable=True),
        sa.Column("waits_for", Text, nullable=True),
        sa.Column("priority", sa.Integer(), nullable=True),
        sa.Column("reason", Text, nullable=True),
        sa.PrimaryKeyConstraint("job_id"),
    )
    op.create_index(
        "inactive_jobs_by_lock",
        "inactive_jobs",
        ["waits_for", "priority", "job_id"],
        unique=False,
        **_where("waits_for like 'lock:%'"),
    )
    op.create_index("inactive_jobs_by_state", "inactive_jobs", ["state", "job_id"], unique=False)
    op.create_index(
        "inactive_jobs_by_wake", "inactive_jobs", ["wake_us"], unique=False, **_where("wake_us is not null")
    )
    op.create_table(
        "progress",
        sa.Column("job_id", Id, nullable=False),
        sa.Column("fraction", sa.Float(), nullable=False),
        sa.Column("message", Text, nullable=True),
        sa.PrimaryKeyConstraint("job_id"),
    )
    op.create_table(
        "queues",
        sa.Column("name", Text, nullable=False),
        sa.Column("spec", Text, nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "ready",
        sa.Column("lane", Id, nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("share", Id, nullable=False),
        sa.Column("position", Text, nullable=False),
        sa.Column("job_id", Id, nullable=False),
        sa.PrimaryKeyConstraint("lane", "priority", "share", "position"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "serial_order",
        sa.Column("root_id", Id, nullable=False),
        sa.Column("lineage", Text, nullable=False),
        sa.Column("job_id", Id, nullable=False),
        sa.PrimaryKeyConstraint("root_id", "lineage"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "shares",
        sa.Column("id", Id, nullable=False),
        sa.Column("name", Text, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "staging",
        sa.Column("first_id", Id, nullable=False),
        sa.Column("last_id", Id, nullable=False),
        sa.Column("next_id", Id, nullable=False),
        sa.Column("published", sa.Integer(), nullable=False),
        sa.Column("parent_id", Id, nullable=True),
        sa.Column("fence", Id, nullable=True),
        sa.Column("beat_us", Id, nullable=False),
        sa.PrimaryKeyConstraint("first_id"),
    )
    op.create_table(
        "deleted_folders",
        sa.Column("job_id", Id, nullable=False),
        sa.Column("at_us", Id, nullable=False),
        sa.PrimaryKeyConstraint("job_id"),
    )
    op.create_table(
        "types",
        sa.Column("name", Text, nullable=False),
        sa.Column("spec", Text, nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "cancel_requests",
        sa.Column("job_id", Id, nullable=False),
        sa.Column("lineage", Text, nullable=False),
        sa.Column("tree", Flag, nullable=False),
        sa.Column("by", Text, nullable=False),
        sa.Column("reason", Text, nullable=True),
        sa.Column("at_us", Id, nullable=False),
        sa.PrimaryKeyConstraint("job_id"),
    )

    op.execute(HISTORY)
    for name in COUNTERS:
        op.execute(sa.text("insert into counters (name, value) values (:name, 0)").bindparams(name=name))
