"""Files of jobs: listed, read in parts, followed, uploaded; and nothing beyond their folders."""

import asyncio
import contextlib
import os
import shutil
import threading
from typing import Any
from unittest import mock

import pytest

from deep_folders import deep_folder
from spinney.files.paths import DEPTH_MAX
from spinney.folders import folders
from spinney.folders.folders import OWN, TOKEN
from spinney.model.jobs import Lease
from spinney.web.files.responses import Unsatisfiable, requested
from spinney.web.store_pool import LONG_THREADS

from ..conftest import World

TEXT = b"0123456789" * 100


@pytest.fixture
def job(world: World) -> int:
    job_id = world.submit("double", {"n": 1, "pin": "open sesame"}, submitter="submitter")
    (world.folder(job_id) / "sub").mkdir()
    (world.folder(job_id) / "sub" / "a b.txt").write_bytes(TEXT)
    return job_id


def running(world: World, job: int, output: bytes) -> Lease:
    lease = world.site.run(job)
    own = world.folder(job) / OWN
    own.mkdir()
    (own / f"{lease.stage}.{lease.fence}.stdout").write_bytes(output)
    return lease


def test_files_are_listed_and_read(world: World, job: int) -> None:
    client = world.client("viewer")

    listed = client.get(f"/api/v1/jobs/{job}/files").json()
    answer = client.get(f"/api/v1/jobs/{job}/files/sub/a%20b.txt")

    assert listed == {
        "items": [{"path": "sub/a b.txt", "kind": "file", "size": 1000}],
        "more": False,
        "next": None,
    }
    assert answer.content == TEXT
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith('attachment; filename="a b.txt"')
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_files_in_folders_of_many_levels_are_listed(world: World, job: int) -> None:
    with deep_folder(world.folder(job), DEPTH_MAX):
        items = world.client("viewer").get(f"/api/v1/jobs/{job}/files").json()["items"]

    assert [item["path"] for item in items] == ["a/" * DEPTH_MAX + "file", "sub/a b.txt"]


def test_a_folder_that_lies_too_deep_is_listed_itself(world: World, job: int) -> None:
    """Given more levels than are listed, then the first folder beyond them stands for all that is in it."""
    with deep_folder(world.folder(job), DEPTH_MAX + 2):
        items = world.client("viewer").get(f"/api/v1/jobs/{job}/files").json()["items"]

    assert [(item["path"], item["kind"]) for item in items] == [
        ("a/" * DEPTH_MAX + "a", "folder"),
        ("sub/a b.txt", "file"),
    ]


@pytest.mark.parametrize(
    ("wanted", "status", "content"),
    [
        ("bytes=0-9", 206, TEXT[:10]),
        ("bytes=995-", 206, TEXT[995:]),
        ("bytes=-3", 206, TEXT[-3:]),
        ("bytes=990-99999", 206, TEXT[990:]),
        ("bytes=1000-", 416, None),
        ("bytes=-0", 416, None),
        ("bytes=5-2", 200, TEXT),
        ("bytes=0-1,4-5", 200, TEXT),
        ("lines=0-1", 200, TEXT),
    ],
)
def test_parts_are_given_as_asked_for(
    world: World, job: int, wanted: str, status: int, content: bytes | None
) -> None:
    answer = world.client("viewer").get(f"/api/v1/jobs/{job}/files/sub/a b.txt", headers={"Range": wanted})

    assert answer.status_code == status
    if content is None:
        assert answer.headers["content-range"] == "bytes */1000"
    else:
        assert answer.content == content
        assert int(answer.headers["content-length"]) == len(content)


def test_what_is_known_is_not_sent_again(world: World, job: int) -> None:
    path = f"/api/v1/jobs/{job}/files/sub/a b.txt"
    tag = world.client("viewer").get(path).headers["etag"]

    assert world.client("viewer").get(path, headers={"If-None-Match": tag}).status_code == 304
    changed = {"Range": "bytes=0-1", "If-Range": '"other"'}
    assert world.client("viewer").get(path, headers=changed).status_code == 200
    same = {"Range": "bytes=0-1", "If-Range": tag}
    assert world.client("viewer").get(path, headers=same).status_code == 206


@pytest.mark.parametrize(
    "path",
    [
        "../../../../.spinney-token",
        "%2e%2e/%2e%2e",
        "sub%2f..%2fsub/a b.txt",
        "link",
        "sub",
        "pipe",
        "none",
        "a%00b",
    ],
)
def test_paths_lead_nowhere_else(world: World, job: int, path: str) -> None:
    folder = world.folder(job)
    (folder / "link").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe")

    for method in ("GET", "PUT"):
        if method == "PUT" and path in ("link", "pipe", "none"):
            continue
        answer = world.client("operator").request(method, f"/api/v1/jobs/{job}/files/{path}", content=b"x")
        assert answer.status_code in (400, 404, 405, 409, 422), (method, answer.text)
        assert b"root:" not in answer.content


