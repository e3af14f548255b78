"""A tree is removed whatever a program has made of it, and nothing beside it."""

import errno
import os
import threading
from pathlib import Path

import pytest

from deep_folders import deep_folder
from spinney.files import trees


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A folder that must stay."""
    folder = tmp_path / "beside"
    folder.mkdir()
    (folder / "kept").touch()
    return folder


def test_given_more_levels_than_python_has_then_all_are_removed(tmp_path: Path) -> None:
    with deep_folder(tmp_path) as folder:
        trees.remove(folder)
        assert not folder.exists()


def test_given_a_file_a_link_or_nothing_then_that_is_removed_itself(tmp_path: Path, beside: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(beside)
    for name in ("file", "link", "nothing", "nowhere/at/all"):
        trees.remove(tmp_path / name)

    assert [path.name for path in tmp_path.iterdir()] == ["beside"]
    assert (beside / "kept").exists()


def test_given_a_link_in_the_place_of_a_directory_meanwhile_then_it_is_not_followed(
    tmp_path: Path, beside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a program that puts a link in the place of a directory between the look at it and its opening."""
    victim = tmp_path / "tree" / "directory"
    victim.mkdir(parents=True)
    stat = os.stat

    def swapping(name: str, **options: object) -> os.stat_result:
        status = stat(name, **options)  # type: ignore[arg-type]
        if name == victim.name and not victim.is_symlink():
            victim.rmdir()
            victim.symlink_to(beside)
        return status

    monkeypatch.setattr(os, "stat", swapping)
    with pytest.raises(NotADirectoryError):
        trees.remove(tmp_path / "tree")
    assert (beside / "kept").exists()
    trees.remove(tmp_path / "tree")
    assert not (tmp_path / "tree").exists()


def test_given_an_entry_that_cannot_be_removed_then_all_others_are_and_its_error_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / "tree"
    for name in ("a", "b", "c"):
        (tree / name).mkdir(parents=True)
        (tree / name / f"{name}.txt").touch()
    unlink = os.unlink

    def refusing(name: str, **options: int) -> None:
        if name == "b.txt":
            raise PermissionError(1, "Operation not permitted")
        unlink(name, **options)

    monkeypatch.setattr(os, "unlink", refusing)
    with pytest.raises(PermissionError):
        trees.remove(tree)

    assert [path.relative_to(tree).as_posix() for path in tree.rglob("*")] == ["b", "b/b.txt"]


def test_given_two_that_remove_the_same_deep_folder_then_it_is_removed(tmp_path: Path) -> None:
    errors: list[BaseException] = []

    def remove(folder: Path) -> None:
        try:
            trees.remove(folder)
        except BaseException as error:  # noqa: BLE001 - it is looked at in the thread of the test
            errors.append(error)

    with deep_folder(tmp_path) as folder:
        threads = [threading.Thread(target=remove, args=(folder,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not folder.exists()
    assert {error.errno for error in errors if isinstance(error, OSError)} <= {errno.ENOTEMPTY}
    assert all(isinstance(error, OSError) for error in errors)
