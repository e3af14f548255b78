"""A message is there once, whatever was cut off where."""

import json
import subprocess
import sys
from pathlib import Path

from spinney.apps.ingest import outbox


def lines(at: Path) -> list[int]:
    return [json.loads(line)["n"] for line in at.read_text().splitlines()]


def test_telling_twice_leaves_one_line(tmp_path: Path) -> None:
    at = tmp_path / "outbox.jsonl"

    told = [outbox.tell_once(at, tmp_path / "told", {"n": 1}) for _ in range(2)]

    assert told == [True, False]
    assert lines(at) == [1]


def test_cut_off_between_marker_and_line_it_is_told_again(tmp_path: Path) -> None:
    at = tmp_path / "outbox.jsonl"
    outbox.tell_once(at, tmp_path / "told-1", {"n": 1})
    (tmp_path / "told-2").write_text(str(at.stat().st_size))

    outbox.tell_once(at, tmp_path / "told-2", {"n": 2})

    assert lines(at) == [1, 2]


def test_a_line_cut_short_is_written_over(tmp_path: Path) -> None:
    at = tmp_path / "outbox.jsonl"
    at.write_bytes(b'{"n": 1}\n{"n": ')

    outbox.tell_once(at, tmp_path / "told", {"n": 2})

    assert lines(at) == [1, 2]


WRITER = """
import sys
from pathlib import Path
from spinney.apps.ingest import outbox
folder = Path(sys.argv[1])
for n in range(20):
    outbox.tell_once(folder / "outbox.jsonl", folder / f"{sys.argv[2]}-{n}", {"n": n})
"""


def test_several_processes_tell_at_once(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), str(w)]) for w in range(3)]

    assert [w.wait(60) for w in writers] == [0, 0, 0]
    assert sorted(lines(tmp_path / "outbox.jsonl")) == sorted([*range(20)] * 3)
