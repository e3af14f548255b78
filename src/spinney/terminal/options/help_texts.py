"""How help is printed: ``--queue QUEUE``, where Typer shows the types of Python (``--queue <str>``), and whole
summaries, where Click cuts them at the width of the terminal."""

import re
from typing import Any


def tidy_help(command: Any) -> Any:
    """Return a command of Typer's after it and all commands below it were made to print such help.

    A value that has no name of its own is called as the last word of its option (``--run-dir DIR``) or argument. Words
    to choose from stay."""
    # Only a help text is cut, and a text for lists of commands never.
    command.short_help = command.get_short_help_str(1_000)
    for parameter in command.params:
        is_argument = parameter.param_type_name == "argument"
        takes_value = is_argument or not (parameter.is_flag or parameter.count)
        if takes_value and parameter.metavar is None:
            if not parameter.type_descriptor.is_choice:
                name = max(parameter.opts, key=len).rstrip("-_")
                parameter.metavar = re.split("[-_]", name)[-1].upper()
            elif parameter.type_descriptor.is_list:
                parameter.metavar = parameter.display_type(None).replace("list[", "").replace("]", "")
        if is_argument:
            parameter.display_type_rich = _no_type
    for below in getattr(command, "commands", {}).values():
        tidy_help(below)
    return command


def _no_type(ctx: Any) -> None:
    """Stand in the place of the method by which an argument names its type."""
