"""Job folders are spread, made, removed, and repaired after a crash."""

import logging
import os
import pathlib
import subprocess
import tempfile

import pytest
from executor_fixtures import open_fds

from deep_folders import deep_folder
from small_disk import small_disk
from spinney.define.job.data import folder_of
from spinney.features.files import folder_writes
from spinney.folders import folders
from spinney.folders.upload_folder import UploadFolder
from spinney.model.errors import StoreUnusable
from spinney.model.settings.inboxes import Upload
from spinney.node.worker.capture import append
from spinney.web.files import spool


@pytest.fixture
def root(tmp_path):
    place = tmp_path / "folders"
    place.mkdir()
    (place / folders.TOKEN).touch()
    return place


@pytest.mark.parametrize(
    ("job_id", "expected"),
    [
        (1, "00/00/00/000000000001"),
        (1270, "00/00/12/000000001270"),
        (9_999_999, "09/99/99/000009999999"),
        (123_456_789, "123/45/67/000123456789"),
    ],
)
def test_folders_are_spread(root, job_id, expected):
    assert folders.path(root, job_id) == root / expected


def test_a_folder_is_made_once_and_kept(root):
    made = folders.make(root, 1270)
    (made / "file").write_text("x")
    assert folders.make(root, 1270) == made
    assert (made / "file").read_text() == "x"


@pytest.mark.parametrize(
    ("job_ids", "removed", "highest"),
    [
        ([], [], 0),
        ([7, 1270, 9_999_999], [], 9_999_999),
        ([99_000_000, 123_456_789], [], 123_456_789),  # the first level has two digits or three
        ([7, 1270], [1270], 1200),
        ([7], [7], 0),
    ],
)
def test_the_highest_job_with_a_folder_is_read_from_the_directories(root, job_ids, removed, highest):
    for job_id in job_ids:
        folders.make(root, job_id)
    for job_id in removed:
        folders.remove(root, job_id)
    for foreign in ("2024", "20240101/10/10", "views", "00/00/00/2024"):  # directories that belong to no job
        (root / foreign).mkdir(parents=True, exist_ok=True)
    (root / "98").touch()
    assert folders.highest_job(root) == highest


@pytest.mark.parametrize("level", ["00", "00/00", "00/00/12", "00/00/12/000000001270"])
def test_a_file_in_the_way_is_refused(root, level):
    (root / level).parent.mkdir(parents=True, exist_ok=True)
    (root / level).write_text("x")
    with pytest.raises(StoreUnusable, match=r"cannot make the folder .* of job 1270"):
        folders.make(root, 1270)


