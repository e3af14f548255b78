"""Every route of the command interface, with good and bad requests."""

import asyncio
import json
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId
from pymongo.collection import Collection

from bridges.disbatch.interface_client import DEMO, Client, ask, client_of
from bridges.mongo import MongoServer
from spinney.bridges.disbatch.database import Database, ensure_indexes
from spinney.bridges.disbatch.interface import actions
from spinney.bridges.disbatch.interface.balancer import balance_once
from spinney.bridges.disbatch.interface.service import Service
from spinney.bridges.disbatch.interface.settings import InterfaceSettings

QUEUE, SLOW = ObjectId("5" * 24), ObjectId("6" * 24)
NODE = ObjectId("7" * 24)
STATUSES = {"a": -2, "b": -1, "c": 0, "d": 1, "e": 2, "f": -5, "0": -6}
"""The status of the task whose id has only this digit."""
MISSING = "1" * 24
NOW = datetime.now(UTC).replace(microsecond=574_000)


def task(digit: str, **fields: Any) -> dict[str, Any]:
    own = {
        "_id": ObjectId(digit * 24),
        "queue": QUEUE,
        "status": STATUSES[digit],
        "node": None,
        "params": {"n": digit},
    }
    return {**own, "ctime": NOW, "mtime": NOW, "stdout": None, "stderr": None, **fields}


@pytest.fixture(scope="module")
def prepared(mongo_server: MongoServer) -> Iterator[Database]:
    """A database with its indexes, which take the longest to create."""
    with mongo_server.database() as db:
        ensure_indexes(db)
        yield db


@pytest.fixture
def db(prepared: Database) -> Database:
    """The same database, emptied."""
    for name in prepared.list_collection_names():
        prepared[name].delete_many({})
    return prepared


@pytest.fixture
def client(db: Database) -> Client:
    made = client_of(db, live_window_s=3600)  # the times are those of when this file was loaded
    db.queues.insert_many(
        [
            {"_id": QUEUE, "name": "demo", "plugin": DEMO, "threads": 3},
            {"_id": SLOW, "name": "slow", "plugin": DEMO},
        ]
    )
    db.nodes.insert_one({"_id": NODE, "node": "host.example", "timestamp": NOW})
    db.tasks.insert_many(
        [task(digit, node="host.example" if digit in "bcde" else None) for digit in STATUSES]
    )
    return made


async def test_routes_answer_as_the_releases_do(client: Client) -> None:
    node = {
        "_id": str(NODE),
        "id": str(NODE),
        "node": "host.example",
        "timestamp": int(NOW.timestamp() * 1000),
        "live": True,
    }
    demo = {"id": str(QUEUE), "name": "demo", "plugin": DEMO, "threads": 3, "sort": None}
    demo |= {"queued": 1, "parked": 2, "running": 2, "completed": 2}

    assert await ask(client, "GET", "/nodes") == (200, [node])
    for name in ("host.example", NODE):
        assert await ask(client, "GET", f"/nodes/{name}") == (200, node)
    assert await ask(client, "GET", "/nodes/other") == (200, None)
    assert await ask(client, "GET", "/plugins") == (200, [DEMO])
    for name in ("demo", QUEUE):
        assert await ask(client, "GET", f"/queues/{name}") == (200, demo)
    status, queues = await ask(client, "GET", "/queues")
    assert (status, [queue["name"] for queue in queues]) == (200, ["demo", "slow"])
    status, info = await ask(client, "GET", "/info")
    assert status == 200
    assert "/queues/{queue:path}" in info["routes"]["DELETE"]


@pytest.mark.parametrize("strange", ["yesterday", float("nan"), 1e300, {"a": 1}, None])
async def test_a_document_with_a_strange_value_hides_no_other(
    client: Client, db: Database, strange: object
) -> None:
    db.nodes.insert_one({"node": "odd", "timestamp": strange})
    odd = db.tasks.insert_one({"status": strange if strange != 1e300 else "1e300"}).inserted_id

    status, nodes = await ask(client, "GET", "/nodes")
    assert (status, [(node["node"], node["live"]) for node in nodes]) == (
        200,
        [("host.example", True), ("odd", False)],
    )
    assert (await ask(client, "GET", "/monitoring"))[0] == 200
    assert (await client.get("/")).status_code == 200
    for action in ("cancel", "reset", "clone"):
        status, answer = await ask(client, "POST", f"/tasks/{odd}", {"action": action})
        assert (status, answer["id"]) == (400, str(odd))


