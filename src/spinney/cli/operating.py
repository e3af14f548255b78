"""The operator's verbs: ``retry``, ``rerun``, ``release``, ``cancel``, ``delete``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from spinney.cli.arguments import ByOption, JobsArgument, StoreOption
from spinney.cli.session import hand, where

SHOWN_IDS = 20
FromOption = Annotated[
    str | None, typer.Option("--from", metavar="STAGE", help="From this stage on.", show_default=False)
]


def add_to(app: typer.Typer) -> None:
    for command in (retry, rerun, release, cancel, delete):
        app.command()(command)


def retry(jobs: JobsArgument, stage: FromOption = None, by: ByOption = None, store: StoreOption = None) -> None:
    """Open failed, orphaned or cancelled jobs again, behind the last stage that passed."""
    with hand(store, by) as control:
        for job in jobs:
            touched = control.retry(job, stage=stage)
            _tell(job, "goes on", touched.ids, touched.reopened)


def rerun(jobs: JobsArgument, stage: FromOption = None, by: ByOption = None, store: StoreOption = None) -> None:
    """Run settled jobs again from their first stage, whatever had passed."""
    with hand(store, by) as control:
        for job in jobs:
            touched = control.rerun(job, stage=stage)
            _tell(job, "runs again", touched.ids, touched.reopened)


def release(jobs: JobsArgument, by: ByOption = None, store: StoreOption = None) -> None:
    """Let held jobs go on."""
    with hand(store, by) as control:
        for job in jobs:
            touched = control.release(job)
            _tell(job, "is released", touched.ids, touched.reopened)


def cancel(
    jobs: JobsArgument,
    tree: Annotated[bool, typer.Option("--tree", help="With all below.")] = False,
    reason: Annotated[str | None, typer.Option(help="Why; shown with the job.", show_default=False)] = None,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Cancel jobs. What runs is asked to end, and made to."""
    with hand(store, by) as control:
        for job in jobs:
            touched = control.cancel(job, tree=tree, reason=reason)
            _tell(job, "is cancelled, or will be when what runs has ended", touched.ids, touched.reopened)


def delete(jobs: JobsArgument, by: ByOption = None, store: StoreOption = None) -> None:
    """Delete settled or held jobs with all below them and with their folders."""
    from spinney.node import folders

    root: Path = where(store).folders
    with hand(store, by) as control:
        for job in jobs:
            ids = control.delete(job, lambda job_id: folders.remove(root, job_id))
            _tell(job, "is deleted", ids, ())


def _tell(job: int, what: str, ids: Sequence[int], reopened: Sequence[int]) -> None:
    others = [n for n in ids if n != job]
    with_ = f"; so with {_listed(others)}" if others else ""
    waits = f"; {_listed(reopened)} waits for it again" if reopened else ""
    typer.echo(f"job {job} {what}{with_}{waits}")


def _listed(ids: Sequence[int]) -> str:
    shown = ", ".join(str(n) for n in ids[:SHOWN_IDS])
    return f"{shown} and {len(ids) - SHOWN_IDS:,} more" if len(ids) > SHOWN_IDS else shown
