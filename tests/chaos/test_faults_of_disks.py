"""The disk of the job folders is full, that of SQLite's file is full, one job writes gigabytes; the load goes on."""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from chaos_load import Grove, Harvest, works

from long_tests import LONG, long_alone
from spinney.folders import folders
from spinney.model.errors import SpinneyError
from waiting import until

FLOOD_MB = 2048 if LONG else 24
Tell = Callable[[str, str, Harvest], None]


def small_disk(stack: contextlib.ExitStack, place: Path, megabytes: int) -> Path:
    """A disk of so many megabytes, in memory; gone afterwards. Skips the test where none can be mounted."""
    place.mkdir(exist_ok=True)
    result = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", place], capture_output=True, text=True
    )
    if result.returncode:
        pytest.skip(f"no small disk can be mounted here: {result.stderr.strip()}; run as root")
    stack.callback(subprocess.run, ["umount", "-l", place], check=True)
    return place


def fill(disk: Path) -> Path:
    """Leave no room on it; returns what to remove."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as out:
        for size in (2**20, 2**12):
            with contextlib.suppress(OSError):
                while out.write(b"\1" * size) == size:
                    pass
    return filler


def test_a_flood_of_output_fills_no_disk_and_hinders_nobody(
    plant: Callable[..., Grove], tell: Tell, stack: contextlib.ExitStack
) -> None:
    # Given job folders on a disk of 64 MB
    grove = plant("sqlite")
    disk = small_disk(stack, grove.cluster.folders, 64)
    folders.write_token(disk, grove.cluster.store.facts()["folder_token"])
    node = grove.start("oak")
    works_beside = grove.submit(grove.some(60))
    # When one job writes far more than that
    (job_id,) = grove.submit([("flood", {"megabytes": FLOOD_MB})])
    grove.submit(grove.some(60))
    most_used = 0
    until_s = time.monotonic() + 100
    while grove.cluster.store.job(job_id).state != "completed" and time.monotonic() < until_s:
        statistics = os.statvfs(disk)
        most_used = max(most_used, (statistics.f_blocks - statistics.f_bfree) * statistics.f_frsize)
        grove.rest(0.02)
    supervisor = node.supervisor()
    memory_kb = int(Path(f"/proc/{supervisor}/status").read_text().partition("VmHWM:")[2].split()[0])
    harvest = grove.harvest()
    # Then head and tail are there, and neither disk nor memory was needed for the rest
    (fence,) = (a.fence for a in harvest.history.attempts if a.job_id == job_id)
    output = folders.path(disk, job_id) / folders.OWN / f"flood.{fence}.stdout"
    with output.open("rb") as text:
        assert text.readline() == b"begin\n"
        text.seek(-4, os.SEEK_END)
        assert text.read() == b"end\n"
    assert most_used < 40 * 2**20, most_used
    assert memory_kb < 300 * 1024, memory_kb
    assert len(works_beside) == 60
    tell(f"{FLOOD_MB:,} MB of output from one job", "SQLite", harvest)


def test_the_disk_of_the_job_folders_is_full_for_a_while(
    plant: Callable[..., Grove], tell: Tell, stack: contextlib.ExitStack
) -> None:
    grove = plant("sqlite")
    disk = small_disk(stack, grove.cluster.folders, 16)
    folders.write_token(disk, grove.cluster.store.facts()["folder_token"])
    for name in ("oak", "elm") if LONG else ("oak",):
        grove.start(name)
    with grove.under_load(60):
        works(grove)
        for _ in range(3 if LONG else 1):
            grove.rest(0.5)
            filler = fill(disk)
            failing = grove.submit([("files", {"kilobytes": 64})] * 5)
            grove.blow(
                lambda failing=failing: until(  # type: ignore[misc]
                    lambda: any(a.outcome == "error" for i in failing for a in grove.cluster.attempts(i)),
                    "they fail",
                ),
                lasts=lambda filler=filler: (grove.rest(2.0 if LONG else 0.5), filler.unlink()),  # type: ignore[misc]
            )
    harvest = grove.harvest()
    assert grove.restarts == 0, "no node ended for it"
    tell("disk of the job folders full", "SQLite", harvest)


def test_a_node_that_starts_on_a_full_disk_works_as_soon_as_there_is_room(
    plant: Callable[..., Grove], stack: contextlib.ExitStack
) -> None:
    grove = plant("sqlite")
    disk = small_disk(stack, grove.place / "run", 1)
    disk.chmod(0o700)
    filler = fill(disk)
    node = grove.begin("oak", {"run_dir": str(disk)})
    until(lambda: "cannot start a worker" in grove.log("oak"), "it cannot start")
    filler.unlink()
    node.joined()


@long_alone
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("lease_period_s", "full_s"), [(15.0, 5.0), (2.0, 6.0)], ids=["briefly", "past the lease"]
)
def test_the_disk_under_sqlite_is_full_for_a_while(
    plant: Callable[..., Grove],
    tell: Tell,
    stack: contextlib.ExitStack,
    tmp_path: Path,
    lease_period_s: float,
    full_s: float,
) -> None:
    disk = small_disk(stack, tmp_path / "disk", 32)
    grove = plant(f"sqlite:///{disk}/spinney.db", lease_period_s=lease_period_s)
    for name in ("oak", "elm"):
        grove.start(name)
    with grove.under_load(100):
        works(grove)
        for _ in range(3):
            grove.rest(1.0)
            filler = fill(disk)
            grove.blow(
                lambda: _refuses(grove),
                lasts=lambda filler=filler: (grove.rest(full_s), filler.unlink()),  # type: ignore[misc]
            )
    harvest = grove.harvest()
    past = full_s > lease_period_s
    assert (grove.restarts > 0) is past
    tell(f"disk under SQLite full{' past the lease' if past else ''}", "SQLite", harvest)


def _refuses(grove: Grove) -> None:
    """Wait until the store has no room for something long."""

    def refused() -> bool:
        try:
            grove.submit([("plain", {})] * 500)
        except SpinneyError as error:
            return "full" in str(error)
        return False

    until(refused, "it is full")
