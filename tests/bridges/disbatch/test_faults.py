"""A Disbatch node while its database refuses commands, by the fail points of the server."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from bson import ObjectId

from bridges.mongo import MongoServer
from spinney.bridges.disbatch.database import Database
from spinney.bridges.disbatch.output import stored


@pytest.fixture(scope="module")
def server() -> Iterator[MongoServer]:
    server = MongoServer().start("--enable-test-commands")
    yield server
    server.remove()


@pytest.fixture
def db(server: MongoServer) -> Iterator[Database]:
    with server.database() as database:
        yield database


@contextmanager
def refused(db: Database, *commands: str, **how: Any) -> Iterator[None]:
    """Have the server refuse these commands while the block runs. ``how``: as in the data of ``failCommand``."""
    point = {"configureFailPoint": "failCommand"}
    db.client.admin.command({**point, "mode": "alwaysOn", "data": {"failCommands": commands, **how}})
    try:
        yield
    finally:
        db.client.admin.command({**point, "mode": "off"})


def test_new_output_needs_no_right_to_remove_chunks(db: Database) -> None:
    """The roles that the releases create lack it."""
    task = ObjectId()
    with refused(db, "delete", errorCode=13):
        fields = stored(db, task, "1", "x" * 300_000, "", gfs="always")

    assert db["tasks.chunks"].count_documents({"files_id": fields["stdout"]}) == 2
    stored(db, task, "1", "x", "", gfs="always")
    assert db["tasks.chunks"].count_documents({"files_id": fields["stdout"]}) == 1
