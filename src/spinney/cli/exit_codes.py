"""What a command ends with. ``docs/cli.md`` has the same table, which a test compares with this one."""

from enum import IntEnum


class Exit(IntEnum):
    """An exit code."""

    DONE = 0
    REFUSED = 1
    USAGE = 2
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """When a command ends with it."""
        return _MEANINGS[self]


_MEANINGS = {
    Exit.DONE: "It was done. Also when whoever read a list went away before its end.",
    Exit.REFUSED: "The current state does not allow it, or it did not come out well: a job that does not exist or "
    "is in a state that does not allow this (others named beside it are done), a question "
    "answered with no, a canary that "
    "stopped, `wait` or `submit --wait` where not all completed, something that `doctor` or `audit verify` found, a "
    "node that could not run, a disk or file that does not answer, an error of Spinney's own.",
    Exit.USAGE: "Invalid usage: an unknown command, option or name, a value out of its range, parameters that do "
    "not fit the job type, a configuration or application that cannot be read. Nothing was changed.",
    Exit.INTERRUPTED: "Ctrl-C. What was done until then is done; given again, the command goes on with the rest.",
}
