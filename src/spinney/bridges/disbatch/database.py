"""The MongoDB database of a Disbatch installation: the connection, the collections, indexes and status codes."""

import logging
import warnings
from collections.abc import Mapping
from datetime import UTC
from enum import IntEnum
from typing import Any, TypeAlias

import pymongo
from bson.codec_options import CodecOptions, DatetimeConversion
from pymongo import ASCENDING, DESCENDING, IndexModel, MongoClient, ReadPreference, WriteConcern
from pymongo.collection import Collection as MongoCollection
from pymongo.database import Database as MongoDatabase
from pymongo.errors import OperationFailure, PyMongoError
from pymongo.read_concern import ReadConcern

from spinney.errors import StoreUnavailable, StoreUnusable, UsageError

log = logging.getLogger("spinney.bridges.disbatch")

Document: TypeAlias = dict[str, Any]
Database: TypeAlias = MongoDatabase[Document]
Collection: TypeAlias = MongoCollection[Document]

NODES = "nodes"
"""A document for each node, with its limit and its last beat."""
QUEUES = "queues"
TASKS = "tasks"
BALANCE = "balance"
"""One document: the settings of balancing, and what it last did."""
CHANGELOG = "changelog"
"""What was changed through a command interface, since release 4.2."""
FILES = "tasks.files"
"""GridFS: a document for each output that is not in its task, and the text in ``CHUNKS``."""
CHUNKS = "tasks.chunks"

TIMEOUT_S = 30.0
"""How long one operation may take in all, with the driver's retries after a failover."""
REACH_S = 10.0
"""How long the first operation of a look may take, so that operators soon see that the database is away. An election
takes a few seconds."""
CONNECT_S = 5.0
"""How long one attempt to connect may take."""

INDEXES: Mapping[str, tuple[IndexModel, ...]] = {
    NODES: (IndexModel([("node", ASCENDING)], unique=True),),
    QUEUES: (IndexModel([("name", ASCENDING)], unique=True),),
    TASKS: (
        IndexModel([("node", ASCENDING), ("status", ASCENDING), ("queue", ASCENDING)]),
        IndexModel([("node", ASCENDING), ("status", ASCENDING), ("queue", ASCENDING), ("_id", ASCENDING)]),
        IndexModel([("node", ASCENDING), ("status", ASCENDING), ("queue", ASCENDING), ("_id", DESCENDING)]),
        IndexModel([("queue", ASCENDING), ("status", ASCENDING)]),
    ),
    FILES: (
        IndexModel([("filename", ASCENDING), ("metadata.task_id", ASCENDING)]),
        IndexModel([("filename", ASCENDING), ("uploadDate", ASCENDING)]),
    ),
    CHUNKS: (IndexModel([("files_id", ASCENDING), ("n", ASCENDING)], unique=True),),
    CHANGELOG: (IndexModel([("collection", ASCENDING)]),),
}
"""The indexes that the releases create: those of 4.0 to 4.3 and, for ``tasks.files``, that of 4.4 besides.

Their names are those that every driver gives by default, so that an index which a release has created is the same one.
"""


class Status(IntEnum):
    """The standard values of a task's ``status``. Every other positive number is a plugin's own way to have finished;
    every other negative one keeps nodes from claiming the task."""

    ORPHANED = -6
    CANCELLED = -5
    BLOCKED = -4
    TERMINATED = -3
    QUEUED = -2
    CLAIMED = -1
    RUNNING = 0
    SUCCEEDED = 1
    FAILED = 2


