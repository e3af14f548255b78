"""``spinney --server … inbox upload``: one job, though the server or the command is killed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli.shell import furnish
from small_disk import small_disk
from spinney.folders.upload_folder import UPLOADS

from .conftest import Both, end

Until = Callable[[Callable[[], object]], None]
LONG = 96 << 20


@pytest.fixture
def idle(tmp_path: Path) -> Both:
    """An inbox ``in`` and a long file, without a node or a server."""
    found = Both(furnish(tmp_path))
    found.shell.ok("inbox", "add", "in", "/srv/in", "double", "-p", "n=1")
    with (found.shell.folder / "long.bin").open("wb") as file:
        file.truncate(LONG)
    return found


@pytest.fixture
def working(idle: Both, until_true: Until) -> Iterator[Both]:
    """The same, with a node at work that runs what is uploaded."""
    with node(idle, until_true):
        yield idle


@contextmanager
def node(both: Both, until_true: Until) -> Iterator[None]:
    process = both.shell.start("node", "jobs:app", "--name", "n1", "--slots", "2")
    yield
    until_true(lambda: both.shell.listed("nodes"))  # before that it would not end in order
    end(process)


def uploading(both: Both) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "spinney", "--server", both.url, "inbox", "upload", "in", "long.bin"]
    return subprocess.Popen(
        command,
        cwd=both.shell.folder,
        env=both.shell.environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def received(both: Both) -> list[int]:
    """How much has come of each open upload."""
    root = both.shell.folder / "spinney.folders" / UPLOADS / "open"
    return [place.stat().st_size for place in root.glob("*/bytes")]


def kill(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def check(both: Both, job: str, until_true: Until) -> None:
    """There is this one job, it has run, and it has the whole file."""
    (arrival,) = json.loads(both.shell.ok("inbox", "show", "in", "--json"))["arrivals"]
    assert arrival["job_id"] == int(job)
    until_true(lambda: json.loads(both.shell.ok("show", job, "--json"))["job"]["state"] == "completed")
    (file,) = both.shell.listed("files", job)[:1]
    assert (file["path"], file["size"]) == ("long.bin", LONG)
    assert received(both) == []


def test_an_upload_goes_on_when_a_killed_server_is_back(working: Both, until_true: Until) -> None:
    server = working.serve()
    upload = uploading(working)
    until_true(lambda: any(received(working)))
    kill(server)
    (came,) = received(working)
    assert came < LONG
    server = working.serve()
    out, err = upload.communicate(timeout=120)
    assert upload.returncode == 0, err
    check(working, out.strip(), until_true)
    end(server)


def test_a_killed_command_goes_on_where_it_stopped(working: Both, until_true: Until) -> None:
    server = working.serve()
    upload = uploading(working)
    until_true(lambda: any(received(working)))
    kill(upload)
    (came,) = received(working)
    assert 0 < came < LONG
    (place,) = (working.shell.folder / "spinney.folders" / UPLOADS / "open").iterdir()
    with (place / "bytes").open("r+b") as file:  # marks what came, so that it shows if it comes again
        os.pwrite(file.fileno(), b"came", 0)
    assert "SHA-256" in working.refused(1, "inbox", "upload", "in", "long.bin")
    job = working.done("inbox", "upload", "in", "long.bin").strip()
    check(working, job, until_true)
    assert "became job" in working.refused(1, "inbox", "upload", "in", "long.bin")
    end(server)


def test_a_node_finishes_what_a_killed_uploader_has_left(idle: Both, until_true: Until) -> None:
    """Only the step in the store was done when it was killed."""
    place = idle.shell.folder
    dying = """
import os, signal
from pathlib import Path
from spinney.folders.upload_folder import OpenUpload
OpenUpload.place = lambda self, job_id: os.kill(os.getpid(), signal.SIGKILL)
from spinney.cli import main
main.run(["inbox", "upload", "in", "long.bin"])
"""
    killed = subprocess.run([sys.executable, "-c", dying], cwd=place, env=idle.shell.environment())
    assert killed.returncode == -signal.SIGKILL
    (job,) = idle.shell.listed("list")
    assert job["state"] == "held"
    with node(idle, until_true):
        check(idle, str(job["id"]), until_true)


def test_a_full_disk_ends_the_command_and_the_same_one_uploads_when_there_is_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "spinney.folders", 24) as disk:
        both = Both(furnish(tmp_path))
        both.shell.ok("inbox", "add", "in", "/srv/in", "double", "-p", "n=1")
        (tmp_path / "card.bin").write_bytes(os.urandom(12 << 20))
        with both.listening():
            disk.fill(but=10 << 20)
            refused = both.refused(1, "inbox", "upload", "in", "card.bin")
            assert f"{12 << 20:,} bytes are to come" in refused
            assert "make room there" in refused
            disk.empty()
            job = both.done("inbox", "upload", "in", "card.bin").strip()
        (file,) = both.shell.listed("files", job)[:1]
        assert (file["path"], file["size"]) == ("card.bin", 12 << 20)
