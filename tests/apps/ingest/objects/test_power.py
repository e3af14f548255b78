"""What would be lost if the power went: nothing is named in the archive, or handed on, before it is synced.

No power is cut here. What is recorded is the state in which each file and folder was when it was synced last: what was
changed since then, or never synced, might be gone.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apps.ingest.objects.scene import Service
from spinney.apps.ingest.deposits import orders
from spinney.host import filesystem
from spinney.node.worker.sync import clock_ns, sync_folder

from .scene import BID, STAGES

State = tuple[int, int]
FILES = {"a.txt": b"a" * 5000, "deep/b.txt": b"b"}
NOT_HANDED_ON = ("payload.fetching", "job")
"""Read by the stage that writes it only, or (the mark of an area's folder) written anew where it is gone."""


class Disk:
    """Remembers what was synced, and looks before each rename of a folder whether all of it was."""

    def __init__(self, watch: pytest.MonkeyPatch, top: Path) -> None:
        self.synced: dict[tuple[int, int], State] = {}
        self.moved: list[tuple[str, list[str]]] = []
        """Into the archive: whereto, and what of it might have been lost."""
        self.whole: list[int] = []
        """Descriptors by which all was synced at once, if that was allowed."""
        self._sync, self._rename = os.fsync, os.rename
        self._watch, self._top = watch, top
        watch.setattr(filesystem, "is_worth_it", lambda device: False)
        watch.setattr(os, "fsync", self._synced_by(os.fsync))
        watch.setattr(os, "fdatasync", self._synced_by(os.fdatasync))
        watch.setattr(os, "rename", self._renamed)

    def allow_whole(self) -> None:
        """Have file systems synced as a whole, which is taken to be worth it."""
        self._watch.setattr(filesystem, "is_worth_it", lambda device: True)
        self._watch.setattr(filesystem, "sync_whole", self._synced_whole)

    def _synced_whole(self, descriptor: int) -> None:
        self.whole.append(descriptor)
        for path in (self._top, *self._top.rglob("*")):
            before = path.lstat()
            self.synced[before.st_dev, before.st_ino] = _state(before)

    def unsafe(self, path: Path) -> bool:
        after = path.stat()
        return self.synced.get((after.st_dev, after.st_ino)) != _state(after)

    def unsafe_below(self, top: Path) -> list[str]:
        """Files and folders that might be gone, ``top`` itself too."""
        return [str(path.relative_to(top)) for path in (top, *sorted(top.rglob("*"))) if self.unsafe(path)]

    def _synced_by(self, sync: Callable[[int], None]) -> Callable[[int], None]:
        def synced(fd: int) -> None:
            before = os.fstat(fd)  # what is written from here on may come too late
            sync(fd)
            self.synced[before.st_dev, before.st_ino] = _state(before)

        return synced

    def _renamed(self, source: Any, target: Any, **more: Any) -> None:
        if "/archive/" in str(target) and "/extensions/" not in str(target):
            self.moved.append((Path(target).name, self.unsafe_below(Path(source))))
        self._rename(source, target, **more)


def _state(status: os.stat_result) -> State:
    return status.st_mtime_ns, status.st_size


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Disk:
    return Disk(monkeypatch, tmp_path)


@pytest.mark.parametrize("area", [None, "fast"])
def test_what_a_stage_hands_on_is_synced_before_it_is_recorded(
    service: Service, disk: Disk, area: str | None
) -> None:
    # Given an object that works in its job's folder, or in an area of its own
    if area is not None:
        service.write(areas={area: area})
        service.prepare()
        service.profile(area=area)
    deposit = service.of_files(FILES)
    place = deposit.folder if area is None else service.folder / area / orders.jid(BID, 1)
    job_id = int(deposit.folder.name)

    for stage in STAGES[: STAGES.index("recording")]:
        # When a stage has passed, and the engine has synced the job's folder and nothing else
        since_ns = clock_ns()
        assert deposit.run(stage).outcome == "ok", stage
        sync_folder(str(deposit.root), job_id, since_ns)
        # Then what it left for the next stages is safe, with the names of the folders above
        unsafe = disk.unsafe_below(place)
        assert [name for name in unsafe if not name.startswith(NOT_HANDED_ON)] == [], stage
        assert not disk.unsafe(place.parent), stage


@pytest.mark.parametrize("whole", [False, True])
def test_no_version_is_named_in_the_archive_before_all_of_it_is_synced(
    service: Service, disk: Disk, whole: bool
) -> None:
    if whole:
        disk.allow_whole()
    # When an object is stored, and then a second version of it
    done = service.of_files(FILES, 1, about={"local_ids": ["one"]}).deposit()
    service.of_files(FILES | {"c.txt": b"c"}, 2, about={"local_ids": ["one"]}).deposit()

    assert len(disk.whole) == (2 if whole else 0)

    # Then each rename brought in only what was synced, the inventory after its version, and the names are synced too
    (first, _), *then = disk.moved
    assert [name for name, _ in then] == ["v2", "inventory.json", "inventory.json.sha512"]
    assert [unsafe for _, unsafe in disk.moved] == [[]] * 4
    archive = service.folder / "archive"
    (made,) = (path for path in archive.rglob(first) if "extensions" not in path.parts)
    assert service.storage.versions(done["ark"])[-1].number == 2
    assert disk.unsafe_below(made) == []
    assert [above for above in made.parents if above.is_relative_to(archive) and disk.unsafe(above)] == []


def test_no_file_is_synced_twice_and_none_in_the_jobs_folder(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def watched(fd: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{fd}").readlink()))
        real(fd)

    monkeypatch.setattr(os, "fsync", watched)
    monkeypatch.setattr(filesystem, "is_worth_it", lambda device: False)
    deposit = service.of_files(FILES)
    deposit.deposit("recording")
    assert [path for path in synced if path.startswith(str(deposit.folder))] == []
    files = [path for path in synced if not Path(path).is_dir()]
    assert len(files) == len(set(files)), files
