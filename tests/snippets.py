"""The snippets of a page of documentation, run in their order as a reader would run them.

What a fenced block is decides how it is run: ``python`` as a part of one module, ``pycon`` as a session in that module,
whose output must be what the page shows, ``console`` as a session at a shell, ``toml`` by what reads such a file.
"""

import doctest
import re
import shlex
import subprocess
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from own_commands import own_commands
from spinney import config
from spinney.pages import GROUP as PAGES
from spinney.terminal.applications import GROUP as COMMANDS
from spinney.terminal.applications import ROUTES
from spinney.web.settings import ServerSettings

LANGUAGES = frozenset({"python", "pycon", "console", "toml", "text", "mermaid"})
"""What a block may be; the last two are not run."""
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.M | re.S)
_OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Snippet:
    """A fenced block."""

    language: str
    text: str
    line: int
    """Of its first line on the page, from 1."""


def snippets(page: Path) -> list[Snippet]:
    """The fenced blocks of a page. Raises AssertionError for one that no test would run."""
    text = page.read_text()
    blocks = [
        Snippet(match[1], match[2], text.count("\n", 0, match.start(2)) + 1)
        for match in _BLOCK.finditer(text)
    ]
    for snippet in blocks:
        assert snippet.language in LANGUAGES, (
            f"{page.name}, line {snippet.line}: what is {snippet.language!r}?"
        )
    return blocks


def texts(page: Path, language: str) -> list[str]:
    """The blocks of one language."""
    return [snippet.text for snippet in snippets(page) if snippet.language == language]


def run_python(page: Path, snippet: Snippet, names: dict[str, Any]) -> None:
    """Run a ``python`` block as a part of the module that has these names."""
    # The numbers of lines are those of the page.
    exec(compile("\n" * (snippet.line - 1) + snippet.text, str(page), "exec"), names)


def run_session(page: Path, snippet: Snippet, names: dict[str, Any]) -> None:
    """Run a ``pycon`` block; what differs from the page is in the AssertionError."""
    test = doctest.DocTestParser().get_doctest(snippet.text, names, page.name, str(page), snippet.line - 1)
    outputs: list[str] = []
    doctest.DocTestRunner(verbose=False, optionflags=_OPTIONS).run(
        test, out=outputs.append, clear_globs=False
    )
    names.update(test.globs)
    assert not outputs, "".join(outputs)


def commands(snippet: Snippet) -> list[tuple[str, str]]:
    """The commands of a ``console`` block, each with what the page shows of its output."""
    blocks: list[tuple[str, str]] = []
    for line in snippet.text.splitlines():
        if line.startswith("$ "):
            blocks.append((line[2:], ""))
        elif blocks[-1][0].endswith("\\"):
            blocks[-1] = (f"{blocks[-1][0][:-1]}{line}", "")
        else:
            command, shown = blocks[-1]
            blocks[-1] = (command, f"{shown}{line}\n")
    return blocks


def require_lawful(words: list[str]) -> None:
    """Raise what the command line raises for options that it does not have; nothing is run."""
    own_commands()[words[0]].make_context(words[0], words[1:])


def run_console(
    snippet: Snippet,
    folder: Path,
    spinney: Callable[..., "subprocess.CompletedProcess[str]"],
    *,
    plain: Callable[[str], str] = str,
    endless: Callable[[list[str]], object] = require_lawful,
) -> None:
    """Run the commands of a ``console`` block in ``folder`` and compare what they print with the page.

    ``spinney``: runs a command of Spinney's in this process. ``plain``: takes out of an output what differs from run to
    run. ``endless``: gets the words of a command that does not end by itself.
    """
    for command, shown in commands(snippet):
        words = shlex.split(command, comments=True)
        if words[:2] in (["spinney", "node"], ["spinney", "serve"], ["spinney", "up"]):
            endless(words[1:])
            continue
        if words[0] == "spinney":
            done = spinney(*(word.replace("$PWD", str(folder)) for word in words[1:]))
        else:
            done = subprocess.run(
                ["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=60
            )
        printed = f"{done.stdout}{done.stderr}"
        assert plain(printed) == plain(shown), f"line {snippet.line}: {command}\n{printed}"


def require_readable(snippet: Snippet, folder: Path) -> None:
    """Raise what is raised for a ``toml`` block that Spinney, or pip, could not use."""
    document: Mapping[str, Any] = tomllib.loads(snippet.text)
    for group, entries in document.pop("project", {}).get("entry-points", {}).items():
        assert group in (COMMANDS, ROUTES, PAGES), group
        for name, value in entries.items():
            assert EntryPoint(name, value, group).attr, value
    if document:
        (folder / config.FILE).write_text(snippet.text)
        config.settings(environment={}, directory=folder)
        ServerSettings.model_validate(config.table("server", folder))
