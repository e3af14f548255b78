"""How much of ``spinney`` a line needs: what it does not name is not loaded."""

import re
import subprocess
import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

import pytest
import typer

from own_commands import own_commands
from spinney.cli.commands import program
from spinney.cli.main import run
from spinney.terminal.command_index import COMMAND_MODULES, SUMMARIES
from spinney.terminal.help_texts import tidy_help

MODULES = {f"spinney.{module}" for module in COMMAND_MODULES.values()}


_RUN_EACH = """
import os, sys, spinney.cli.commands
from spinney.cli.main import run
for words in {lines!r}:
    if os.fork() == 0:
        run(words)
        print("loaded:", *sys.modules, flush=True)
        os._exit(0)
    os.wait()
"""


def loaded(*lines: list[str]) -> list[set[str]]:
    """The modules of commands that each line loads, in a process that has run no other."""
    code = _RUN_EACH.format(lines=lines)
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    named = [line.split() for line in done.stdout.splitlines()]
    return [MODULES & set(names) for names in named if names[:1] == ["loaded:"]]


def test_a_line_loads_the_module_of_the_command_that_it_names() -> None:
    before = [[], ["--server", "unix:/s"], ["--server=unix:/s", "--token-file", "show"], ["--"]]

    of_lines = loaded(*([*words, "failures", "--help"] for words in before))

    assert of_lines == [{"spinney.features.failures.cli"}] * len(before)


def test_a_line_that_names_none_of_its_own_loads_none() -> None:
    lines = [[], ["--help"], ["-h", "list"], ["--version", "list"], ["lits"], ["--serve", "unix:/s", "list"]]

    assert loaded(*lines) == [set()] * len(lines)


@pytest.mark.parametrize("name", COMMAND_MODULES)
def test_the_summary_is_the_first_sentence_of_the_help(name: str) -> None:
    assert SUMMARIES[name] == own_commands()[name].get_short_help_str(300)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("relabel", "[OPTIONS] {JOB} [COLLECTION]\n"),
        ("stats", "60 or 5m.  [default: 60]\n"),
        ("retry", "  --queue QUEUE "),
    ],
)
def test_help_shows_defaults_and_arguments_as_they_are_written(
    capsys: pytest.CaptureFixture[str], name: str, shown: str
) -> None:
    assert run([name, "--help"]) == 0
    assert shown in capsys.readouterr().out


@pytest.mark.parametrize("name", [*COMMAND_MODULES, "monitor", "ingest"])
def test_help_has_no_types_of_python_no_doubled_brackets_and_no_sentence_that_is_cut(name: str) -> None:
    def texts(command: Any, words: str) -> Iterator[str]:
        yield command.get_help(typer.Context(command, info_name=words))
        for below in getattr(command, "commands", {}).values():
            yield from texts(below, f"{words} {below.name}")

    root = program()
    for text in texts(root.get_command(typer.Context(root), name), name):
        assert text.startswith("Usage: ")
        assert not re.search(
            r"(?m)<(str|int|float|path|file|bool|list)\b(?!\|)|\[\[|\.\.\.[]}]|^ .*\.\.\.$", text
        )


class Tree(StrEnum):
    ELM = "elm"
    OAK = "oak"


def test_help_of_an_application_has_the_words_to_choose_from_and_names_what_is_deprecated_once() -> None:
    app = typer.Typer(rich_markup_mode=None)

    @app.command(deprecated=True)
    def old(names: list[Tree], others: Annotated[list[Tree] | None, typer.Option("--other")] = None) -> None:
        """Do it."""

    app.command("new")(lambda: None)
    group = tidy_help(typer.main.get_group(app))

    text = group.commands["old"].get_help(typer.Context(group.commands["old"]))
    assert "  NAMES <elm|oak>  [required]\n" in text
    assert "  --other <elm|oak>\n" in text
    assert group.get_help(typer.Context(group)).count("(DEPRECATED)") == 1


@pytest.mark.parametrize("name", ["retry", "hold"])
def test_options_of_many_commands_stand_behind_those_of_a_command(name: str) -> None:
    options = [option.name for option in own_commands()[name].params]

    assert options[-6:] == ["dry_run", "yes", "reason", "json", "by", "store"]
