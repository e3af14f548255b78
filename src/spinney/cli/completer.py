"""Shell completion: the words that could stand at the cursor.

A shell asks while its user is still typing, so no error is shown, and only the module of the command on the line is
loaded. Click follows the line to the parameter at the cursor.
"""

import os
import sys
from collections.abc import Sequence
from typing import Any

from spinney.cli import shells
from spinney.cli.shells import FILES, Suggestion
from spinney.terminal import applications, endpoint
from spinney.terminal.command_index import COMMAND_MODULES, SUMMARIES

_HELP = ["-h", "--help"]
"""The help options of every command (``program``), for the contexts that Click makes here without running
anything."""


def print_completions(request: str) -> int:
    """Print the answer to a shell's request, and return the exit code: 0, or 1 where anything went wrong.

    ``request`` is the value of the variable that the script sets: ``complete_bash`` asks for the words at the
    cursor, ``source_zsh`` for the script itself. Nothing is printed after an error, whatever it is.
    """
    action, _, shell = request.partition("_")
    try:
        answer = shells.script(shell) if action == "source" else shells.answer(shell, suggestions)
        os.write(sys.stdout.fileno(), f"{answer}\n".encode() if answer else b"")
    except (Exception, KeyboardInterrupt):  # noqa: BLE001 - an error would be written into the line being typed
        return 1
    return 0


def suggestions(before: Sequence[str], begun: str) -> list[Suggestion]:
    """Return the completions of the word ``begun`` after the words ``before``, in the order in which they are
    to be shown.

    ``before`` is without the program's name; ``begun`` may be empty. A list with ``FILES`` means that the shell should
    offer the names of files. The result is empty after an unknown command, and for values that only a server knows,
    since a shell does not wait for one. Raises UsageError for a package's command that cannot be loaded.
    """
    name, options = _command_and_options(before)
    endpoint.choose(options.get("--server"), None, None)
    # Behind an option of the program its value stands at the cursor, which cannot be a command.
    wants_value = bool(before) and before[-1] in endpoint.OPTIONS
    if name is None and not begun.startswith("-") and not wants_value:
        return _commands(begun)
    is_own = name is None or name in COMMAND_MODULES
    if not is_own and name not in applications.installed_commands().applications:
        return []
    return _by_click(before, begun)


def _command_and_options(before: Sequence[str]) -> tuple[str | None, dict[str, str]]:
    """Return the command's name (None: not written yet), and the values of the program's options before it by
    their names.

    The last option may still lack its value, which is then the empty text.
    """
    options: dict[str, str] = {}
    words = iter(before)
    for word in words:
        name, equals, value = word.partition("=")
        if name in endpoint.OPTIONS:
            options[name] = value if equals else next(words, "")
        elif not word.startswith("-"):
            return word, options
    return None, options


def _commands(begun: str) -> list[Suggestion]:
    """Return the commands whose names begin with ``begun``, Spinney's own first, with their summaries."""
    installed = applications.installed_commands().applications
    summaries = {**SUMMARIES, **{name: app.summary for name, app in installed.items()}}
    return [Suggestion(name, summary) for name, summary in summaries.items() if name.startswith(begun)]


def _by_click(before: Sequence[str], begun: str) -> list[Suggestion]:
    """Let Click follow the line to the command and the parameter at the cursor.

    It completes values and options. For a parameter that has neither a completion of its own nor a list of its values
    the shell offers files.
    """
    from typer._click import shell_completion  # typer gives it no public name

    from spinney.cli.commands import program

    def context_of(words: Sequence[str]) -> Any:
        return shell_completion._resolve_context(
            program(), {"help_option_names": _HELP}, shells.PROGRAM, list(words)
        )

    words, context = list(before), context_of(before)
    place: Any
    place, piece = shell_completion._resolve_incomplete(context, words, begun)
    if place is context.command and "--" in before and begun.startswith("-"):
        return []
    if place is not context.command and before and before[-1] in place.opts:
        # An option without its value keeps Click from seeing the arguments before it.
        context = context_of(before[:-1])
    if getattr(place, "_custom_shell_complete", True) is None and not place.type_descriptor.is_choice:
        return [FILES]
    prefix = begun.removesuffix(piece)
    return [Suggestion(prefix + item.value, item.help) for item in place.shell_complete(context, piece)]
