"""Inboxes as pages."""

import json
import re
from base64 import urlsafe_b64decode
from typing import Any

import pytest

from server.conftest import World
from spinney.commands.control import Control
from spinney.features.inboxes.commands import PutInbox
from spinney.model.jobs import Filter
from spinney.model.settings.inboxes import Arrival, Drop, Kind
from spinney.web.pages.page_responses import FLASH_COOKIE

HTML = {"Accept": "text/html"}


@pytest.fixture
def uploads(world: World) -> str:
    params = {"n": 1, "pin": "s3cret"}
    control = Control(store=world.store, clock=lambda: world.site.now, wake_nodes=lambda: None, by="ann")
    control.do(PutInbox(name="uploads", folder="/srv/uploads", type="double", params=params))
    return "/inboxes/uploads"


def get(world: World, path: str, principal: str = "operator", status: int = 200) -> str:
    answer = world.client(principal).get(path, headers=HTML)
    assert answer.status_code == status, answer.text[:500]
    return str(answer.text)


def post(world: World, path: str, principal: str, status: int = 303, **form: str) -> Any:
    answer = world.client(principal).post(path, data=form, headers=HTML)
    assert answer.status_code == status, answer.text[:500]
    return answer


def arrive(world: World, name: str, sha256: str) -> Arrival:
    node = world.site.here.id
    world.store.inboxes.serve("uploads", node, now_us=world.site.now)
    drop = Drop(name=name, kind=Kind.FILE, size=5, identity="5:1", owner="bob", dropped_us=1, sha256=sha256)
    arrival = world.store.inboxes.arrive("uploads", drop, node, now_us=world.site.now)
    world.store.inboxes.finish(arrival.id, now_us=world.site.now)
    return arrival


def test_given_an_inbox_when_looked_at_then_what_was_dropped_and_why_something_was_rejected_is_there(
    world: World, uploads: str
) -> None:
    assert "none that works sees the folder" in get(world, "/inboxes")
    assert "Nothing dropped yet" in get(world, uploads)
    taken = arrive(world, "<b>a.zip", "aa")
    arrive(world, "again.zip", "aa")
    world.store.inboxes.report("uploads", world.site.here.id, "the disk is full")

    assert "the disk is full" in get(world, "/inboxes")
    text = get(world, uploads)
    assert f'href="/jobs/{taken.job_id}"' in text
    assert "&lt;b&gt;a.zip" in text
    assert "its bytes came before" in text
    assert "s3cret" not in text
    only = get(world, f"{uploads}?rejected=1")
    assert "again.zip" in only
    assert f'href="/jobs/{taken.job_id}"' not in only


def test_given_more_arrivals_than_a_page_then_the_older_ones_are_on_the_next(
    world: World, uploads: str
) -> None:
    for number in range(51):
        arrive(world, f"{number}.zip", str(number))
    text = get(world, uploads)
    assert ">0.zip<" not in text
    assert ">0.zip<" in get(world, f"{uploads}?after=2")
    assert "after=2" in text


def test_given_an_inbox_when_paused_scanned_and_resumed_then_it_is_by_those_who_may(
    world: World, uploads: str
) -> None:
    post(world, f"{uploads}/scan", "operator")
    assert world.store.inboxes.all()[0].scan_us is not None
    post(world, f"{uploads}/pause", "operator", 403)
    assert f"{uploads}/pause" not in get(world, uploads)
    post(world, f"{uploads}/pause", "admin", reason="moving")
    assert world.store.inboxes.all()[0].paused
    text = get(world, uploads, "admin")
    assert "<title>Inbox uploads · Spinney</title>" in text
    assert "<span>paused</span></span></h1>" in text
    assert "It takes nothing until it is resumed" in text
    post(world, f"{uploads}/resume", "admin")
    assert not world.store.inboxes.all()[0].paused
    post(world, f"{uploads}/burn", "admin", 404)


def test_who_may_not_look_at_inboxes_sees_none(world: World, uploads: str) -> None:
    for path in ("/inboxes", uploads):
        get(world, path, "viewer", 403)
    assert 'href="/inboxes"' not in get(world, "/jobs", "viewer")
    assert 'href="/inboxes"' in get(world, "/jobs")
    get(world, "/inboxes/nothing", status=404)


PART = HTML | {"HX-Request": "true", "X-CSRF-Token": "of-the-page"}


def send(world: World, who: str, *files: tuple[str, bytes], **headers: str) -> Any:
    return world.client(who).post(
        "/inboxes/uploads/upload",
        data={"csrf": ""},
        files=[("file", file) for file in files or [("", b"")]],
        headers=headers,
    )


def flash(answer: Any) -> str:
    """What the next page says."""
    match = re.search(rf'{FLASH_COOKIE}="?([\w=-]+)', answer.headers.get("set-cookie", ""))
    return json.loads(urlsafe_b64decode(match[1]))[1] if match else ""


@pytest.mark.parametrize("headers", [HTML, PART], ids=["without scripts", "with scripts"])
def test_given_files_when_uploaded_then_each_has_a_job_of_its_uploader(
    world: World, uploads: str, headers: dict[str, str]
) -> None:
    assert f"{uploads}/upload" in get(world, uploads)
    assert 'type="file"' in get(world, f"{uploads}/upload", "submitter")

    one = send(world, "submitter", ("a.zip", b"one"), **headers)
    two = send(world, "submitter", ("b.zip", b"two"), ("c.zip", b"three"), **headers)
    again = send(world, "submitter", ("d.zip", b"four"), ("e.zip", b"one"), **headers)

    arrivals = {a.name: a for a in world.store.inboxes.arrivals("uploads")}
    first = arrivals["a.zip"].job_id or 0
    assert (one.headers.get("location") or one.headers["HX-Redirect"]) == f"/jobs/{first}"
    assert (world.folder(first) / "a.zip").read_bytes() == b"one"
    assert world.store.job(first).submitter == "submitter"
    for answer, sentence in (
        (two, f"b.zip became job {arrivals['b.zip'].job_id}, c.zip became job {arrivals['c.zip'].job_id}"),
        (again, f"d.zip became job {arrivals['d.zip'].job_id}"),
        (again, f"became job {first}"),
    ):
        assert (answer.headers.get("location") or answer.headers["HX-Redirect"]) == f"{uploads}/upload"
        assert sentence in flash(answer)
    assert len(world.store.jobs(Filter(), limit=10)) == 4


@pytest.mark.parametrize(
    ("who", "file", "status", "message"),
    [
        ("viewer", ("a.zip", b"x"), 403, ""),
        ("submitter", ("", b""), 303, "no file was chosen"),
        ("submitter", ("-rf", b"x"), 303, "begins with '-'"),
        ("submitter", ("../a", b"x"), 303, "no path"),
    ],
)
def test_what_cannot_be_uploaded_makes_no_job(
    world: World, uploads: str, who: str, file: tuple[str, bytes], status: int, message: str
) -> None:
    answer = send(world, who, file, **HTML)
    assert answer.status_code == status
    assert message in flash(answer)
    assert not world.store.jobs(Filter(), limit=10)