@pytest.mark.parametrize("spelt", ["json", "form"])
async def test_writes_answer_as_the_releases_do(client: Client, db: Database, spelt: str) -> None:
    async def post(path: str, **fields: Any) -> Any:
        if spelt == "json":
            return await ask(client, "POST", path, fields)
        return await ask(client, "POST", path, form={name: str(value) for name, value in fields.items()})

    nothing_wrong = {"acknowledged": 1, "write_concern_errors": [], "write_errors": []}
    result = {**nothing_wrong, "matched_count": 1, "modified_count": 1, "upserted_id": None}
    assert await post("/nodes/host.example", maxthreads=4) == (200, {"MongoDB::UpdateResult": result})
    assert [node["maxthreads"] for node in db.nodes.find()] == [4]
    status, made = await post("/queues", name="new", plugin=DEMO, threads=2, sort="fifo")
    assert (status, made["MongoDB::InsertOneResult"]) == (200, {**nothing_wrong, "inserted_id": made["id"]})
    assert await post("/queues/new", name="newer", threads=7) == (200, {"MongoDB::UpdateResult": result})
    same = {"MongoDB::UpdateResult": {**result, "modified_count": 0}}
    assert await post(f"/queues/{made['id']}", threads=7) == (200, same)
    stored = db.queues.find_one({"_id": ObjectId(made["id"])})
    assert stored == {
        "_id": ObjectId(made["id"]),
        "name": "newer",
        "plugin": DEMO,
        "threads": 7,
        "sort": "fifo",
    }
    status, gone = await ask(client, "DELETE", "/queues/newer")
    assert (status, gone) == (200, {"MongoDB::DeleteResult": {**nothing_wrong, "deleted_count": 1}})

    changes = list(db.changelog.find().sort("_id"))
    assert [change["collection"] for change in changes] == ["nodes", "queues", "queues", "queues"]
    assert changes[-1]["deleted"] is True
    assert changes[2]["name"] == "newer"
    assert {change["by"] for change in changes} == {"anybody"}


@pytest.mark.parametrize(
    ("fields", "digits"),
    [
        ({"queue": "demo"}, "0abcdef"),
        ({"queue": str(QUEUE)}, "0abcdef"),
        ({"queue": {"$oid": str(QUEUE)}}, "0abcdef"),
        ({"queue": [str(QUEUE), {"$oid": str(SLOW)}], "status": [-2, 1]}, "ad"),
        ({"queue": str(SLOW)}, ""),
        ({"id": "a" * 24}, "a"),
        ({"id": ["a" * 24, {"$oid": "b" * 24}]}, "ab"),
        ({"_id": "a" * 24}, "a"),
        ({"node": "host.example", "status": "1"}, "d"),
        ({"node": None, "status": -2}, "a"),
        ({"queue": "demo", "status": {"$gte": 1}}, "de"),
        ({"queue": "demo", "status": {"$in": [0, -1]}}, "bc"),
        ({"queue": "demo", ".limit": 2, ".skip": 3}, "cd"),
        (
            {".limit": 20, ".fields": None, ".count": 0, ".skip": 0, ".terse": 0, ".full": 0, ".epoch": 0},
            "0abcdef",
        ),
    ],
)
async def test_tasks_are_found_by_indexed_fields(
    client: Client, fields: Mapping[str, Any], digits: str
) -> None:
    assert await ask(client, "GET", "/tasks", fields) == (200, await tasks(client, digits))
    count = {".count": 1, **{name: value for name, value in fields.items() if not name.startswith(".")}}
    if ".skip" not in fields:
        assert await ask(client, "GET", "/tasks", count) == (200, {"count": len(digits)})


async def tasks(client: Client, digits: str) -> list[Any]:
    return [(await ask(client, "GET", f"/tasks/{digit * 24}"))[1] for digit in digits]


