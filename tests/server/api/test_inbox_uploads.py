"""Uploads to inboxes over HTTP: in pieces, interrupted, repeated."""

import hashlib
from typing import Any

import pytest

from contract.words import kind, stage
from http_listener import Listening
from spinney.client import Client
from spinney.client.errors import ServerUnavailable
from spinney.features.inboxes.commands import PutInbox
from spinney.folders import folders
from spinney.model.access import AccessScope, Rights, Role
from spinney.model.errors import Refused
from spinney.web.settings import ServerSettings

from ..conftest import World, unserved

BYTES = b"0123456789" * 1000


@pytest.fixture
def settings() -> ServerSettings:
    return ServerSettings(upload_max_bytes=20_000)


@pytest.fixture
def uploads(world: World) -> str:
    world.control("ann").do(PutInbox(name="in", folder="/srv/in", type="one"))
    return "/api/v1/inboxes/in/uploads"


def begin(world: World, uploads: str, **fields: Any) -> Any:
    file = {"name": "a.zip", "size": len(BYTES)} | fields
    return world.client("submitter").post(uploads, json=file)


def test_an_upload_in_pieces_has_its_job_at_the_end(world: World, uploads: str) -> None:
    client = world.client("submitter")
    upload = begin(world, uploads).json()
    assert (upload["received"], upload["job_id"]) == (0, None)
    own = f"{uploads}/{upload['id']}"

    halfway = client.put(own, params={"offset": 0}, content=BYTES[:6000])
    assert halfway.json()["received"] == client.get(own).json()["received"] == 6000
    assert begin(world, uploads).json()["id"] == upload["id"]
    wrong = client.put(own, params={"offset": 0}, content=BYTES)
    assert (wrong.status_code, "6000 bytes" in wrong.text) == (409, True)
    body = client.put(own, params={"offset": 6000}, content=BYTES[6000:]).json()

    job = world.store.job(body["job_id"])
    assert job.submitter == "submitter"
    assert (folders.path(world.folders, job.id) / "a.zip").read_bytes() == BYTES
    assert client.put(own, params={"offset": len(BYTES)}, content=b"").json() == body
    again = begin(world, uploads, announced=hashlib.sha256(BYTES).hexdigest())
    assert again.status_code == 409
    assert f"became job {job.id}" in again.json()["detail"]


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"size": 20_001}, 422),
        ({"size": -1}, 422),
        ({"name": "a/b"}, 422),
        ({"announced": "no digest"}, 422),
        ({"by": "admin"}, 422),
    ],
)
def test_what_cannot_be_uploaded_is_refused(
    world: World, uploads: str, fields: dict[str, Any], status: int
) -> None:
    assert begin(world, uploads, **fields).status_code == status


def test_a_request_that_breaks_off_leaves_what_came(tmp_path: Any) -> None:
    with unserved(tmp_path) as world:
        world.control("ann").do(PutInbox(name="in", folder="/srv/in", type="one"))
        server = Listening(world.app, ServerSettings())
        with Client(server.url) as client:
            client._http.headers["X-Asker"] = "submitter"
            upload = client.begin_upload("in", "a.zip", len(BYTES))

            def broken() -> Any:
                yield BYTES[:3000]
                raise RuntimeError

            with pytest.raises(RuntimeError):
                client._http.put(
                    f"/api/v1/inboxes/in/uploads/{upload.id}", params={"offset": 0}, content=broken()
                )
            (tmp_path / "a.zip").write_bytes(BYTES)
            seen = list(client.send_file("in", tmp_path / "a.zip"))
            with pytest.raises(Refused, match=f"became job {seen[-1].job_id}"):
                list(client.send_file("in", tmp_path / "a.zip", name="b.zip"))
        server.end()
        with pytest.raises(ServerUnavailable), Client(server.url) as client:
            list(client.send_file("in", tmp_path / "a.zip"))
        job = seen[-1].job_id
        assert (folders.path(world.folders, job or 0) / "a.zip").read_bytes() == BYTES


BEYOND_LIMITS = {
    "the collection": {"options": {"collection": "foreign"}},
    "a queue": {"options": {"queue": "slow"}},
    "the queue of its type": {"type": "elsewhere"},
}


@pytest.mark.parametrize("fields", BEYOND_LIMITS.values(), ids=BEYOND_LIMITS)
def test_an_inbox_beyond_the_limits_of_a_user_does_not_exist(world: World, fields: dict[str, Any]) -> None:
    within = AccessScope(collections=("lab",), queues=("default",))
    world.rights["gulls"] = Rights(role=Role.SUBMITTER, within=within)
    world.site.knows(kind("elsewhere", stage("work", queue="slow")))
    world.control("ann").do(PutInbox(**{"name": "in", "folder": "/srv/in", "type": "one"} | fields))
    client = world.client("gulls")

    for name in ("in", "missing"):
        answer = client.post(f"/api/v1/inboxes/{name}/uploads", json={"name": "a.zip", "size": 1})
        page = client.get(f"/inboxes/{name}/upload", headers={"Accept": "text/html"})
        assert (answer.status_code, page.status_code) == (404, 404)
        assert f"there is no inbox '{name}'" in answer.json()["detail"]


def test_a_limited_user_uploads_to_an_inbox_without_a_collection(world: World, uploads: str) -> None:
    client = world.client("limited")
    upload = client.post(uploads, json={"name": "a.zip", "size": len(BYTES)}).json()
    answer = client.put(f"{uploads}/{upload['id']}", params={"offset": 0}, content=BYTES)

    assert world.store.job(answer.json()["job_id"]).collection == "lab"