def connect(url: str, database: str, *, timeout_s: float = TIMEOUT_S) -> Database:
    """Return the database of this name at a MongoDB server, replica set or sharded cluster; nothing is sent yet.

    Everything is read from the primary. A write returns when a majority of a replica set has it on disk, and a read
    returns only what a majority has, so no answer is undone by a failover. (``newest`` gives the other kind of read.)
    The driver sends a read, or a write of single documents, again when the primary has changed meanwhile, and connects
    anew by itself; an operation takes at most ``timeout_s`` in all. It does not repeat ``update_many``: that raises an
    error, the bridge begins anew, and gives back claims that were left between two writes. Dates are aware of UTC.

    Raises UsageError when the URL, an option in it or the name is invalid; a message never shows the URL, since it may
    hold a password."""
    try:
        with warnings.catch_warnings():
            # Without this the driver would ignore an invalid "tls", and go on without TLS.
            warnings.simplefilter("error", UserWarning)
            client: MongoClient[Document] = MongoClient(
                url if "://" in url else f"mongodb://{url}",
                appname="spinney",
                connectTimeoutMS=int(CONNECT_S * 1000),
                timeoutMS=int(timeout_s * 1000),
                retryReads=True,
                retryWrites=True,
            )
        return client.get_database(
            database,
            # Text and dates that cannot be read do not keep the rest of a collection from being read.
            codec_options=CodecOptions(
                tz_aware=True,
                tzinfo=UTC,
                unicode_decode_error_handler="replace",
                datetime_conversion=DatetimeConversion.DATETIME_CLAMP,
            ),
            read_preference=ReadPreference.PRIMARY,
            write_concern=WriteConcern(w="majority", j=True),
            read_concern=ReadConcern("majority"),
        )
    except (PyMongoError, ValueError, TypeError, UserWarning):  # their messages may show a part of the URL
        raise UsageError(
            f"the address, an option or the name {database!r} of the MongoDB database is invalid; write an address as "
            "mongodb://HOST:PORT, with the characters : / ? # [ ] @ of a user or password percent-encoded, and options "
            "as the documentation of PyMongo has them"
        ) from None


def newest(collection: Collection) -> Collection:
    """Return the collection with reads that see everything that the primary has, even what a failover may
    undo.

    Limits are counted this way: a claim of another node counts from its first moment, not only when a
    majority has it. A claim that is undone later was counted too high, which is harmless."""
    return collection.with_options(read_concern=ReadConcern("local"))


def reach(db: Database) -> None:
    """Raise PyMongoError when no primary answers within ``REACH_S``. Other operations wait longer, because their work
    may take longer."""
    with pymongo.timeout(REACH_S):
        db.command("ping")


def check(db: Database) -> None:
    """Raise StoreUnavailable when no primary of the database answers in time, or when it refuses the sign-in."""
    try:
        reach(db)
    except OperationFailure as error:
        raise StoreUnavailable(
            f"the MongoDB database {db.name} refuses the connection (code {error.code}); correct the user and the "
            "password, and give the user the roles that it needs"
        ) from error
    except PyMongoError as error:
        raise StoreUnavailable(
            f"no primary of the MongoDB database {db.name} answers; start it, or correct the address. "
            "Every operation connects again by itself"
        ) from error


def ensure_indexes(db: Database) -> None:
    """Create the indexes that are missing. Two queues may have the same name by the protocol; then only the index that
    forbids it is left out. Raises StoreUnusable when other documents or older indexes forbid one."""
    for collection, indexes in INDEXES.items():
        for index in indexes:
            try:
                db[collection].create_indexes([index])
            except OperationFailure as error:
                if error.timeout:
                    raise
                if error.code == 11000 and collection == QUEUES:
                    log.warning(
                        "queues of the database %s have the same name; tell them apart by id", db.name
                    )
                    continue
                if error.code == 11000:
                    field = next(iter(index.document["key"]))
                    raise StoreUnusable(
                        f"two documents of the collection {collection} of {db.name} have the same {field}; give one of "
                        "them another, or remove it, and start again"
                    ) from error
                raise StoreUnusable(
                    f"the index {index.document['name']} of the collection {collection} of {db.name} cannot be created "
                    f"(code {error.code}: {error.details and error.details.get('codeName')}); drop an index of "
                    "the same fields with other options, or let a user with the role dbAdmin start once"
                ) from error
