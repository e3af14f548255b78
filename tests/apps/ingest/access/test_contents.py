"""One file of a stored object, on its way to who asked: whole and right, or not to its end."""

import pytest

from cli.afar.conftest import Both
from cli.shell import Shell
from spinney.apps.ingest.access import contents
from spinney.control import Control
from spinney.model.errors import Refused

from ..places import each, everywhere
from .given import ARK, Service

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
        found = {
            (path, version): b"".join(contents.content(control, holding.settings, ARK, path, version=version).pieces)
            for path, version in [*((path, 1) for path in FILES), ("long", 2), ("long", None)]
        }
    assert found == {(path, 1): raw for path, raw in FILES.items()} | {
        ("long", 2): b"shorter", ("long", None): b"shorter",
    }  # fmt: skip


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
            assert "is there already" in side(*fetch, "long", "--output", "there").stderr
            assert "cannot be written" in side(*fetch, "long", "--output", "nowhere/long").stderr
            assert {path.name for path in holding.folder.iterdir()} == before
    for words in (("--file", "long", "--wait"), ("--output", "x")):
        shell.refused(2, "ingest", "fetch", ARK, *words)
