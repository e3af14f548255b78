"""Uploads while the disk of the folder root is really full: each is refused in one sentence, leaves nothing
half-written, and goes on or is repeated when there is room."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from small_disk import SmallDisk, small_disk
from spinney.client.errors import error_from_response
from spinney.features.inboxes.commands import PutInbox
from spinney.folders import folders
from spinney.model.errors import DiskFull
from spinney.model.jobs import Filter
from spinney.web.files.spool import SPOOL

from ..conftest import World, world_at

MB = 1 << 20
BYTES = bytes(range(256)) * (3 * MB // 256)
UPLOADS = "/api/v1/inboxes/in/uploads"
HTML = {"Accept": "text/html"}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "folders", 8) as made:
        yield made


@pytest.fixture
def world(tmp_path: Path, disk: SmallDisk) -> Iterator[World]:
    with world_at(tmp_path) as made:
        made.control("ann").do(PutInbox(name="in", folder="/srv/in", type="one"))
        yield made


def begin(world: World, status: int = 201, size: int = len(BYTES)) -> Any:
    answer = world.client("submitter").post(UPLOADS, json={"name": "a.zip", "size": size})
    assert answer.status_code == status, answer.text
    return answer.json()


def full(answer: Any, *words: str) -> str:
    """The sentence of a refusal, which has these words and says what to do."""
    assert answer.status_code == 507, answer.text
    problem = answer.json()
    assert (problem["type"], problem["title"]) == ("urn:spinney:problem:disk-full", "Insufficient storage")
    assert problem["next"].startswith("make room there"), problem
    assert isinstance(error_from_response(507, answer.content), DiskFull)
    for word in words:
        assert word in problem["detail"]
    return str(problem["detail"])


def spooled(world: World) -> list[Path]:
    return list((world.folders / SPOOL).glob("*/*"))


def test_an_upload_that_fills_the_disk_goes_on_when_there_is_room(world: World, disk: SmallDisk) -> None:
    client, own = world.client("submitter"), f"{UPLOADS}/{begin(world)['id']}"
    disk.fill(but=2 * MB)

    full(
        client.put(own, params={"offset": 0}, content=BYTES), str(disk.folder), "the bytes received are kept"
    )
    came = client.get(own).json()["received"]
    assert 0 < came < len(BYTES)
    full(client.put(own, params={"offset": came}, content=BYTES[came:]), "'a.zip' cannot continue now")
    full(world.client("submitter").post(UPLOADS, json={"name": "a.zip", "size": len(BYTES)}))

    disk.empty()
    assert begin(world)["received"] == came
    body = client.put(own, params={"offset": came}, content=BYTES[came:]).json()
    assert (folders.path(world.folders, body["job_id"]) / "a.zip").read_bytes() == BYTES


def test_an_upload_whose_last_step_has_no_room_is_finished_later(world: World, disk: SmallDisk) -> None:
    client, own = world.client("submitter"), f"{UPLOADS}/{begin(world)['id']}"
    disk.fill(but=len(BYTES))
    full(client.put(own, params={"offset": 0}, content=BYTES))
    assert client.get(own).json()["received"] == len(BYTES)
    assert not world.store.jobs(Filter(), limit=10)

    disk.empty()
    body = client.put(own, params={"offset": len(BYTES)}, content=b"").json()
    assert (folders.path(world.folders, body["job_id"]) / "a.zip").read_bytes() == BYTES


def test_a_file_for_which_there_is_no_room_is_refused_before_it_is_sent(
    world: World, disk: SmallDisk
) -> None:
    refused = world.client("submitter").post(UPLOADS, json={"name": "a.zip", "size": 9 * MB})
    full(refused, f"'a.zip' cannot be taken: {9 * MB:,} bytes are to come", str(disk.folder))


def test_a_withdrawn_upload_gives_its_room_back_to_a_full_disk(world: World, disk: SmallDisk) -> None:
    client, own = world.client("submitter"), f"{UPLOADS}/{begin(world)['id']}"
    disk.fill(but=2 * MB)
    full(client.put(own, params={"offset": 0}, content=BYTES))

    assert client.delete(own).status_code == 204
    assert client.get(own).status_code == 404
    assert begin(world, size=MB // 2)["received"] == 0


def test_a_file_of_a_job_is_refused_and_taken_when_there_is_room(world: World, disk: SmallDisk) -> None:
    job, client = world.submit(), world.client()
    own = f"/api/v1/jobs/{job}/files/a.bin"
    disk.fill(but=2 * MB)
    full(client.put(own, content=BYTES), "the files cannot be taken", str(disk.folder))
    assert spooled(world) == []
    disk.fill()
    full(client.put(own, content=b"x"), "the files cannot be taken")

    disk.empty()
    assert client.put(own, content=BYTES).status_code == 201
    assert (world.folder(job) / "a.bin").read_bytes() == BYTES


@pytest.mark.parametrize("but", [0, 2 * MB], ids=["before", "while it comes"])
def test_a_submission_with_files_makes_no_job_before_there_is_room(
    world: World, disk: SmallDisk, but: int
) -> None:
    sent: Any = {"job": (None, b'{"type": "one"}', "application/json"), "file": ("a.bin", BYTES)}
    disk.fill(but=but)
    full(world.client().post("/api/v1/jobs", files=sent), "the files cannot be taken")
    assert spooled(world) == []
    assert not world.store.jobs(Filter(), limit=10)

    disk.empty()
    job = world.client().post("/api/v1/jobs", files=sent).json()["id"]
    assert (world.folder(job) / "a.bin").read_bytes() == BYTES


@pytest.mark.parametrize("page", ["/submit", "/inboxes/in/upload"])
def test_the_pages_tell_it_too(world: World, disk: SmallDisk, page: str) -> None:
    client, fields = world.client("submitter"), {"csrf": "", "type": "one", "once": "k"}
    sent: Any = {"data": fields, "files": [("file", ("a.zip", BYTES))], "headers": HTML}
    disk.fill(but=2 * MB)

    led_back = client.post(page, **sent)
    assert (led_back.status_code, led_back.headers["location"]) == (303, page)
    assert "make room there" in client.get(page, headers=HTML).text
    disk.fill()
    if page == "/submit":
        page_text = client.post(page, **sent)
        assert (page_text.status_code, "make room there" in page_text.text) == (507, True)
    assert not world.store.jobs(Filter(), limit=10)


def test_a_full_disk_for_temporary_files_is_told_as_well(
    world: World, disk: SmallDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A form without the page's script is kept there while it comes."""
    monkeypatch.setattr(tempfile, "tempdir", str(disk.folder))
    disk.fill(but=2 * MB)
    fields = {"csrf": "", "type": "one", "once": "k"}
    response = world.client().post("/submit", data=fields, files=[("file", ("a.zip", BYTES))], headers=HTML)
    assert (response.status_code, "disk of the server is full" in response.text) == (507, True)
