"""Real files, a real node: from submission to report, over failures and crashes."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import bagit
import pytest

from spinney.apps.ingest import inventory
from spinney.apps.ingest.application import app, batches
from spinney.apps.ingest.audit import audit
from spinney.control import Control
from spinney.model import places
from spinney.nudge import nudge_all
from spinney.stores.sql import open_store

PATIENCE_S = 60


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a store and a node that works for it."""
    monkeypatch.setenv("SPINNEY_STORE", f"sqlite:///{tmp_path}/spinney.db")
    monkeypatch.chdir(tmp_path)
    subprocess.run([sys.executable, "-m", "spinney", "init"], check=True, stdout=subprocess.DEVNULL)
    with (tmp_path / "node.log").open("w") as log:
        node = subprocess.Popen(
            [sys.executable, "-m", "spinney", "node", "spinney.apps.ingest:app", "--name", "n"], stdout=log, stderr=log
        )
    yield tmp_path
    app.close()
    node.terminate()
    assert node.wait(30) == 0, (tmp_path / "node.log").read_text()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "source"
    for name in ("letters", "scans %0A", "line\nbreak"):
        (root / name / "deep").mkdir(parents=True)
        (root / name / "deep" / "page 1.txt").write_text(name * 1000)
        (root / name / "ünï\ncode").write_text(name)
    (root / "single").write_text("one")
    (root / "outside").symlink_to("/etc/passwd")
    return root


def test_from_submission_to_report_and_its_update(place: Path, source: Path) -> None:
    bad = Path(os.fsdecode(bytes(source) + b"/letters/caf\xe9"))
    bad.write_text("noir")
    archive = place / "archive"

    batch = batches.submit(source=source, archive=archive)
    ended = app.wait(batch, PATIENCE_S)

    folder = place / "spinney.folders" / places.job_folder(batch)
    report = json.loads((folder / "report.json").read_text())
    assert ended.state == "failed"
    assert sorted(report["completed"]) == ["line\nbreak", "scans %0A", "single"]
    assert [f["name"] for f in report["failures"]] == ["letters"]
    assert "caf\\udce9" in report["failures"][0]["message"]

    bad.rename(source / "letters" / "cafe")
    with closing(open_store(app.settings.store)) as store:
        control = Control(
            store=store, clock=lambda: time.time_ns() // 1000, nudge=lambda: nudge_all(place / "spinney.db.run"),
            by="test",
        )  # fmt: skip
        control.retry(report["failures"][0]["job_id"])
        ended = app.wait(batch, PATIENCE_S)
        checked = audit(store, batch, archive, report["deposit"])

    update = json.loads((folder / "report.json").read_text())
    assert ended.state == "completed"
    assert (update["number"], update["changes"]["mended"], update["failures"]) == (2, ["letters"], [])
    assert (update["files"], update["skipped_entries"]) == (8, 1)
    # What runs again when a batch regrows is marked so; nothing else did.
    assert sorted(f.split()[3] for f in checked.faults) == ["notify", "report"]
    for name in ("letters", "line\nbreak", "single"):
        bagit.Bag(str(archive / report["deposit"] / name)).validate()
    assert len(inventory.entries(archive / inventory.FILE_NAME, report["deposit"])) == 4
    events = [json.loads(line)["event"] for line in (folder / "outbox.jsonl").read_text().splitlines()]
    assert sorted(events) == ["deposited"] * 4 + ["report"] * 2


def test_a_manifest_with_a_wrong_digest(place: Path, source: Path) -> None:
    file = {"url": (source / "single").as_uri()}
    lines = [
        {"object": "good", "files": [file | {"md5": "f97c5d29941bfb1b2fdab0874906ab82"}]},
        {"object": "bad", "files": [file | {"md5": "0" * 32}]},
    ]
    manifest = source / "manifest.jsonl"
    manifest.write_text("".join(json.dumps(line) + "\n" for line in lines))

    batch = batches.submit(manifest=manifest, archive=place / "archive")
    app.wait(batch, PATIENCE_S)

    report = json.loads((place / "spinney.folders" / places.job_folder(batch) / "report.json").read_text())
    assert report["completed"] == ["good"]
    assert report["digests_verified"] == 2
    assert "md5" in report["failures"][0]["message"]


def demo(tmp_path: Path, source: Path, **more: str) -> "subprocess.CompletedProcess[str]":
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SPINNEY_")}
    return subprocess.run(
        [sys.executable, "-m", "spinney.apps.ingest.demo"], cwd=tmp_path, capture_output=True, text=True, timeout=100,
        env=environment | {"SOURCE": str(source), "OUT": str(tmp_path / "demo-out")} | more, check=False,
    )  # fmt: skip


def test_the_demo_tells_what_it_made(tmp_path: Path, source: Path) -> None:
    done = demo(tmp_path, source)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Batch 1: complete" in done.stdout
    assert "no recorded stage ran twice, no digest is wrong" in done.stdout
    for path in (line.split()[-1] for line in done.stdout.splitlines() if str(tmp_path / "demo-out/") in line):
        assert Path(path).exists(), path


def test_the_demo_survives_the_death_of_its_node(tmp_path: Path) -> None:
    source = tmp_path / "many"
    for n in range(150):
        (source / f"o{n}").mkdir(parents=True)
        (source / f"o{n}" / "file").write_bytes(bytes(300_000))

    done = demo(tmp_path, source, CRASH="1")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "CRASH: killed" in done.stdout
    assert "completed                     150" in done.stdout
    assert "no recorded stage ran twice, no digest is wrong" in done.stdout


@pytest.mark.parametrize(
    ("more", "said"),
    [({"SOURCE": "/nowhere"}, "is no folder"), ({"OUT": "source"}, "within each other"), ({"OUT": "taken"}, "demo's")],
)
def test_the_demo_refuses_what_it_must_not_touch(tmp_path: Path, source: Path, more: dict[str, str], said: str) -> None:
    (tmp_path / "taken").mkdir()

    done = demo(tmp_path, source, **more)

    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
