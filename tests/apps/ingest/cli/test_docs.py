"""``docs/cli.md`` has every command of ``spinney ingest`` and every option; the guide has every setting."""

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_group

from spinney.apps.ingest.cli import app
from spinney.apps.ingest.config import profiles, settings
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.deposits.states import BatchState
from spinney.apps.ingest.manifests import PayloadKind

DOCS = Path(__file__).parents[4] / "docs"
TEXT, GUIDE = (DOCS / "cli.md").read_text(), (DOCS / "ingest.md").read_text()
EVERYWHERE = {"--help", "--store", "--by", "--reason"}
ROW = re.compile(r"^\| `spinney ingest ([a-z]+)[^`]*` \| .* \| ([^|]*)\|$", flags=re.M)


def documented_options() -> dict[str, set[str]]:
    return {name: set(re.findall(r"`(--[a-z-]+)`", options)) for name, options in ROW.findall(TEXT)}


def commands() -> Iterator[tuple[str, Any]]:
    yield from get_group(app).commands.items()


def test_every_command_is_in_the_table() -> None:
    assert sorted(documented_options()) == sorted(name for name, _ in commands())


@pytest.mark.parametrize(
    ("name", "command"), [*commands()], ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_option_is_in_the_table(name: str, command: Any) -> None:
    own = {option for p in command.params for option in p.opts if option.startswith("--")}

    assert own - EVERYWHERE == documented_options()[name]


def test_the_guide_has_every_setting_kind_and_state() -> None:
    keys = set(re.findall(r"^\| `\[?([a-z_]+)", GUIDE, flags=re.M))

    assert Settings.model_fields.keys() <= keys
    assert {str(kind) for kind in PayloadKind} <= set(re.findall(r"`([a-z-]+)`", GUIDE))
    assert {str(state) for state in BatchState} <= set(re.findall(r"`([a-z-]+)`", GUIDE))


def test_the_guides_settings_and_profile_can_be_read(tmp_path: Path) -> None:
    block = re.compile(r"(?:^    .*\n|^\n)+", flags=re.M)
    least, profile = (
        next(textwrap.dedent(text) for text in block.findall(GUIDE) if text.strip().startswith(first))
        for first in ("[storage.main]", "collection =")
    )
    (tmp_path / "profiles").mkdir()
    (tmp_path / "ingest.toml").write_text(least)
    (tmp_path / "profiles" / "maps.toml").write_text(profile)

    loaded = profiles.load(settings.load({settings.VARIABLE: str(tmp_path / "ingest.toml")}), "maps")

    assert (loaded.report.kind, loaded.storage, loaded.minter) == ("attached", "main", "main")
    assert profiles.Profile.model_fields.keys() - {"name"} <= set(re.findall(r"\w+", GUIDE))


def test_nothing_is_installed_from_an_index_that_has_it_not() -> None:
    texts = {path.name: path.read_text() for path in [*DOCS.glob("**/*.md"), *DOCS.parent.glob("*.md")]}

    assert [
        name for name, text in texts.items() if re.search(r"pip install ['\"]?spinney(\[|\b(?!-))", text)
    ] == []
