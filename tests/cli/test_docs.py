"""``docs/cli.md`` says what is so: every command, every option, every exit code."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from own_commands import own_commands
from spinney.model import errors
from spinney.terminal.command_index import HEADINGS
from spinney.terminal.exit_codes import Exit
from spinney.terminal.options.filters import FilterOptions

TEXT = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
EVERYWHERE = {"--help", "--store", "--by", "--reason"}
"""Said once for all commands."""
WITHOUT_JSON = {"bridge check", "debug", "logs", "node", "serve", "stack", "top", "up"}
"""Commands that run until they are stopped, or print text as it was written; ``bridge check`` has the options of the
command that it calls."""


def section(title: str) -> str:
    match = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", TEXT, flags=re.M | re.S)
    assert match, title
    return match.group(1)


def rows(title: str) -> list[list[str]]:
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def commands(group: Any = None, path: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in (group.commands if group else own_commands()).items():
        if getattr(command, "commands", None):
            yield from commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


def options(command: Any) -> set[str]:
    """The long ones; of several names of one option all."""
    return {o for p in command.params for o in (*p.opts, *p.secondary_opts) if o.startswith("--")}


def filter_options() -> set[str]:
    return {o for row in rows("Which jobs") for o in re.findall(r"`(--[a-z-]+)`", row[0])}


def test_every_command_is_in_the_table() -> None:
    matches = [re.match(r"`spinney ([a-z -]+?)(?: [\[A-Z].*)?`$", row[0]) for row in rows("Commands")]

    assert all(matches)
    names = [match.group(1) for match in matches if match]
    assert sorted(names) == sorted(name for name, _ in commands())


def test_every_option_is_in_the_tables() -> None:
    of_filter, table = filter_options(), rows("Commands")
    for name, command in commands():
        (row,) = (row for row in table if re.match(rf"`spinney {name}( [\[A-Z].*)?`$", row[0]))
        listed, has = set(re.findall(r"`(--[a-z-]+)`", row[2])), options(command)
        filtered = of_filter if of_filter & has >= {"--state", "--message"} else set()

        assert listed <= has, f"the table has an option that 'spinney {name}' has not"
        assert has - EVERYWHERE - filtered <= listed, f"'spinney {name}' has an option that the table has not"


def test_every_command_with_a_result_has_json_and_by_if_it_has_a_reason() -> None:
    with_json = {name for name, command in commands() if "--json" in options(command)}
    without_by = {
        name
        for name, command in commands()
        if "--reason" in options(command) and "--by" not in options(command)
    }

    assert {name for name, _ in commands()} - with_json == WITHOUT_JSON
    assert not without_by


def test_the_headings_are_those_of_the_help() -> None:
    (sentence,) = re.findall(r"^`spinney --help` (.*?)\n\n", section("Commands"), flags=re.M | re.S)

    groups = re.findall(r"\*(.+?)\*\s+\(([^)]+)\)", sentence)
    assert {title: re.findall(r"`([a-z-]+)`", names) for title, names in groups} == {
        title: list(names) for title, names in HEADINGS.items()
    }


def test_the_filter_is_told_whole() -> None:
    declared = {o for _, command in commands() for o in options(command)}
    listed = options(dict(commands())["list"])

    assert filter_options() <= declared
    assert (
        listed - {"--after", "--limit", "--oldest", "--count", "--json", "--csv", "--store"}
        == filter_options()
    )
    assert len(filter_options()) >= len(FilterOptions.__dataclass_fields__)


def test_the_exit_codes_are_those_of_the_code() -> None:
    assert [int(code) for code, _ in rows("Exit codes")] == [int(e) for e in Exit]


def test_every_error_ends_with_a_code_of_the_table() -> None:
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.SpinneyError)
    ]

    assert len(kinds) > 10
    assert {kind.exit_code for kind in kinds} == {Exit.REFUSED, Exit.USAGE}
