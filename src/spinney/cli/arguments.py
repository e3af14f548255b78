"""Arguments and options that several commands share, with the words that explain them."""

from typing import Annotated

import typer

from spinney.model.jobs import JOB_ID_MAX


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"spinney {version('spinney')}")
        raise typer.Exit


VersionOption = Annotated[
    bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="The store, as sqlite:///spinney.db; else SPINNEY_STORE, else spinney.toml.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
JobArgument = Annotated[int, typer.Argument(metavar="JOB", help="The job's number.", min=1, max=JOB_ID_MAX)]
JobsArgument = Annotated[
    list[int], typer.Argument(metavar="JOB...", help="The jobs' numbers.", min=1, max=JOB_ID_MAX)
]
SomeJobsArgument = Annotated[
    list[int] | None,
    typer.Argument(metavar="[JOB...]", help="Single jobs.", min=1, max=JOB_ID_MAX, show_default=False),
]
ByOption = Annotated[
    str | None,
    typer.Option("--by", metavar="NAME", help="Who asks for it; else your login name.", show_default=False),
]
