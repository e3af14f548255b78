"""What an attempt wrote in its folder is on the disk before its success is recorded."""

import os
import shutil
import time
from pathlib import Path

import pytest

from spinney.node import folders
from spinney.node.executors import sync
from spinney.node.executors.sync import sync_folder, synced

JOB = 1270
LATER_US = 2_000_000
"""Beyond the slack that is given to a file system's clock."""


@pytest.fixture
def folder(tmp_path):
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


def now_us():
    return time.time_ns() // 1000


def test_new_files_and_directories_are_synced_files_first(tmp_path, folder, synced_paths):
    begun = now_us()
    (folder / "sub").mkdir()
    (folder / "sub" / "file").write_text("x")
    sync_folder(str(tmp_path), JOB, begun)
    assert synced_paths[:2] == [folder / "sub" / "file", folder / "sub"]
    assert synced_paths[2:] == [folder, *folder.parents[:4]]
    assert synced_paths[-1] == tmp_path


def test_what_did_not_change_is_left_alone(tmp_path, folder, synced_paths):
    (folder / "file").write_text("x")
    sync_folder(str(tmp_path), JOB, now_us() + LATER_US)
    assert synced_paths == []


def test_a_copy_with_an_old_time_is_synced(tmp_path, folder, synced_paths):
    """Given a file that was copied with its times, as archives are unpacked, then it counts as new."""
    old = tmp_path / "old"
    old.write_text("x")
    os.utime(old, (1, 1))
    begun = now_us()
    shutil.copy2(old, folder / "copy")
    assert (folder / "copy").stat().st_mtime == 1
    sync_folder(str(tmp_path), JOB, begun)
    assert folder / "copy" in synced_paths


def test_links_pipes_and_the_engines_own_files_are_left_alone(tmp_path, folder, synced_paths):
    begun = now_us()
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
    assert synced(None, str(tmp_path), JOB, now_us()) is None
    assert synced_paths == []


def test_a_success_that_cannot_be_made_safe_is_an_error(tmp_path, folder, monkeypatch):
    (folder / "file").write_text("x")

    def fsync(fd):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fsync)
    detail = synced({"outcome": "ok", "result": "1"}, str(tmp_path), JOB, now_us())
    assert detail["outcome"] == "error"
    assert "Input/output error" in detail["message"]


def test_what_failed_is_not_synced(tmp_path, folder, synced_paths):
    (folder / "file").write_text("x")
    failed = {"outcome": "error"}
    assert synced(failed, str(tmp_path), JOB, now_us()) is failed
    assert synced_paths == []
