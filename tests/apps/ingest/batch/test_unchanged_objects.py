"""The notes of objects that a batch left unchanged, in a folder that cannot be read."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from spinney.apps.ingest.deposits import unchanged_objects

READ = """
import os, sys
from pathlib import Path
from spinney.apps.ingest.deposits import unchanged_objects
if os.geteuid() == 0:
    os.setuid(65534)
try:
    print(unchanged_objects.read(Path(sys.argv[1])))
except PermissionError:
    print("refused")
"""


@pytest.mark.parametrize(("mode", "answer"), [(None, "{}"), (0o755, "{}"), (0, "refused")])
def test_only_a_folder_that_is_missing_or_empty_has_no_notes(mode: int | None, answer: str) -> None:
    """Given a folder that cannot be read, when notes are read, then there is an error: a report that took it for an
    empty one would show unchanged objects without their versions."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        if mode is not None:
            notes = Path(place, unchanged_objects.FOLDER)
            notes.mkdir()
            notes.chmod(mode)
        result = subprocess.run(
            [sys.executable, "-c", READ, place], capture_output=True, text=True, check=True, timeout=60
        )
    assert result.stdout.strip() == answer
