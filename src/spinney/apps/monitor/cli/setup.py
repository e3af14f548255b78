"""Commands for who sets a monitor up: init, import, harvest.

Each may be repeated: ``init`` makes only what is missing, and an import changes only what differs."""

from pathlib import Path
from typing import Annotated

import typer

from spinney.apps.monitor import settings
from spinney.apps.monitor.database import database
from spinney.apps.monitor.inventory import TABLES, imports
from spinney.command_line import Exit, StoreOption, open_control, use_store

# The checks that come with Spinney, in the order in which ``init`` numbers their tasks: the cheapest first, because an
# error ends a check.
_CHECKS = ("uri", "http", "capabilities", "content", "gdal")


def init(
    store: StoreOption = None,
    tasks: Annotated[bool, typer.Option(help="Write the checks that come with Spinney as tasks.")] = True,
) -> None:
    """Make the monitor's tables, or upgrade them, its folder of tasks, and its job types in the store."""
    use_store(store)
    from spinney.apps.monitor import app  # its stages are those of the tasks, which have to be read

    config = settings.load()
    tables = TABLES.open(config.tables)
    tables.init()
    typer.echo(f"The tables are in {tables.name}")
    # An existing folder is left as it is: somebody may have removed a task on purpose.
    if tasks and not config.tasks.exists():
        config.tasks.mkdir(parents=True)
        for number, name in enumerate(_CHECKS):
            file = config.tasks / f"{number}0_{name}.py"
            # It imports the check instead of copying it, so that an upgrade of Spinney brings the newer one.
            file.write_text(
                f"from spinney.apps.monitor.checks.{name} import DESCRIPTION, NAME, check\n\n"
                f'__all__ = ["DESCRIPTION", "NAME", "check"]\n'
            )
        typer.echo(f"The tasks are in {config.tasks}")
    with open_control(store) as control:
        app.introduce(control.store)


def import_(
    file: Annotated[Path, typer.Argument(help="A .csv or .json file, a service a row.")],
    part: Annotated[
        bool, typer.Option("--part", help="Keep the services that the file does not name.")
    ] = False,
) -> None:
    """Import services; those that the file no longer names are retired."""
    imported = imports.run(database(), imports.read(file), is_part=part)
    _print(imported)
    if imported.wrong:
        typer.echo("No service was retired, since some rows are wrong.", err=True)
        raise typer.Exit(Exit.USAGE)


def harvest(
    url: Annotated[str, typer.Argument(help="The URL of the catalogue (CSW 2.0.2): https://…/csw")],
) -> None:
    """Import the services of a catalogue; those of it that it no longer has are retired."""
    from spinney.apps.monitor import catalogue

    _print(catalogue.harvest(url))


def _print(imported: imports.Imported) -> None:
    for sentence in imported.wrong:
        typer.echo(sentence, err=True)
    typer.echo(
        f"{imported.added:,} added, {imported.changed:,} changed, {imported.same:,} as before, "
        f"{imported.retired:,} retired, {len(imported.wrong):,} wrong"
    )
