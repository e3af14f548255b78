"""``make demo-receivers``, as a newcomer runs it."""

import os
import subprocess
import sys
from pathlib import Path


def test_the_whole_demo(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPINNEY_")}
    command = [sys.executable, "-m", "spinney.apps.receivers.demo"]
    demo = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "in svg: totals[tag] += number" in demo.stdout
    assert "is done" in demo.stdout
    assert "FAULT" not in demo.stdout
    files = [path.name for path in (tmp_path / "demo-receivers-out").rglob("*.svg")]
    assert len(files) == 5
