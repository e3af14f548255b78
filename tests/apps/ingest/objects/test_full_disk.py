"""A file system that takes no more: what was begun is mended by running the stage again, and nothing half is stored."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from apps.ingest.objects.scene import Deposit, Service, zipped

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
    assert (ran.outcome, ran.signal.retryable) == ("error", True)  # type: ignore[union-attr]
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


def _stored(service: Service, deposit: Deposit, first: str = "downloading") -> dict[str, bytes]:
    deposit.to("recording", first)
    ark = deposit.bench.results["processing"]["ark"]
    assert service.storage.verify(ark).faults == ()
    return service.stored(ark)
