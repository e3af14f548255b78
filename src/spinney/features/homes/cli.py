"""The command ``rehome``: let jobs continue on other hosts when the host with their folders is lost."""

from typing import Annotated

import typer

from spinney.model.errors import UsageError
from spinney.terminal import completion, display
from spinney.terminal.arguments import ByOption, JsonOption, SomeJobsArgument, StoreOption
from spinney.terminal.confirmation import require_yes
from spinney.terminal.connection import open_control
from spinney.terminal.for_each import for_each

_COUNTED = 10_000
"""Jobs are counted no further."""


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
    from spinney.features.homes.service import Homes

    with open_control(store, by) as control:
        service = control.part(Homes)
        if host is None:
            require_yes(
                f"Let go of the {'folder of 1 job' if len(jobs or ()) == 1 else f'folders of {len(jobs or ())} jobs'}? "
                "What is in there will not be seen where they go on.",
                yes=yes,
            )

            def let_go(job: int) -> None:
                home = service.let_go_of_job(job, reason=reason)
                if json:
                    display.print_json_lines([{"job": job, "host": home.host, "path": home.path}])
                else:
                    typer.echo(
                        f"job {job} is not bound to {display.safe(str(home))} any more; it goes on where it is claimed "
                        "next, with an empty folder"
                    )

            for_each(jobs or (), let_go)
            return
        homes = service.on_host(host)
        counts = {home.id: control.store.homes.waiting(home.id, most=_COUNTED) for home in homes}
        require_yes(
            f"Let go of all job folders on host {display.safe(host)}? {_jobs(sum(counts.values()))} ready for it would "
            f"go on elsewhere at once, with empty folders.",
            yes=yes,
        )
        for home in homes:
            service.let_go(home, reason=reason)
            if json:
                display.print_json_lines([{"host": home.host, "path": home.path, "ready": counts[home.id]}])
            else:
                typer.echo(
                    f"{display.safe(str(home))} is let go of; {_jobs(counts[home.id])} ready for it may go on elsewhere"
                )


def _jobs(count: int) -> str:
    if count >= _COUNTED:
        return f"{_COUNTED:,} or more jobs"
    return "1 job" if count == 1 else f"{count:,} jobs"
