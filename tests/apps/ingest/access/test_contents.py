"""One file of a stored object, on its way to who asked: whole and right, or not to its end."""

import subprocess
from collections.abc import Callable

import pytest

from cli.remote.conftest import Both
from cli.shell import Shell
from spinney.apps.ingest.access import contents
from spinney.apps.ingest.access.package_job import accesses
from spinney.apps.ingest.storage.s3 import bucket
from spinney.apps.ingest.upkeep import fixity
from spinney.commands.control import Control
from spinney.model.errors import Refused
from spinney.model.outcomes import Outcome
from spinney.testing import StageHarness

from ..places import FAR, at, each, everywhere
from ..storage.moody import moody
from .filled_service import ARK, Service

LONG = b"0123456789" * 150_000
"""Of two pieces."""
FILES = {"long": LONG, "empty": b"", "of a page/S 1|ü%.txt": b"a page"}


@pytest.fixture
def holding(archive: Service) -> Service:
    archive.holds(FILES)
    return archive


@everywhere
def test_every_file_comes_as_it_is(holding: Service) -> None:
    holding.holds({"long": b"shorter"}, version=2)
    with holding.control() as control:
        sent = {
            (path, version): b"".join(
                contents.content(control, holding.settings, ARK, path, version=version).pieces
            )
            for path, version in [*((path, 1) for path in FILES), ("long", 2), ("long", None)]
        }
    assert sent == {(path, 1): raw for path, raw in FILES.items()} | {
        ("long", 2): b"shorter",
        ("long", None): b"shorter",
    }


def come(control: Control, service: Service, came: bytearray) -> None:
    for piece in contents.content(control, service.settings, ARK, "long").pieces:
        came += piece


@each("harm", ["changed", "cut", "longer", "gone"], far="gone")
def test_what_is_damaged_does_not_come_to_its_end_and_is_known(holding: Service, harm: str) -> None:
    harms = {"changed": LONG[:-1] + b"x", "cut": LONG[:-1], "longer": LONG + b"x", "gone": None}
    holding.overwrite("long", harms[harm])
    came = bytearray()
    with holding.control() as control, pytest.raises(Refused, match=r"is damaged: .*restore"):
        come(control, holding, came)
    assert len(came) <= len(LONG) - 400_000
    with holding.inventory() as inventory:
        assert [damaged.ark for damaged in inventory.damaged(10)] == [ARK]


@at(FAR, long=[FAR])
def test_an_archive_that_does_not_answer_is_told_and_nothing_is_damaged(
    archive: Service, s3_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.holds(FILES)
    monkeypatch.setattr(bucket, "_TRIES", 1)
    answers = [503]
    both = Both(Shell(archive.folder), archive.store_url)
    with moody(s3_server, before=lambda *_: next(iter(answers), None)) as endpoint, both.listening():
        settings = archive.folder / "ingest.toml"
        settings.write_text(settings.read_text().replace(s3_server, endpoint))
        assert is_told(archive, both.afar)
        answers.clear()
        assert archive.storage.versions(ARK)  # from now on this process has it open
        answers.append(503)
        assert is_told(archive, both.here, both.afar)
    with archive.inventory() as inventory:
        assert inventory.damaged() == []


def is_told(archive: Service, *sides: Callable[..., "subprocess.CompletedProcess[str]"]) -> bool:
    """That the storage cannot be read, to whoever wants something of it."""
    for side in sides:
        for words in (("fetch", ARK, "--file", "long"), ("manifest", ARK)):
            done = side("ingest", *words)
            assert (done.returncode, done.stdout) == (1, "")
            assert "the storage 'main' cannot be read" in done.stderr
    packed = StageHarness().run(accesses, order=archive.order())
    audited = StageHarness().run(fixity.readings, "reading", ark=ARK, storage="main")
    return all(ran.outcome is Outcome.ERROR and ran.signal.retryable for ran in (packed, audited))


def test_the_command_line_has_it_at_hand_and_through_a_server(holding: Service) -> None:
    shell = Shell(holding.folder)
    both = Both(shell, holding.store_url)
    (holding.folder / "there").touch()
    with both.listening():
        for number, side in enumerate((both.here, both.afar)):
            fetch = ("ingest", "fetch", ARK, "--file")
            for name, raw in FILES.items():
                done = side(*fetch, name)
                assert (done.stderr, done.returncode) == ("", 0)
                assert done.stdout.encode() == raw
            assert side(*fetch, "long", "--version", "1", "--output", f"whole {number}").returncode == 0
            assert (holding.folder / f"whole {number}").read_bytes() == LONG
            before = {path.name for path in holding.folder.iterdir()}
            holding.overwrite("long", LONG[:-1] + b"x")
            broken = side(*fetch, "long", "--output", "broken")
            holding.overwrite("long", LONG)
            assert (broken.returncode, broken.stdout) == (1, "")
            assert ("is damaged" if side == both.here else "not the whole") in broken.stderr
            assert "no file" in side(*fetch, "nothing", "--output", "broken").stderr
            assert "already exists" in side(*fetch, "long", "--output", "there").stderr
            assert "cannot be written" in side(*fetch, "long", "--output", "nowhere/long").stderr
            assert {path.name for path in holding.folder.iterdir()} == before
    for words in (("--file", "long", "--wait"), ("--output", "x")):
        shell.refused(2, "ingest", "fetch", ARK, *words)
