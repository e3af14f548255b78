"""A batch reads, reports, and reports again when what had failed was mended."""

import json
from pathlib import Path
from typing import Any

import pytest

from spinney import Fail
from spinney.apps.ingest import inventory
from spinney.apps.ingest.application import batches
from spinney.apps.ingest.inventory import Entry
from spinney.job import Child
from spinney.model.outcomes import Outcome
from spinney.model.states import State
from spinney.testing import Bench, Ran


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "source"
    root.mkdir()
    for name in ("a", "b", "line\nbreak"):
        (root / name).write_text(name)
    return root


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def test_it_makes_a_job_for_every_entry(source: Path, archive: Path) -> None:
    (source / "link").symlink_to("a")
    bench = Bench()

    ran = bench.run(batches, source=source, archive=archive)

    assert ran.value == {"objects": 3}
    assert [s.params["name"] for s in ran.spawned] == ["a", "b", "line\nbreak"]
    assert {s.params["deposit"] for s in ran.spawned} == {ran.data["deposit"]}
    assert json.loads((ran.folder / "entries.json").read_text())["skipped"] == [
        f"symbolic link left out: {source}/link"
    ]


def test_reading_again_makes_the_same_jobs(source: Path, archive: Path) -> None:
    bench = Bench()
    bench.run(batches, source=source, archive=archive)
    (source / "new").touch()

    ran = bench.run(batches, source=source, archive=archive)

    assert sorted(s.params["name"] for s in ran.spawned) == ["a", "b", "line\nbreak", "new"]
    assert len({s.params["deposit"] for s in ran.spawned}) == 1


def test_a_manifest_gives_every_object_its_listing(source: Path, archive: Path) -> None:
    manifest = source / "manifest.jsonl"
    file = {"url": (source / "a").as_uri()}
    manifest.write_text("".join(json.dumps({"object": n, "files": [file]}) + "\n" for n in ("one", "two")))

    ran = Bench().run(batches, manifest=manifest, archive=archive)

    assert [s.params["name"] for s in ran.spawned] == ["one", "two"]
    listing = json.loads((ran.folder / ran.spawned[0].params["listing"]).read_text())
    assert listing["payloads"][0]["source"] == "a"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "either source="),
        ({"source": "SOURCE", "manifest": "SOURCE/a"}, "either source="),
        ({"source": "/nowhere"}, "cannot be reached"),
        ({"source": "relative"}, "not absolute"),
        ({"source": "SOURCE/a"}, "no folder"),
        ({"source": "SOURCE", "archive": "SOURCE/archive"}, "within each other"),
        ({"source": "SOURCE", "archive": "archive"}, "not absolute"),
        ({"manifest": "SOURCE/gone"}, "no manifest"),
        ({"manifest": "SOURCE/a"}, "a line 1: this is no JSON"),
    ],
)
def test_what_cannot_be_read_fails_at_once_and_makes_nothing(
    source: Path, archive: Path, given: dict[str, str], said: str
) -> None:
    params = {"archive": str(archive)} | {k: v.replace("SOURCE", str(source)) for k, v in given.items()}

    ran = Bench().run(batches, **params)

    assert isinstance(ran.signal, Fail)
    assert not ran.signal.retryable
    assert said in ran.message
    assert ran.spawned == []


# --- reports


def child(number: int, name: str, state: State, message: str | None = None) -> Child:
    stage = None if state is State.COMPLETED else "downloading"
    return Child(number, "ingest.object", state, stage, None, message, 0, {"name": name})


def in_archive(archive: Path, number: int, name: str) -> None:
    entry = Entry(
        deposit="d1", name=name, job_id=number, bag=f"d1/{name}", files=2, size_bytes=1000, verified=3, skipped=1
    )
    inventory.record(archive / inventory.FILE_NAME, entry, [])


def report(archive: Path, folder: Path, children: list[Child], **data: Any) -> tuple[Ran, dict[str, Any], str]:
    bench = Bench(data={"deposit": "d1", "begun": 0.0, **data}, children=children, folder=folder)
    (bench.job_folder / "entries.json").write_text(json.dumps({"refused": [], "skipped": []}))
    ran = bench.run(batches, "report", archive=archive)
    found = json.loads((bench.job_folder / "report.json").read_text())
    bench.run(batches, "notify", archive=archive)
    return ran, found, (bench.job_folder / "report.txt").read_text()


@pytest.fixture
def deposited(archive: Path) -> Path:
    archive.mkdir()
    in_archive(archive, 4, "a")
    return archive


def test_a_report_sums_up(deposited: Path, tmp_path: Path) -> None:
    ran, found, text = report(
        deposited, tmp_path / "f", [child(4, "a", State.COMPLETED), child(5, "b", State.FAILED, "bad\ndigest")]
    )

    assert ran.outcome is Outcome.WARNING
    assert ran.message == "1 of 2 objects failed"
    assert (found["objects"], found["files"], found["bytes"], found["digests_verified"]) == (2, 2, 1000, 3)
    assert found["skipped_entries"] == 1
    assert "b (job 5) failed at downloading: bad\\ndigest" in text
    assert "Since the last report" not in text


def test_an_update_names_what_changed(deposited: Path, tmp_path: Path) -> None:
    ends = [child(4, "a", State.COMPLETED), child(5, "b", State.FAILED), child(6, "c", State.CANCELLED)]
    report(deposited, tmp_path / "f", ends)
    in_archive(deposited, 5, "b")
    in_archive(deposited, 7, "new")
    mended = [ends[0], child(5, "b", State.COMPLETED), child(7, "new", State.COMPLETED)]

    ran, found, text = report(deposited, tmp_path / "f", mended, told=1)

    assert ran.outcome is Outcome.OK
    assert found["number"] == 2
    assert found["changes"] == {"mended": ["b"], "failed": [], "added": ["new"], "gone": ["c"]}
    assert "update 1: complete" in text
    assert "mended: b" in text


def test_a_report_that_was_cut_off_is_made_against_the_same_one_before(deposited: Path, tmp_path: Path) -> None:
    report(deposited, tmp_path / "f", [child(4, "a", State.FAILED)])
    mended = [child(4, "a", State.COMPLETED)]

    for _ in range(2):
        _, found, _ = report(deposited, tmp_path / "f", mended, told=1)

        assert found["changes"]["mended"] == ["a"]


def test_every_report_is_told_once(deposited: Path, tmp_path: Path) -> None:
    for told in (0, 0, 1):
        report(deposited, tmp_path / "f", [child(4, "a", State.COMPLETED)], **({"told": told} if told else {}))

    job_folder = next((tmp_path / "f").glob("*/*/*/*"))
    messages = (job_folder / "outbox.jsonl").read_text().splitlines()
    assert [json.loads(m)["number"] for m in messages] == [1, 2]
