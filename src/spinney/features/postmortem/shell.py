"""The shell of ``spinney postmortem``: it walks through the frames of a failure, as ``pdb`` does through live
ones.

What it shows was described when the stage failed; no code of the application is loaded or run. Everything
that is printed has its control characters escaped, since values may come from anybody.
"""

import cmd
import os
import readline
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from spinney.model.errors import UsageError
from spinney.postmortem import value_paths
from spinney.postmortem.documents import Described, ExceptionView, FrameView, left_out, parts, summary
from spinney.terminal.output.display import safe

_LEVELS = 2
"""How many levels of parts ``p`` prints."""
_LINE_CHARS = 160
"""The longest line of a part; longer ones are cut."""
_DIGITS_MAX = 9
"""The most digits of a number in a command."""
_HISTORY = 1000
"""How many lines the history keeps."""


class PostmortemShell(cmd.Cmd):
    """Reads commands and prints what was kept. ``help`` lists the commands, which are the methods ``do_…``."""

    doc_header = "Commands ('help NAME' explains one; '/text' searches all frames):"

    def __init__(self, title: str, exceptions: Sequence[ExceptionView], out: IO[str]) -> None:
        """``title``: what the prompt names. ``exceptions``: at least one."""
        super().__init__(stdout=out)
        self.prompt = f"({title}) "
        self._exceptions = exceptions
        self._choose(0)

    def run(self) -> None:
        """Read commands until the end of the input, with completion and a history over sessions."""
        history = _history_file()
        with suppress(OSError):
            readline.read_history_file(history)
        readline.set_completer_delims(" \t\n")
        self.do_where("")
        try:
            self.cmdloop()
        except KeyboardInterrupt:
            self._print("")
        readline.set_history_length(_HISTORY)
        with suppress(OSError):
            history.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(history)

    # --- commands -----------------------------------------------------------------------------

    def do_where(self, _: str) -> None:
        """where: list the frames, the outermost first; '>' marks the one that is looked at."""
        for line in where_lines(self._exceptions, self._number, self._at):
            self._print(line)

    def do_up(self, count: str) -> None:
        """up [N]: go to the frame that called this one."""
        self._go(self._at - _count(count))

    def do_down(self, count: str) -> None:
        """down [N]: go to the frame that this one called."""
        self._go(self._at + _count(count))

    def do_list(self, _: str) -> None:
        """list: print the source around the line that ran."""
        frame = self._frame
        if not frame.source:
            self._print(f"the source of {frame.file} was not there when it failed")
        for number, text in frame.source:
            self._print(f"{'>' if number == frame.line else ' '} {number:5} {text}")

    def do_locals(self, _: str) -> None:
        """locals: print the arguments and the local variables of this frame."""
        frame = self._frame
        for name, described in frame.variables.items():
            mark = "argument " if name in frame.arguments else ""
            self._print(f"{mark}{name}: {summary(described)}")
        if not frame.variables:
            self._print("this frame has no variables")

    def do_p(self, expression: str) -> None:
        """p NAME.attr[3]['key']: print a variable, or a part of one as far as it was kept."""
        for line in value_lines(value_paths.follow(self._frame.variables, expression)):
            self._print(line)

    def do_error(self, number: str) -> None:
        """error N: look at exception number N of the chain or group, as 'where' counts them."""
        chosen = _count(number)
        if chosen >= len(self._exceptions):
            raise UsageError(f"there are exceptions 0 to {len(self._exceptions) - 1}; 'where' lists them")
        self._choose(chosen)
        self.do_where("")

    def do_quit(self, _: str) -> bool:
        """quit: leave; so does the end of the input."""
        return True

    do_q = do_EOF = do_quit

    def complete_p(self, text: str, *_: object) -> list[str]:
        """Return the expressions that begin as what was typed."""
        return [*value_paths.completions(self._frame.variables, text)]

    # --- what cmd.Cmd calls -------------------------------------------------------------------

    def onecmd(self, line: str) -> bool:
        """Run one command; a wrong one prints why."""
        try:
            if line.startswith("/"):
                self._search(line[1:].strip())
                return False
            return bool(super().onecmd(line))
        except UsageError as error:
            self._print(str(error))
            return False

    def emptyline(self) -> bool:
        """Do nothing: repeating the last command would walk on."""
        return False

    def default(self, line: str) -> None:
        """Print the value of an expression, which needs no 'p' before it."""
        if line.split(".")[0].split("[")[0] not in self._frame.variables:
            raise UsageError(f"{line!r} is neither a command nor a variable here; 'help' lists the commands")
        self.do_p(line)

    # --- display ------------------------------------------------------------------------------

    @property
    def _frame(self) -> FrameView:
        frames = self._exceptions[self._number].frames
        if not frames:
            raise UsageError("this exception was never raised, so it has no frames; 'error 0' goes back")
        return frames[self._at]

    def _choose(self, number: int) -> None:
        """Look at another exception, at its innermost frame."""
        self._number = number
        self._at = max(0, len(self._exceptions[number].frames) - 1)

    def _go(self, to: int) -> None:
        """Look at another frame; beyond an end at the last one there, with a remark."""
        last = len(self._exceptions[self._number].frames) - 1
        self._at = min(max(to, 0), max(last, 0))
        if to != self._at:
            self._print("this is the outermost frame" if to < 0 else "this is the innermost frame")
        self._print(_frame_line(self._frame, mark=">"))

    def _search(self, text: str) -> None:
        """Print every kept variable and part that contains a text, in its path or its value, whatever
        the case."""
        if not text:
            raise UsageError("write the text to look for behind the slash: /refused")
        hits = 0
        for number, exception in enumerate(self._exceptions):
            for frame in exception.frames:
                for name, described in frame.variables.items():
                    for path, value in _walk(name, described):
                        if text.lower() in summary(value).lower() or text.lower() in path.lower():
                            hits += 1
                            self._print(f"{number} {frame.function}: {path}: {summary(value)}")
        if not hits:
            self._print(f"no variable and no value that was kept contains {text!r}")

    def _print(self, line: str) -> None:
        self.stdout.write(safe(line) + "\n")


