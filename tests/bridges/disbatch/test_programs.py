"""Programs as plugins, without a node around them."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from spinney.bridges.disbatch import programs
from waiting import until

NUMBER = "5f" * 12


def run(folder: Path, lines: str, **more: Any) -> dict[str, Any]:
    """Run a Python program that has its task in ``task`` and writes answers by ``answer``."""
    program = folder / "migrate"
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, os, signal, subprocess, sys, time\n"
        "def answer(**fields):\n"
        "    json.dump(fields, open(sys.argv[2].replace('.json', '-response.json'), 'w'))\n" + lines
    )
    program.chmod(0o755)
    task = json.dumps({"_id": {"$oid": NUMBER}})
    return programs.run(SimpleNamespace(folder=folder), str(program), "nomongo", task, **more)  # type: ignore[arg-type]


def _runs(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize(
    ("fields", "status", "out", "err"),
    [
        ("status=1, stdout=None, stderr=None", 1, "", ""),
        ("status=1", 1, "", ""),
        ("status='1', stdout='ok'", 1, "ok", ""),
        ("status=1, stdout={'a': 'é'}, stderr=['x', None]", 1, '{"a": "é"}', '["x", null]'),
        (r"status=1, stdout='a\ud800b'", 1, "a?b", ""),
    ],
)
def test_output_that_is_no_text_is_written_as_json(
    fields: str, status: int, out: str, err: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    result = run(tmp_path, f"answer({fields})\n")

    assert result == {"status": status, "cmdExit": 0}
    assert capfd.readouterr() == (out, err)


def test_an_answer_in_latin_1_is_read(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    written = b'{"status": 1, "stdout": "caf\xe9"}'
    result = run(tmp_path, f"open(sys.argv[2].replace('.json', '-response.json'), 'wb').write({written!r})\n")

    assert (result["status"], capfd.readouterr().out) == (1, "caf\ufffd")


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ("pass", "did not write 5f5f5f5f5f5f5f5f5f5f5f5f-response.json"),
        ("open(sys.argv[2].replace('.json', '-response.json'), 'w').write('done')", "wrote no JSON into"),
        ("answer(stdout='x')", "wrote no object with a number as its status"),
        ("answer(status='done')", "wrote no object with a number as its status"),
        ("answer(status=10**24)", "wrote no object with a number as its status"),
    ],
)
def test_an_answer_that_cannot_be_used_is_described(lines: str, fault: str, tmp_path: Path) -> None:
    result = run(tmp_path, f"{lines}\n")

    assert (result["status"], fault in result["stderr"]) == (2, True), result


@pytest.mark.parametrize(("written", "status"), [(7, 7), (1, 2)])
def test_after_its_timeout_a_program_is_killed_with_its_children_and_its_answer_counts(
    written: int, status: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = (
        "child = subprocess.Popen(['sleep', '600'])\n"
        "open('child', 'w').write(str(child.pid))\n"
        f"answer(status={written}, stdout='done', stderr='')\n"
        "time.sleep(600)\n"
    )

    result = run(tmp_path, lines, timeout=3.0)

    assert (result["status"], result["cmdExit"], "its timeout of 3 s" in result["cmdErr"]) == (
        status,
        -1,
        True,
    )
    assert capfd.readouterr().out == "done"
    child = int((tmp_path / "child").read_text())
    # A killed process is gone only when the kernel has got round to it.
    until(lambda: not _runs(child))


def test_a_program_that_wrote_nothing_until_its_timeout_says_so(tmp_path: Path) -> None:
    result = run(tmp_path, "time.sleep(600)\n", timeout=0.1)

    assert (result["status"], result["stdout"]) == (2, "Unable to complete")
    assert "its timeout of 0.1 s" in result["stderr"]
