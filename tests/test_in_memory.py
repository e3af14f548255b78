"""The folder in memory of a run of the tests: gone with the run, at the latest with a later one."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import in_memory
from small_disk import small_disk

RUN = "import in_memory; print(in_memory.in_memory(), flush=True); input()"


@contextmanager
def run() -> Iterator[tuple["subprocess.Popen[str]", Path]]:
    """Another run of the tests, and its folder."""
    environment = {name: value for name, value in os.environ.items() if name != in_memory._FOLDER}
    process = subprocess.Popen(
        [sys.executable, "-c", RUN],
        cwd=Path(__file__).parent,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        folder = process.stdout.readline().strip()
        if folder == "None":
            pytest.skip("no folder in memory here")
        yield process, Path(folder)
        if process.poll() is None:
            process.communicate("\n")


def test_the_folder_of_a_run_is_removed_at_its_end() -> None:
    with run() as (process, folder):
        (folder / "file").touch()
        process.communicate("\n")
        assert not folder.exists()


def test_the_folder_of_a_run_that_was_killed_is_removed_by_the_next_one() -> None:
    with run() as (killed, folder), run() as (_, folder_in_use):
        assert folder.is_dir()
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        with run():
            assert not folder.exists()
            assert folder_in_use.is_dir()


def test_what_is_missing_or_cannot_be_written_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_disk(tmp_path / "disk", 8 << 10) as disk:
        monkeypatch.setattr(in_memory, "MEMORY", disk.folder)
        assert in_memory._is_suitable()
        subprocess.run(["mount", "-o", "remount,ro", str(disk.folder)], check=True)
        assert not in_memory._is_suitable()

    monkeypatch.setattr(in_memory, "MEMORY", tmp_path / "missing")
    assert not in_memory._is_suitable()
