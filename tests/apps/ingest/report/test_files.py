"""The report as files: whole, the same when written twice, and what the next report starts from."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from long_tests import long_alone
from spinney.apps.ingest.report import ObjectEnd, build, read_previous, text, write

from .samples import end, facts, failed

ENDS = [end(1), failed(2), end(3, "cancelled"), end(4, local_ids=("Größe\n\u2028",))]


def test_the_document_holds_all(tmp_path: Path) -> None:
    write(build(facts(), ENDS), tmp_path / "0001")

    document = json.loads((tmp_path / "0001" / "report.json").read_text())
    assert document["batch"] == "bid-1"
    assert document["totals"]["failed"] == 1
    assert [e["jid"] for e in document["completed"]] == ["jid-1", "jid-4"]
    assert [e["jid"] for e in document["others"]] == ["jid-3"]
    (bad,) = document["failed"]
    assert (bad["stage"], bad["passed"], bad["message"]) == (
        "downloading",
        "provisioning",
        "file 2 has the wrong sha256",
    )
    assert json.loads((tmp_path / "0001" / "failed.json").read_text()) == document["failed"]
    assert json.loads((tmp_path / "0001" / "completed.json").read_text()) == document["completed"]


@pytest.mark.parametrize("ends", [[], [end(1)], [failed(1)]])
def test_empty_lists_are_lists(tmp_path: Path, ends: list[ObjectEnd]) -> None:
    write(build(facts(), ends), tmp_path)

    document = json.loads((tmp_path / "report.json").read_text())
    assert len(document["completed"]) + len(document["failed"]) == len(ends)
    assert isinstance(json.loads((tmp_path / "failed.json").read_text()), list)


def test_written_twice_it_is_the_same_and_its_digests_are_told(tmp_path: Path) -> None:
    first = write(build(facts(), ENDS), tmp_path)
    second = write(build(facts(), ENDS), tmp_path)

    assert first == second
    for file in first.values():
        content = file.path.read_bytes()
        assert (file.size_bytes, file.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    assert {p.name for p in tmp_path.iterdir()} == set(first)


def test_the_next_report_is_compared_with_what_was_written(tmp_path: Path) -> None:
    write(build(facts(), ENDS), tmp_path)

    report = read_previous(tmp_path)
    update = build(facts(2), [end(1), end(2), end(4)], report)

    assert report.number == 1
    assert report.completed == {"jid-1": "map 1", "jid-4": "Größe\n\u2028"}
    assert update.changes is not None
    assert (update.changes.mended, update.changes.gone) == (("map 2",), ())


def test_another_version_since_what_was_written_is_a_change(tmp_path: Path) -> None:
    write(build(facts(), [end(1, version=1), end(2), failed(3)]), tmp_path)

    update = build(facts(2), [end(1, version=2), end(2, version=1)], read_previous(tmp_path))

    assert update.changes is not None
    assert update.changes.new_versions == ("map 1",)
    assert "new version" in text(update)


def test_a_report_of_an_earlier_release_is_compared_without_versions(tmp_path: Path) -> None:
    (tmp_path / "comparison.jsonl").write_text('{"number":1}\n["completed","jid-1","map 1"]\n')

    update = build(facts(2), [end(1, version=2)], read_previous(tmp_path))

    assert update.changes is not None
    assert update.changes.new_versions == ()


MANY = """
import re, sys
from pathlib import Path
from apps.ingest.report.samples import end, facts, failed
from spinney.apps.ingest.report import build, read_previous, write
ends = lambda: (failed(n) if n % 3 == 0 else end(n) for n in range(100_000))
folder = Path(sys.argv[1])
write(build(facts(), ends()), folder / "1")
update = build(facts(2), ends(), read_previous(folder / "1"))
write(update, folder / "2")
# Not ru_maxrss, which begins with what the process had that started this one.
peak = re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())
print(update.totals.objects, int(peak[1]) // 1024)
"""


@long_alone
@pytest.mark.timeout(600)
def test_a_hundred_thousand_objects_stay_small(tmp_path: Path) -> None:
    """Given as many objects as are lawful, when two reports of them are written, then memory stays bounded."""
    tests = Path(__file__).parents[3]
    result = subprocess.run(
        [sys.executable, "-c", MANY, str(tmp_path)], cwd=tests, capture_output=True, text=True, check=True
    )

    objects, mebibytes = map(int, result.stdout.split())
    assert objects == 100_000
    assert mebibytes < 250
