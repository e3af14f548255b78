"""A file system that takes no more: what was begun is mended by running the stage again, and nothing half is stored."""

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from apps.ingest.batch.test_batch import Batch, PayloadKind
from apps.ingest.objects.scene import Deposit, Service, about, zipped
from apps.ingest.signals import deferral, failure
from apps.ingest.storage.moody import moody

LARGE = os.urandom(1 << 20)


@contextmanager
def no_file_above(size_bytes: int) -> Iterator[None]:
    """Writing more fails in the kernel, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_download_goes_on_where_it_stopped(service: Service) -> None:
    deposit = service.of_file(LARGE)
    deposit.to("provisioning")
    with no_file_above(600_000):
        ran = deposit.run("downloading")
    assert failure(ran).retryable
    assert "the file system failed" in ran.message
    assert _stored(service, deposit) == {"a.txt": LARGE}


def test_a_list_is_whole_or_not_there(service: Service) -> None:
    deposit = service.of_file()
    with no_file_above(50), pytest.raises(OSError, match="large"):
        deposit.run("estimating")
    assert not (deposit.folder / "wanted.jsonl").exists()
    assert deposit.run("estimating").outcome == "ok"


@pytest.mark.parametrize("is_container", [False, True])
def test_what_was_half_unpacked_or_half_stored_is_done_again(service: Service, is_container: bool) -> None:
    deposit = service.of_container(zipped({"a.txt": LARGE})) if is_container else service.of_file(LARGE)
    deposit.to("downloading")
    with no_file_above(600_000), pytest.raises(OSError, match="large"):
        deposit.run("processing")
    assert not any((service.folder / "archive").glob("*/*/*/*/inventory.json"))
    assert _stored(service, deposit, "processing") == {"a.txt": LARGE}


# --- disks that are full ----------------------------------------------------------------------


@contextmanager
def small(folder: Path, *options: str) -> Iterator[Path]:
    """A file system with room for a megabyte."""
    folder.mkdir(parents=True, exist_ok=True)
    words = ["mount", "-t", "tmpfs", "-o", ",".join(["size=1m", *options]), "none", folder]
    mounted = subprocess.run(words, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_archive_is_waited_for_and_told_with_what_is_missing(service: Service) -> None:
    with small(service.folder / "small") as folder:
        service.write(storage={"main": {"url": str(folder)}})
        service.prepare()
        (filler := folder / "filler").write_bytes(b"x" * 600_000)
        deposit = service.of_file(LARGE[:800_000], about=about(local_ids=("m",)))
        ran = deposit.to("processing")
        assert not deferral(ran).lane
        assert f"{folder} has no room: 811,008 bytes are needed" in ran.message
        assert "are missing; make room, and it continues by itself" in ran.message
        # What is smaller is stored meanwhile, and the other once there is room.
        assert service.of_file(b"small", number=2).deposit()["version"] == 1
        filler.unlink()
        assert _stored(service, deposit, "processing") == {"a.txt": LARGE[:800_000]}


def test_an_archive_that_fills_meanwhile_is_waited_for(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small(service.folder / "small") as folder:
        service.write(storage={"main": {"url": str(folder)}})
        service.prepare()
        (filler := folder / "filler").write_bytes(b"x" * 600_000)
        deposit = service.of_file(LARGE[:800_000])
        deposit.to("downloading")
        with monkeypatch.context() as patched:
            patched.setattr(
                "spinney.files.disk_space.require", lambda *_: None
            )  # others take it behind that look
            ran = deposit.run("processing")
        assert (ran.outcome, f"{folder} has no room: 811,008 bytes" in ran.message) == ("defer", True)
        assert [path.name for path in folder.rglob("partial")] == [], (
            "what is half there does not keep it full"
        )
        filler.unlink()
        assert deposit.run("processing").outcome == "ok"


def test_a_service_of_storage_without_room_is_waited_for(
    service: Service, s3_server: str, bucket: str
) -> None:
    is_full = False
    with moody(
        s3_server, before=lambda method, path, _: 507 if is_full and "content" in path else None
    ) as endpoint:
        service.write(storage={"main": {"url": f"s3://{bucket}/archive", "endpoint": endpoint}})
        service.prepare()
        deposit = service.of_file()
        deposit.to("downloading")
        is_full = True
        ran = deposit.run("processing")
        assert ran.outcome == "defer"
        assert f"s3://{bucket} has no room" in ran.message
        is_full = False
        assert deposit.run("processing").outcome == "ok"


def test_an_inventory_whose_disk_is_full_is_waited_for(service: Service) -> None:
    with small(service.folder / "small") as folder:
        service.write(inventory=f"sqlite:///{folder}/inventory.db")
        service.prepare()
        deposit = service.of_file()
        deposit.to("processing")
        (filler := folder / "filler").touch()
        with pytest.raises(OSError, match="No space"):
            filler.write_bytes(b"x" * (1 << 20))
        ran = deposit.run("recording")
        assert ran.outcome == "defer"
        assert f"the disk that holds {folder}/inventory.db is full" in ran.message
        filler.unlink()
        assert deposit.run("recording").outcome == "ok"


def test_a_working_disk_that_is_full_is_waited_for_at_every_stage(service: Service) -> None:
    service.write(areas={"small": "small"})
    service.profile(area="small")
    with small(service.folder / "small", "nr_inodes=9") as folder:
        ran = service.of_files({"a": b"1", "b": b"2", "c": b"3"}).to("downloading")
        assert (ran.outcome, f"{folder}/" in ran.message, "is full" in ran.message) == (
            "defer",
            True,
            True,
        )
    with small(service.folder / "small", "nr_inodes=3"):
        ran = service.of_file(number=2).run("estimating")
        assert (ran.outcome, "is full" in ran.message) == ("defer", True)


def test_a_container_for_whose_content_there_is_no_room_waits_and_says_how_much_is_missing(
    service: Service,
) -> None:
    service.write(areas={"small": "small"})
    service.profile(area="small")
    with small(service.folder / "small") as folder:
        ran = service.of_container(zipped({"a.txt": b"1"})).to("processing")
        needed = f"has no room: {(16 << 20) + 1:,} bytes are needed"
        assert (ran.outcome, f"{folder}/" in ran.message, needed in ran.message) == ("defer", True, True)


def test_a_batch_for_which_there_is_no_room_waits(service: Service) -> None:
    batch = Batch(service, LARGE + LARGE, PayloadKind.FILE, "x")
    with small(batch.root):
        ran = batch.run("processing")
        assert (ran.outcome, "has no room: 2,097,152 bytes are needed" in ran.message) == ("defer", True)
        assert batch.incoming.exists()


def _stored(service: Service, deposit: Deposit, first: str = "downloading") -> dict[str, bytes]:
    deposit.to("recording", first)
    ark = deposit.harness.results["processing"]["ark"]
    assert service.storage.verify(ark).faults == ()
    return service.stored(ark)
