"""Jobs of an older job server as history, and those of this service in its form."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from spinney.apps.receivers import history
from spinney.apps.receivers.history import OldJob
from spinney.errors import UsageError

from .service import SERIALS, Service, archive, raw_files

OLD = (
    OldJob(
        3,
        None,
        3,
        1.5,
        9.5,
        "uploadFile",
        1,
        "0",
        "/sgm/done/00000003",
        None,
        '{"file":"x.zip","log_":"ok"}',
        7,
        12,
    ),
    OldJob(4, 3, 3, 2.0, 9.0, "SGfindtags", 1, "0"),
    OldJob(5, 4, 3, 2.5, 8.0, "plotData", -1, "0", data='{"traceback_":"errors/00000005.rds"}'),
)
WRONG: tuple[tuple[Any, ...], ...] = (
    (6, 99, 3, 1.0, 1.0, "x", 1),
    (7, 3, 7, 1.0, 1.0, "x", 1),
    (8, None, 8, 1.0, 1.0, None, 1),
    (9, None, 9, 1.0, 1.0, "x", 1, None, None, None, "{broken"),
    (10, None, 10, "yesterday", 1.0, "x", 1),
    (11, None, 11, 1.0, 1.0, "x", 1, None, None, None, "[1]"),
)


def old_server(path: Path, rows: tuple[tuple[Any, ...], ...]) -> Path:
    """A database of an older server."""
    with sqlite3.connect(path) as db:
        db.execute(history.SCHEMA)
        width = len(OldJob._fields)
        marks = ", ".join("?" * width)
        db.executemany(
            f"insert into jobs values ({marks})", [(*row, *[None] * (width - len(row))) for row in rows]
        )
    return path


def test_jobs_come_in_with_their_trees_and_wrong_rows_are_named(tmp_path: Path) -> None:
    source, kept = old_server(tmp_path / "old.sqlite", OLD + WRONG), tmp_path / "data" / "history.sqlite"

    number, wrong = history.import_jobs(source, kept)
    again = history.import_jobs(source, kept)

    assert (number, wrong) == again
    assert number == 3
    assert [sentence.split(":")[0] for sentence in wrong] == [f"job {row[0]}" for row in WRONG]
    assert history.read(kept) == list(OLD)
    assert history.read(kept, tree=4) == []
    assert history.read(kept, tree=3) == list(OLD)


def test_a_row_in_another_encoding_or_with_bytes_is_named_and_left_out(tmp_path: Path) -> None:
    source = old_server(
        tmp_path / "old.sqlite",
        (
            *OLD,
            (6, None, 6, 1.0, 1.0, "x", 1, None, None, None, b'{"a": 1}'),
            (7, None, 7, 1.0, 1.0, "x", 1),
            (8, 7, 7, 1.0, 1.0, "x", 1),
        ),
    )
    with sqlite3.connect(source) as db:
        db.execute("update jobs set path = cast(x'636166e9' as text) where id = 7")

    number, wrong = history.import_jobs(source, tmp_path / "history.sqlite")

    assert (number, wrong) == (
        3,
        [
            "job 6: its data is no text in UTF-8",
            "job 7: its path is no text in UTF-8",
            "job 8: its parent 7 is not there, or is wrong itself",
        ],
    )


def test_a_job_may_have_a_lower_number_than_its_parent(tmp_path: Path) -> None:
    rows = ((3, 5, 9, 1.0, 1.0, "x", 1), (5, 9, 9, 1.0, 1.0, "x", 1), (9, None, 9, 1.0, 1.0, "x", 1))
    circle = ((20, 21, 20, 1.0, 1.0, "x", 1), (21, 20, 20, 1.0, 1.0, "x", 1))
    source, kept = old_server(tmp_path / "old.sqlite", rows + circle), tmp_path / "history.sqlite"

    number, wrong = history.import_jobs(source, kept)

    assert (number, [sentence.split(":")[0] for sentence in wrong]) == (3, ["job 20", "job 21"])
    assert [job.id for job in history.read(kept, tree=9)] == [3, 5, 9]


def test_a_file_without_the_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.sqlite").write_text("no database")
    with pytest.raises(UsageError, match="no database of a Motus job server"):
        history.import_jobs(tmp_path / "x.sqlite", tmp_path / "history.sqlite")
    with pytest.raises(UsageError, match="exists"):
        history.export_jobs(tmp_path / "x.sqlite", [])


def test_a_damaged_history_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    kept = tmp_path / "history.sqlite"
    kept.write_text("no database")
    with pytest.raises(UsageError, match="cannot be written: file is not a database; close what has it open"):
        history.import_jobs(old_server(tmp_path / "old.sqlite", OLD), kept)
    assert kept.read_text() == "no database"


def test_the_jobs_of_the_service_go_out_behind_those_of_the_history(service: Service, tmp_path: Path) -> None:
    files = raw_files(tmp_path / "raw", pieces=2)
    service.start_node()
    job = service.upload(archive(files, tmp_path / "card.zip"))
    assert service.ended(job) == "completed"
    source = old_server(tmp_path / "old.sqlite", OLD)
    service.spinney("receivers", "import-jobs", str(source))

    assert "SGfindtags" in service.spinney("receivers", "old-jobs")
    service.spinney("receivers", "export-jobs", "out.sqlite")

    rows = history.read(service.place / "out.sqlite")
    assert rows[:3] == list(OLD)
    top, *subjobs = rows[3:]
    assert (top.pid, top.stump, top.type, top.done, top.queue) == (
        None,
        top.id,
        "import",
        1,
        "receivers-normal",
    )
    assert [(row.pid, row.stump, row.type, row.done) for row in subjobs] == [
        (top.id, top.id, "detect", 1)
    ] * 2
    assert top.id == int(job) + 5
    data = json.loads(subjobs[0].data or "")
    assert data["receiver"] in {f"SG-{serial}" for serial in SERIALS}
    assert set(data) - {"receiver"} == {"detect_", "export_", "plot_"}
    assert Path(top.path or "").name == f"{int(job):012d}"
    assert history.import_jobs(service.place / "out.sqlite", tmp_path / "again.sqlite") == (len(rows), [])
