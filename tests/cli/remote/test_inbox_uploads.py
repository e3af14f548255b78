"""``spinney --server … inbox upload``: one job, though the server or the command is killed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli.shell import furnish
from small_disk import small_disk
from spinney.folders.upload_folder import UPLOADS
from waiting import until

from .conftest import Both, end

LONG = 96 << 20


@pytest.fixture
def idle(tmp_path: Path) -> Both:
    """An inbox ``in`` and a long file, without a node or a server."""
    both = Both(furnish(tmp_path))
    both.shell.ok("inbox", "add", "in", "/srv/in", "double", "-p", "n=1")
    with (both.shell.folder / "long.bin").open("wb") as file:
        file.truncate(LONG)
    return both


@contextmanager
def node(both: Both) -> Iterator[None]:
    process = both.shell.start("node", "jobs:app", "--name", "n1", "--slots", "2")
    yield
    until(lambda: both.shell.listed("nodes"))  # before that it would not end in order
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


def state(both: Both, job: str) -> str:
    return str(json.loads(both.shell.ok("show", job, "--json"))["job"]["state"])


def check(both: Both, job: str) -> None:
    """There is this one job, and it has the whole file."""
    (arrival,) = json.loads(both.shell.ok("inbox", "show", "in", "--json"))["arrivals"]
    assert arrival["job_id"] == int(job)
    (file,) = both.shell.listed("files", job)[:1]
    assert (file["path"], file["size"]) == ("long.bin", LONG)
    assert received(both) == []


def test_an_upload_goes_on_when_a_killed_server_is_back(idle: Both) -> None:
    server = idle.serve()
    upload = uploading(idle)
    until(lambda: any(received(idle)))
    kill(server)
    (came,) = received(idle)
    assert came < LONG
    with idle.listening():
        out, err = upload.communicate(timeout=120)
    assert upload.returncode == 0, err
    assert state(idle, out.strip()) == "pending"
    check(idle, out.strip())


def test_a_killed_command_goes_on_where_it_stopped(idle: Both) -> None:
    with idle.listening():
        upload = uploading(idle)
        until(lambda: any(received(idle)))
        kill(upload)
        (came,) = received(idle)
        assert 0 < came < LONG
        (place,) = (idle.shell.folder / "spinney.folders" / UPLOADS / "open").iterdir()
        with (place / "bytes").open("r+b") as file:  # marks what came, so that it shows if it comes again
            os.pwrite(file.fileno(), b"came", 0)
        assert "SHA-256" in idle.refused(1, "inbox", "upload", "in", "long.bin")
        job = idle.done("inbox", "upload", "in", "long.bin").strip()
        assert state(idle, job) == "pending"
        check(idle, job)
        assert "became job" in idle.refused(1, "inbox", "upload", "in", "long.bin")


def test_a_node_finishes_what_a_killed_uploader_has_left(idle: Both) -> None:
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
    with node(idle):
        until(lambda: state(idle, str(job["id"])) == "completed")
    check(idle, str(job["id"]))


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
