"""``spinney``: a command that is run, and what becomes of its errors; or a word that a shell wants completed.

What a command needs is loaded when one is run: a shell that asks does not wait for it.
"""

import errno
import os
import sys
import tempfile
import traceback
from contextvars import copy_context
from typing import Any, NoReturn

from spinney.cli import shells, tab
from spinney.cli.exits import Exit
from spinney.model.errors import SpinneyError, UsageError

DEBUG_VARIABLE = "SPINNEY_DEBUG"


def main(args: list[str] | None = None) -> NoReturn:
    """Run a command, or answer a shell that asks; exit with its code."""
    asked = os.environ.get(shells.VARIABLE)
    sys.exit(tab.pressed(asked) if asked else run(args))


def run(args: list[str] | None = None) -> int:
    """Run a command; whatever goes wrong becomes one sentence on stderr, and the exit code."""
    import typer

    from spinney.cli import commands

    try:
        words = sys.argv[1:] if args is None else args
        _require_text(words)
        # In a context of its own: which server it asks is nobody's business afterwards.
        code: Any = copy_context().run(commands.needed(words), words, standalone_mode=False)
        sys.stdout.flush()
        return int(code or 0)
    except SpinneyError as error:
        return _failed(error, str(error), error.exit_code)
    except typer.TyperException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # typer gives it no public name
            _say(error.format_message())
            return error.exit_code
        return _failed(error, _usage(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # Whoever read has gone; nobody is left to be told, and the flush at exit must not say so.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.REFUSED
    except OSError as error:
        return _failed(error, f"{error}; {_mend(error)}", Exit.REFUSED)
    except Exception as error:  # noqa: BLE001 - the last resort: a fault of Spinney's own
        return _unexpected(error)


def _mend(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "make room on the disk, or have the limit raised, then do it again"
    return "check that the path is there and its rights"


def _require_text(words: list[str]) -> None:
    """Refuse what is not UTF-8, of which Python makes halves of surrogate pairs that nothing can store."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{word!r} is not valid UTF-8; write it in UTF-8, or rename the file it names") from None


def _usage(error: Any) -> str:
    text = error.format_message().strip().rstrip(".")
    context = getattr(error, "ctx", None)
    return f"{text}; '{context.command_path if context else 'spinney'} --help' shows how it is written"


def _failed(error: Exception, sentence: str, code: int) -> int:
    if os.environ.get(DEBUG_VARIABLE) == "1":
        traceback.print_exception(error)
    from spinney.cli.showing import safe

    _say(f"spinney: {safe(' '.join(sentence.split()))}")
    return code


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _unexpected(error: Exception) -> int:
    if os.environ.get(DEBUG_VARIABLE) == "1":
        traceback.print_exception(error)
        return Exit.REFUSED
    with tempfile.NamedTemporaryFile("w", prefix="spinney-", suffix=".traceback", delete=False) as file:
        traceback.print_exception(error, file=file)
    said = f"{type(error).__name__}: {error}".rstrip(": ")
    told = f"an error of Spinney's own, {said}; the traceback is in {file.name}, please report it"
    return _failed(error, told, Exit.REFUSED)
