"""Handing in, where something breaks half-way: what nobody took is gone, and what somebody may have taken stays."""

import io
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apps.ingest.objects.test_full_disk import small
from small_disk import small_disk
from spinney.apps.ingest.config.settings import Mail
from spinney.apps.ingest.deposits import orders
from spinney.apps.ingest.manifests import PayloadKind
from spinney.apps.ingest.verbs.arrivals import expect, submit
from spinney.apps.ingest.verbs.deletions import Sweep
from spinney.apps.ingest.verbs.lookup import batches, find_batch
from spinney.apps.ingest.verbs.service import Service
from spinney.apps.ingest.verbs.submission import Submit
from spinney.model.errors import CommitUncertain, Refused, UsageError

GIVEN = Submit(name="map.tif", profile="maps", submitter="ann", kind=PayloadKind.FILE)


def changed(**fields: Any) -> Submit:
    return GIVEN.model_copy(update=fields)


def left(service: Service) -> list[str]:
    places = (service.settings.incoming, service.settings.held)
    return sorted(
        str(path.relative_to(service.settings.home)) for place in places for path in place.rglob("*")
    )


class Source(io.BytesIO):
    """A payload of which the second piece does not come."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(b"some bytes")
        self.error = error

    def read(self, size: int | None = -1, /) -> bytes:
        if piece := super().read(4):
            return piece
        raise self.error

    def fileno(self) -> int:
        raise AssertionError("nobody asks before the end")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(5, "Input/output error")])
def test_a_payload_that_breaks_off_leaves_nothing(service: Service, error: BaseException) -> None:
    with pytest.raises(type(error)):
        submit(service, Source(error), GIVEN)

    assert left(service) == []
    assert list(batches(service)) == []


def test_a_file_that_grows_while_it_is_read_is_refused(service: Service, tmp_path: Path) -> None:
    path = tmp_path / "growing"
    path.write_bytes(b"begun")

    class Growing(io.FileIO):
        def read(self, size: int | None = -1, /) -> bytes:
            piece = super().read(size)
            if not piece:
                with path.open("ab") as more:
                    more.write(b" and gone on")
            return piece

    with Growing(path) as source, pytest.raises(Refused, match="it changes"):
        submit(service, source, GIVEN)

    assert left(service) == []


def test_a_file_that_was_read_in_part_before_is_taken_from_there(service: Service, tmp_path: Path) -> None:
    # given: as with stdin in "(head -n 1 >/dev/null; spinney ingest submit -) <file"
    path = tmp_path / "labelled"
    path.write_bytes(b"a label\nthe payload")

    # when
    with path.open("rb", buffering=0) as source:
        source.seek(len(b"a label\n"))
        submit(service, source, GIVEN)

    # then
    (bid,) = (batch.bid for batch in batches(service))
    assert (service.settings.incoming / bid / "map.tif").read_bytes() == b"the payload"


def test_a_full_disk_takes_nothing_in_and_says_so(service: Service) -> None:
    with small(service.settings.incoming) as folder:
        with pytest.raises(Refused, match=f"^{folder} .* make room, and submit it again"):
            submit(service, io.BytesIO(b"x" * (2 << 20)), GIVEN)
        assert left(service) == []


@pytest.mark.parametrize("what", ["incoming", "held"])
def test_a_read_only_home_takes_nothing_in_and_says_so(service: Service, tmp_path: Path, what: str) -> None:
    with small_disk(service.settings.home / what, 2) as disk:
        subprocess.run(["mount", "-o", "remount,ro", disk.folder], check=True)
        with (tmp_path / "ingest.toml").open("rb") as source, pytest.raises(Refused) as error:
            submit(service, source, GIVEN)

    assert str(error.value) == (
        f"{service.settings.home} cannot be written, since its disk is read-only; check the disk and mount it for "
        f"writing, and submit it again"
    )
    assert left(service) == []
    assert list(batches(service)) == []


def test_an_answer_that_was_lost_takes_nothing_back(service: Service, tmp_path: Path) -> None:
    """The batch may be there: its payload, and the reason to hold it, stay until somebody knows."""
    real = service.store

    class Losing:
        """The store, whose answer to a submission is lost behind the commit."""

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def submit(self, *words: Any, **more: Any) -> Any:
            real.submit(*words, **more)
            raise CommitUncertain("the connection was lost;")

    losing = replace(service, control=replace(service.control, store=Losing()))
    with (tmp_path / "ingest.toml").open("rb") as source, pytest.raises(CommitUncertain) as error:
        submit(losing, source, GIVEN)

    (bid,) = (batch.bid for batch in batches(service))
    assert f"'spinney ingest status {bid}'" in str(error.value)
    assert left(service) == [f"held/{bid}", f"incoming/{bid}", f"incoming/{bid}/map.tif"]
    for name in left(service):
        os.utime(service.settings.home / name, (0, 0))
    assert Sweep(days=0).run(service)["leftovers"] == [], "what a batch still waits for is no leftover"


def test_the_mark_of_a_host_that_nobody_asks_any_more_is_a_leftover(service: Service) -> None:
    service.settings.unresponsive_hosts.mkdir()
    old, new, lock = (service.settings.unresponsive_hosts / name for name in ("old.json", "new.json", "lock"))
    for path in (old, new, lock):
        path.write_text("{}")
    for path in (old, lock):
        os.utime(path, (0, 0))
    assert Sweep(days=0).run(service)["leftovers"] == [str(old)]
    assert (old.exists(), new.exists(), lock.exists()) == (False, True, True)


def test_whoever_is_to_be_told_must_be_told(service: Service) -> None:
    mail = Mail(host="localhost", sender="archive@example.org")
    profile = service.settings.profiles / "maps.toml"
    order = changed(notification=["ann@example.org"])
    with pytest.raises(UsageError, match="sends no mail"):
        expect(service, order)
    service = replace(service, settings=service.settings.model_copy(update={"mail": mail}))
    profile.write_text("collection = 'maps'\n[report]\nkind = 'suppressed'\n")
    with pytest.raises(UsageError, match="has no reports sent"):
        expect(service, order)
    profile.write_text("collection = 'maps'\n")
    with pytest.raises(UsageError, match="shorten it"):
        expect(service, changed(notification=[f"{'a' * 320} <ann@example.org>"]))
    assert expect(service, order).submission == order
    assert left(service) == []


def test_a_name_that_no_file_system_has_is_refused_before_anything_is_made(service: Service) -> None:
    for name in ("", ".", "..", "a/b", "a\0b", "n" * 256):
        with pytest.raises(UsageError):
            submit(service, io.BytesIO(b"x"), changed(name=name))
    assert left(service) == []


def test_names_that_are_odd_but_lawful_are_kept_as_they_are(service: Service, tmp_path: Path) -> None:
    for name in ("-rf", "a\nb", "%2e%2e", "ü \\ '\"", "a.new"):
        with (tmp_path / "ingest.toml").open("rb") as source:
            accepted = submit(service, source, changed(name=name))

        assert [file.name for file in (service.settings.incoming / accepted.bid).iterdir()] == [name]
        assert find_batch(service, accepted.bid).order.name == name


def test_a_payload_that_its_batch_takes_while_they_are_swept_is_passed_over(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = service.settings.incoming / orders.new_bid()
    folder.mkdir()
    (folder / "map.tif").write_bytes(b"map")
    iterdir = Path.iterdir

    def taken_meanwhile(path: Path) -> Iterator[Path]:
        entries = list(iterdir(path))
        if path == folder:
            shutil.rmtree(folder)
        return iter(entries)

    monkeypatch.setattr(Path, "iterdir", taken_meanwhile)

    assert Sweep(days=90).run(service) == {"batches": [], "leftovers": []}
    assert not folder.exists()
