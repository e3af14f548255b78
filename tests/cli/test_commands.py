"""How much of ``spinney`` a line needs: what it does not name is neither loaded nor bound."""

import pytest

from spinney.cli.commands import command_for
from spinney.terminal.command_index import COMMAND_MODULES


def known(words: list[str]) -> set[str]:
    return set(command_for(words).commands)


@pytest.mark.parametrize(
    "before", [[], ["--server", "unix:/s"], ["--server=unix:/s", "--token-file", "show"]]
)
def test_a_line_needs_the_commands_beside_the_one_that_it_names(before: list[str]) -> None:
    for name in ("hold", "release"):
        assert known([*before, name, "show"]) == {
            name for name, home in COMMAND_MODULES.items() if home == "features.holds.cli"
        }


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--help"],
        ["-h", "list"],
        ["--help", "list"],
        ["--version", "list"],
        ["--", "list"],
        ["lits"],
        [""],
        ["ingest", "list"],
        ["--server", "list"],
        ["--server"],
        ["--serve", "unix:/s", "list"],
    ],
)
def test_a_line_that_names_none_of_its_own_first_needs_all(words: list[str]) -> None:
    assert known(words) == set(COMMAND_MODULES)


@pytest.mark.parametrize("name", COMMAND_MODULES)
def test_every_command_is_where_a_line_looks_for_it(name: str) -> None:
    assert name in known([name])
