"""What an attempt wrote in its folder is on the disk before its success is recorded."""

import asyncio
import os
import shutil
import tempfile
import threading
from pathlib import Path

import pytest

from deep_folders import deep_folder
from spinney.folders import folders
from spinney.host import filesystem
from spinney.model.outcomes import Outcome
from spinney.node.lifecycle.unsynced_files import sync_folders
from spinney.node.supervisor_main import event_loop
from spinney.node.worker import sync
from spinney.node.worker.sync import clock_ns, opened, sync_folder, synced

JOB = 1270
LATER_NS = 2 * 10**9
"""Beyond the slack that is given to the clock of a file system that is not of this machine's disks."""


@pytest.fixture
def folder(tmp_path):
    folders.write_token(tmp_path, "token")
    return folders.make(tmp_path, JOB)


@pytest.fixture
def synced_paths(monkeypatch):
    """Paths that were synced, in order; the syncs are done as well."""
    paths = []
    real = os.fsync

    def fsync(fd):
        paths.append(Path(f"/proc/self/fd/{fd}").readlink())
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    return paths


@pytest.mark.parametrize(("jobs", "syncs"), [([JOB + 1, JOB], 1), ([JOB + 1], 0)])
async def test_the_disk_is_synced_for_killed_attempts_that_have_a_folder(
    tmp_path, folder, monkeypatch, jobs, syncs
):
    synced = []
    monkeypatch.setattr(
        filesystem, "sync_whole", lambda fd: synced.append(Path(f"/proc/self/fd/{fd}").readlink())
    )
    await sync_folders(tmp_path, jobs)
    assert synced == [tmp_path] * syncs


async def test_a_disk_that_refuses_does_not_keep_killed_attempts_from_being_recorded(
    tmp_path, folder, monkeypatch, caplog
):
    def refuse(fd):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(filesystem, "sync_whole", refuse)
    await sync_folders(tmp_path, [JOB])
    assert "see the disk" in caplog.text


async def test_a_disk_that_does_not_answer_is_not_waited_for_beyond_the_limit(
    tmp_path, folder, monkeypatch, caplog
):
    answers = threading.Event()
    monkeypatch.setattr(filesystem, "sync_whole", lambda fd: answers.wait())
    await sync_folders(tmp_path, limit_s=0.05)
    answers.set()
    assert "does not answer; what killed attempts wrote there is synced when it does" in caplog.text


def test_threads_that_wait_for_a_disk_keep_no_others_waiting():
    answers, loop = threading.Event(), event_loop()

    async def work():
        waiting = [asyncio.ensure_future(asyncio.to_thread(answers.wait)) for _ in range(100)]
        done = await asyncio.wait_for(asyncio.to_thread(lambda: "done"), 30)
        answers.set()
        await asyncio.gather(*waiting)
        return done

    try:
        assert loop.run_until_complete(work()) == "done"
    finally:
        answers.set()
        loop.close()


def test_new_files_and_directories_are_synced_files_first(tmp_path, folder, synced_paths):
    begun = clock_ns()
    (folder / "sub").mkdir()
    (folder / "sub" / "file").write_text("x")
    sync_folder(str(tmp_path), JOB, begun)
    assert synced_paths[:2] == [folder / "sub" / "file", folder / "sub"]
    assert synced_paths[2:] == [folder, *folder.parents[:4]]
    assert synced_paths[-1] == tmp_path


def test_a_folder_with_more_levels_than_python_has_is_synced(tmp_path, folder, synced_paths):
    with deep_folder(folder) as deep:
        assert synced(None, str(tmp_path), JOB, 0) is None
        assert synced_paths.index(deep / "a") < synced_paths.index(deep) < synced_paths.index(folder)
        assert synced_paths[0].name == "file"


def test_a_folder_with_longer_paths_than_the_system_takes_is_synced_with_its_file_system(
    tmp_path, folder, monkeypatch
):
    """Given files whose paths are too long for any call, when they are to be synced, then everything is."""
    synced_by = []
    monkeypatch.setattr(
        filesystem, "sync_whole", lambda fd: synced_by.append(Path(f"/proc/self/fd/{fd}").readlink())
    )
    with deep_folder(folder, 2100):
        assert synced(None, str(tmp_path), JOB, 0) is None
    assert synced_by == [folder]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a directory of another user")
