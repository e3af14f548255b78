"""The verbs of the command line, for jobs by number or by filter: ``retry``, ``rerun``, ``run-now``, ``cancel``,
``move``, ``priority`` and ``delete``.

Each is a thin command over ``run_verb`` (``spinney.features.bulk.cli``), which counts, asks for confirmation
and works in steps. ``hold`` and ``release`` are in ``spinney.features.holds.cli``, because they also hold
queues and types.
"""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from spinney.features.bulk.cli import VerbOptions, run_verb
from spinney.model.errors import UsageError
from spinney.model.operators.bulk_orders import Verb
from spinney.model.values import durations
from spinney.terminal import completion
from spinney.terminal.options.arguments import SomeJobsArgument, option
from spinney.terminal.options.option_groups import with_option_groups

if TYPE_CHECKING:
    from spinney.features.bulk.commands import CanaryFields

STOP_AT = 0.05
"""The share of failures among the canary's jobs at which the others are not opened, unless ``--stop-at`` says
otherwise."""


def _share(text: str) -> float:
    """Return a share of 0 to 1 that was written as ``5%`` or ``0.05``. Raises UsageError."""
    number, percent, rest = text.strip().partition("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = -1.0
    if rest or not 0 <= share <= 1:
        raise UsageError(f"--stop-at {text!r:.80} is no share; write it as 5% or 0.05")
    return share


@dataclass(frozen=True, kw_only=True)
class RetryOptions(VerbOptions):
    """The options of ``retry`` and ``rerun``, whose own ``--queue`` says where the jobs go."""

    queue: Annotated[
        str | None,
        option("--in-queue", help_="Only in this queue.", complete=completion.queues),
    ] = None
    """Takes the place of ``--queue`` of other filters."""
    stage_from: Annotated[
        str | None,
        option("--from", metavar="STAGE", help_="Restart from this stage.", complete=completion.stages),
    ] = None
    into: Annotated[
        str | None,
        option(
            "--queue",
            help_="Move the jobs into this queue, for all stages that they run from now on.",
            complete=completion.queues,
        ),
    ] = None
    """The queue for the jobs; the command has it as ``--queue``."""
    and_after: Annotated[
        bool,
        typer.Option(
            "--and-after",
            help="Also run again the jobs of their trees that completed after the first failure.",
        ),
    ] = False
    canary: Annotated[
        int | None,
        option(
            metavar="N",
            min=1,
            help_="Open this many jobs first, and the others only while the failures stay below --stop-at.",
        ),
    ] = None
    stop_at: Annotated[
        float | None,
        option(
            metavar="SHARE",
            parser=_share,
            help_=f"With --canary: the share of failures at which to stop (default: {STOP_AT:.0%}).",
        ),
    ] = None
    canary_wait: Annotated[
        float | None,
        option(
            metavar="TIME",
            parser=partial(durations.seconds, where="--canary-wait"),
            help_="With --canary: give up when the first jobs have not settled after this time, for example 2h "
            "(default: wait as long as they run).",
        ),
    ] = None

    def run(self, verb: Verb, jobs: SomeJobsArgument) -> None:
        """Carry out ``verb`` with these options, and end the command with its exit code. Raises
        UsageError for options that do not fit together."""
        run_verb(
            verb,
            jobs,
            self,
            stage=self.stage_from,
            queue=self.into,
            and_after=self.and_after,
            canary=self._canary(),
        )

    def _canary(self) -> "CanaryFields | None":
        """Return the canary; None without one. Raises UsageError for options of a canary without
        ``--canary``, and wrong values."""
        if self.canary is None:
            if self.stop_at is not None or self.canary_wait is not None:
                raise UsageError(
                    "--stop-at and --canary-wait belong to --canary N, which says how many go first"
                )
            return None
        from spinney.features.bulk.commands import CanaryFields

        stop_at = STOP_AT if self.stop_at is None else self.stop_at
        return CanaryFields(first=self.canary, stop_at=stop_at, patience_s=self.canary_wait)


app = typer.Typer()


@app.command()
@with_option_groups
def retry(jobs: SomeJobsArgument = None, *, options: RetryOptions) -> None:
    """Retry failed jobs, from the stage after the last one that passed. A filter without states selects failed jobs."""
    options.run(Verb.RETRY, jobs)


@app.command()
@with_option_groups
def rerun(jobs: SomeJobsArgument = None, *, options: RetryOptions) -> None:
    """Run settled jobs again from their first stage. A filter without states selects completed jobs."""
    options.run(Verb.RERUN, jobs)


@app.command("run-now")
@with_option_groups
def run_now(jobs: SomeJobsArgument = None, *, options: VerbOptions) -> None:
    """Run scheduled jobs now, without waiting for their time or the end of their backoff."""
    run_verb(Verb.RUN_NOW, jobs, options)


@app.command()
@with_option_groups
def cancel(
    jobs: SomeJobsArgument = None,
    *,
    tree: Annotated[bool, typer.Option("--tree", help="Also cancel all jobs below them.")] = False,
    options: VerbOptions,
) -> None:
    """Cancel jobs. Running stages are asked to stop, then killed."""
    run_verb(Verb.CANCEL, jobs, options, tree=tree)


@app.command()
@with_option_groups
def move(
    jobs: SomeJobsArgument = None,
    *,
    to: Annotated[
        str,
        option(metavar="QUEUE", help_="The other queue.", complete=completion.queues),
    ],
    options: VerbOptions,
) -> None:
    """Move open jobs into another queue, for all they run from now on. Running jobs finish their stage."""
    run_verb(Verb.MOVE, jobs, options, queue=to)


@app.command()
@with_option_groups
def priority(
    jobs: SomeJobsArgument = None,
    *,
    to: Annotated[int, option(metavar="PRIORITY", help_="0 (first) to 99 (last).")],
    options: VerbOptions,
) -> None:
    """Give open jobs another priority. Running jobs keep their slots."""
    run_verb(Verb.PRIORITY, jobs, options, priority=to)


@app.command()
@with_option_groups
def delete(jobs: SomeJobsArgument = None, *, options: VerbOptions) -> None:
    """Delete settled or held jobs with all below them and with their folders. A filter without states selects settled
    jobs."""
    run_verb(Verb.DELETE, jobs, options)
