"""The tables of the inventory.

Times are stored as microseconds since 1970 UTC. Digests are bytes, half as long as in hexadecimal, in the row and in
the index, which is read at random. Each algorithm has a column and an index over the rows that have it, so that a file
takes one row, whichever digests it has.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    TypeDecorator,
    text,
)

from spinney.files.digests import ALGORITHMS

metadata = MetaData()
_Id = BigInteger().with_variant(Integer, "sqlite")
_Text = Text().with_variant(Text(collation="C"), "postgresql")
"""Text that is sorted by its bytes, as on SQLite."""


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""The time 0, which stands for "never" where a column is sorted by."""


class Moment(TypeDecorator[datetime]):
    """A column of times: stored as microseconds since 1970 UTC, read as a datetime with a zone."""

    impl = _Id
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        return None if value is None else (value - EPOCH) // timedelta(microseconds=1)

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:
        return None if value is None else EPOCH + timedelta(microseconds=value)


def _where(condition: str) -> dict[str, Any]:
    """Return the options of a partial index, for both databases."""
    return {f"{dialect}_where": text(condition) for dialect in ("sqlite", "postgresql")}


minters = Table(
    "inv_minters", metadata, Column("minter", _Text, primary_key=True), Column("last", _Id, nullable=False)
)
"""The last number that each minter has given."""

numbers = Table(
    "inv_numbers",
    metadata,
    Column("minter", _Text, nullable=False),
    Column("key", _Text, nullable=False),
    Column("number", _Id, nullable=False),
    PrimaryKeyConstraint("minter", "key"),
    Index("inv_numbers_once", "minter", "number", unique=True),
)
"""The number that each key got of a minter. The unique index is the promise that no number is given twice."""

local_ids = Table(
    "inv_local_ids",
    metadata,
    Column("local_id", _Text, nullable=False),
    Column("collection", _Text, nullable=False),
    Column("ark", _Text, nullable=False),
    PrimaryKeyConstraint("local_id", "collection"),
    Index("inv_local_ids_by_ark", "ark"),
)
"""An ark is bound when it is minted, before its object exists; so it is no foreign key."""

objects = Table(
    "inv_objects",
    metadata,
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("ark", _Text, nullable=False),
    Column("collection", _Text, nullable=False),
    Column("owner", _Text, nullable=False),
    Column("head_version", Integer, nullable=False),
    Column("audited_us", Moment, nullable=False, server_default=text("0")),
    Column("damaged_since_us", Moment),
    Index("inv_objects_by_ark", "ark", unique=True),
    Index("inv_objects_by_collection", "collection", "id"),
    Index("inv_objects_by_audit", "audited_us", "id"),
    Index("inv_objects_damaged", "id", **_where("damaged_since_us is not null")),
)
"""``audited_us`` is ``EPOCH`` for an object that was never audited."""

versions = Table(
    "inv_versions",
    metadata,
    Column("object_id", _Id, ForeignKey("inv_objects.id"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("batch_id", _Text, nullable=False),
    Column("job_id", _Text, nullable=False),
    Column("submitter", _Text, nullable=False),
    Column("who", _Text),
    Column("what", _Text),
    Column("when_said", _Text),
    Column("storage", _Text, nullable=False),
    Column("created_us", Moment, nullable=False),
    Column("files", Integer, nullable=False),
    Column("size_bytes", _Id, nullable=False),
    Column("verified", Integer, nullable=False),
    PrimaryKeyConstraint("object_id", "version"),
    Index("inv_versions_by_batch", "batch_id", "object_id", "version"),
)
"""The recorded versions of objects. ``when_said`` is the depositor's date: ``when`` is a word of SQL."""

HEAD = (versions.c.object_id == objects.c.id) & (versions.c.version == objects.c.head_version)
"""The condition that joins an object with its newest version."""

files = Table(
    "inv_files",
    metadata,
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("object_id", _Id, ForeignKey("inv_objects.id"), nullable=False),
    Column("first_version", Integer, nullable=False),
    Column("last_version", Integer, nullable=False),
    Column("name", _Text, nullable=False),
    Column("path", _Text, nullable=False),
    Column("size_bytes", _Id, nullable=False),
    Column("mime_type", _Text),
    Column("modified", _Text),
    *(Column(algorithm, LargeBinary) for algorithm in ALGORITHMS),
    Index("inv_files_by_object", "object_id", "last_version"),
    Index("inv_files_by_name", "name", "object_id"),
    *(
        Index(f"inv_files_by_{algorithm}", algorithm, "object_id", **_where(f"{algorithm} is not null"))
        for algorithm in ALGORITHMS
    ),
)
"""A file that is unchanged from one version to another; see ``file_spans``. ``name``: the part after the last slash of
``path``. ``modified``: as it was given."""

audits = Table(
    "inv_audits",
    metadata,
    Column("object_id", _Id, ForeignKey("inv_objects.id"), nullable=False),
    Column("at_us", Moment, nullable=False),
    Column("files", Integer, nullable=False),
    Column("size_bytes", _Id, nullable=False),
    Column("faults", _Text, nullable=False),
    PrimaryKeyConstraint("object_id", "at_us"),
)
"""The newest audits of each object. ``faults``: a JSON list of sentences."""