def test_a_folder_with_a_directory_of_another_user_is_synced_with_its_file_system(monkeypatch):
    """Given a directory that a program made as another user, who alone may read it, then everything is synced."""
    synced_by = []
    monkeypatch.setattr(
        filesystem, "sync_whole", lambda fd: synced_by.append(Path(f"/proc/self/fd/{fd}").readlink())
    )
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        folders.write_token(Path(place), "token")
        folder = folders.make(Path(place), JOB)
        for level in (folder, *folder.parents[:4]):
            level.chmod(0o755)
        (folder / "private").mkdir(mode=0o700)
        os.seteuid(65534)
        try:
            assert synced(None, place, JOB, 0) is None
        finally:
            os.seteuid(0)
    assert synced_by == [folder]


def test_what_did_not_change_is_left_alone(tmp_path, folder, synced_paths):
    (folder / "file").write_text("x")
    sync_folder(str(tmp_path), JOB, clock_ns() + LATER_NS)
    assert synced_paths == []


@pytest.mark.parametrize(("kind", "again"), [("ext4", []), ("xfs", []), ("nfs4", ["before"])])
def test_what_the_stage_before_wrote_is_synced_again_only_where_clocks_differ(
    tmp_path, folder, synced_paths, monkeypatch, kind, again
):
    """Given a file of the stage before, of some ticks ago, and one that was written the moment this one began."""
    monkeypatch.setattr(filesystem, "_kind", lambda device: kind)
    (folder / "before").write_text("x")
    while (since_ns := clock_ns()) <= (folder / "before").stat().st_ctime_ns:
        pass
    (folder / "file").write_text("x")
    sync_folder(str(tmp_path), JOB, since_ns)
    assert sorted(path.name for path in synced_paths if path.parent == folder) == [*again, "file"]


def test_what_is_written_at_once_is_never_stamped_earlier(tmp_path):
    for n in range(100):
        since_ns = clock_ns()
        (tmp_path / str(n)).touch()
        assert (tmp_path / str(n)).stat().st_ctime_ns >= since_ns


def test_a_copy_with_an_old_time_is_synced(tmp_path, folder, synced_paths):
    """Given a file that was copied with its times, as archives are unpacked, then it counts as new."""
    old = tmp_path / "old"
    old.write_text("x")
    os.utime(old, (1, 1))
    begun = clock_ns()
    shutil.copy2(old, folder / "copy")
    assert (folder / "copy").stat().st_mtime == 1
    sync_folder(str(tmp_path), JOB, begun)
    assert folder / "copy" in synced_paths


