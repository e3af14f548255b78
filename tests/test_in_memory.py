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
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert folder.is_dir()
        with run():
            assert not folder.exists()
            assert folder_in_use.is_dir()
