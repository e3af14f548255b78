"""An object on its way, stage by stage, without a node."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from spinney import Defer, Fail, Hold
from spinney.apps.ingest import bagging, inventory, stages
from spinney.apps.ingest.application import objects
from spinney.model.outcomes import Outcome
from spinney.testing import Bench, Ran

STAGES = ("estimating", "provisioning", "downloading", "processing", "recording", "notify")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "source"
    (root / "letters" / "sub").mkdir(parents=True)
    (root / "letters" / "a.txt").write_text("alpha")
    (root / "letters" / "sub" / "b\n.txt").write_text("beta")
    return root


@pytest.fixture
def params(source: Path, tmp_path: Path) -> dict[str, Any]:
    archive = tmp_path / "archive"
    archive.mkdir()
    return {"name": "letters", "source": source, "archive": archive, "deposit": "d1"}


def through(bench: Bench, params: Mapping[str, Any], last: str) -> Ran:
    """Run the stages up to ``last``."""
    for stage in STAGES[: STAGES.index(last) + 1]:
        ran = bench.run(objects, stage, **params)
        if ran.outcome is not Outcome.OK:
            break
    return ran


def test_the_stages_stand_in_their_order() -> None:
    assert tuple(stage.name for stage in objects.spec.stages) == STAGES


def test_an_object_goes_from_its_source_into_the_archive(params: dict[str, Any]) -> None:
    bench = Bench(parent_data={})

    ran = through(bench, params, "notify")

    assert ran.outcome is Outcome.OK
    archive: Path = params["archive"]
    verified = bagging.verify_bag(archive / "d1" / "letters")
    assert (verified.faults, verified.digests) == ((), 2 + 3)
    entry = inventory.entries(archive / inventory.FILE_NAME, "d1")[0]
    assert (entry.name, entry.files, entry.size_bytes, entry.verified) == ("letters", 2, 9, 2)
    assert not (ran.folder / "payload").exists()


@pytest.mark.parametrize("stage", STAGES)
def test_any_stage_may_run_twice(params: dict[str, Any], stage: str) -> None:
    bench = Bench(parent_data={})
    through(bench, params, stage)

    again = bench.run(objects, stage, **params)

    assert again.outcome is Outcome.OK
    assert through(bench, params, "notify").outcome is Outcome.OK
    assert len(inventory.entries(params["archive"] / inventory.FILE_NAME, "d1")) == 1
    messages = _outbox(bench).read_text().splitlines()
    assert [json.loads(m)["object"] for m in messages] == ["letters"]


def test_a_full_disk_puts_the_lane_to_sleep(params: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(stages.DISK_LIMIT_VARIABLE, "0.0001")
    bench = Bench()
    through(bench, params, "estimating")

    ran = bench.run(objects, "provisioning", **params)

    assert isinstance(ran.signal, Defer)
    assert ran.signal.lane
    assert "full, the limit is 0%" in ran.message


def test_an_object_larger_than_the_disk_waits_for_an_operator(params: dict[str, Any]) -> None:
    bench = Bench(results={"estimating": {"files": 1, "bytes": 10**18, "skipped": 0}})

    ran = bench.run(objects, "provisioning", **params)

    assert isinstance(ran.signal, Hold)


def test_a_disk_limit_that_makes_no_sense_is_named(params: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(stages.DISK_LIMIT_VARIABLE, "95%")
    bench = Bench()
    through(bench, params, "estimating")

    ran = bench.run(objects, "provisioning", **params)

    assert isinstance(ran.signal, Hold)
    assert "SPINNEY_INGEST_DISK_LIMIT='95%'" in ran.message


def listed(root: Path, **given: Any) -> dict[str, Any]:
    """A listing as a batch makes it of a manifest."""
    file = {"path": "x", "source": "letters/a.txt", "size_bytes": 5, "digests": {}} | given
    return {"root": str(root), "payloads": [file], "skipped": []}


def manifest_bench(tmp_path: Path, listing: Mapping[str, Any]) -> Bench:
    bench = Bench(parent_data={}, folder=tmp_path / "folders")
    parent = _outbox(bench).parent
    parent.mkdir(parents=True)
    (parent / "one.json").write_text(json.dumps(listing))
    return bench


def test_digests_that_were_given_are_verified(source: Path, params: dict[str, Any], tmp_path: Path) -> None:
    digests = {a: hashlib.new(a, b"alpha").hexdigest() for a in ("md5", "sha256")}
    bench = manifest_bench(tmp_path, listed(source, digests=digests))
    del params["source"]

    ran = through(bench, params | {"listing": "one.json"}, "downloading")

    assert ran.value == {"verified": 2}
    assert (ran.folder / "payload" / "x").read_text() == "alpha"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"digests": {"md5": "0" * 32}}, "mend the file and retry"),
        ({"size_bytes": 6}, "has 5 bytes and not 6"),
        ({"source": "letters/gone"}, "is not there"),
        ({"source": "letters/link"}, "symbolic link"),
    ],
)
def test_a_file_that_is_not_as_was_told_fails_its_object_at_once(
    source: Path, params: dict[str, Any], tmp_path: Path, given: dict[str, Any], said: str
) -> None:
    (source / "letters" / "link").symlink_to("/etc/passwd")
    bench = manifest_bench(tmp_path, listed(source, **given))
    del params["source"]

    ran = through(bench, params | {"listing": "one.json"}, "downloading")

    assert isinstance(ran.signal, Fail)
    assert not ran.signal.retryable
    assert said in ran.message


def test_a_name_that_is_not_utf8_fails_its_object_by_name(source: Path, params: dict[str, Any]) -> None:
    Path(os.fsdecode(bytes(source) + b"/letters/\xff.txt")).touch()

    ran = Bench().run(objects, "estimating", **params)

    assert isinstance(ran.signal, Fail)
    assert "\\udcff.txt" in ran.message


def test_a_cancelled_copy_ends_early(params: dict[str, Any]) -> None:
    bench = Bench(cancelled=True)
    through(bench, params, "provisioning")

    ran = bench.run(objects, "downloading", **params)

    assert ran.outcome is Outcome.CANCELLED


def _outbox(bench: Bench) -> Path:
    """In the folder of the bench's parent, job 2."""
    root = bench.job_folder.parents[3]
    return root / "00/00/00/000000000002" / "outbox.jsonl"
