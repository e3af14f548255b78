"""Writing twice leaves one row; many processes may write at once."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from spinney.apps.ingest import inventory
from spinney.apps.ingest.bagging import Stored
from spinney.apps.ingest.inventory import Entry

ENTRY = Entry(
    deposit="d", name="letters", job_id=7, bag="d/letters", files=1, size_bytes=3, verified=2, skipped=0
)
FILE = Stored(path="a\nb", size_bytes=3, sha256="0" * 64)


def test_recording_twice_leaves_one_row(tmp_path: Path) -> None:
    at = tmp_path / "inventory.sqlite"

    inventory.record(at, ENTRY, [FILE])
    inventory.record(at, replace(ENTRY, verified=3), [FILE])

    assert inventory.entries(at, "d") == [replace(ENTRY, verified=3)]


def test_nothing_was_recorded_yet(tmp_path: Path) -> None:
    at = tmp_path / "inventory.sqlite"
    assert inventory.entries(at, "d") == []

    at.touch()

    assert inventory.entries(at, "d") == []


WRITER = """
import sys
from pathlib import Path
from spinney.apps.ingest import inventory
for n in range(10):
    inventory.record(Path(sys.argv[1]), inventory.Entry(deposit="d", name=f"{sys.argv[2]}-{n}", job_id=n,
        bag="b", files=0, size_bytes=0, verified=0, skipped=0), [])
"""


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    at = tmp_path / "inventory.sqlite"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(at), str(w)]) for w in range(3)]

    assert [w.wait(60) for w in writers] == [0, 0, 0]
    assert len(inventory.entries(at, "d")) == 30
