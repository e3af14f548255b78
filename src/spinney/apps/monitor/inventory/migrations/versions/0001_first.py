"""Entities, services, and the results of their checks."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "mon_entities",
        sa.Column("eid", sa.Integer, primary_key=True),
        sa.Column("description", sa.Text, nullable=False, unique=True),
        sa.Column("contact", sa.Text, nullable=False, server_default=""),
        sa.Column("email", sa.Text, nullable=False, server_default=""),
        sa.Column("language", sa.Text, nullable=False, server_default="en"),
        sa.Column("page_key", sa.Text, nullable=False, unique=True),
        sa.Column("mailed_us", ID),
        sa.Column("mailed_id", ID),
    )
    op.create_table(
        "mon_services",
        sa.Column("gid", sa.Integer, primary_key=True),
        sa.Column("eid", sa.Integer, sa.ForeignKey("mon_entities.eid"), nullable=False),
        sa.Column("uuid", sa.Text, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False, server_default=""),
        sa.Column("uri", sa.Text, nullable=False),
        sa.Column("description", sa.Text, nullable=False, server_default=""),
        sa.Column("added_us", ID, nullable=False),
        sa.Column("retired_us", ID),
        sa.Column("checked_us", ID),
        sa.Column("catalogue", sa.Text, nullable=False, server_default=""),
    )
    op.create_index("mon_services_by_entity", "mon_services", ["eid"])
    op.create_index("mon_services_by_check", "mon_services", ["checked_us"])
    op.create_index("mon_services_by_uuid", "mon_services", ["uuid"])
    op.create_table(
        "mon_statuses",
        sa.Column("gid", sa.Integer, sa.ForeignKey("mon_services.gid"), nullable=False),
        sa.Column("task", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("code", sa.Text, nullable=False, server_default=""),
        sa.Column("info", sa.Text, nullable=False, server_default=""),
        sa.Column("uuid", sa.Text, nullable=False, server_default=""),
        sa.Column("at_us", ID, nullable=False),
        sa.Column("since_us", ID, nullable=False),
        sa.Column("duration_s", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("gid", "task"),
    )
    op.create_index("mon_statuses_by_status", "mon_statuses", ["status"])
    op.create_table(
        "mon_history",
        sa.Column("id", ID, primary_key=True),
        sa.Column("gid", sa.Integer, sa.ForeignKey("mon_services.gid"), nullable=False),
        sa.Column("task", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("before", sa.Text, nullable=False, server_default=""),
        sa.Column("code", sa.Text, nullable=False, server_default=""),
        sa.Column("info", sa.Text, nullable=False, server_default=""),
        sa.Column("at_us", ID, nullable=False),
        sa.Column("duration_s", sa.Float, nullable=False),
        sa.Column("job_id", ID, nullable=False),
        sa.UniqueConstraint("job_id", "task", name="mon_history_once"),
    )
    op.create_index("mon_history_by_service", "mon_history", ["gid", "at_us"])
    op.create_index("mon_history_by_time", "mon_history", ["at_us"])
    changed = sa.text("before <> status")
    op.create_index(
        "mon_history_changes", "mon_history", ["at_us"], sqlite_where=changed, postgresql_where=changed
    )