def test_an_upload_replaces_a_link_and_does_not_follow_it(world: World, job: int, tmp_path: Any) -> None:
    outside = tmp_path / "outside"
    outside.write_text("safe")
    (world.folder(job) / "link").symlink_to(outside)
    (world.folder(job) / "away").symlink_to(tmp_path)

    replaced = world.client("operator").put(f"/api/v1/jobs/{job}/files/link", content=b"new")
    beyond = world.client("operator").put(f"/api/v1/jobs/{job}/files/away/x", content=b"new")

    assert (replaced.status_code, beyond.status_code) == (201, 409)
    assert outside.read_text() == "safe"
    assert not (tmp_path / "x").exists()
    assert (world.folder(job) / "link").read_bytes() == b"new"


def test_uploads_are_for_operators_and_who_submitted_the_job(world: World, job: int) -> None:
    others = world.submit("one", submitter="somebody")

    mine = world.client("submitter").put(f"/api/v1/jobs/{job}/files/new/x.bin", content=TEXT)
    not_mine = world.client("submitter").put(f"/api/v1/jobs/{others}/files/x.bin", content=TEXT)

    assert mine.json() == {"path": "new/x.bin", "size": 1000}
    assert (world.folder(job) / "new" / "x.bin").read_bytes() == TEXT
    assert not_mine.status_code == 403


