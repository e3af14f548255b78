"""The command ``rehome``: let jobs continue on other hosts when the host with their folders is lost.

It is for stores with local folders, and for hosts that will not come back soon: what is in the folders there
is not seen by the jobs any more.
"""

from collections.abc import Sequence
from typing import Annotated

import typer

from spinney.commands import Performs
from spinney.features.homes.commands import COUNTED, ListHomes, RehomeJob, ReleaseHome
from spinney.model.errors import UsageError
from spinney.model.values.texts import counted
from spinney.terminal import completion
from spinney.terminal.confirmation import require_yes
from spinney.terminal.connection import open_commands
from spinney.terminal.for_each import for_each
from spinney.terminal.options.arguments import (
    ByOption,
    JsonOption,
    ReasonOption,
    SomeJobsArgument,
    StoreOption,
    YesOption,
    option,
)
from spinney.terminal.output import display

app = typer.Typer()


@app.command()
def rehome(
    jobs: SomeJobsArgument = None,
    host: Annotated[
        str | None,
        option(metavar="HOST", help_="All jobs whose folders are on this host.", complete=completion.hosts),
    ] = None,
    reason: ReasonOption = None,
    yes: YesOption = False,
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
    with open_commands(store, by) as performer:
        if host is None:
            _rehome_jobs(performer, jobs or (), reason, yes=yes, json=json)
        else:
            _release_host(performer, host, reason, yes=yes, json=json)


def _rehome_jobs(
    performer: Performs, jobs: Sequence[int], reason: str | None, *, yes: bool, json: bool
) -> None:
    """Release jobs one by one after a confirmation, and print where each was."""
    require_yes(
        "Give up the folder of 1 job? It will not see its files where it continues."
        if len(jobs) == 1
        else f"Give up the folders of {len(jobs)} jobs? They will not see their files where they continue.",
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

    for_each(jobs, let_go)


def _release_host(performer: Performs, host: str, reason: str | None, *, yes: bool, json: bool) -> None:
    """Release the jobs of every folder root of a host after a confirmation, and print how many were ready."""
    homes = performer.do(ListHomes(host=host)).items
    ready = sum(home.ready for home in homes)
    require_yes(
        f"Give up all job folders on host {display.safe(host)}? {_jobs(ready)} ready for it would continue "
        "elsewhere at once, with empty folders.",
        yes=yes,
    )
    for home in homes:
        performer.do(ReleaseHome(home=home.id, reason=reason))
        if json:
            display.print_json_lines([{"host": home.host, "path": home.path, "ready": home.ready}])
        else:
            typer.echo(
                f"{display.safe(str(home))} is given up; {_jobs(home.ready)} ready for it may continue elsewhere"
            )


def _jobs(count: int) -> str:
    """Return a number of jobs as text, where it was counted no further than ``COUNTED``."""
    return f"{COUNTED:,} or more jobs" if count >= COUNTED else counted(count, "job")
