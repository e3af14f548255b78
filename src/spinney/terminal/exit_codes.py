"""The exit codes of commands. ``docs/cli.md`` says in full when a command ends with each."""

from enum import IntEnum


class Exit(IntEnum):
    """An exit code of ``spinney``, by which scripts tell why a command ended."""

    DONE = 0
    """The command succeeded."""
    REFUSED = 1
    """The current state does not allow it, the result is negative, or a disk, a file or Spinney failed."""
    USAGE = 2
    """The line, or what it names, is invalid. Nothing was changed."""
    INTERRUPTED = 130
    """Ctrl-C. What was done until then stays."""
