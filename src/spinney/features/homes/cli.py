"""The command ``rehome``: let jobs continue on other hosts when the host with their folders is lost."""

from typing import Annotated

import typer

from spinney.model.errors import UsageError
from spinney.terminal import completion, display
from spinney.terminal.arguments import ByOption, JsonOption, SomeJobsArgument, StoreOption
from spinney.terminal.confirmation import require_yes
from spinney.terminal.connection import open_commands
from spinney.terminal.for_each import for_each


def add_to(app: typer.Typer) -> None:
    app.command()(rehome)


def rehome(
    jobs: SomeJobsArgument = None,
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            metavar="HOST",
            help="All jobs whose folders are on this host.",
            show_default=False,
            autocompletion=completion.hosts,
        ),
    ] = None,
    reason: Annotated[
        str | None, typer.Option(help="The reason, recorded in the audit log.", show_default=False)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Let jobs whose host is lost continue on other hosts, with empty folders.

    Each job continues with the stage where it stopped; if that stage needs files of earlier ones, use 'rerun'. Nothing
    is deleted: when a node with that folder root comes back, jobs that have not started elsewhere belong to it again.
    """
    if bool(jobs) == (host is not None):
        raise UsageError("name either jobs, or a host with --host")
    from spinney.features.homes.commands import ListHomes, RehomeJob, ReleaseHome

    with open_commands(store, by) as performer:
        if host is None:
            require_yes(
                f"Let go of the {'folder of 1 job' if len(jobs or ()) == 1 else f'folders of {len(jobs or ())} jobs'}? "
                "What is in there will not be seen where they go on.",
                yes=yes,
            )

            def let_go(job: int) -> None:
                home = performer.do(RehomeJob(job=job, reason=reason))
                if json:
                    display.print_json_lines([{"job": job, "host": home.host, "path": home.path}])
                else:
                    typer.echo(
                        f"job {job} is not bound to {display.safe(str(home))} any more; it goes on where it is claimed "
                        "next, with an empty folder"
                    )

            for_each(jobs or (), let_go)
            return
        homes = performer.do(ListHomes(host=host)).items
        ready = sum(home.ready for home in homes)
        require_yes(
            f"Let go of all job folders on host {display.safe(host)}? {_jobs(ready)} ready for it would go on "
            "elsewhere at once, with empty folders.",
            yes=yes,
        )
        for home in homes:
            performer.do(ReleaseHome(home=home.id, reason=reason))
            if json:
                display.print_json_lines([{"host": home.host, "path": home.path, "ready": home.ready}])
            else:
                typer.echo(
                    f"{display.safe(str(home))} is let go of; {_jobs(home.ready)} ready for it may go on elsewhere"
                )


def _jobs(count: int) -> str:
    from spinney.features.homes.commands import COUNTED

    if count >= COUNTED:
        return f"{COUNTED:,} or more jobs"
    return "1 job" if count == 1 else f"{count:,} jobs"
