"""A download through a server that breaks off: it goes on within the same version of the file, or is refused."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from http_listener import Listening
from server.conftest import SETTINGS, World, unserved
from spinney.client.errors import IncompleteResponse, ServerUnavailable
from spinney.features.files import content
from spinney.features.files.job_folder import elsewhere
from spinney.model.errors import StoreUnavailable
from spinney.model.homes import Home
from spinney.store.parts import Store
from spinney.terminal import remote
from spinney.terminal.remote import RetryingClient

SIZE = 3 * 2**20
BAD = 2**20
"""From this byte on the file cannot be read when the server breaks off."""
OLD = b"A" * SIZE


@dataclass
class Failing:
    """A file of a job whose end cannot be read at first."""

    world: World
    file: Path
    job: int
    client: RetryingClient
    failures: int = 1
    """How many reads behind ``BAD`` fail."""
    replacement: bytes | None = None
    """What the file is replaced with when the first read fails."""
    failed: list[int] = field(default_factory=list)
    """Where each failed read began."""
    refusals: int = 0
    """How many requests behind the first failed read are refused because the store is away."""

    def download(self) -> bytes:
        return b"".join(self.client.job_files(self.job).content("result.bin"))

    def fail(self, start: int) -> None:
        if start < BAD or len(self.failed) >= self.failures:
            return
        self.failed.append(start)
        if self.replacement is not None:
            new = self.file.with_suffix(".new")
            new.write_bytes(self.replacement)
            new.replace(self.file)
        raise OSError(5, "Input/output error")


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Failing]:
    monkeypatch.setattr(remote, "AGAIN_S", 0.02)
    with unserved(tmp_path) as world:
        server = Listening(world.app, SETTINGS)
        job = world.submit("one")
        file = world.folder(job) / "result.bin"
        file.write_bytes(OLD)
        with RetryingClient(server.url, token=None, outage_limit_s=60) as client:
            client._http.headers["X-Asker"] = "operator"
            made = Failing(world, file, job, client)
            read = content._LocalFile._read

            def failing_read(self: content._LocalFile, start: int, length: int) -> bytes:
                made.fail(start)
                return read(self, start, length)

            def elsewhere_unless_restarting(store: Store, job_id: int, root: Path) -> Home | None:
                if made.failed and made.refusals:
                    made.refusals -= 1
                    raise StoreUnavailable("the store is restarted")
                return elsewhere(store, job_id, root)

            monkeypatch.setattr(content._LocalFile, "_read", failing_read)
            monkeypatch.setattr(content, "elsewhere", elsewhere_unless_restarting)
            yield made
        server.end()


def test_the_rest_of_the_same_version_is_taken(failing: Failing) -> None:
    failing.failures = 3

    assert failing.download() == OLD
    assert len(failing.failed) == 3


def test_a_store_that_is_restarted_is_waited_for(failing: Failing) -> None:
    # given: the download breaks off, and then the server answers that its store is away
    failing.refusals = 3

    # when, then: it continues behind the bytes that it has
    assert failing.download() == OLD
    assert failing.refusals == 0


def test_a_store_that_stays_away_is_given_up_in_the_end(failing: Failing) -> None:
    # given
    failing.refusals = 60  # with a pause after each, more than it has patience for
    failing.client._outage_limit_s = 0.3

    # when
    with pytest.raises(StoreUnavailable, match="the store is restarted"):
        failing.download()

    # then: one request asks why it broke off, and the download is tried more than once
    assert failing.refusals < 60 - 2


@pytest.mark.parametrize("size", [SIZE, 10, SIZE + 10])
def test_a_file_that_was_replaced_meanwhile_is_not_continued(failing: Failing, size: int) -> None:
    failing.replacement = b"B" * size

    with pytest.raises(IncompleteResponse, match="changed"):
        failing.download()


def test_a_file_whose_version_nobody_tells_is_not_continued(
    failing: Failing, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given: as of a file on another host
    async def size_alone(_: content._LocalFile) -> tuple[int, None]:
        return SIZE, None

    monkeypatch.setattr(content._LocalFile, "size_and_tag", size_alone)

    # when, then
    with pytest.raises(IncompleteResponse, match="broke its answer off"):
        failing.download()


def test_a_file_that_cannot_be_read_on_is_given_up_in_the_end(failing: Failing) -> None:
    # given
    failing.failures = 60  # with a pause after each, more than it has patience for
    failing.client._outage_limit_s = 0.3

    # when
    with pytest.raises(ServerUnavailable, match="does not answer"):
        failing.download()

    # then
    assert len(failing.failed) > 1
