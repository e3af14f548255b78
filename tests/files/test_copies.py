"""Copies on a disk that is full."""

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
