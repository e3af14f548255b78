"""Copies on a disk that is full, and files that are replaced."""

from pathlib import Path

import pytest

from small_disk import small_disk
from spinney.files import copies


def test_a_copy_that_does_not_fit_leaves_no_part_and_names_its_target(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(3 << 20))
    with small_disk(tmp_path / "disk", 2) as disk:
        target = disk.folder / "target"
        target.write_bytes(b"before")

        with pytest.raises(OSError, match="No space left") as full:
            copies.copy_atomically(source, target)

        assert str(target) in str(full.value)
        assert target.read_bytes() == b"before"
        assert [path.name for path in disk.folder.iterdir()] == ["target"]


def test_a_file_that_is_being_replaced_stays_as_it_is_until_the_end(tmp_path: Path) -> None:
    path = tmp_path / "list"
    with copies.replacing(path) as out:
        out.write(b"one\n")
        assert not path.exists()
    with pytest.raises(TypeError), copies.replacing(path, sync=False) as out:
        out.writelines([b"two\n", None])  # type: ignore[list-item]
    assert path.read_bytes() == b"one\n"
