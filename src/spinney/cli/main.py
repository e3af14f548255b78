"""The entry point ``spinney``: it runs a command and turns its errors into sentences, or answers a shell that
completes a word.

What a command needs is loaded when it is run, so that a shell does not wait for it; and SIGINT is handled
before anything else is loaded. So the order in ``main`` matters: signals, then the standard streams, then the
environment that imports read, and only then the first import of a command.

With ``SPINNEY_DEBUG=1`` every error is printed with its traceback on stderr.
"""

import gc
import os
import sys

from spinney.host.standard_streams import drop, ensure_open, install_tolerant
from spinney.terminal.interrupts import INTERRUPTED, interrupts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

DEBUG_VARIABLE = "SPINNEY_DEBUG"
"""The environment variable that shows tracebacks: ``1`` prints that of each error on stderr, above the
sentence."""
_YOUNG = 20_000
"""How many new objects the garbage collector waits for. What a command loads stays, and makes more than a hundred
thousand: with Python's 700 they would be looked through over and over."""


def main(args: "list[str] | None" = None) -> "NoReturn":
    """Run the command of ``args`` (None: the arguments of the process), or answer the shell that the environment names,
    and exit.

    This never returns: it ends in ``sys.exit`` with the command's exit code
    (``spinney.terminal.exit_codes``). It changes the state of the process (signal handlers, the garbage
    collector, standard streams); tests and other programs call ``run``.
    """
    interrupts.take_over()
    gc.set_threshold(_YOUNG)
    ensure_open()
    install_tolerant()
    _skip_plugins(sys.argv[1:] if args is None else args)
    from spinney.cli import completer, shells

    request = os.environ.get(shells.VARIABLE)
    code = completer.print_completions(request) if request else run(args)
    # Otherwise Python searches everything that was loaded for garbage before it exits, which takes a fifth
    # of a short command's time.
    gc.freeze()
    sys.exit(code)


def run(args: "list[str] | None" = None) -> int:
    """Run the command of ``args`` (None: the arguments of the process), and return its exit code. Every error becomes
    one sentence on stderr.

    It may be called several times in a process: the server that a line chooses and the trace that the
    environment names end with the call. No error is raised, not even for Ctrl-C, which gives 130.
    """
    try:
        with interrupts:
            return _written(_run(sys.argv[1:] if args is None else args))
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(words: "list[str]") -> int:
    """Run a line in a context of its own, and return its exit code; only KeyboardInterrupt and SystemExit
    pass.

    An error that follows Ctrl-C counts as Ctrl-C: libraries turn a KeyboardInterrupt in the middle of their
    work into errors of their own.
    """
    from contextvars import copy_context

    try:
        from spinney.cli import commands
        from spinney.tracing import current, traceparents

        _require_text(words)
        # The server that the line chooses is a context variable, which must not outlive the line.
        context = copy_context()
        context.run(current.enter, traceparents.valid(os.environ.get(traceparents.VARIABLE)))
        code: Any = context.run(commands.program(), words, standalone_mode=False)
        sys.stdout.flush()
        return int(code or 0)
    except Exception as error:  # noqa: BLE001 - whatever it is, the user gets a sentence and not a traceback
        return INTERRUPTED if interrupts.received else _explained(error)


def _skip_plugins(words: "list[str]") -> None:
    """Keep Pydantic from looking for plugins: it would read the entry points of every installed package, beside which
    a command that only looks is quick. Commands that run people's own code leave it to their environment."""
    from spinney.terminal.command_index import COMMAND_MODULES, LOCAL_COMMANDS

    if words and words[0] in COMMAND_MODULES.keys() - LOCAL_COMMANDS:
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


def _explained(error: Exception) -> int:
    """Print the sentence for an error on stderr, and return the exit code.

    Spinney's errors have their own sentence and code, and Typer's are about the line itself. An error that none
    of these foresees is internal (``_unexpected``).
    """
    import typer

    from spinney.model.errors import SpinneyError
    from spinney.terminal.exit_codes import Exit

    match error:
        case SpinneyError():
            return _failed(error, str(error), error.exit_code)
        case typer.TyperException():
            if type(error).__name__ == "NoArgsIsHelpError":  # typer gives it no public name
                _say(error.format_message())
                return error.exit_code
            return _failed(error, _usage(error), error.exit_code)
        case typer.Abort():
            return Exit.INTERRUPTED
        case OSError():
            return _failed(error, f"{error}; {_mend(error)}", Exit.REFUSED)
        case _:
            return _unexpected(error)


def _written(code: int) -> int:
    """Flush the buffered output now: an error while the interpreter ends would become a traceback."""
    try:
        sys.stdout.flush()
    except OSError:
        drop(sys.stdout.fileno())
    return code


def _mend(error: OSError) -> str:
    """Return what to do about an error of the file system, as the end of its sentence."""
    import errno

    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "free some disk space, or have the limit raised, then try again"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "raise the limit of open files (ulimit -n), then try again"
    return "check that the path exists and its permissions"


def _require_text(words: "list[str]") -> None:
    """Refuse what is not UTF-8, of which Python makes halves of surrogate pairs that nothing can store."""
    from spinney.model.errors import UsageError

    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise UsageError(
                f"{word!r} is not valid UTF-8; write it in UTF-8, or rename the file it names"
            ) from None


def _usage(error: "Any") -> str:
    """Return the sentence for a wrong line, with the command whose ``--help`` shows the right one."""
    import re

    problems = getattr(error.__cause__, "errors", None)  # of pydantic, where Typer converts values by it
    if problems is not None:
        from spinney.model.values.texts import plain_message

        value = problems()[0]["input"]
        error.message = plain_message(error.message).replace("Input should", f"{value!r} should")
    # Click's suggestion is a sentence of its own, behind which nothing could follow.
    text = re.sub(
        r"\. Did you mean (.*)\?$", r" (did you mean \1?)", error.format_message().strip().rstrip(".")
    )
    context = getattr(error, "ctx", None)
    unknown_option = hasattr(error, "possibilities") and not error.possibilities
    if unknown_option and context and hasattr(context.command, "list_commands"):
        text += "; the options of a command follow its name, as in 'spinney list --json'"
    return f"{text}; '{context.command_path if context else 'spinney'} --help' shows the usage"


def _failed(error: Exception, sentence: str, code: int) -> int:
    """Print ``sentence`` on one line with control characters escaped, after the traceback in debug mode;
    return ``code``."""
    if os.environ.get(DEBUG_VARIABLE) == "1":
        import traceback

        traceback.print_exception(error)
    from spinney.terminal.output.display import safe

    _say(f"spinney: {safe(' '.join(sentence.split()))}")
    return code


def _say(text: str) -> None:
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except OSError:
        return  # nobody reads it, and there is no other place to say so


def _unexpected(error: Exception) -> int:
    """Write the traceback of an internal error into a file, and say where it is; return the exit code."""
    import tempfile
    import traceback

    from spinney.terminal.exit_codes import Exit

    if os.environ.get(DEBUG_VARIABLE) == "1":
        traceback.print_exception(error)
        return Exit.REFUSED
    with tempfile.NamedTemporaryFile("w", prefix="spinney-", suffix=".traceback", delete=False) as file:
        traceback.print_exception(error, file=file)
    error_text = f"{type(error).__name__}: {error}".rstrip(": ")
    message = f"internal error of Spinney, {error_text}; the traceback is in {file.name}, please report it"
    return _failed(error, message, Exit.REFUSED)
