"""Arguments and options that several commands share, with their help texts.

``typing.Annotated`` types such as ``StoreOption`` are used as annotations of a command's parameters, so that
an option has the same name, limits and help everywhere. ``argument`` and ``option`` declare those that one
command has alone.
"""

import math
from collections.abc import Callable
from typing import Annotated, Any

import typer

from spinney.model.errors import UsageError
from spinney.model.fleet import SLOTS_MAX
from spinney.model.jobs import JOB_ID_MAX
from spinney.model.values import durations
from spinney.terminal.command_index import SUMMARIES
from spinney.version import VERSION


def _version(shows: bool) -> None:
    """Print the version and end the command with exit code 0; called by Typer before the other options are
    examined."""
    if shows:
        typer.echo(f"spinney {VERSION}")
        raise typer.Exit


def length(option: str, least: float = 0.0, most: float = math.inf) -> Callable[[str | float], float]:
    """Return a parser of a length of time, for ``parser=`` of an option.

    It takes a number of seconds or text such as ``5m``, and returns seconds; it raises UsageError for other
    text and outside of these bounds, which are included. ``option``: its name, for the message.
    """

    def parse(text: str | float) -> float:
        time_s = durations.of_word(text, option)
        if not least <= time_s <= most:
            bounds = f"at least {least:g}" if most == math.inf else f"between {least:g} and {most:g}"
            raise UsageError(f"{option} must be {bounds} seconds, not {text!r:.80}")
        return time_s

    return parse


def argument(metavar: str, help_: str | None = None, complete: Any = None) -> Any:
    """Declare a command's argument whose default is not shown. ``help_``: None for the description of a field
    (``with_fields``); ``complete``: a function of ``completion``."""
    return typer.Argument(metavar=metavar, help=help_, show_default=False, autocompletion=complete)


def option(
    *names: str,
    help_: str | None = None,
    metavar: str | None = None,
    complete: Any = None,
    default: Any = ...,
    **more: Any,
) -> Any:
    """Declare an option whose default is not shown. Without ``names`` it is called as its parameter; ``help_`` and
    ``complete``: as those of ``argument``; ``default``: in place of that of a field; ``more``: what ``typer.Option``
    takes beside it, for example ``min`` and ``max``."""
    return typer.Option(
        default, *names, metavar=metavar, help=help_, show_default=False, autocompletion=complete, **more
    )


def command_group(app: typer.Typer, name: str) -> typer.Typer:
    """Add the group of this name, which prints its help when it is called without a command, and return it."""
    group = typer.Typer(name=name, help=SUMMARIES[name], no_args_is_help=True)
    app.add_typer(group)
    return group


VersionOption = Annotated[
    bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
]
StoreOption = Annotated[
    str | None,
    option(
        "--store",
        metavar="URL",
        help_="The store's URL, for example sqlite:///spinney.db (default: SPINNEY_STORE, then spinney.toml).",
    ),
]
SEQ_MAX = 2**62
"""No list is numbered further; a database holds no number beyond 2**63 - 1."""
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
CsvOption = Annotated[bool, typer.Option("--csv", help="Print the list as CSV, with all fields.")]
RawOption = Annotated[
    bool,
    typer.Option(
        "--raw", help="Print control characters (colours and others) unchanged, also to a terminal."
    ),
]
JobArgument = Annotated[int, typer.Argument(metavar="JOB", help="The job's number.", min=1, max=JOB_ID_MAX)]
JobsArgument = Annotated[
    list[int], typer.Argument(metavar="JOB", help="The jobs' numbers.", min=1, max=JOB_ID_MAX)
]
SomeJobsArgument = Annotated[
    list[int] | None,
    typer.Argument(metavar="JOB", help="The jobs' numbers.", min=1, max=JOB_ID_MAX, show_default=False),
]
SlotsOption = Annotated[
    int | None,
    option(
        "--slots",
        metavar="N",
        help_="How many jobs run at once (default: one for each CPU).",
        min=1,
        max=SLOTS_MAX,
    ),
]
InternalOption = Annotated[
    bool,
    typer.Option(
        "--internal", help="Allow a type whose jobs only stages and schedules submit; not through a server."
    ),
]
ByOption = Annotated[
    str | None,
    option("--by", metavar="NAME", help_="Your name in the audit log (default: your login name)."),
]
ReasonOption = Annotated[str | None, option("--reason", help_="The reason, recorded in the audit log.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
