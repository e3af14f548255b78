"""Polls: the rows of a list become jobs with keys, and a wrong row submits nothing."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from spinney import Spinney
from spinney.model.errors import BadParameters, UsageError
from spinney.testing import StageHarness

app = Spinney()


@app.job
def sync(receiver: str, port: int = 22, when: str | None = None) -> None:
    pass


def submitted(text: str, place: Path, suffix: str = "csv") -> list[tuple[str | None, dict[str, object]]]:
    """What a poll of a file with this text submits: keys and parameters."""
    file = place / f"rows.{suffix}"
    file.write_text(text)
    name = app.poll(sync, file, key="receiver", every="1h", name=f"of{len(app.schedules)}")
    harness = StageHarness()
    harness.run(app.types[name])
    return [(job.key, job.params) for job in harness.submitted]


def test_a_row_of_a_table_becomes_a_job_with_a_key(tmp_path: Path) -> None:
    rows = submitted("receiver,port,when\nSG-1,2222,\nSG-2,,now,\n", tmp_path)
    assert [params for _, params in rows] == [
        {"receiver": "SG-1", "port": 2222},
        {"receiver": "SG-2", "when": "now"},
    ]
    assert [str(key).rpartition(":")[2] for key, _ in rows] == ["SG-1", "SG-2"]


@pytest.mark.parametrize(
    ("text", "suffix"), [("receiver\nSG-1\n", "csv"), ('{"receiver": "SG-1"}\n', "jsonl")]
)
def test_a_byte_order_mark_as_spreadsheets_write_it_is_no_part_of_the_list(
    text: str, suffix: str, tmp_path: Path
) -> None:
    rows = submitted(f"\ufeff{text}", tmp_path, suffix)
    assert [params for _, params in rows] == [{"receiver": "SG-1"}]


def test_lines_of_json_and_functions_are_lists_too(tmp_path: Path) -> None:
    rows = submitted('{"receiver": "SG-1"}\n\n{"receiver": "SG-1", "port": 1}\n', tmp_path, "jsonl")
    assert [params for _, params in rows] == [{"receiver": "SG-1"}]  # the same row twice is one job

    name = app.poll(
        sync, lambda: [{"receiver": f"SG-{n}"} for n in range(1500)], key="receiver", every=60, name="many"
    )
    harness = StageHarness()
    assert harness.run(app.types[name]).value == 1500
    assert len(harness.submitted) == 1500


@pytest.mark.parametrize(
    ("text", "suffix", "message"),
    [
        ("receiver,port\nSG-1,1\n,2\n", "csv", "row 2 .* has no 'receiver'"),
        ("receiver,port\nSG-1,1\nSG-2,x\n", "csv", "port"),
        ("receiver,colour\nSG-1,red\n", "csv", "colour"),
        ("receiver,when\nSG-1,now\nSG-2,now, or later\n", "csv", "line 3 .* has more cells than its heading"),
        ('{"receiver": "SG-1"}\n{"receiver"', "jsonl", "line 2 .* no JSON"),
        ("[1]", "jsonl", "no JSON object"),
    ],
)
def test_a_wrong_row_submits_nothing_and_is_named(
    text: str, suffix: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(BadParameters, match=message):
        submitted(text, tmp_path, suffix)


def test_a_key_is_a_parameter() -> None:
    with pytest.raises(UsageError, match="no parameter 'serial'"):
        app.poll(sync, list, key="serial", every=60, name="wrong")


async def listed() -> list[dict[str, str]]:
    return []


async def yielded() -> AsyncIterator[dict[str, str]]:
    yield {"receiver": "SG-1"}


@pytest.mark.parametrize("rows", [[{"receiver": "SG-1"}], None, listed, yielded])
def test_what_is_neither_a_function_nor_a_file_is_refused_where_it_is_declared(rows: Any) -> None:
    with pytest.raises(
        UsageError, match=r"the rows of poll 'wrong' must be a function .* or the path of a file"
    ):
        app.poll(sync, rows, key="receiver", every=60, name="wrong")
    assert "poll.wrong" not in app.types


def test_the_jobs_that_read_the_list_are_kept_as_long_as_the_poll_says() -> None:
    name = app.poll(sync, list, key="receiver", every=60, name="short", keep={"completed": "30d"})
    assert app.types[name].spec.keep == {"completed": 30 * 86400.0}
    assert not app.types["sync"].spec.keep
