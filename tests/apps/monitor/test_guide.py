"""The page for who sets a monitor up: its commands and settings as they stand."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from spinney.apps.monitor import settings
from spinney.apps.monitor.inventory import TABLES

from .monitor import Monitor

PAGE = (Path(__file__).parents[3] / "docs" / "monitor.md").read_text()
BLOCKS = re.findall(r"^```text\n(.*?)^```$", PAGE, flags=re.M | re.S)
pytestmark = pytest.mark.parametrize("monitor", ["sqlite"], indirect=True)


def test_the_settings_of_the_page_are_the_defaults(monitor: Monitor) -> None:
    (block,) = [block for block in BLOCKS if block.startswith("tasks =")]
    (mail,) = [block for block in BLOCKS if block.startswith("[mail]")]
    (monitor.place / "monitor.toml").write_text("")
    defaults = settings.load()
    (monitor.place / "monitor.toml").write_text(block + mail)
    loaded = settings.load()

    assert loaded.mail is not None
    assert {**loaded.model_dump(), "mail": None} == defaults.model_dump()
    ignored = {"tables", "mail"}
    assert tomllib.loads(block).keys() == settings.Settings.model_fields.keys() - ignored


def test_the_commands_of_the_page_work_in_a_new_folder(
    monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = monitor.place / "new"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.delenv("SPINNEY_STORE")
    (csv,) = [block for block in BLOCKS if block.startswith("entity,")]
    (place / "services.csv").write_text(csv)
    for name in ("all", "failed"):
        (text,) = re.findall(rf"`{name}\.json` (?:is )?`(.*?)`", PAGE, flags=re.S)
        (place / f"{name}.json").write_text(text)
    lines = [line.partition("   #")[0].strip() for block in BLOCKS for line in block.splitlines()]
    left_out = (
        "spinney monitor run",
        "spinney monitor check",
        "spinney monitor harvest",
    )  # they reach further
    commands = [line for line in lines if line.startswith("spinney ") and not line.startswith(left_out)]

    assert len(commands) == 9
    for command in commands:
        Monitor(place=place, store="").shell.ok(*shlex.split(command)[1:])
    assert TABLES.beside(f"sqlite:///{place}/spinney.db") == f"sqlite:///{place}/spinney.monitor.db"
    assert (place / "spinney.monitor.db").exists()
    assert len(list((place / "tasks").iterdir())) == 5


@pytest.mark.parametrize(
    ("words", "field"), [(("--hours", "inf"), "unchecked_s"), (("--description", "x" * 501), "description")]
)
def test_a_check_of_what_no_sequence_can_select_is_refused(
    monitor: Monitor, words: tuple[str, ...], field: str
) -> None:
    assert f"{field}: " in monitor.shell.refused(2, "monitor", "check", *words)
