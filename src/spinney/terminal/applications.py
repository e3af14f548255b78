"""Commands that installed packages bring to ``spinney``: entry points of the group ``spinney.commands``.

    [project.entry-points."spinney.commands"]
    ingest = "library.commands:app"

Through a server (``spinney --server URL``) a command works where an entry point of the same name in the group
``spinney.routes`` brings routes to servers; others are refused. ``connection.open_client`` opens the client by which
it calls those routes and performs commands; ``connection.open_control`` opens a store itself.

The name is the command, the value a ``typer.Typer`` whose commands come below it. Packages are looked through only when
a word is no command of Spinney's own, or when all commands are wanted; what an entry point names is imported only when
its command is run or completed. So no package can make Spinney's own commands slow, or break them.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from spinney.model.errors import UsageError
from spinney.terminal.command_index import COMMAND_MODULES
from spinney.terminal.help_texts import tidy_help

GROUP = "spinney.commands"
ROUTES = "spinney.routes"
"""What servers load (``spinney.routes``): a command of the same name works through a server, too."""
HEADING = "Applications"
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
"""Names that a shell and Click take as one word, and that cannot be confused with an option."""
_SUMMARY_CHARS = 200
"""How many characters of a summary are shown at most."""


@dataclass(frozen=True, slots=True)
class Application:
    """A command that a package brings."""

    entry: EntryPoint
    """The entry point by which the package announces it."""

    @property
    def package(self) -> str:
        """Return the name and version of the package that brings the command, as ``library 1.0``."""
        distribution = self.entry.dist
        if distribution is None:
            return "a package without a name"
        return f"{distribution.name} {distribution.version}"

    @property
    def summary(self) -> str:
        """Return the command's line in the help: the first line of its module's docstring, read from the
        file, else the summary of the package, cut at ``_SUMMARY_CHARS``. Nothing is imported."""
        for summary in (_docstring(self.entry), self._package_summary()):
            lines = summary.splitlines()
            if lines:
                return lines[0][:_SUMMARY_CHARS]
        return f"Of {self.package}."

    def _package_summary(self) -> str:
        dist = self.entry.dist
        summary = dist.metadata["Summary"] if dist is not None and "Summary" in dist.metadata else ""
        return "" if summary == "UNKNOWN" else summary

    def load(self) -> Any:
        """Import the command, and return it ready to be run. Raises UsageError, in one sentence, when it cannot be
        imported or is no ``typer.Typer``, and that of the package itself, as for a mistake in its settings."""
        import typer

        try:
            app = self.entry.load()
        except UsageError:
            raise
        except (Exception, SystemExit) as error:  # a package may fail in any way
            raise self._broken(f"{type(error).__name__}: {error}".rstrip(": ")) from error
        if not isinstance(app, typer.Typer):
            raise self._broken(f"{self.entry.value} is not a typer.Typer but a {type(app).__name__}")
        try:
            return _ready(app, self.entry.name)
        except Exception as error:  # an option declared twice, and the like
            raise self._broken(f"{type(error).__name__}: {error}".rstrip(": ")) from error

    def _broken(self, why: str) -> UsageError:
        return UsageError(
            f"the command {self.entry.name!r} of {self.package} cannot be loaded ({why}); repair that package, or "
            f"uninstall it"
        )


@dataclass(frozen=True, slots=True)
class InstalledCommands:
    """The commands that the installed packages bring, and why others are ignored."""

    applications: dict[str, Application]
    """The commands by name, in alphabetical order."""
    ignored: Sequence[str]
    """A sentence for each entry point that cannot be a command."""


@cache
def installed_commands() -> InstalledCommands:
    """Return the commands of the installed packages. The packages are looked through once for each process."""
    try:
        # By name and package, so that the order in a directory does not decide which of two comes first.
        entries = sorted(
            map(Application, entry_points(group=GROUP)), key=lambda app: (app.entry.name, app.package)
        )
    except Exception as error:  # noqa: BLE001 - what packages say of themselves may be damaged in any way
        return InstalledCommands(
            {}, [f"the entry points of installed packages cannot be read ({type(error).__name__}: {error})"]
        )
    applications: dict[str, Application] = {}
    ignored = []
    for application in entries:
        name = application.entry.name
        why = None
        if not _NAME.fullmatch(name):
            why = "may have only small letters, digits and single dashes"
        elif name in COMMAND_MODULES:
            why = "is the name of one of Spinney's own commands"
        elif name in applications:
            why = f"is already that of a command of {applications[name].package}"
        if why is None:
            applications[name] = application
        else:
            ignored.append(f"the command {name!r} of {application.package} is ignored: its name {why}")
    return InstalledCommands(applications, ignored)


def is_served(name: str) -> bool:
    """Return whether the package that brings this command also brings routes of that name, so that the
    command works through a server.

    The packages of this host are examined; whether the server has the routes is known when one is called.
    """
    return name in installed_commands().applications and any(
        entry.name == name for entry in entry_points(group=ROUTES)
    )


def _docstring(entry: EntryPoint) -> str:
    """Return the docstring of the module that an entry point names, read from its file; empty when there is none."""
    package, *names = entry.module.split(".")
    # To find a package at the top imports nothing; below it `find_spec` would import, so files are looked up.
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return ""
    module = Path(spec.origin).parent.joinpath(*names)
    files = (module.with_suffix(".py"), module / "__init__.py") if names else (Path(spec.origin),)
    for file in files:
        try:
            return ast.get_docstring(ast.parse(file.read_bytes())) or ""
        except (OSError, SyntaxError, ValueError):
            continue
    return ""


@cache
def _ready(app: Any, name: str) -> Any:
    """Return the command of a ``typer.Typer``, ready to be run; it is prepared once for each process."""
    import typer
    from typer.main import get_group

    # Below another, so that it is a group though it have but one command, and its help looks as Spinney's own.
    outer = typer.Typer(rich_markup_mode=None)
    outer.add_typer(app, name=name)
    return tidy_help(get_group(outer).commands[name])
