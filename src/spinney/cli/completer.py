"""Tab pressed: what could stand where the cursor is.

A shell asks while its user is still typing. So nothing that goes wrong is told, and no more is loaded than the
command on the line needs: its words are not checked but only looked at, which spares loading what checks them.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from spinney.cli import shells
from spinney.cli.shells import FILES, Suggestion
from spinney.terminal import applications, endpoint
from spinney.terminal.command_index import COMMAND_MODULES

_HELP = ["-h", "--help"]


def print_completions(asked: str) -> int:
    """Print what a shell asks for (``complete_bash``, ``source_zsh``, …), or nothing; the exit code."""
    what, _, shell = asked.partition("_")
    try:
        if what == "source":
            told = shells.script(shell)
        else:
            told = shells.answer(
                shell, lambda before, begun: suggestions(before, begun, helped=shell != "bash")
            )
        os.write(sys.stdout.fileno(), f"{told}\n".encode() if told else b"")
    except (Exception, KeyboardInterrupt):  # noqa: BLE001 - the line that is being typed is no place to tell it
        return 1
    return 0


def suggestions(before: Sequence[str], begun: str, *, helped: bool = False) -> list[Suggestion]:
    """All that could stand for the word that is begun. ``helped``: with what each command does."""
    name, said = _begun(before)
    endpoint.choose(said.get("--server"), None, None)
    if name is None and not begun.startswith("-") and not _wants_value(before):
        return _commands(begun, helped=helped)
    root = _tree([COMMAND_MODULES[name]] if name is not None and name in COMMAND_MODULES else [])
    if name is not None and name not in COMMAND_MODULES:
        brought = applications.installed_commands().applications.get(name)
        if brought is None:
            return []
        root.commands[name] = brought.load()
    line = _Place(root)
    for word in before:
        line.pass_by(word)
    return line.suggestions(begun)


def _begun(before: Sequence[str]) -> tuple[str | None, dict[str, str]]:
    """The command, and what is said before it."""
    said: dict[str, str] = {}
    words = iter(before)
    for word in words:
        name, equals, value = word.partition("=")
        if name in endpoint.OPTIONS:
            said[name] = value if equals else next(words, "")
        elif not word.startswith("-"):
            return word, said
    return None, said


def _wants_value(before: Sequence[str]) -> bool:
    return bool(before) and before[-1] in endpoint.OPTIONS


def _commands(begun: str, *, helped: bool) -> list[Suggestion]:
    fitting = [name for name in COMMAND_MODULES if name.startswith(begun)]
    brought = {
        name: app
        for name, app in applications.installed_commands().applications.items()
        if name.startswith(begun)
    }
    if not helped:
        return [Suggestion(name) for name in (*fitting, *brought)]
    known = _tree([COMMAND_MODULES[name] for name in fitting]).commands
    own = [Suggestion(name, known[name].get_short_help_str()) for name in fitting]
    return own + [Suggestion(name, app.summary) for name, app in brought.items()]


def _tree(modules: Sequence[str]) -> Any:
    from typer.main import get_command

    from spinney.cli.commands import build_app

    return get_command(build_app(modules))


@dataclass
class _Place:
    """Where a line has come to: the command, what was given to it, and what comes next."""

    command: Any
    given: dict[str, Any] = field(default_factory=dict)
    """By parameter, as it was typed."""
    wanting: Any = None
    """The option whose value comes next."""
    positional: int = 0
    """Words that were no options."""
    ended: bool = False
    """``--`` was given: no options come any more."""

    def pass_by(self, word: str) -> None:
        """Go on behind a word."""
        if self.wanting is not None:
            self._give(self.wanting, word)
            self.wanting = None
        elif word == "--" and not self.ended:
            self.ended = True
        elif word.startswith("-") and word != "-" and not self.ended:
            self._pass_option(word)
        elif self._commands:
            self.command, self.given = self._commands.get(word, self.command), {}
        else:
            argument = self._argument
            if argument is not None:
                self._give(argument, word)
            self.positional += 1

    def _pass_option(self, word: str) -> None:
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            option = self._options.get(name)
            if option is None:
                return
            if option.is_flag:
                self.given[option.name] = True
            elif equals:
                self._give(option, value)
            else:
                self.wanting = option
            return
        for at, letter in enumerate(word[1:], 2):  # -yp n=1, -pn=1
            option = self._options.get(f"-{letter}")
            if option is not None and not option.is_flag:
                if word[at:]:
                    self._give(option, word[at:])
                else:
                    self.wanting = option
                return

    def _give(self, parameter: Any, value: str) -> None:
        if parameter.multiple or parameter.nargs == -1:
            self.given.setdefault(parameter.name, []).append(value)
        else:
            self.given[parameter.name] = value

    def suggestions(self, begun: str) -> list[Suggestion]:
        """What could be made of the word that is begun here."""
        if self.wanting is not None:
            return self._values(self.wanting, begun)
        if begun.startswith("-") and not self.ended:
            name, equals, value = begun.partition("=")
            option = self._options.get(name)
            if equals:
                return [] if option is None else self._values(option, value, before=f"{name}=")
            return self._names(begun)
        if self._commands:
            told = self._commands.items()
            return [
                Suggestion(name, each.get_short_help_str()) for name, each in told if name.startswith(begun)
            ]
        argument = self._argument
        return [] if argument is None else self._values(argument, begun)

    def _names(self, begun: str) -> list[Suggestion]:
        return [
            Suggestion(name, option.help)
            for name, option in self._options.items()
            if name.startswith(begun)
            and not option.hidden
            and (option.multiple or option.name not in self.given)
        ]

    def _values(self, parameter: Any, begun: str, before: str = "") -> list[Suggestion]:
        if parameter._custom_shell_complete is None:  # typer gives it no public name
            return [FILES]
        found = parameter.shell_complete(self._context(), begun)
        return [Suggestion(before + item.value, item.help) for item in found]

    def _context(self) -> Any:
        import typer

        made = typer.Context(
            self.command, info_name=self.command.name, resilient_parsing=True, help_option_names=_HELP
        )
        made.params = self.given
        return made

    @property
    def _commands(self) -> dict[str, Any]:
        found: dict[str, Any] = getattr(self.command, "commands", {})
        return found

    @property
    def _options(self) -> dict[str, Any]:
        options = [p for p in self.command.get_params(self._context()) if p.param_type_name == "option"]
        return {name: option for option in options for name in (*option.opts, *option.secondary_opts)}

    @property
    def _argument(self) -> Any:
        """The one that the next word would be of; the last may take any number."""
        arguments = [p for p in self.command.params if p.param_type_name == "argument"]
        if self.positional < len(arguments):
            return arguments[self.positional]
        return arguments[-1] if arguments and arguments[-1].nargs == -1 else None
