"""The tables of the monitor. Times are microseconds since 1970 UTC.

The first migration makes the tables as they are declared here.
Services and entities are never deleted, so that their results keep what they belong to."""

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData()
_CHANGED = text("before <> status")
NUMBER_MAX = 2**31 - 1
"""The largest number that a service or an entity can have."""
_Id = BigInteger().with_variant(Integer, "sqlite")

entities = Table(
    "mon_entities",
    metadata,
    Column("eid", Integer, primary_key=True),
    Column("description", Text, nullable=False, unique=True),
    Column("contact", Text, nullable=False, server_default=""),  # whom mails greet
    Column("email", Text, nullable=False, server_default=""),
    Column("language", Text, nullable=False, server_default="en"),
    Column(
        "page_key", Text, nullable=False, unique=True
    ),  # the address of its public page, which nobody can guess
    Column("mailed_us", _Id),  # when its owner last got a mail
    Column("mailed_id", _Id),  # the newest result of the history then
)
"""Who answers for services."""

services = Table(
    "mon_services",
    metadata,
    Column("gid", Integer, primary_key=True),
    Column("eid", Integer, ForeignKey("mon_entities.eid"), nullable=False),
    Column("uuid", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("version", Text, nullable=False, server_default=""),
    Column("uri", Text, nullable=False),
    Column("description", Text, nullable=False, server_default=""),
    Column("added_us", _Id, nullable=False),
    Column("retired_us", _Id),  # when an import no longer named it; its results are kept
    Column("checked_us", _Id),  # its newest result
    Column("catalogue", Text, nullable=False, server_default=""),  # where it came from; empty: from a file
    Index("mon_services_by_entity", "eid"),
    Index("mon_services_by_check", "checked_us"),  # for ``unchecked_since``
    Index("mon_services_by_uuid", "uuid"),
)
"""What is checked. Neither the UUID nor the URI is unique, because retired services keep theirs."""

statuses = Table(
    "mon_statuses",
    metadata,
    Column("gid", Integer, ForeignKey("mon_services.gid"), nullable=False),
    Column("task", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("code", Text, nullable=False, server_default=""),
    Column("info", Text, nullable=False, server_default=""),
    Column("uuid", Text, nullable=False, server_default=""),
    Column("at_us", _Id, nullable=False),
    Column("since_us", _Id, nullable=False),  # since when the status is this one
    Column("duration_s", Float, nullable=False),
    PrimaryKeyConstraint("gid", "task"),
    Index("mon_statuses_by_status", "status"),  # for ``failing``: errors are few
)
"""The newest result of each service and task."""

history = Table(
    "mon_history",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("gid", Integer, ForeignKey("mon_services.gid"), nullable=False),
    Column("task", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("before", Text, nullable=False, server_default=""),  # the status before; empty: the first result
    Column("code", Text, nullable=False, server_default=""),
    Column("info", Text, nullable=False, server_default=""),
    Column("at_us", _Id, nullable=False),
    Column("duration_s", Float, nullable=False),
    Column("job_id", _Id, nullable=False),
    # A stage that runs again after a crash writes the same row.
    UniqueConstraint("job_id", "task", name="mon_history_once"),
    Index("mon_history_by_service", "gid", "at_us"),
    Index("mon_history_by_time", "at_us"),  # for thinning, and for all results by time
    # Changes are a small part of all results, and what pages and mails list.
    Index("mon_history_changes", "at_us", sqlite_where=_CHANGED, postgresql_where=_CHANGED),
)
"""All results, thinned by age. A job writes one result of a task, however often its stage runs."""
