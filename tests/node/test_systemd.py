"""The unit in the docs, as systemd itself reads it."""

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from spinney.model.errors import UsageError
from spinney.node.settings import NodeSettings
from spinney.node.workers import proctree

UNIT = Path(__file__).parents[2] / "docs" / "spinney-node.service"


def test_the_unit_fits_the_guard() -> None:
    unit = configparser.ConfigParser()
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    service = unit["Service"]

    assert service["KillMode"] == "mixed", "a SIGTERM for the workers would end what a drain lets finish"
    assert service["OOMPolicy"] == "continue", "a worker that is killed ends no node"
    assert int(service["OOMScoreAdjust"]) == -proctree.OOM_MORE, (
        "workers are no more likely to be killed than others"
    )
    drain_s = NodeSettings(store="sqlite:////x", app="a:b", folders="x").drain_limit_s
    assert int(service["TimeoutStopSec"]) > drain_s
    assert (service["Restart"], unit["Unit"]["StartLimitIntervalSec"]) == ("always", "0")
    assert int(service["RestartPreventExitStatus"]) == UsageError.exit_code


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/srv/spinney/.venv/bin/spinney", sys.executable))

    result = subprocess.run(
        ["systemd-analyze", "verify", "--recursive-errors=no", "--man=no", str(copy)],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (result.returncode, result.stderr) == (0, "")
