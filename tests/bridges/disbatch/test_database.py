"""The connection to the database of Disbatch: what is acknowledged stays, and nothing waits for ever."""

import time
from datetime import UTC, datetime

import pytest
from pymongo.errors import PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from bridges.mongo import MongoServer
from spinney.bridges.disbatch.database import (
    CHUNKS,
    INDEXES,
    NODES,
    TASKS,
    Database,
    Status,
    check,
    connect,
    ensure_indexes,
    newest,
)
from spinney.errors import StoreUnavailable, StoreUnusable, UsageError

DRIVERS_OWN_S = 30.0
"""How long the driver looks for a server where it is told nothing."""


def test_status_numbers_are_those_of_the_releases() -> None:
    assert {status.name: status.value for status in Status} == {
        "ORPHANED": -6,
        "CANCELLED": -5,
        "BLOCKED": -4,
        "TERMINATED": -3,
        "QUEUED": -2,
        "CLAIMED": -1,
        "RUNNING": 0,
        "SUCCEEDED": 1,
        "FAILED": 2,
    }


def test_writes_and_reads_need_a_majority_even_if_the_url_says_otherwise(mongo_server: MongoServer) -> None:
    db = connect(f"{mongo_server.url}/?w=1&readConcernLevel=local&retryWrites=false", "t")

    assert db[TASKS].write_concern == WriteConcern(w="majority", j=True)
    assert db[TASKS].read_concern == ReadConcern("majority")
    assert newest(db[TASKS]).read_concern == ReadConcern("local")
    assert newest(db[TASKS]).write_concern == db[TASKS].write_concern
    assert db.client.options.retry_writes
    assert db.client.options.retry_reads
    db.client.close()


def test_dates_are_aware_and_what_is_written_is_read(db: Database) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    db[TASKS].insert_one({"mtime": now, "status": Status.QUEUED})

    task = db[TASKS].find_one()

    assert task is not None
    assert task["mtime"] == now
    assert task["status"] == -2


def test_indexes_are_those_of_the_releases_and_may_be_there_already(db: Database) -> None:
    db[NODES].create_index("node", unique=True)  # as a release has made it
    ensure_indexes(db)
    ensure_indexes(db)

    assert set(db[TASKS].index_information()) == {
        "_id_",
        "node_1_status_1_queue_1",
        "node_1_status_1_queue_1__id_1",
        "node_1_status_1_queue_1__id_-1",
        "queue_1_status_1",
    }
    for collection, indexes in INDEXES.items():
        assert {index.document["name"] for index in indexes} <= set(db[collection].index_information())
    assert db[CHUNKS].index_information()["files_id_1_n_1"]["unique"]


def test_nodes_of_one_name_are_reported_when_the_index_is_made(db: Database) -> None:
    db[NODES].insert_many([{"node": "oak"}, {"node": "oak"}])

    with pytest.raises(
        StoreUnusable, match=r"two documents of the collection nodes of .* have the same node"
    ):
        ensure_indexes(db)


@pytest.mark.parametrize(
    "url",
    [
        "mongodb://user:se/cret@host",
        "mongodb://user:secret@host:port",
        "mongodb://host/?tls=perhaps",
        "mongodb://host/?tlsInsecure=perhaps",
        "ftp://host",
        "",
    ],
)
def test_an_invalid_address_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(UsageError, match="write an address as mongodb://HOST:PORT") as refused:
        connect(url, "t")

    assert "cret" not in str(refused.value)


@pytest.mark.usefixtures("short_reach")
def test_a_server_that_is_away_is_told_of_in_time_and_found_again() -> None:
    server = MongoServer().start()
    try:
        db = connect(server.url, "t", timeout_s=2)
        db[TASKS].insert_one({"_id": 1})
        server.kill()
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match="no primary of the MongoDB database t answers"):
            check(db)
        assert time.monotonic() - began < DRIVERS_OWN_S / 2

        server.start()
        check(db)
        assert db[TASKS].find_one() == {"_id": 1}, "what was acknowledged is there after a crash"

        server.stop_answering()
        began = time.monotonic()
        with pytest.raises(PyMongoError):
            db[TASKS].find_one()
        assert time.monotonic() - began < DRIVERS_OWN_S / 2
        server.answer_again()
        assert db[TASKS].find_one() == {"_id": 1}
        db.client.close()
    finally:
        server.remove()
    assert not server.folder.exists()
