"""The program ``spinney`` with all its commands, and how ``spinney --help`` lists them.

Commands are declared in the features (``cli`` of each), each module in its ``app``. A module is imported when a line
names one of its commands; help is printed from ``command_index`` alone.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from spinney.cli import shells
from spinney.model.errors import UsageError
from spinney.terminal import applications, endpoint
from spinney.terminal.command_index import COMMAND_MODULES, HEADINGS, SUMMARIES
from spinney.terminal.help_texts import tidy_help
from spinney.terminal.options.arguments import VersionOption, option
from spinney.terminal.output.display import safe


class LazyCommands(TyperGroup):
    """The root group: Spinney's commands in the order and under the headings of ``command_index``, followed
    by the commands that installed packages bring.

    Neither kind is added to the group in the usual way, which would import all modules: a command is looked up when a
    line names it, and listed in help from the index and from the metadata of packages.
    """

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        # What help, completion and the hint at a misspelt name need; ``get_command`` returns the commands themselves.
        # Those of packages are not among them, so that listing imports no package.
        self.commands = {name: TyperCommand(name, help=summary) for name, summary in SUMMARIES.items()}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of this name, or None where there is none; its module is imported.

        One of Spinney's own names never leads to a package. Entry points that cannot be commands are reported on stderr
        on the way to a package, unless the line is only completed. Raises UsageError for a command of a package that
        cannot be loaded.
        """
        if cmd_name in COMMAND_MODULES:
            return _commands_of(COMMAND_MODULES[cmd_name])[cmd_name]
        installed = applications.installed_commands()
        if not ctx.resilient_parsing:
            _warn(installed)
        brought = installed.applications.get(cmd_name)
        return None if brought is None else brought.load()

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the command that a line names, and the rest of the line. Raises UsageError for ``help`` and
        ``version``, which are commands of other programs, with the option to write instead."""
        word, *following = args
        if word in ("help", "version") and not ctx.resilient_parsing and self.get_command(ctx, word) is None:
            words = [name for name in following if word == "help" and not name.startswith("-")]
            raise UsageError(
                f"there is no command {word!r}; write '{' '.join(('spinney', *words, f'--{word}'))}'"
            )
        name, command, rest = super().resolve_command(ctx, args)
        return name, command, rest

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands into the help, under their headings, with all names in one column.

        Summaries of packages are printed with control characters escaped, since they come from other people's files.
        """
        brought = applications.installed_commands()
        wide = max(map(len, (*SUMMARIES, *brought.applications)))
        for heading, under in HEADINGS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(wide), summary) for name, summary in under.items()])
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


@cache
def _commands_of(module: str) -> Mapping[str, Any]:
    """Return the commands of a module, named relative to ``spinney``, by their names."""
    alone = typer.Typer(rich_markup_mode=None)
    alone.add_typer(import_module(f"spinney.{module}").app)
    commands: Mapping[str, Any] = tidy_help(get_group(alone)).commands
    return commands


@cache
def program() -> Any:
    """Return the command ``spinney``, ready to be run.

    The result is kept for the process, because a ``Typer`` that is called is prepared anew each time, which
    takes longer than most commands do. Also installs Spinney's completion script for bash, which Typer's options
    for installing print.
    """
    shells.install_bash_script()
    made = typer.Typer(
        cls=LazyCommands,
        name="spinney",
        help="Durable batch processing for long pipelines on your own machines.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(root_options)
    return get_command(made)


def root_options(
    context: typer.Context,
    server: Annotated[
        str | None,
        option(
            metavar="URL",
            help_="Use this server, https://spinney.example.org or unix:/path/server.sock (default: "
            f"{endpoint.URL_VARIABLE}, then the store directly).",
        ),
    ] = None,
    token_file: Annotated[
        str | None,
        option(
            metavar="FILE",
            help_=f"The file with the token for the server (default: {endpoint.FILE_VARIABLE}, then the token in "
            f"{endpoint.TOKEN_VARIABLE}).",
        ),
    ] = None,
    version: VersionOption = False,
) -> None:
    """Durable batch processing for long pipelines on your own machines."""
    endpoint.choose(server, token_file, context.invoked_subcommand)