def where_lines(exceptions: Sequence[ExceptionView], number: int | None, at: int) -> Iterator[str]:
    """Yield a line for each frame of each exception; ``number`` and ``at`` say which is looked at."""
    for n, exception in enumerate(exceptions):
        relation = "" if exception.relation is None else f"{exception.relation} of {exception.of}: "
        yield f"{n} {relation}{exception.name}: {exception.message}"
        first = len(exception.frames) // 3
        for i, frame in enumerate(exception.frames):
            if exception.hidden_frames and i == first:
                yield f"    … {exception.hidden_frames} frames were not kept"
            yield _frame_line(frame, mark=">" if (n, i) == (number, at) else " ")


def value_lines(described: Described, name: str = "", level: int = 0) -> Iterator[str]:
    """Yield a value with its parts, a line each."""
    line = f"{'  ' * level}{name}{': ' if name else ''}{summary(described)}"
    yield line if len(line) <= _LINE_CHARS or level == 0 else f"{line[:_LINE_CHARS]}…"
    if level < _LEVELS:
        for step, part in parts(described):
            yield from value_lines(part, step, level + 1)
        if more := left_out(described):
            yield f"{'  ' * (level + 1)}… {more:,} more were not kept"


def _frame_line(frame: FrameView, *, mark: str) -> str:
    return f"  {mark} {frame.file}:{frame.line} in {frame.function}: {frame.code}"


def _walk(path: str, described: Described) -> Iterator[tuple[str, Described]]:
    """Yield a value and all its parts, each with the expression that leads to it."""
    yield path, described
    for step, part in parts(described):
        yield from _walk(path + step, part)


def _count(text: str) -> int:
    if not text:
        return 1
    # Longer ones count no frames, and ``int`` raises ValueError for thousands of digits.
    if not text.isdecimal() or len(text) > _DIGITS_MAX:
        raise UsageError(f"{text!r:.40} is no number of up to {_DIGITS_MAX} digits; write for example: up 2")
    return int(text)


def _history_file() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "spinney" / "postmortem_history"
