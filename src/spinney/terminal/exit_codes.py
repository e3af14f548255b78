"""The exit codes of commands. ``docs/cli.md`` has the same table, and a test compares the two."""

from enum import IntEnum


class Exit(IntEnum):
    """An exit code of ``spinney``, by which scripts tell why a command ended."""

    DONE = 0
    REFUSED = 1
    USAGE = 2
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """Return when a command ends with this code, as the documentation says it."""
        return _MEANINGS[self]


_MEANINGS = {
    Exit.DONE: ("The command succeeded, also if the reader of a list closed the pipe before its end."),
    Exit.REFUSED: (
        "The current state does not allow it, or the result is negative: a job does not exist"
        " or its state does not allow this (other jobs of the same command are done), a "
        "confirmation was answered with no, a canary stopped, not all jobs of `wait` or `submit "
        "--wait` completed, `doctor` or `audit verify` found something, a node could not run,"
        " a disk or file failed, or Spinney has an internal error."
    ),
    Exit.USAGE: (
        "Invalid usage: an unknown command, option or name, a value out of its range, "
        "parameters that do not fit the job type, a configuration or application that cannot "
        "be read. Nothing was changed."
    ),
    Exit.INTERRUPTED: (
        "Ctrl-C. What was done until then stays; running the same command again continues with the rest, "
        "that of a `rerun` with the option that it prints."
    ),
}