def test_a_link_in_the_way_is_refused(root, tmp_path):
    """Given a link where a folder should be, then nothing is made behind it."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (root / "00").symlink_to(elsewhere)
    with pytest.raises(StoreUnusable, match="job 5"):
        folders.make(root, 5)
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("place", ["", "nowhere"])
def test_nothing_is_made_or_removed_where_the_root_is_gone_or_not_mounted(tmp_path, place):
    for change in (folders.make, folders.remove):
        with pytest.raises(StoreUnusable, match=r"it has no token.*mount the shared folder there"):
            change(tmp_path / place, 1)
    with pytest.raises(FileNotFoundError, match="does not exist or is not mounted; mount it again"):
        folder_of(tmp_path / place, 1)
    with pytest.raises(FileNotFoundError, match="does not exist or is not mounted"):
        append(tmp_path / place / "00/00/00/000000000001/.spinney/run.1.stdout", b"lost")
    assert list(tmp_path.iterdir()) == []


def test_removing_removes_everything_and_may_be_repeated(root):
    folder = folders.make(root, 3)
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "file").write_text("x")
    folders.remove(root, 3)
    folders.remove(root, 3)
    assert not folder.exists()
    assert list((root / folders.TRASH).iterdir()) == []


def test_a_folder_with_more_levels_than_python_has_is_removed(root):
    """Given a program that has made very many directories one within the other, then its folder is removed, and one
    that was left in the trash by an earlier version, too."""
    folder, left = folders.make(root, 3), root / folders.TRASH / "left"
    left.mkdir(parents=True)
    with deep_folder(folder), deep_folder(left):
        folders.remove(root, 3)
        assert folders.empty_trash(root) == 1
        assert list((root / folders.TRASH).iterdir()) == []


def test_a_trash_that_cannot_be_read_is_logged_and_ends_nothing(root, caplog):
    (root / folders.TRASH).touch()
    assert folders.empty_trash(root) == 0
    assert "cannot read" in caplog.text


def test_removing_does_not_follow_links(root, tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("kept")
    folder = folders.make(root, 4)
    (folder / "link").symlink_to(precious)
    (folder / "file-link").symlink_to(precious / "file")
    folders.remove(root, 4)
    assert (precious / "file").read_text() == "kept"


def test_a_link_in_a_folders_place_is_removed_itself(root, tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    folder = folders.make(root, 5)
    folder.rmdir()
    folder.symlink_to(precious)
    folders.remove(root, 5)
    assert precious.is_dir()
    assert not folder.is_symlink()


def test_a_crash_between_the_two_steps_leaves_only_trash(root, monkeypatch):
    """Given a removal that died after the rename, when the node starts again, then it is finished."""
    folder = folders.make(root, 6)
    (folder / "file").write_text("x")
    monkeypatch.setattr(folders, "_delete", lambda thing: None)
    folders.remove(root, 6)
    assert not folder.exists()
    monkeypatch.undo()
    assert folders.empty_trash(root) == 1
    assert folders.empty_trash(root) == 0


def test_folders_without_permissions_go_too(root):
    folder = folders.make(root, 7)
    (folder / "closed" / "inner").mkdir(parents=True)
    (folder / "closed" / "inner").chmod(0)
    (folder / "closed").chmod(0)
    folders.remove(root, 7)
    assert list((root / folders.TRASH).iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a directory of another user")
@pytest.mark.parametrize("mode", [0o755, 0o744, 0o700])
def test_files_of_another_user_stay_in_the_trash_are_told_once_and_keep_nothing_else(mode):
    """Given a folder with a full directory of root, when a node of another user removes it, and takes the lead twice,
    then nothing ends, all that may be deleted is, and the log names once what stays."""
    nobody = 65534
    with tempfile.TemporaryDirectory() as place:
        root = pathlib.Path(place)
        (root / folders.TOKEN).touch()
        theirs, closed = folders.make(root, 8) / "theirs", folders.make(root, 9) / "closed"
        for directory in (theirs, closed):
            directory.mkdir()
            (directory / "file").write_text("x")
        closed.chmod(0)
        for own in (root, *root.rglob("*")):
            if not own.is_relative_to(theirs):
                os.chown(own, nobody, nobody)
        theirs.chmod(mode)

        read, write = os.pipe()
        child = os.fork()  # root may delete anything
        if child == 0:
            try:
                os.setuid(nobody)
                folders.log.addHandler(logging.StreamHandler(os.fdopen(write, "w")))
                for job_id in (8, 9):
                    folders.remove(root, job_id)
                left = [folders.empty_trash(root) for _ in range(2)]
                os._exit(0 if left == [1, 1] else 1)
            finally:
                os._exit(1)
        os.close(write)
        with os.fdopen(read) as log:
            lines = log.read().splitlines()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        (line,) = lines
        (stays,) = (root / folders.TRASH).iterdir()
        assert str(stays) in line
        assert "by hand" in line
        assert (stays / "theirs" / "file").read_text() == "x"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files for another user")
def test_what_root_makes_below_a_root_of_another_user_belongs_to_that_user(root):
    nobody = 65534
    for place in (root, root / folders.TOKEN):
        os.chown(place, nobody, nobody)

    folders.make(root, 1)
    folders.remove(root, 1)
    uploads = UploadFolder(root)
    begun = uploads.begin(Upload(id="", inbox="in", name="a.txt", size=2, by="ann"))
    with uploads.locked(begun.id, "ann") as opened:
        opened.write(b"ab")
        opened.seal()
        opened.place(1234)
        opened.settle(1234, None)
    begun = uploads.begin(Upload(id="", inbox="in", name="b.txt", size=2, by="ann"))
    with spool.room(root) as several:
        with several.writing("deep/er/c.txt") as file:
            file.write(b"c")
        folder_writes.put(root, 1235, several.files)

    places = list(root.rglob("*"))
    assert {"a.txt", "b.txt", "c.txt", ".trash", ".spool"} - {place.name for place in places} == {"b.txt"}
    assert [place for place in places if place.stat().st_uid != nobody] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a directory of another user")
@pytest.mark.parametrize("refusing", [folders.TRASH, "00/00/00", "."])
def test_the_directory_that_refuses_a_removal_is_named(refusing):
    nobody = 65534
    with tempfile.TemporaryDirectory() as place:
        root = pathlib.Path(place)
        (root / folders.TOKEN).touch()
        folders.make(root, 1)
        if refusing != ".":
            (root / folders.TRASH).mkdir()
        for own in (root, *root.rglob("*")):
            if own != root / refusing:
                os.chown(own, nobody, nobody)
        (root / refusing).chmod(0o755)

        os.seteuid(nobody)
        try:
            with pytest.raises(StoreUnusable, match=f"see that {(root / refusing)} is writable"):
                folders.remove(root, 1)
        finally:
            os.seteuid(0)


def test_the_token_tells_the_right_root(root, tmp_path):
    (root / folders.TOKEN).unlink()
    folders.write_token(root, "abc")
    folders.write_token(root, "abc")
    folders.check_token(root, "abc")
    with pytest.raises(StoreUnusable, match="another store"):
        folders.check_token(root, "xyz")
    with pytest.raises(StoreUnusable, match="another store"):
        folders.write_token(root, "xyz")
    with pytest.raises(StoreUnusable, match="has no token"):
        folders.check_token(tmp_path, "abc")
    assert [p.name for p in root.iterdir()] == [folders.TOKEN]


def test_a_root_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnusable, match="name a folder"):
        folders.write_token(tmp_path / "file" / "below", "abc")


def test_nothing_is_left_open(root):
    before = open_fds()
    for job_id in range(20):
        folders.make(root, job_id)
        folders.remove(root, job_id)
    assert open_fds() == before


def test_a_disk_without_room_and_a_root_that_is_gone_are_told(tmp_path: pathlib.Path) -> None:
    assert folders.write_problem(tmp_path) is None
    gone = tmp_path / "gone"
    assert str(folders.write_problem(gone)).startswith(
        f"the folder root {gone} cannot be reached: No such file"
    )
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "none", disk], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    try:
        assert folders.write_problem(disk) is None
        (disk / "filler").write_bytes(b"\0" * 3_500_000)
        assert folders.write_problem(disk) == (
            f"the disk of the folder root {disk} is full; make room there, 'spinney keep' says how"
        )
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_root_on_a_disk_that_turned_read_only_is_told(tmp_path: pathlib.Path) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        subprocess.run(["mount", "-o", "remount,ro", disk.folder], check=True)
        assert folders.write_problem(disk.folder) == (
            f"the folder root {disk.folder} is read-only; make it writable"
        )
