"""``spinney``: the commands bound together, and what becomes of errors."""

import os
import sys
import tempfile
import traceback
from typing import Any, NoReturn

import typer

from spinney.cli import logs, looking, operating, setup, submitting
from spinney.cli.arguments import VersionOption
from spinney.model.errors import SpinneyError, UsageError

DEBUG_VARIABLE = "SPINNEY_DEBUG"
INTERRUPTED = 130

app = typer.Typer(
    name="spinney",
    help="Durable batch processing for long pipelines on machines of your own.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for group in (setup, submitting, looking, logs, operating):
    group.add_to(app)


@app.callback()
def whole(version: VersionOption = False) -> None:
    """Durable batch processing for long pipelines on machines of your own."""


def main(args: list[str] | None = None) -> NoReturn:
    """Run a command and exit with its code."""
    sys.exit(run(args))


def run(args: list[str] | None = None) -> int:
    """Run a command; whatever goes wrong becomes one sentence on stderr, and the exit code."""
    try:
        _require_text(sys.argv[1:] if args is None else args)
        code: Any = app(args, standalone_mode=False)
        sys.stdout.flush()
        return int(code or 0)
    except SpinneyError as error:
        return _failed(error, str(error), error.exit_code)
    except typer.TyperException as error:
        return _failed(error, _usage(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read has gone; nobody is left to be told, and the flush at exit must not say so.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _failed(error, f"{error}; check that the path is there and its rights", 1)
    except Exception as error:  # noqa: BLE001 - the last resort: a fault of Spinney's own
        return _unexpected(error)


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
    typer.echo(f"spinney: {' '.join(sentence.split())}", err=True)
    return code


def _unexpected(error: Exception) -> int:
    if os.environ.get(DEBUG_VARIABLE) == "1":
        traceback.print_exception(error)
        return 1
    with tempfile.NamedTemporaryFile("w", prefix="spinney-", suffix=".traceback", delete=False) as file:
        traceback.print_exception(error, file=file)
    said = f"{type(error).__name__}: {error}".rstrip(": ")
    return _failed(error, f"an error of Spinney's own, {said}; the traceback is in {file.name}, please report it", 1)