async def test_tasks_are_shown_as_options_say(client: Client, db: Database) -> None:
    text, octets = ObjectId(), ObjectId()
    db["tasks.chunks"].insert_many(
        [
            {"files_id": text, "n": 1, "data": "ß!"},
            {"files_id": text, "n": 0, "data": "gru"},
            {"files_id": octets, "n": 0, "data": "größe".encode()[:3]},
            {"files_id": octets, "n": 1, "data": "größe".encode()[3:]},
        ]
    )
    path = f"/tasks/{'d' * 24}"
    db.tasks.update_one({"_id": ObjectId("d" * 24)}, {"$set": {"stdout": text, "stderr": octets}})
    _, plain = await ask(client, "GET", path)
    assert plain["stdout"] == str(text)
    assert plain["mtime"] == NOW.strftime("%Y-%m-%dT%H:%M:%S")
    assert (await ask(client, "GET", f"{path}?.full=1&.epoch=1"))[1] == {
        **plain,
        "stdout": "gruß!",
        "stderr": "größe",
        "ctime": NOW.timestamp(),
        "mtime": NOW.timestamp(),
    }
    assert (await ask(client, "GET", f"{path}?.terse=1"))[1] == plain, "ids of files are shown"
    db.tasks.update_one({"_id": ObjectId("d" * 24)}, {"$set": {"stdout": "long", "stderr": ""}})
    terse = (await ask(client, "GET", "/tasks?.terse=1&.limit=1&id=" + "d" * 24))[1]
    assert (terse["stdout"], terse["stderr"]) == ("[terse mode]", "")

    assert (await ask(client, "GET", "/tasks", {"id": "d" * 24, ".fields": ["status"]}))[1] == [
        {"_id": "d" * 24, "status": 1}
    ]
    text_in_json = {"id": "d" * 24, ".fields": '["status"]'}
    assert (await ask(client, "GET", "/tasks", text_in_json))[1] == [{"_id": "d" * 24, "status": 1}]
    form = '/tasks?queue=demo&.limit=1&.fields={"status":1,"_id":0}'
    assert (await ask(client, "GET", form))[1] == {"status": -6}
    assert (await ask(client, "GET", f"/tasks?queue={SLOW}&.limit=1"))[1] == {}
    assert (await client.get(f"{path}?.pretty=0")).text.startswith('{"_id":"ddd')
    assert (await client.get(path)).text.startswith('{\n  "_id"')


async def test_without_parameters_tasks_say_what_may_be_asked_for(client: Client, db: Database) -> None:
    status, content = await ask(client, "GET", "/tasks")
    assert (status, content["indexes"]) == (
        200,
        [["id"], ["node", "status", "queue", "id"], ["queue", "status"]],
    )
    assert content["schema"]["params"]["node"] == {"repeatable": "yes", "type": ["string"]}

    query = {"queue": "demo", "params.n": "7"}
    status, content = await ask(client, "GET", "/tasks", query)
    assert (status, content["error"], content["invalid_params"]) == (
        400,
        "non-indexed params given",
        ["params.n"],
    )
    db.tasks.create_index([("queue", 1), ("params.n", 1)])
    db.tasks.update_one({"_id": ObjectId("a" * 24)}, {"$set": {"params.n": 7}})
    db.tasks.update_one({"_id": ObjectId("b" * 24)}, {"$set": {"params.n": "7"}})
    assert (await ask(client, "GET", "/tasks", {**query, ".count": 1}))[1] == {"count": 2}, (
        "clients store either"
    )


async def test_ids_are_spelt_as_the_settings_say(client: Client, db: Database) -> None:
    old = client_of(db, oids="extended")
    assert (await ask(old, "GET", f"/tasks/{'a' * 24}"))[1]["_id"] == {"$oid": "a" * 24}
    body = {"queue": {"$oid": str(QUEUE)}, "params": [{"user": {"$oid": "b" * 24}}]}
    _, made = await ask(old, "POST", "/tasks", body)
    (inserted,) = made["MongoDB::InsertManyResult"]["inserted"]
    assert inserted["index"] == 0
    stored = db.tasks.find_one({"_id": ObjectId(inserted["_id"]["$oid"])})
    assert stored is not None
    assert stored["params"] == {"user": ObjectId("b" * 24)}
    assert (stored["status"], stored["node"], stored["stdout"]) == (-2, None, None)
    assert stored["ctime"] == stored["mtime"]


async def test_tasks_are_created_one_by_one_and_from_documents(client: Client, db: Database) -> None:
    db.users.insert_many(
        [{"name": "ann", "at": {"home": "h1"}, "m": "x"}, {"name": "bob", "m": "x"}, {"m": "y"}]
    )
    params = {"user": "document.name", "host": "document.at.home", "commands": "*"}
    body = {"queue": "slow", "params": params, "collection": "users", "filter": {"m": "x"}}
    expected = [
        {"user": "ann", "host": "h1", "commands": "*"},
        {"user": "bob", "host": None, "commands": "*"},
    ]
    old = {"filter": {"m": "x"}, "params": params}
    for path, content in (("/tasks", body), ("/tasks/slow/users", old)):
        status, made = await ask(client, "POST", path, content)
        assert (status, len(made["MongoDB::InsertManyResult"]["inserted"])) == (200, 2)
        assert [one["params"] for one in db.tasks.find({"queue": SLOW}).sort("_id")] == expected
        db.tasks.delete_many({"queue": SLOW})

    assert (await ask(client, "POST", "/tasks", {"queue": "slow", "params": {"a": 1}}))[0] == 200
    assert (await ask(client, "POST", "/tasks", form={"queue": "slow", "params": '[{"a":1}]'}))[0] == 200
    assert (await ask(client, "POST", "/tasks/slow", [{"a": 1}]))[0] == 200
    assert [one["params"] for one in db.tasks.find({"queue": SLOW})] == [{"a": 1}] * 3


