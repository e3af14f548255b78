"""The demos of ``examples``, run as ``make`` runs them, in a folder of their own."""

import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[1]


def run_demo(name: str, place: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SPINNEY_")}
    path = os.pathsep.join((str(_ROOT), environment.get("PYTHONPATH", "")))
    return subprocess.run(
        [sys.executable, "-m", f"examples.{name}"],
        cwd=place,
        capture_output=True,
        text=True,
        env=environment | {"PYTHONPATH": path} | variables,
        check=False,
    )
