"""Plugins of Pydantic, which an installed package may bring: where they are loaded, and where nobody looks for them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .shell import Shell


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder of installed packages, with one that brings a plugin; it says so when it is loaded."""
    folder = tmp_path / "packages"
    info = folder / "loud-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: loud\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pydantic]\nloud = loud:plugin\n")
    (folder / "loud.py").write_text(
        "import sys\nsys.stderr.write('loud is loaded\\n')\n"
        "class plugin:\n    def new_schema_validator(self, *args): return None, None, None\n"
        "plugin = plugin()\n"
    )
    return folder


@pytest.mark.parametrize(
    ("words", "loaded"),
    [(["list"], False), (["show", "1"], False), (["node", "no_such_module"], True)],
)
def test_only_commands_that_run_nobodys_code_look_for_no_plugins(
    shell: Shell, packages: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], loaded: bool
) -> None:
    monkeypatch.delenv("PYDANTIC_DISABLE_PLUGINS", raising=False)  # which is set for tests
    shell.ok("submit", "double", "-p", "n=1")
    path = os.pathsep.join((str(packages), os.environ.get("PYTHONPATH", "")))
    result = subprocess.run(
        [sys.executable, "-m", "spinney", *words],
        cwd=shell.folder,
        capture_output=True,
        text=True,
        env=shell.environment(PYTHONPATH=path),
    )

    assert ("loud is loaded" in result.stderr) is loaded