def test_no_upload_makes_others_wait_for_a_disk(
    world: World, job: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sync of a large file takes seconds, and a disk that does not answer takes until it does."""
    calls, in_event_loop = set[str](), list[str]()

    def watched(module: Any, name: str) -> None:
        real = getattr(module, name)

        def call(*args: Any, **options: Any) -> Any:
            calls.add(name)
            with contextlib.suppress(RuntimeError):
                asyncio.get_running_loop()
                in_event_loop.append(name)
            return real(*args, **options)

        monkeypatch.setattr(module, name, call)

    for module, name in ((os, "fsync"), (os, "mkdir"), (os, "rename"), (shutil, "rmtree")):
        watched(module, name)
    path = f"/api/v1/jobs/{job}/files/new"
    assert world.client().put(path, content=b"x" * 100_000).status_code == 201
    form = {"job": (None, '{"type": "one"}', "application/json"), "file": ("a", b"text")}
    assert world.client().post("/api/v1/jobs", files=form).status_code == 201
    assert calls == {"fsync", "mkdir", "rename", "rmtree"}
    assert in_event_loop == []


def test_threads_that_wait_for_a_disk_keep_no_request_waiting(world: World) -> None:
    answers = threading.Event()

    async def work() -> None:
        waiting = [asyncio.ensure_future(asyncio.to_thread(answers.wait)) for _ in range(100)]
        try:
            await asyncio.wait_for(asyncio.to_thread(int), 30)
        finally:
            answers.set()
        await asyncio.gather(*waiting)

    world.portal.call(work)


def test_a_folder_root_that_does_not_answer_stops_uploads_alone(world: World, job: int) -> None:
    token, kept, silent = (world.folders / name for name in (TOKEN, "kept", "silent"))
    token.rename(kept)
    os.mkfifo(silent)
    token.hardlink_to(silent)  # who reads it waits, as for a share whose file server is away
    path, others = f"/api/v1/jobs/{job}/files/new", list[int]()
    uploads = [
        threading.Thread(target=lambda: world.client().put(path, content=b"x"))
        for _ in range(world.app.state.settings.threads + 1)
    ]
    other = threading.Thread(
        target=lambda: others.append(world.client().get("/api/v1/jobs").status_code), daemon=True
    )
    for thread in (*uploads, other):
        thread.start()
    other.join(20)
    answered = list(others)
    kept.rename(token)
    while any(thread.is_alive() for thread in uploads):
        with contextlib.suppress(OSError):  # nobody reads it just now
            os.close(os.open(silent, os.O_WRONLY | os.O_NONBLOCK))
        uploads[0].join(0.01)
    silent.unlink()
    assert answered == [200]


def test_a_folder_root_that_does_not_answer_stops_no_verb_but_deletion(world: World, job: int) -> None:
    answers, others = threading.Event(), list[int]()
    settled = [world.submit("one", {}) for _ in range(LONG_THREADS)]
    for settled_job in settled:
        world.site.cancel(settled_job)
    deletions = [
        threading.Thread(target=lambda job=job: world.client().delete(f"/api/v1/jobs/{job}"))
        for job in settled
    ]
    body = {"verb": "cancel", "ids": [job]}
    other = threading.Thread(
        target=lambda: others.append(world.client().post("/api/v1/jobs/verbs", json=body).status_code),
        daemon=True,
    )
    both = threading.Barrier(LONG_THREADS + 1)
    with mock.patch.object(
        folders, "require_marked", side_effect=lambda root: (both.wait(20), answers.wait())
    ):
        for thread in deletions:
            thread.start()
        both.wait(20)
        other.start()
        other.join(20)
        answered = list(others)
        answers.set()
        for thread in deletions:
            thread.join()
    assert answered == [200]


def test_a_job_at_work_gets_no_files(world: World, job: int) -> None:
    world.site.run(job)

    assert world.client("operator").put(f"/api/v1/jobs/{job}/files/x", content=b"x").status_code == 409


def test_output_is_read_in_parts_with_its_secrets_hidden(world: World, job: int) -> None:
    lease = running(world, job, b"the word is open sesame, as always\n")
    path = f"/api/v1/jobs/{job}/attempts/{lease.fence}"

    whole = world.client("viewer").get(f"{path}/stdout")
    part = world.client("viewer").get(f"{path}/stdout", headers={"Range": "bytes=14-20"})

    assert whole.headers["content-type"].startswith("text/plain")
    assert "sesame" not in whole.text
    assert whole.text.startswith("the word is ")
    assert b"en ses" not in part.content
    assert world.client("viewer").get(f"{path}/stderr").text == ""
    assert world.client("viewer").get(f"/api/v1/jobs/{job}/attempts/999/stdout").status_code == 404
    raw = world.client("viewer").get(f"/api/v1/jobs/{job}/files/{OWN}/{lease.stage}.{lease.fence}.stdout")
    assert "sesame" not in raw.text


def test_a_secret_that_is_written_in_two_pieces_is_hidden_in_parts_that_are_read_meanwhile(
    world: World, job: int
) -> None:
    lease = running(world, job, b"the word is open ses")
    path = f"/api/v1/jobs/{job}/attempts/{lease.fence}/stdout"

    begun = world.client("viewer").get(path)
    assert begun.text == "the word is "
    with (world.folder(job) / OWN / f"{lease.stage}.{lease.fence}.stdout").open("ab") as out:
        out.write(b"ame")
    world.site.pass_(lease)
    rest = world.client("viewer").get(path, headers={"Range": f"bytes={len(begun.content)}-"})

    assert begun.text + rest.text == "the word is " + "*" * len("open sesame")


def test_output_that_is_followed_has_a_beginning_of_a_secret_when_the_attempt_has_ended(
    world: World, job: int
) -> None:
    lease = running(world, job, b"the word is open ses")
    world.site.pass_(lease)

    url = f"/api/v1/jobs/{job}/attempts/{lease.fence}/stdout?follow=true"

    assert world.client("viewer").get(url).text == "the word is open ses"


def test_the_parameters_of_a_program_are_not_to_be_had(world: World, job: int) -> None:
    (world.folder(job) / OWN).mkdir()
    (world.folder(job) / OWN / "double.params.json").write_text('{"pin": "abc"}')

    answer = world.client("admin").get(f"/api/v1/jobs/{job}/files/{OWN}/double.params.json")

    assert answer.status_code == 409
    assert "abc" not in answer.text


def test_output_is_followed_until_the_attempt_has_ended(world: World, job: int) -> None:
    lease = running(world, job, b"first\n")
    file = world.folder(job) / OWN / f"{lease.stage}.{lease.fence}.stdout"

    def work() -> None:
        with file.open("ab") as out:
            out.write(b"last\n")
        world.site.pass_(lease)

    timer = threading.Timer(0.3, work)
    timer.start()
    answer = world.client("viewer").get(
        f"/api/v1/jobs/{job}/attempts/{lease.fence}/stdout", params={"follow": True}
    )
    timer.join()

    assert answer.text == "first\nlast\n"


def test_a_range_of_an_empty_file_cannot_be_given() -> None:
    with pytest.raises(Unsatisfiable):
        requested("bytes=0-", 0)
    assert requested(None, 0) is None


@pytest.mark.timeout(20)  # with backtracking it takes minutes, in which the server answers nobody
def test_a_range_with_many_blanks_does_not_occupy_the_server() -> None:
    assert requested(f"bytes=1-{' ' * 60_000}x", 10) is None
    assert requested(f"bytes = 1 - {' ' * 60_000}", 10) == range(1, 10)
