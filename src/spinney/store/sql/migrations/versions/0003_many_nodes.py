"""Several nodes: operators' settings of queues and nodes, the leader, and the load of nodes."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Flag = sa.Boolean().with_variant(sa.SmallInteger(), "postgresql")

STORAGE = {
    # Room for the row as it settles beside the row as it was submitted: no index is written then (no index names a
    # column that settling changes), and the next look at the page clears the old one away.
    "jobs": "fillfactor = 45, autovacuum_vacuum_scale_factor = 0.1",
    # Every job passes through these two; see upkeep.
    "ready": "autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, "
    "autovacuum_vacuum_cost_delay = 0",
    "leases": "autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, "
    "autovacuum_vacuum_cost_delay = 0",
    # A handful of rows, written in every transaction.
    "counters": "fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000",
    "nodes": "fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000",
    "throughput": "fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000",
}
"""Set how PostgreSQL stores the tables that are written all the time."""


def upgrade() -> None:
    """New tables, and columns of nodes that may be empty."""
    op.create_table(
        "queue_settings",
        sa.Column("name", Text, nullable=False),
        sa.Column("settings", Text, nullable=False),
        sa.Column("by", Text, nullable=False),
        sa.Column("at_us", Id, nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "node_settings",
        sa.Column("name", Text, nullable=False),
        sa.Column("drained", Flag, nullable=False),
        sa.Column("slots", sa.Integer(), nullable=True),
        sa.Column("by", Text, nullable=False),
        sa.Column("reason", Text, nullable=True),
        sa.Column("at_us", Id, nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "low_watermarks",
        sa.Column("lane", Id, nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("share", Id, nullable=False),
        sa.Column("position", Text, nullable=False),
        sa.PrimaryKeyConstraint("lane"),
    )
    op.execute("insert into counters (name, value) values ('watermarks', 0)")
    op.create_table(
        "leadership",
        sa.Column("name", Text, nullable=False),
        sa.Column("node_id", Id, nullable=True),
        sa.PrimaryKeyConstraint("name"),
    )
    op.add_column("nodes", sa.Column("load", Text, nullable=True))
    op.add_column("nodes", sa.Column("serves", Text, nullable=True))
    op.add_column("nodes", sa.Column("trouble", Text, nullable=True))
    op.add_column("nodes", sa.Column("schema_version", Text, nullable=True))
    for table in ("nodes", "lanes", "deleted_folders"):
        op.add_column(table, sa.Column("home", Id, nullable=False, server_default=sa.text("0")))
    op.drop_index("lanes_by_name", "lanes")
    op.create_index("lanes_by_place", "lanes", ["queue", "type", "stage", "home"], unique=True)
    op.create_table(
        "homes",
        sa.Column("id", Id, nullable=False),
        sa.Column("mark", Text, nullable=False),
        sa.Column("host", Text, nullable=False),
        sa.Column("path", Text, nullable=False),
        sa.Column("gone", Flag, nullable=False, server_default=sa.text("0")),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("mark"),
    )
    op.create_table(
        "fetches",
        sa.Column("id", Id, nullable=False),
        sa.Column("home", Id, nullable=False),
        sa.Column("job_id", Id, nullable=False),
        sa.Column("path", Text, nullable=False),
        sa.Column("start", Id, nullable=False),
        sa.Column("length", sa.Integer(), nullable=False),
        sa.Column("asked_us", Id, nullable=False),
        sa.Column("answer", Text, nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.execute("insert into counters (name, value) values ('home', 0), ('fetch', 0)")
    if op.get_context().dialect.name == "postgresql":
        for table, settings in STORAGE.items():
            op.execute(f"alter table {table} set ({settings})")
        op.execute("create index leases_by_fence on leases (fence)")
