"""How help is printed: ``--queue QUEUE``, where Typer shows the types of Python (``--queue <str>``), and whole
summaries, where Click cuts them at the width of the terminal."""

import re
from typing import Any


def tidy_help(command: Any) -> Any:
    """Return a command of Typer's after it and all commands below it were made to print such help.

    A value that has no name of its own is called as the last word of its option (``--run-dir DIR``) or argument. Words
    to choose from stay."""
    if not command.deprecated:  # Click adds that word each time
        # Only a help text is cut, and a text for lists of commands never.
        command.short_help = command.get_short_help_str(1_000)
    for parameter in command.params:
        is_argument = parameter.param_type_name == "argument"
        choice = None
        if parameter.metavar is None and (is_argument or not (parameter.is_flag or parameter.count)):
            if parameter.type_descriptor.is_choice:
                choice = parameter.display_type(None).replace("list[", "").replace("]", "")
            if is_argument or choice is None:
                name = max(parameter.opts, key=len).rstrip("-_")
                parameter.metavar = re.split("[-_]", name)[-1].upper()
        if is_argument or choice is not None:
            parameter.display_type_rich = lambda ctx, choice=choice: choice
    for below in getattr(command, "commands", {}).values():
        tidy_help(below)
    return command
