"""``make`` on a machine that lacks something, and what its targets call."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("missing", "message"),
    [("version_info", "needs Python 3.11"), ("ensurepip", "run 'apt install python3-venv'")],
)
def test_what_is_missing_is_named_in_one_sentence(tmp_path: Path, missing: str, message: str) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\ncase "$*" in *{missing}*) exit 1;; esac\n')
    python.chmod(0o755)

    result = subprocess.run(
        ["make", f"PYTHON={python}", f"VENV={tmp_path}/venv", "demo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert result.returncode != 0
    sentence, *rest = result.stderr.splitlines()
    assert message in sentence
    assert [line for line in rest if not line.startswith("make")] == []
    assert not (tmp_path / "venv").exists()


def test_ci_calls_make_test_and_nothing_else() -> None:
    assert (ROOT / ".ci" / "run").read_text() == "#!/usr/bin/env bash\nset -euo pipefail\nmake test\n"


def test_every_requirement_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    requirements = project["dependencies"] + extras["test"] + extras["postgresql"]
    pinned = re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), flags=re.M)

    def plain(name: str) -> str:
        return re.sub(r"[-_.]+", "-", name).lower()

    names = {plain(re.split(r"[^\w.-]", requirement)[0]) for requirement in requirements}
    assert names <= {plain(name) for name in pinned}


def test_pins_name_no_place() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()

    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.+!]+", line)] == []
