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
from spinney.terminal.command_index import COMMAND_MODULES

_HELP = ["-h", "--help"]
"""The help options of every command (``build_app``), for the contexts that Click makes here without running
anything."""


def print_completions(request: str) -> int:
    """Print the answer to a shell's request, and return the exit code: 0, or 1 where anything went wrong.

    ``request`` is the value of the variable that the script sets: ``complete_bash`` asks for the words at the
    cursor, ``source_zsh`` for the script itself. Nothing is printed after an error, whatever it is. For bash
    no summaries are looked up, since it cannot show them and they cost the import of every command.
    """
    action, _, shell = request.partition("_")
    try:
        if action == "source":
            answer = shells.script(shell)
        else:
            answer = shells.answer(
                shell, lambda before, begun: suggestions(before, begun, with_help=shell != "bash")
            )
        os.write(sys.stdout.fileno(), f"{answer}\n".encode() if answer else b"")
    except (Exception, KeyboardInterrupt):  # noqa: BLE001 - an error would be written into the line being typed
        return 1
    return 0


def suggestions(before: Sequence[str], begun: str, *, with_help: bool = False) -> list[Suggestion]:
    """Return the completions of the word ``begun`` after the words ``before``, in the order in which they are
    to be shown.

    ``before`` is without the program's name; ``begun`` may be empty. ``with_help``: with the summary of each
    command, for shells that show it. A list with ``FILES`` means that the shell should offer the names of
    files. The result is empty after an unknown command, and for values that only a server knows, since a
    shell does not wait for one. Raises UsageError for a package's command that cannot be loaded.
    """
    name, options = _command_and_options(before)
    endpoint.choose(options.get("--server"), None, None)
    # Behind an option of the program its value stands at the cursor, which cannot be a command.
    wants_value = bool(before) and before[-1] in endpoint.OPTIONS
    if name is None and not begun.startswith("-") and not wants_value:
        return _commands(begun, with_help=with_help)
    root = _tree([COMMAND_MODULES[name]] if name is not None and name in COMMAND_MODULES else [])
    if name is not None and name not in COMMAND_MODULES:
        application = applications.installed_commands().applications.get(name)
        if application is None:
            return []
        root.commands[name] = application.load()
    return _by_click(root, before, begun)


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


def _commands(begun: str, *, with_help: bool) -> list[Suggestion]:
    """Return the commands whose names begin with ``begun``, Spinney's own first. Only ``with_help`` imports
    their modules."""
    names = [name for name in COMMAND_MODULES if name.startswith(begun)]
    installed = {
        name: app
        for name, app in applications.installed_commands().applications.items()
        if name.startswith(begun)
    }
    if not with_help:
        return [Suggestion(name) for name in (*names, *installed)]
    commands = _tree([COMMAND_MODULES[name] for name in names]).commands
    own = [Suggestion(name, commands[name].get_short_help_str()) for name in names]
    return own + [Suggestion(name, app.summary) for name, app in installed.items()]


def _tree(modules: Sequence[str]) -> Any:
    from typer.main import get_command

    from spinney.cli.commands import build_app

    return get_command(build_app(modules))


def _by_click(root: Any, before: Sequence[str], begun: str) -> list[Suggestion]:
    """Let Click follow the line to the command and the parameter at the cursor.

    It completes values and options. For a parameter without a completion of its own the shell offers files.
    """
    from typer._click import shell_completion  # typer gives it no public name

    def context_of(words: Sequence[str]) -> Any:
        return shell_completion._resolve_context(
            root, {"help_option_names": _HELP}, shells.PROGRAM, list(words)
        )

    words, context = list(before), context_of(before)
    place: Any
    place, piece = shell_completion._resolve_incomplete(context, words, begun)
    if place is context.command and "--" in before and begun.startswith("-"):
        return []
    if place is not context.command and before and before[-1] in place.opts:
        # An option without its value keeps Click from seeing the arguments before it.
        context = context_of(before[:-1])
    if getattr(place, "_custom_shell_complete", True) is None:
        return [FILES]
    prefix = begun.removesuffix(piece)
    return [Suggestion(prefix + item.value, item.help) for item in place.shell_complete(context, piece)]
