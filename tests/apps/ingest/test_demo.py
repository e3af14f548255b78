"""``make demo``, as a process of its own with a small source; and the look afterwards, at something to be found."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from demos import run_demo
from examples.ingest import promise_checks
from examples.ingest.__main__ import main
from long_tests import long_alone
from reports.mail_server import Behaviour, mail_server
from spinney.apps.ingest.config import settings
from spinney.apps.ingest.inventory import open_inventory
from spinney.model.jobs import Attempt
from spinney.model.outcomes import Outcome
from spinney.model.values import paths
from spinney.store.sql import open_store

from .storage.judge import at_rest

OBJECTS = 5


class Played(NamedTuple):
    """A demo that has been run."""

    out: Path
    done: "subprocess.CompletedProcess[str]"
    mails: Behaviour


def play(place: Path, source: Path, **more: str) -> "subprocess.CompletedProcess[str]":
    return run_demo("ingest", place, SOURCE=str(source), OUT=str(place / "demo-out"), **more)


def played(place: Path) -> Played:
    """Of a source with names that a manifest, a URL or a file system might stumble over."""
    source = place / "source"
    for name in ("letters", "scans %0A", "line\nbreak", "pipe | semi; colon"):
        (source / name / "deep").mkdir(parents=True)
        (source / name / "deep" / "page 1?#.txt").write_text(name * 1000)
        (source / name / "ünï\ncode").write_text(name)
    (source / "letters" / "nothing").mkdir()
    (source / "single.py").write_text("one")
    (source / "outside").symlink_to("/etc/passwd")
    (source / os.fsdecode(b"caf\xe9")).write_text("noir")
    (place / "spinney.toml").write_text(
        "[node]\nslots = 1\n"
    )  # each costs a worker, which has much to import
    mails = Behaviour()
    with mail_server(mails) as port:
        done = play(place, source, SMTP=f"127.0.0.1:{port}")
    return Played(place / "demo-out", done, mails)


@contextmanager
def other(path: Path, content: bytes) -> Iterator[None]:
    """For a while the file has this content."""
    before = path.read_bytes()
    path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(before)


@pytest.mark.timeout(300)
def test_the_demo_and_the_look_afterwards(tmp_path: Path) -> None:
    """One test, for it is played once."""
    # When the demo is played
    demo = played(tmp_path)

    # Then it shows a failure, mends it and shows the update
    output = demo.done.stdout
    assert demo.done.returncode == 0, output + demo.done.stderr
    first, second = output.partition("The byte is corrected, and 1 failed object requeued")[::2]
    assert f"1 failed ({OBJECTS} objects)" in first
    assert "failed at downloading, last successful stage provisioning" in first
    assert f"update 1: completed ({OBJECTS} objects)" in second
    assert "mended: " in second
    assert "FAULT" not in output
    assert "no recorded stage ran again unasked" in output
    for word in ("is a link", "is empty", "caf"):
        assert any("left out" in line and word in line for line in output.splitlines()), word

    # And its mail server has got both reports
    first_mail, update = (message.mail for message in demo.mails.received)
    assert first_mail["Subject"].endswith(f"1 failed ({OBJECTS} objects)")
    assert update["Subject"].endswith(f"update 1: completed ({OBJECTS} objects)")
    assert update["In-Reply-To"].strip() == first_mail["Message-ID"]
    assert [part.get_filename() for part in update.iter_attachments()] == ["completed.json", "failed.json"]

    # And every path that it tells is there, and ocfl-py finds nothing wrong with the archive
    told_paths = re.findall(rf"^  [a-z ]+?  +({re.escape(str(demo.out))}/\S+)$", output, flags=re.M)
    assert len(told_paths) == 6
    assert [path for path in told_paths if not Path(path).exists()] == []
    assert at_rest(demo.out / "archive")

    # And the look afterwards finds what is wrong, now that something is
    assert_that_looking_finds_faults(demo)


def assert_that_looking_finds_faults(played: Played) -> None:
    service = settings.load({settings.VARIABLE: str(played.out / "ingest.toml")})
    folders = played.out / "spinney.folders"
    with closing(open_store(f"sqlite:///{played.out / 'spinney.db'}")) as store:

        def faults() -> tuple[str, ...]:
            return promise_checks.check(store, 1, service, folders).faults

        assert faults() == ()
        # When a byte of the archive changes, then it says where
        stored = next(path for path in (played.out / "archive").glob("**/content/*") if path.stat().st_size)
        with other(stored, b"?" + stored.read_bytes()[1:]):
            demo_faults = faults()
        assert demo_faults
        assert [fault for fault in demo_faults if stored.name not in fault] == []
        # When an object is gone, then it says so once
        gone = stored.parents[2]
        gone.rename(gone.with_name("away"))
        (fault,) = faults()
        assert "no object" in fault
        gone.with_name("away").rename(gone)
        # When something lies in the working folder of a completed object, then it says so
        left = folders / paths.job_folder(store.children(1)[0].id) / "payload"
        left.mkdir()
        (fault,) = faults()
        assert fault.endswith(f"is completed, and left {left}")
        left.rmdir()
        # When the inventory has forgotten its objects, then it says so of each
        with other(played.out / "home" / "inventory.db", b""):
            with open_inventory(service.inventory) as inventory:
                inventory.init()
            assert sum("not in the inventory" in fault for fault in faults()) == OBJECTS


def attempt(fence: int, stage: str, outcome: Outcome | None, at_us: int) -> Attempt:
    return Attempt(
        job_id=1,
        fence=fence,
        stage=stage,
        attempt=1,
        outcome=outcome,
        node="n",
        started_us=at_us,
        ended_us=at_us + 5,
    )


@pytest.mark.parametrize(
    ("second", "request_times", "stages"),
    [
        (attempt(2, "read", Outcome.OK, 20), [], ["read"]),
        (attempt(2, "read", Outcome.LOST, 20), [], ["read"]),
        (attempt(2, "read", None, 20), [14, 21], ["read"]),
        (attempt(2, "read", Outcome.OK, 20), [16], []),
        (attempt(2, "tell", Outcome.OK, 20), [], []),
    ],
    ids=["passed twice", "begun again", "asked before and after", "asked for", "another stage"],
)
def test_what_counts_as_run_twice(second: Attempt, request_times: list[int], stages: list[str]) -> None:
    lost, first = attempt(0, "read", Outcome.LOST, 0), attempt(1, "read", Outcome.OK, 10)
    assert promise_checks.ran_twice([second, first, lost], request_times) == stages


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"SOURCE": "/nowhere"}, "is no folder"),
        ({"OUT": "source"}, "within each other"),
        ({"OUT": "taken"}, "not made by an earlier demo"),
        ({"OUT": "service"}, "not made by an earlier demo"),
        ({"SMTP": "mail"}, "names no mail server"),
        ({"SOURCE": "taken"}, "has no file that can be deposited"),
        ({"SOURCE": "hollow"}, "none can be damaged"),
    ],
)
def test_the_demo_refuses_what_it_cannot_do_or_must_not_touch(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    more: dict[str, str],
    message: str,
) -> None:
    # Given a source, two folders of somebody else's, one with the settings of a service, and a source of one empty file
    for name, file in (("source", "a"), ("taken", None), ("service", settings.FILE), ("hollow", "b")):
        (tmp_path / name).mkdir()
        if file is not None:
            (tmp_path / name / file).write_bytes(b"" if name == "hollow" else b"1")
    monkeypatch.chdir(tmp_path)
    for name in ("SOURCE", "OUT", "SMTP", "CRASH"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"SOURCE": "source", "OUT": "out"} | more).items():
        monkeypatch.setenv(name, value)

    # When it is played, then it says why not, in one sentence, and nothing of anybody's is gone
    assert main() == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1
    assert [path.name for path in (tmp_path / "source").iterdir()] == ["a"]
    assert (tmp_path / "service" / settings.FILE).read_bytes() == b"1"


@long_alone
def test_the_demo_survives_the_death_of_its_node(tmp_path: Path) -> None:
    source = tmp_path / "many"
    for n in range(100):
        (source / f"o{n}").mkdir(parents=True)
        (source / f"o{n}" / "file").write_bytes(bytes([n]) * 30_000)

    done = play(tmp_path, source, CRASH="1")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "CRASH: killed" in done.stdout
    assert "completed         100" in done.stdout
    assert "FAULT" not in done.stdout
