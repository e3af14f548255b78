"""``explain``: why a job is not running now."""

from typing import TYPE_CHECKING

import typer

from spinney.cli import showing
from spinney.cli.arguments import JobsArgument, JsonOption, StoreOption
from spinney.cli.session import looking
from spinney.cli.severally import severally

if TYPE_CHECKING:
    from spinney.model.operators import Explanation


def add_to(app: typer.Typer) -> None:
    app.command()(explain)


def explain(jobs: JobsArgument, json: JsonOption = False, store: StoreOption = None) -> None:
    """Say in one sentence why jobs are not running now, and what would change it."""
    with looking(store) as look:

        def one(job: int) -> None:
            found = look.explain(job)
            if json:
                showing.lines([found])
            else:
                _tell(found)

        severally(jobs, one)


def _tell(found: "Explanation") -> None:
    out = showing.console()
    out.print(showing.safe(f"job {found.job_id}: {found.sentence}"))
    if found.start_us is not None and found.cause != "next":
        out.print(f"  expected to start at {showing.moment(found.start_us)}")
    if found.command is not None:
        out.print(f"  {showing.safe(found.command)}")