class Listing(list):
    """The entries of a directory as they were when it was read."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.clear()


def test_what_vanishes_during_the_sync_needs_none(tmp_path, folder, synced_paths, monkeypatch):
    """Given a folder to which another process writes, when a file vanishes after the folder was listed, and a
    directory before it is listed, then the attempt has passed, and what stays is synced."""
    begun = clock_ns()
    (folder / "vanishing").mkdir()
    for name in ("vanishing.tmp", "file"):
        (folder / name).write_text("x")
    real = os.scandir

    def scandir(directory):
        if Path(directory) == folder / "vanishing":
            Path(directory).rmdir()
        with real(directory) as entries:
            listing = Listing(entries)
        (folder / "vanishing.tmp").unlink()
        return listing

    monkeypatch.setattr(os, "scandir", scandir)
    assert synced(None, str(tmp_path), JOB, begun) is None
    assert synced_paths == [folder / "file", folder, *folder.parents[:4]]


def test_links_pipes_and_the_engines_own_files_are_left_alone(tmp_path, folder, synced_paths):
    begun = clock_ns()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("x")
    (folder / "link").symlink_to(outside)
    (folder / "file-link").symlink_to(outside / "file")
    os.mkfifo(folder / "pipe")
    (folder / sync.OWN).mkdir()
    (folder / sync.OWN / "stage.1.stdout").write_text("x")
    sync_folder(str(tmp_path), JOB, begun)
    assert synced_paths == [folder, *folder.parents[:4]]


def test_a_job_without_a_folder_costs_nothing(tmp_path, synced_paths):
    assert synced(None, str(tmp_path), JOB, clock_ns()) is None
    assert synced_paths == []


def test_what_an_attempt_that_failed_has_written_is_synced_for_the_one_that_keeps_it(
    tmp_path, folder, synced_paths
):
    begun = clock_ns()
    (folder / "fetched").write_text("x")

    failed = {"outcome": Outcome.ERROR}

    assert synced(failed, str(tmp_path), JOB, begun) is failed
    assert folder / "fetched" in synced_paths


def test_a_success_that_cannot_be_made_safe_is_an_error(tmp_path, folder, monkeypatch):
    begun = clock_ns()
    (folder / "file").write_text("x")

    def fsync(fd):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fsync)
    detail = synced({"outcome": "ok", "result": "1"}, str(tmp_path), JOB, begun)
    assert detail["outcome"] == "error"
    assert "Input/output error" in detail["message"]


# --- the whole file system in one call ---------------------------------------------------------


@pytest.fixture
def descriptor(tmp_path):
    file_descriptor = opened(str(tmp_path))
    yield file_descriptor
    os.close(file_descriptor)


@pytest.fixture
def whole(monkeypatch):
    """Return the descriptors by which whole file systems are synced, which always counts as worth it."""
    descriptors = []
    real = filesystem.sync_whole
    monkeypatch.setattr(filesystem, "is_worth_it", lambda device: True)
    monkeypatch.setattr(filesystem, "sync_whole", lambda fd: (descriptors.append(fd), real(fd)))
    return descriptors


def test_a_file_system_is_synced_once_instead_of_each_file(tmp_path, folder, synced_paths, whole, descriptor):
    begun = clock_ns()
    (folder / "file").write_text("x")
    sync_folder(str(tmp_path), JOB, begun, descriptor)
    assert (whole, synced_paths) == ([descriptor], [])


def test_nothing_is_synced_where_nothing_changed(tmp_path, folder, synced_paths, whole, descriptor):
    (folder / "file").write_text("x")
    sync_folder(str(tmp_path), JOB, clock_ns() + LATER_NS, descriptor)
    assert (whole, synced_paths) == ([], [])


def test_without_a_descriptor_of_the_same_disk_each_file_is_synced(
    tmp_path, folder, synced_paths, whole, descriptor
):
    """Given a descriptor of another disk, one that the stage has closed, or none, then each file is synced."""
    begun = clock_ns()
    (folder / "file").write_text("x")
    closed = os.dup(descriptor)
    os.close(closed)
    elsewhere = os.open("/proc", os.O_RDONLY)
    for disk_descriptor in (elsewhere, closed, None):
        synced_paths.clear()
        sync_folder(str(tmp_path), JOB, begun, disk_descriptor)
        assert folder / "file" in synced_paths
    os.close(elsewhere)
    assert whole == []


def test_few_files_are_synced_each(tmp_path, whole, descriptor):
    assert not filesystem.synced_whole(descriptor, tmp_path.stat().st_dev, filesystem.LEAST_FILES - 1)
    assert whole == []


@pytest.mark.parametrize(
    ("kind", "waiting_bytes", "worth_it"),
    [
        ("ext4", 0, True),
        ("xfs", filesystem.MOST_WAITING_BYTES, True),
        ("nfs4", 0, False),
        ("", 0, False),
        ("ext4", filesystem.MOST_WAITING_BYTES + 1, False),
    ],
)
def test_it_is_worth_it_on_a_disk_of_its_own_while_little_waits(monkeypatch, kind, waiting_bytes, worth_it):
    monkeypatch.setattr(filesystem, "_kind", lambda device: kind)
    monkeypatch.setattr(filesystem, "_waiting_bytes", lambda interval: waiting_bytes)
    assert filesystem.is_worth_it(1) is worth_it


def test_what_waits_to_be_written_and_the_kind_of_a_disk_are_known():
    assert 0 <= filesystem._waiting_bytes(0) < 2**50
    assert filesystem._kind(Path("/proc").stat().st_dev) == "proc"
    assert filesystem._kind(os.makedev(4095, 1)) == ""


def test_a_disk_that_refuses_to_sync_as_a_whole_makes_it_an_error(
    tmp_path, folder, monkeypatch, whole, descriptor
):
    begun = clock_ns()

    def refuses(fd):
        raise OSError(5, "Input/output error")

    (folder / "file").write_text("x")
    monkeypatch.setattr(filesystem, "sync_whole", refuses)
    detail = synced({"outcome": "ok", "result": "1"}, str(tmp_path), JOB, begun, descriptor)
    assert (detail["outcome"], "Input/output error" in detail["message"]) == ("error", True)


def test_a_descriptor_that_cannot_be_synced_by_raises(tmp_path):
    with pytest.raises(OSError, match="Bad file descriptor"):
        filesystem.sync_whole(-1)


def test_a_root_that_is_not_there_has_no_descriptor(tmp_path):
    assert opened(str(tmp_path / "gone")) is None
