"""Spinney's own commands, as the command line has them."""

from functools import cache
from typing import Any

from spinney.cli.commands import program
from spinney.terminal.command_index import COMMAND_MODULES


@cache
def own_commands() -> dict[str, Any]:
    """Return every command by its name, each with its module loaded."""
    root = program()
    return {name: root.get_command(None, name) for name in COMMAND_MODULES}