async def test_tasks_that_were_created_are_named_when_the_read_of_the_documents_breaks_off(
    client: Client, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first reply of MongoDB has 101 documents. The read of the others fails, because their collection is dropped
    when two parts are written."""
    monkeypatch.setattr(actions, "_AT_ONCE", 50)
    db.users.insert_many([{"n": n} for n in range(200)])
    insert_many = Collection.insert_many

    def insert_and_drop(self: Collection[Any], *args: Any, **more: Any) -> Any:
        answer = insert_many(self, *args, **more)
        if db.tasks.count_documents({"queue": SLOW}) == 100:
            db.drop_collection("users")
        return answer

    monkeypatch.setattr(Collection, "insert_many", insert_and_drop)
    body = {"queue": "slow", "params": {"n": "document.n"}, "collection": "users", "filter": {}}
    status, content = await ask(client, "POST", "/tasks", body)

    ids = [str(each["_id"]) for each in db.tasks.find({"queue": SLOW}, {"_id": 1}).sort("_id")]
    assert (status, len(ids)) == (503, 100)
    assert "only 100 tasks" in content["error"]
    assert [each["_id"] for each in content["MongoDB::InsertManyResult"]["inserted"]] == ids


async def test_documents_that_cannot_be_read_at_all_make_no_tasks(mongo_server: MongoServer) -> None:
    with mongo_server.database() as own:
        own.queues.insert_one({"name": "demo", "plugin": DEMO})
        own.numbers.insert_one({"n": 0})
        part = {"$project": {"part": {"$divide": [1, "$n"]}}}
        own.create_collection("parts", viewOn="numbers", pipeline=[part])
        body = {"queue": "demo", "params": {"part": "document.part"}, "collection": "parts", "filter": {}}

        status, content = await ask(client_of(own), "POST", "/tasks", body)

        assert (status, "MongoDB refuses this" in content["error"]) == (400, True)
        assert own.tasks.count_documents({}) == 0


async def test_search_of_release_4_0(client: Client, db: Database) -> None:
    status, tasks = await ask(client, "POST", "/tasks/search", {"filter": {"params.n": "a"}})
    assert (status, [one["_id"] for one in tasks]) == (200, ["a" * 24])
    later = {"filter": {"mtime": {"$gt": int((NOW + timedelta(hours=1)).timestamp() * 1000)}}, "count": True}
    assert await ask(client, "POST", "/tasks/search", later) == (200, {"count": 0})

    db.tasks.update_one({"_id": ObjectId("d" * 24)}, {"$set": {"stdout": "long", "stderr": ""}})
    query = {"filter": json.dumps({"id": "d" * 24})}
    for terse, shown in {"0": "long", "false": "long", "": "long", "1": "[terse mode]"}.items():
        form = query | {"terse": terse}
        assert (await ask(client, "POST", "/tasks/search", form=form))[1][0]["stdout"] == shown, terse
    assert (await ask(client, "POST", "/tasks/search", form=query))[1][0]["stdout"] == "[terse mode]"


@pytest.mark.parametrize(
    ("digit", "action", "reply", "stored"),
    [
        ("a", "cancel", {"status": -5}, {"status": -5}),
        ("0", "cancel", {"status": -5}, {"status": -5}),
        ("f", "cancel", {"status": -5}, {"status": -5}),
        ("b", "cancel", {"wish": "cancel"}, {"status": -1, "wish": "cancel", "mtime": NOW}),
        ("c", "cancel", {"wish": "cancel"}, {"status": 0, "wish": "cancel", "mtime": NOW}),
        ("d", "cancel", "the task has finished with status 1", {"status": 1}),
        ("d", "reset", {"status": -2}, {"status": -2, "node": None, "stdout": None, "stderr": None}),
        ("f", "reset", {"status": -2}, {"status": -2}),
        ("0", "reset", {"status": -2}, {"status": -2}),
        ("a", "reset", "the task is queued already", {"status": -2}),
        ("c", "reset", "a node has the task; cancel it first", {"status": 0, "node": "host.example"}),
        ("c", "burn", "'action' must be one of cancel, reset, clone", {"status": 0}),
    ],
)
async def test_tasks_are_cancelled_and_reset(
    client: Client, db: Database, digit: str, action: str, reply: Any, stored: Mapping[str, Any]
) -> None:
    output = {"stdout": "long", "complete": True, "cmdExit": 1} if digit == "d" else {}
    db.tasks.update_one({"_id": ObjectId(digit * 24)}, {"$set": {"x": 1, **output}})
    status, content = await ask(client, "POST", f"/tasks/{digit * 24}", {"action": action})

    if isinstance(reply, str):
        assert status == 400
        assert content["error"].startswith(reply)
    else:
        assert (status, content) == (200, {"id": digit * 24, **reply})
    now = db.tasks.find_one({"_id": ObjectId(digit * 24)})
    assert now is not None
    for name, value in stored.items():
        kept = value.replace(microsecond=574_000) if name == "mtime" else value
        assert now[name] == kept
    if action == "reset" and status == 200:
        assert not {"complete", "cmdExit", "wish"} & now.keys()


async def test_a_clone_is_a_new_task_and_delete_cancels(client: Client, db: Database) -> None:
    status, content = await ask(client, "POST", f"/tasks/{'d' * 24}", form={"action": "clone"})
    clone = db.tasks.find_one({"_id": ObjectId(content["clone"])})
    assert clone is not None
    assert (clone["params"], clone["queue"], clone["status"], clone["node"]) == ({"n": "d"}, QUEUE, -2, None)
    assert await ask(client, "DELETE", f"/tasks/{content['clone']}") == (
        200,
        {"id": content["clone"], "status": -5},
    )
    logged = [(entry["action"], entry["collection"]) for entry in db.changelog.find().sort("_id")]
    assert logged == [("clone", "tasks"), ("cancel", "tasks")]
    db.queues.delete_one({"_id": QUEUE})
    status, content = await ask(client, "POST", f"/tasks/{'d' * 24}", {"action": "clone"})
    assert (status, content["error"][:36]) == (400, "the queue of the task is deleted; cr")


BAD = [
    ("POST", "/nodes/host.example", {}, 400, "No params"),
    ("POST", "/nodes/host.example", {"node": "x"}, 400, "Invalid param"),
    (
        "POST",
        "/nodes/host.example",
        {"maxthreads": -1},
        400,
        "maxthreads must be a non-negative integer or null",
    ),
    (
        "POST",
        "/nodes/host.example",
        {"maxthreads": {"$gt": 1}},
        400,
        "maxthreads must be a non-negative integer",
    ),
    ("POST", "/nodes/host.example", {"maxthreads": True}, 400, "maxthreads must be a non-negative integer"),
    ("POST", "/nodes/other", {"maxthreads": 1}, 400, "no node 'other'"),
    ("POST", "/queues", {"name": "x"}, 400, "name and plugin required"),
    ("POST", "/queues", {"name": "x", "plugin": "Other"}, 400, "Unknown plugin"),
    ("POST", "/queues", {"name": "x", "plugin": DEMO, "$set": 1}, 400, "Invalid param"),
    ("POST", "/queues", {"name": {"$ne": 1}, "plugin": DEMO}, 400, "name must be a string"),
    ("POST", "/queues", {"name": "x", "plugin": [DEMO]}, 400, "Unknown plugin"),
    (
        "POST",
        "/queues",
        {"name": "x", "plugin": DEMO, "threads": "many"},
        400,
        "threads must be a non-negative integer",
    ),
    (
        "POST",
        "/queues",
        {"name": "x", "plugin": DEMO, "sort": "fast"},
        400,
        'sort must be "fifo", "lifo", or "default"',
    ),
    (
        "POST",
        "/queues",
        {"name": "x", "plugin": DEMO, "sort": ["fifo"]},
        400,
        'sort must be "fifo", "lifo", or',
    ),
    ("POST", "/queues", {"name": "demo", "plugin": DEMO}, 400, "a queue named 'demo' exists already"),
    ("POST", "/queues", "text", 400, "the body must be a JSON object or array"),
    ("POST", "/queues/demo", {}, 400, "no params"),
    ("POST", "/queues/demo", {"max": 1}, 400, "unknown param"),
    ("POST", "/queues/demo", {"plugin": "Other"}, 400, "unknown plugin"),
    ("POST", "/queues/demo", {"name": None}, 400, "name must be a string"),
    ("POST", "/queues/demo", {"name": "slow"}, 400, "a queue named 'slow' exists already"),
    ("POST", "/queues/other", {"threads": 1}, 400, "no queue 'other'"),
    ("DELETE", "/queues/other", None, 400, "no queue 'other'"),
    ("POST", "/tasks", {"queue": "other", "params": [{"a": 1}]}, 400, "queue not found"),
    ("POST", "/tasks", {"queue": {"$ne": None}, "params": [{"a": 1}]}, 400, "queue not found"),
    (
        "POST",
        "/tasks",
        {"queue": "demo", "params": []},
        400,
        "'params' must be a JSON array of task params objects",
    ),
    ("POST", "/tasks", {"queue": "demo", "params": [{"a": 1}, 2]}, 400, "'params' must be a JSON array"),
    (
        "POST",
        "/tasks",
        {"queue": "demo", "params": [{"a": 1}, {}]},
        400,
        "'params' must be a JSON array of task",
    ),
    ("POST", "/tasks", {"queue": "demo", "params": "x"}, 400, "invalid parameters passed"),
    ("POST", "/tasks", {"queue": "demo", "params": [{"a": 1}], "more": 1}, 400, "invalid parameters passed"),
    ("POST", "/tasks", {"queue": "demo", "params": [{"$set": 1}]}, 400, "names in params must have no dot"),
    (
        "POST",
        "/tasks",
        {"queue": "demo", "params": [{"a": {"b.c": 1}}]},
        400,
        "names in params must have no dot",
    ),
    (
        "POST",
        "/tasks",
        {"queue": "demo", "params": [{"a": 2**64 - 1}]},
        400,
        "numbers in params must have at most 64",
    ),
    (
        "POST",
        "/tasks",
        {"queue": "demo", "params": {}, "collection": "u", "filter": 1},
        400,
        "'filter' must be",
    ),
    (
        "POST",
        "/tasks",
        {"queue": "demo", "params": {}, "collection": 1, "filter": {}},
        400,
        "'collection' required",
    ),
    (
        "POST",
        "/tasks",
        {"queue": "demo", "params": {}, "collection": "system.users", "filter": {}},
        400,
        "'collection'",
    ),
    (
        "POST",
        "/tasks",
        {"queue": "demo", "params": {}, "collection": "a$b", "filter": {}},
        400,
        "'collection' required",
    ),
    (
        "POST",
        "/tasks",
        {"queue": "demo", "params": {}, "collection": "u", "filter": {}},
        400,
        "no document matches",
    ),
    (
        "POST",
        "/tasks",
        {"queue": "demo", "params": {}, "collection": "u", "filter": {"$where": "sleep(9)"}},
        400,
        "a field's name must be letters",
    ),
    (
        "POST",
        "/tasks",
        {"queue": "demo", "params": {"u": "document.$where"}, "collection": "u", "filter": {}},
        400,
        "a field's name must be letters",
    ),
    ("GET", "/tasks", {"$where": "1"}, 400, "non-indexed params given"),
    ("GET", "/tasks", {"status": 1}, 400, "non-indexed params given"),
    ("GET", "/tasks", {"queue": "demo", "node": {"$ne": None}}, 400, "unknown operator"),
    ("GET", "/tasks", {"queue": "demo", "status": {"$gt": {"$ne": 1}}}, 400, "'status' must be an integer"),
    ("GET", "/tasks", {"queue": {"$oid": {"$ne": 1}}}, 400, "'queue' must be the id or the name of a queue"),
    ("GET", "/tasks", {"queue": {"$oid": "x"}}, 400, "'queue' must be the id or the name of a queue"),
    ("GET", "/tasks", {"queue": [["demo"]]}, 400, "'queue' must be the id or the name of a queue"),
    ("GET", "/tasks", {"queue": []}, 400, "'queue' must be an array of 1 to"),
    ("GET", "/tasks", {"queue": "demo", "status": 2**64 - 1}, 400, "'status' must be an integer"),
    ("GET", "/tasks", {"id": "demo"}, 400, "'id' must be an id"),
    ("GET", "/tasks", {"node": [{"a": 1}]}, 400, "'node' must be an id"),
    ("GET", "/tasks", {"queue": ""}, 400, "refusing to return everything"),
    ("GET", "/tasks", {".skip": 1}, 400, "refusing to return everything"),
    ("GET", "/tasks", {"queue": "demo", ".limit": "x"}, 400, "'.limit' must be a non-negative integer"),
    ("GET", "/tasks", {"queue": "demo", ".limit": 10**6}, 400, "'.limit' must be at most 10000"),
    ("GET", "/tasks", {"queue": "demo", ".sort": 1}, 400, "unknown option"),
    ("GET", "/tasks", {"queue": "demo", ".fields": {"a": {"$slice": 1}}}, 400, "'.fields' must be"),
    ("GET", "/tasks", {"queue": "demo", ".fields": ["$a"]}, 400, "a field's name must be letters"),
    ("GET", "/tasks", {"queue": "demo", ".fields": {"a": 1, "b": 0}}, 400, "'.fields' must name either"),
    ("GET", f"/tasks/{MISSING}", None, 404, f"no task with id {MISSING}"),
    ("GET", "/tasks/short", None, 404, "no task with id short"),
    ("POST", f"/tasks/{MISSING}", {"action": "cancel"}, 404, f"no task with id {MISSING}"),
    ("POST", f"/tasks/{MISSING}", {"action": "clone"}, 404, f"no task with id {MISSING}"),
    ("POST", f"/tasks/{'a' * 24}", {"action": "cancel", "status": 1}, 400, "Invalid param"),
    ("POST", f"/tasks/{'a' * 24}", {"action": ["cancel"]}, 400, "'action' must be one of"),
    ("DELETE", f"/tasks/{MISSING}", None, 404, f"no task with id {MISSING}"),
    ("POST", "/tasks/search", {"filter": []}, 400, "filter and options must be name/value objects"),
    (
        "POST",
        "/tasks/search",
        {"filter": {"x": 1}, "options": {"limit": 101}},
        400,
        "limit cannot exceed 100",
    ),
    ("POST", "/tasks/search", {"options": {"sort": {}}}, 400, "unknown option"),
    ("POST", "/tasks/search", {"filter": {"params": {"$where": "1"}}}, 400, "unknown operator"),
    ("POST", "/tasks/search", {"filter": {"mtime": "soon"}}, 400, "'mtime' must be a time"),
    ("POST", "/tasks/search", {"filter": {"mtime": 1e300}}, 400, "'mtime' must be a time that"),
    ("POST", "/tasks/other", [{"a": 1}], 400, "queue not found"),
    ("GET", "/nothing", None, 404, "GET /nothing: Not Found"),
    ("PUT", "/queues", None, 405, "PUT /queues: Method Not Allowed"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "error"), BAD)
async def test_bad_requests_are_refused_and_change_nothing(
    client: Client, db: Database, method: str, path: str, body: object, status: int, error: str
) -> None:
    def contents() -> list[Any]:
        return [list(db[name].find().sort("_id")) for name in ("nodes", "queues", "tasks", "changelog")]

    before = contents()
    answered, content = await ask(client, method, path, body)

    assert (answered, content["error"][: len(error)]) == (status, error)
    assert contents() == before


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("application/json", b"{", 400),
        ("application/json", b'{"a": NaN}', 400),
        ("application/json", b"[" * 5000, 400),
        ("application/json; charset=utf-8", b'{"threads": 1}', 200),
        ("application/x-www-form-urlencoded", b"threads=%ff", 400),
        ("application/x-www-form-urlencoded", b"&".join([b"a=1"] * 2000), 400),
        ("text/plain", b'{"threads": 1}', 400),
        ("application/json", b'"' + b"x" * 3000 + b'"', 413),
    ],
    ids=["cut", "NaN", "nested", "charset", "latin-1", "many", "text", "large"],
)
async def test_bodies(client: Client, db: Database, kind: str, body: bytes, status: int) -> None:
    small = client_of(db, body_bytes=len(body) if status == 400 else 2000)

    reply = await small.post("/queues/demo", content=body, headers={"content-type": kind})

    assert reply.status_code == status
    assert (status == 200) == ("error" not in reply.json())


GOOD_BALANCE = {"max_tasks": {"* 07:00": "5"}, "queues": [["demo"], ["slow"]]}


@pytest.mark.parametrize(
    "changes",
    [
        {"queues": None},
        {"queues": ["demo"]},
        {"queues": [["demo", "demo"]]},
        {"queues": [["other"]]},
        {"queues": [[{"$ne": 1}]]},
        {"max_tasks": []},
        {"max_tasks": {"7 07:00": 1}},
        {"max_tasks": {"* 07:00": -1}},
        {"max_tasks": {"* 07:00": {"$inc": 1}}},
        {"disabled": 1},
        {"disabled": "soon"},
        {"more": 1},
    ],
)
async def test_balance_refuses_what_it_cannot_follow(
    client: Client, db: Database, changes: Mapping[str, Any]
) -> None:
    status, content = await ask(client, "POST", "/balance", {**GOOD_BALANCE, **changes})

    assert status == 400
    assert content["status"].startswith("failed: invalid json passed ")
    assert db.balance.find_one() is None


async def test_balancing_writes_the_limits_that_nodes_read(client: Client, db: Database) -> None:
    service = Service(db, InterfaceSettings(balance=True))
    assert (await ask(client, "GET", "/balance"))[1]["notice"] == "balance document not found"
    balance_once(service, datetime.now(UTC))
    assert await ask(client, "POST", "/balance", GOOD_BALANCE) == (
        200,
        {"status": "success: queuebalance modified"},
    )
    db.tasks.insert_many([{"queue": SLOW, "status": -2} for _ in range(3)])

    balance_once(service, datetime.now(UTC))

    # 5 tasks: 3 of the urgent queue wait; of the other one 2 run, and 1 waits.
    assert {queue["name"]: queue["threads"] for queue in db.queues.find()} == {"demo": 2, "slow": 3}
    shown = (await ask(client, "GET", "/balance"))[1]
    assert (shown["max_tasks"], shown["known_queues"]) == ({"* 07:00": 5}, ["demo", "slow"])
    assert (shown["status"], shown["message"]) == ("OK", "QueueBalance is running")
    changed = [entry["name"] for entry in db.changelog.find({"collection": "queues", "by": "balance"})]
    assert sorted(changed) == ["demo", "slow"]
    entries = db.changelog.count_documents({})
    balance_once(service, datetime.now(UTC))
    assert db.changelog.count_documents({}) == entries, "what stays the same is not logged"

    db.queues.update_many({}, {"$set": {"threads": 0}})
    balance_once(Service(db, InterfaceSettings(balance=True, pretend=True)), datetime.now(UTC))
    until = int(time.time()) + 3600
    assert (await ask(client, "POST", "/balance", {**GOOD_BALANCE, "disabled": str(until)}))[0] == 200
    for stored in (until, str(until), float(until)):  # the last two as the releases may have stored it
        db.balance.update_one({}, {"$set": {"disabled": stored}})
        balance_once(service, datetime.now(UTC))
        assert {queue["threads"] for queue in db.queues.find()} == {0}
        message = (await ask(client, "GET", "/balance"))[1]["message"]
        assert message.startswith("QueueBalance disabled until 20")
    balance_once(service, datetime.now(UTC) + timedelta(hours=2))
    assert {queue["threads"] for queue in db.queues.find()} == {2, 3}


@pytest.mark.parametrize(
    ("document", "status"),
    [
        ({"max_tasks": {}, "queues": []}, "WARNING"),
        ({"max_tasks": {"* 07:00": 5}, "queues": [["gone"], ["demo"]]}, "WARNING"),
        ({"max_tasks": {"x": 5}, "queues": []}, "CRITICAL"),
        ({"queues": []}, "CRITICAL"),
        ({"max_tasks": {}, "queues": [], "disabled": 1e300}, "CRITICAL"),
        ({"max_tasks": {"* 07:00": 5}, "queues": "demo"}, "WARNING"),
    ],
)
async def test_monitoring_tells_whether_limits_are_balanced(
    client: Client, db: Database, document: dict[str, Any], status: str
) -> None:
    balancing = client_of(db, balance=True)

    async def verdict() -> Any:
        return (await ask(balancing, "GET", "/monitoring"))[1]["queuebalance"]

    assert await verdict() == {"status": "WARNING", "message": "balance document not found"}
    db.balance.insert_one(document)
    assert (await verdict())["status"] == "CRITICAL", "it has never run"
    balance_once(Service(db, InterfaceSettings(balance=True)), datetime.now(UTC))
    assert (await verdict())["status"] == status
    db.balance.update_one({}, {"$set": {"timestamp": int(time.time()) - 100}})
    assert (await verdict())["message"].startswith("queuebalanced not running for 10")


async def test_monitoring_tells_whether_nodes_are_alive(client: Client, db: Database) -> None:
    async def verdict() -> Any:
        return (await ask(client, "GET", "/monitoring"))[1]["disbatch"]

    db.nodes.update_one({}, {"$set": {"timestamp": datetime.now(UTC)}})
    good = await verdict()
    assert (good["status"], list(good["nodes"])) == ("OK", ["fresh"])
    db.nodes.update_one({}, {"$set": {"timestamp": NOW - timedelta(hours=2)}})
    bad = await verdict()
    assert bad["status"] == "CRITICAL"
    assert bad["nodes"]["stale"]["host.example"] >= 3600
    db.nodes.delete_many({})
    assert (await verdict())["status"] == "WARNING"
    off = client_of(db, monitoring=False)
    assert (await ask(off, "GET", "/monitoring"))[1]["disbatch"] == {
        "status": "OK",
        "message": "monitoring disabled",
    }


async def test_a_cancel_and_a_claim_at_the_same_moment_are_both_seen(client: Client, db: Database) -> None:
    """Nobody gets a cancelled task, and a claimed one has the wish."""
    ids = [ObjectId() for _ in range(20)]
    db.tasks.insert_many([{"_id": id_, "queue": SLOW, "status": -2, "node": None} for id_ in ids])

    def claim_all() -> None:
        free = {"queue": SLOW, "status": -2, "node": None}
        for id_ in ids:
            db.tasks.find_one_and_update({**free, "_id": id_}, {"$set": {"node": "h", "status": -1}})

    claims = asyncio.get_running_loop().run_in_executor(None, claim_all)
    replies = await asyncio.gather(*[ask(client, "DELETE", f"/tasks/{id_}") for id_ in reversed(ids)])
    await claims

    assert {status for status, _ in replies} == {200}
    for task in db.tasks.find({"queue": SLOW}):
        assert (task["status"], task["node"], task.get("wish")) in {(-5, None, None), (-1, "h", "cancel")}
