"""The program ``spinney`` with all its commands, and how ``spinney --help`` lists them.

Commands are declared in the features (``cli`` of each), each module by its function ``add_to``. A line is run
by a program that has the commands of one module only (``command_for``); the whole program (``full_app``) is
built for help, for an unknown command, and for the commands of installed packages.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from spinney.cli import shells
from spinney.terminal import applications, endpoint
from spinney.terminal.arguments import VersionOption, option
from spinney.terminal.command_index import COMMAND_MODULES, HEADINGS
from spinney.terminal.display import safe

_BORDER = 6
"""How many columns a line of help needs beside the command's name and its summary."""


class GroupedCommands(TyperGroup):
    """The root group: Spinney's commands in the order and under the headings of ``command_index``, followed
    by the commands that installed packages bring.

    The latter are not bound like others, because binding imports a package: they are looked up by name when
    the line names none of Spinney's own, and listed in help from their metadata alone.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of Spinney's own commands that are bound, in the order of the headings.

        The commands of packages are not among them, so that listing imports no package.
        """
        return [name for name in COMMAND_MODULES if name in self.commands]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of this name, or None where there is none.

        One of Spinney's own names never leads to a package, even if its module is not bound here. Entry
        points that cannot be commands are reported on stderr on the way. Raises UsageError for a command of a
        package that cannot be loaded.
        """
        own = super().get_command(ctx, cmd_name)
        if own is not None or cmd_name in COMMAND_MODULES:
            return own
        installed = applications.installed_commands()
        _warn(installed)
        brought = installed.applications.get(cmd_name)
        return None if brought is None else brought.load()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands into the help, under their headings, with all names in one column.

        Empty headings are left out. Each summary of Spinney's own commands is cut to the width of the
        terminal; those of packages are printed with control characters escaped, since they come from other
        people's files.
        """
        names = self.list_commands(ctx)
        brought = applications.installed_commands()
        wide = max(map(len, (*names, *brought.applications)), default=0)
        room = formatter.width - _BORDER - wide
        for heading, under in HEADINGS.items():
            rows = [(n.ljust(wide), self.commands[n].get_short_help_str(room)) for n in names if n in under]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)
        if brought.applications:
            with formatter.section(applications.HEADING):
                items = brought.applications.items()
                formatter.write_dl([(name.ljust(wide), safe(app.summary)) for name, app in items])
        _warn(brought)


def _warn(installed: applications.InstalledCommands) -> None:
    """Report each entry point that is ignored on stderr, so that its author learns why the command is
    missing."""
    for sentence in installed.ignored:
        typer.echo(f"spinney: {safe(sentence)}", err=True)


def build_app(modules: Iterable[str]) -> typer.Typer:
    """Return the program ``spinney`` with the commands of these modules alone.

    The names of modules are relative to ``spinney``, and may repeat; each module is imported, and its
    ``add_to`` adds its commands. Also installs Spinney's completion script for bash, which Typer's options
    for installing print.
    """
    shells.install_bash_script()
    made = typer.Typer(
        cls=GroupedCommands,
        name="spinney",
        help="Durable batch processing for long pipelines on your own machines.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(root_options)
    for module in dict.fromkeys(modules):
        import_module(f"spinney.{module}").add_to(made)
    return made


def root_options(
    context: typer.Context,
    server: Annotated[
        str | None,
        option(
            "--server",
            metavar="URL",
            help_="Use this server, https://spinney.example.org or unix:/path/server.sock (default: "
            f"{endpoint.URL_VARIABLE}, then the store directly).",
        ),
    ] = None,
    token_file: Annotated[
        str | None,
        option(
            "--token-file",
            metavar="FILE",
            help_=f"The file with the token for the server (default: {endpoint.FILE_VARIABLE}, then the token in "
            f"{endpoint.TOKEN_VARIABLE}).",
        ),
    ] = None,
    version: VersionOption = False,
) -> None:
    """Durable batch processing for long pipelines on your own machines."""
    endpoint.choose(server, token_file, context.invoked_subcommand)


def command_for(words: Sequence[str]) -> Any:
    """Return the command that runs a line: the program with the commands of one module if the line names one
    of Spinney's own, otherwise with all.

    ``words`` is the line without the program's name. Options of the program before the command are skipped
    with their values, as Click will read them. Any other first word, such as ``--help`` or a misspelt
    command, gets the whole program, which knows all names for its message. Loading and binding all commands
    for every line would be a sixth of the time in which a command begins.
    """
    rest = iter(words)
    for word in rest:
        option, equals, _ = word.partition("=")
        if option in endpoint.OPTIONS:
            if not equals:
                next(rest, None)
        else:
            return command(COMMAND_MODULES.get(word))
    return command()


@cache
def command(module: str | None = None) -> Any:
    """Return ``spinney`` with the commands of that module (None: with all), ready to be run.

    The result is kept for the process, because a ``Typer`` that is called is prepared anew each time, which
    takes longer than most commands do.
    """
    return get_command(full_app() if module is None else build_app([module]))


@cache
def full_app() -> typer.Typer:
    """Return ``spinney`` with all its commands, for completion and documentation; it imports every command's module."""
    return build_app(COMMAND_MODULES.values())
