"""Who is let in, what a browser is shown, and the command that serves both."""

import base64
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest
from argon2 import PasswordHasher
from bson import ObjectId
from starlette.requests import Request
from typer.testing import CliRunner

from bridges.disbatch.interface_client import DEMO, client_of
from bridges.mongo import MongoServer
from cli.shell import Shell
from spinney.bridges.disbatch import database
from spinney.bridges.disbatch.database import Database, connect
from spinney.bridges.disbatch.interface import access, nodes
from spinney.bridges.disbatch.interface.access import read_token, read_users
from spinney.bridges.disbatch.interface.cli import app
from spinney.bridges.disbatch.interface.settings import InterfaceSettings
from spinney.bridges.disbatch.interface.wire import BadRequest
from spinney.errors import UsageError
from waiting import until

CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
"""Makes hashes that take no time."""
USERS = {"ann": CHEAP.hash("secret:1")}
TOKEN = "0123456789abcdef0123"
ARGON2 = "$argon2id$v=19$m=65536,t=3,p=4$"
"""How the hashes of passwords begin: argon2-cffi's own choice."""
QUEUE, TASK = ObjectId("5" * 24), ObjectId("a" * 24)


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is checked for a user that there is not takes no time, either."""
    monkeypatch.setattr(access, "_HASHER", CHEAP)


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        (basic("ann", "secret:1"), 200),
        (basic("ann", "wrong"), 401),
        (basic("ann", ""), 401),
        (basic("bob", "secret:1"), 401),
        ({"Authorization": "Basic ???"}, 401),
        ({"Authorization": "Basic /w=="}, 401),
        ({"Authorization": f"Bearer {TOKEN}"}, 200),
        ({"Authorization": b"Bearer \xc3\x9f"}, 401),
        ({"Authorization": "Bearer "}, 401),
    ],
)
@pytest.mark.usefixtures("cheap")
async def test_only_users_and_the_token_are_let_in(db: Database, headers: Any, status: int) -> None:
    client = client_of(db, host="disbatch.example", users=USERS, token=TOKEN, headers=headers)

    for path in ("/", "/nodes", "/static/spinney.css", "/nodes"):
        reply = await client.get(path)
        assert reply.status_code == status
    assert (reply.headers.get("www-authenticate", "").startswith('Basic realm="disbatch"')) == (status == 401)


async def test_with_a_token_alone_no_password_is_right(db: Database) -> None:
    client = client_of(db, host="disbatch.example", token=TOKEN, headers=basic("ann", "secret:1"))

    assert (await client.get("/nodes")).status_code == 401


def test_many_wrong_passwords_do_not_hold_up_other_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    # given as many checks as may wait, none of which ends
    ended, begun = Event(), Event()

    class Slow:
        def hash(self, password: str) -> str:
            return CHEAP.hash(password)

        def verify(self, password_hash: str, password: str) -> bool:
            begun.set()
            ended.wait()
            return CHEAP.verify(password_hash, password)

    monkeypatch.setattr(access, "_HASHER", Slow())
    monkeypatch.setattr(access, "_WAITING", 1)
    gate = access.Access(InterfaceSettings(users=USERS, token=TOKEN))

    def user(headers: dict[str, str]) -> str:
        raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        return gate.user(Request({"type": "http", "method": "GET", "headers": raw}))

    with ThreadPoolExecutor() as threads:
        first = threads.submit(user, basic("ann", "secret:1"))
        begun.wait()
        try:
            # when, then
            with pytest.raises(BadRequest, match="too many users sign in") as refused:
                user(basic("ann", "wrong"))
            assert refused.value.status == 429
            assert user({"Authorization": f"Bearer {TOKEN}"}) == "token"
        finally:
            ended.set()
        assert first.result() == "ann"
    with pytest.raises(BadRequest, match="sign in with a user"):
        user(basic("ann", "wrong"))


def test_a_node_does_without_the_libraries_that_serve_the_interface() -> None:
    loaded = "import sys, spinney.bridges.disbatch.cli as cli; print({'fastapi', 'argon2'} & {*sys.modules})"
    result = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)

    assert result.stdout == "set()\n"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "http://disbatch.example"}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
    ],
)
@pytest.mark.usefixtures("cheap")
async def test_pages_of_other_sites_change_nothing(db: Database, headers: Any, status: int) -> None:
    db.nodes.insert_one({"node": "h"})
    client = client_of(
        db, host="disbatch.example", users=USERS, headers={**basic("ann", "secret:1"), **headers}
    )

    reply = await client.post("/nodes/h", data={"maxthreads": "1"})

    assert reply.status_code == status
    assert db.nodes.count_documents({"maxthreads": 1}) == (status == 200)


@pytest.mark.parametrize(
    ("host", "status"), [("localhost:8080", 200), ("127.0.0.1", 200), ("evil.example", 403)]
)
async def test_without_users_only_names_of_this_machine_are_answered(
    db: Database, host: str, status: int
) -> None:
    assert (await client_of(db, host=host).get("/nodes")).status_code == status


async def test_a_host_that_is_no_address_is_refused(db: Database) -> None:
    assert (await client_of(db, headers={"Host": "["}).get("/nodes")).status_code == 403


async def test_what_cannot_be_stored_is_not_logged(db: Database, caplog: pytest.LogCaptureFixture) -> None:
    db.queues.insert_one({"_id": QUEUE, "name": "demo", "plugin": DEMO})
    params = {"password": "hidden", "long": "x" * (17 << 20)}
    reply = await client_of(db).post("/tasks", json={"queue": "demo", "params": params})

    assert reply.status_code in (400, 503)
    assert "hidden" not in caplog.text + reply.text
    assert db.tasks.count_documents({}) == 0


async def test_the_page_shows_and_changes(db: Database) -> None:
    db.queues.insert_one({"_id": QUEUE, "name": "<demo>", "plugin": DEMO, "threads": 3})
    db.tasks.insert_many(
        [{"_id": ObjectId(), "queue": QUEUE, "status": 1, "params": {"x": "<b>"}} for _ in range(60)]
    )
    db.tasks.insert_one({"_id": TASK, "queue": QUEUE, "status": 0, "node": "h", "params": {}})
    client = client_of(db)
    shown = await client.get("/?status=0")
    assert "script" not in shown.text.lower()
    assert "script-src" not in shown.headers["content-security-policy"]
    assert "default-src 'none'" in shown.headers["content-security-policy"]
    assert "&lt;demo&gt;" in shown.text
    assert "<demo>" not in shown.text
    assert re.findall(r'name="action" value="(\w+)"', shown.text) == ["cancel", "clone"]
    form = re.search(r'name="form" value="(\w+)"', shown.text)
    assert form is not None

    fields = {"form": form[1], "id": str(TASK), "action": "cancel", "f_status": "0"}
    for wrong in ({}, {"form": "0" * 64}):
        kept = {name: value for name, value in fields.items() if name != "form"}
        assert (await client.post("/page/task", data={**kept, **wrong})).status_code == 403
    response = await client.post("/page/task", data=fields)
    assert (response.status_code, response.headers["location"]) == (303, "/?status=0&done=cancel")
    assert "(cancelling)" in (await client.get(response.headers["location"])).text
    again = await client.post("/page/task", data={**fields, "action": "reset"})
    assert again.status_code == 400
    assert "a node has the task; cancel it first" in again.text

    limit = {"form": form[1], "id": str(QUEUE), "threads": "7"}
    assert (await client.post("/page/queue", data=limit)).status_code == 303
    assert (await client.post("/page/queue", data={**limit, "threads": "many"})).status_code == 400
    assert [queue["threads"] for queue in db.queues.find()] == [7]
    assert (await client.post("/page/queue", data={**limit, "threads": ""})).status_code == 303
    assert [queue["threads"] for queue in db.queues.find()] == [None]

    first = await client.get("/?queue=" + str(QUEUE))
    older = re.search(r'href="(/\?[^"]*before=[^"]*)"', first.text)
    assert older is not None
    assert first.text.count("data-row") == 1 + 50
    assert (await client.get(older[1].replace("&amp;", "&"))).text.count("data-row") == 1 + 11
    assert (await client.get("/?queue=other")).status_code == 400
    assert (await client.get("/static/spinney.css")).headers["content-type"].startswith("text/css")
    assert (await client.get("/static/..%2Fspinney.js")).status_code == 404


@pytest.mark.usefixtures("short_reach")
async def test_a_database_that_is_away_is_told_of_without_its_address(mongo_server: MongoServer) -> None:
    db = connect(mongo_server.url, "t", timeout_s=2)
    client = client_of(db)
    assert (await client.get("/queues")).status_code == 200
    mongo_server.stop_answering()
    try:
        reply = await client.get("/queues")
        assert (reply.status_code, reply.json()) == (
            503,
            {"error": "MongoDB does not answer in time; try again"},
        )
        monitoring = (await client.get("/monitoring")).json()["disbatch"]
        assert monitoring["status"] == "CRITICAL"
        assert str(mongo_server.port) not in monitoring["message"]
    finally:
        mongo_server.answer_again()
    assert (await client.get("/queues")).status_code == 200
    db.client.close()


@pytest.mark.timeout(120)
async def test_monitoring_answers_soon_while_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "REACH_S", 0.1)
    db = connect("mongodb://127.0.0.1:1", "t", timeout_s=3600)

    verdicts = (await client_of(db, balance=True).get("/monitoring")).json()

    assert {name: each["status"] for name, each in verdicts.items()} == {
        "disbatch": "CRITICAL",
        "queuebalance": "CRITICAL",
    }
    db.client.close()


@pytest.mark.timeout(120)
async def test_a_request_fails_soon_while_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "REACH_S", 0.1)
    db = connect("mongodb://127.0.0.1:1", "t", timeout_s=3600)

    for address in ("/", "/queues", "/nodes", "/tasks?queue=mail", "/balance"):
        assert (await client_of(db).get(address)).status_code == 503
    db.client.close()


def test_files_of_users_and_tokens_are_checked(tmp_path: Path) -> None:
    users, token = tmp_path / "users", tmp_path / "token"
    made = CliRunner().invoke(app, ["password", str(users), "ann"], input="one\none\n")
    assert made.exit_code == 0, made.output
    CliRunner().invoke(app, ["password", str(users), "bob"], input="two\ntwo\n")
    assert list(read_users(users)) == ["ann", "bob"]
    assert all(each.startswith(ARGON2) for each in read_users(users).values())
    assert users.stat().st_mode & 0o777 == 0o600

    users.chmod(0o644)
    with pytest.raises(UsageError, match="others may read"):
        read_users(users)
    users.write_text("ann:plain\n")
    users.chmod(0o600)
    with pytest.raises(UsageError, match="line 1 is no NAME:HASH"):
        read_users(users)
    token.write_text("short\n")
    token.chmod(0o600)
    with pytest.raises(UsageError, match="20 characters or more"):
        read_token(token)
    with pytest.raises(UsageError, match="cannot read"):
        read_token(tmp_path / "none")


def test_serve_refuses_to_let_everybody_in(mongo_server: MongoServer, tmp_path: Path) -> None:
    command = ["disbatch", "serve", "--mongo", mongo_server.url, "--database", "t", "--host", "0.0.0.0"]
    refused = Shell(tmp_path).call(*command)

    assert refused.returncode == 2
    assert "name --users or --token-file" in " ".join(refused.stderr.split())


def test_serve_answers_balances_and_ends_in_order(
    mongo_server: MongoServer, db: Database, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    (tmp_path / "disbatch.toml").write_text('[plugins]\n"A::B" = "b"\n')
    db.queues.insert_one({"name": "demo", "plugin": DEMO})
    db.balance.insert_one({"max_tasks": {"* 00:00": 6}, "queues": [["demo"]]})
    command = [
        *(sys.executable, "-m", "spinney", "disbatch", "serve"),
        "--database",
        db.name,
        "--port",
        "0",
        "--token-file",
        str(token),
        "--plugin",
        DEMO,
        "--balance",
    ]
    env = os.environ | {"DISBATCH_MONGO": mongo_server.url}
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, env=env, cwd=tmp_path, stderr=log)
    try:
        url = listening(tmp_path / "log", process)
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
            assert client.get("/plugins").json() == ["A::B", DEMO]
            assert client.post("/queues", data={"name": "new", "plugin": "A::B"}).status_code == 200
            until(lambda: client.get("/queues/demo").json()["threads"] == 6)
            assert httpx.get(f"{url}/queues").status_code == 401
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
    written = (tmp_path / "log").read_text()
    assert TOKEN not in written
    assert "limit of demo: None -> 6" in written


def listening(log: Path, process: "subprocess.Popen[bytes]") -> str:
    def address() -> "re.Match[str] | None":
        assert process.poll() is None, log.read_text()
        return re.search(r"running on (http://127\.0\.0\.1:\d+)", log.read_text())

    match = until(address, log.read_text)
    assert match is not None
    return match[1]
