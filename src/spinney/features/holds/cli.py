"""The commands ``hold``, ``holds`` and ``release``: hold jobs back with a reason, and let them continue.

``hold`` and ``release`` have two forms. With jobs' numbers or a filter they are bulk verbs, which lay or lift
a hold on each job; with one of ``--queue``, ``--type``, … they lay or lift a single wide hold, which also
covers later jobs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

import typer

from spinney.commands import Performs
from spinney.features.bulk.cli import VerbOptions, run_verb
from spinney.features.bulk.commands import RunBulk
from spinney.features.holds.commands import (
    CountHeld,
    LayHold,
    LiftHold,
    ListHolds,
    ListHoldsOn,
    PlanHold,
    PlanRelease,
    lying_on,
)
from spinney.model.errors import UsageError
from spinney.model.jobs import JOB_ID_MAX
from spinney.model.operators.bulk_orders import Verb
from spinney.model.settings.holds import Hold, HoldPreview, Scope, scope_text
from spinney.model.values.texts import counted
from spinney.model.values.times import parse_time
from spinney.schemas import BulkProgress
from spinney.terminal import completion
from spinney.terminal.commands import Items, command
from spinney.terminal.connection import now_us, open_commands
from spinney.terminal.for_each import for_each
from spinney.terminal.options.arguments import JsonOption, SomeJobsArgument, option
from spinney.terminal.options.option_groups import with_option_groups
from spinney.terminal.output import display


@dataclass(frozen=True, kw_only=True)
class ScopeOptions(VerbOptions):
    """The options by which ``hold`` and ``release`` find what they are about.

    A queue, type, collection or submitter alone means all its jobs, also those that come later. Beside a filter, or
    ``--each``, it narrows the filter, and the verb is applied to each single job that matches now.
    """

    queue: Annotated[str | None, option(help_="All jobs in this queue.", complete=completion.queues)] = None
    type: Annotated[str | None, option(help_="All jobs of this type.", complete=completion.types)] = None
    collection: Annotated[
        str | None, option(help_="All jobs of this collection.", complete=completion.collections)
    ] = None
    submitter: Annotated[
        str | None, option(help_="All jobs of this submitter.", complete=completion.submitters)
    ] = None
    tree: Annotated[
        int | None, option(metavar="JOB", min=1, max=JOB_ID_MAX, help_="A job and all jobs below it.")
    ] = None
    all_: Annotated[bool, typer.Option("--all", help="All jobs.")] = False
    each: Annotated[
        bool,
        typer.Option(
            "--each", help="Hold each job that matches now by itself; jobs submitted later are not held."
        ),
    ] = False

    @property
    def scopes(self) -> list[tuple[Scope, str]]:
        """Return the scopes that are named, each with its name."""
        named = (
            (Scope.QUEUE, self.queue),
            (Scope.TYPE, self.type),
            (Scope.COLLECTION, self.collection),
            (Scope.SUBMITTER, self.submitter),
            (Scope.TREE, self.tree),
            (Scope.EVERYTHING, "" if self.all_ else None),
        )
        return [(scope, str(name)) for scope, name in named if name is not None]

    def selects_jobs(self, holds: Sequence[int] | None = None) -> bool:
        """Return whether single jobs are meant, and not all that a scope covers.

        ``holds``: the values of ``--hold``. Raises UsageError for holds as a whole together with a filter.
        """
        no_scope = replace(self, queue=None, type=None, collection=None, submitter=None)
        has_filter = no_scope.has_any or self.each
        if has_filter and (holds or self.all_ or self.tree is not None):
            raise UsageError("--tree, --all and --hold mean holds as a whole; leave them out, or the filter")
        return has_filter


@dataclass(frozen=True, kw_only=True)
class HoldOptions(ScopeOptions):
    """The options of ``hold``."""

    reason: Annotated[str | None, option(help_="The reason, shown with every held job.")] = None


@dataclass(frozen=True, kw_only=True)
class ReleaseOptions(ScopeOptions):
    """The options of ``release``, where ``--all`` means the hold on all jobs."""

    all_: Annotated[bool, typer.Option("--all", help="The hold on all jobs; other holds stay in force.")] = (
        False
    )
    each: Annotated[
        bool,
        typer.Option("--each", help="Release each held job that matches, and no hold that covers several."),
    ] = False


app = typer.Typer()


@app.command()
@with_option_groups
def hold(
    jobs: SomeJobsArgument = None,
    *,
    until: Annotated[
        str | None,
        option(
            metavar="TIME",
            help_="End the hold by itself: after 2h or 1d12h, or at 2030-01-31T08:00.",
        ),
    ] = None,
    options: HoldOptions,
) -> None:
    """Hold jobs until they are released. Running jobs finish their stage; jobs submitted later are held, too."""
    single_jobs = options.selects_jobs()
    if not single_jobs and len(options.scopes) + bool(jobs) != 1:
        raise UsageError(
            "name what to hold with exactly one of --queue, --type, --collection, --submitter, --tree, --all, or "
            "with jobs' numbers"
        )
    if not options.reason:
        raise UsageError("a hold needs a reason, which is shown with every held job; add --reason TEXT")
    until_us = None if until is None else parse_time(until, now_us(), ahead=True, where="--until")
    if single_jobs or jobs:
        run_verb(Verb.HOLD, jobs, options, until=until_us, print_step=_print_held)
        return
    ((kind, name),) = options.scopes
    with open_commands(options.store, options.by) as performer:
        if options.dry_run:
            preview = performer.do(PlanHold(scope=kind, name=name, reason=options.reason, until=until_us))
            _print_preview(preview, f"by a hold on {scope_text(kind, name)}", "be held", json=options.json)
        else:
            new_hold = performer.do(LayHold(scope=kind, name=name, reason=options.reason, until=until_us))
            display.print_result(new_hold, _placed_text(performer, new_hold), json=options.json)


@command(app, ListHolds, "holds")
def print_holds(holds: Items[Hold], query: ListHolds, *, json: JsonOption = False) -> None:
    """List the active holds, the oldest first."""
    display.print_list(
        holds.items,
        {
            "HOLD": lambda hold: hold.id,
            "ON": lambda hold: scope_text(hold.scope, hold.name),
            "BY": lambda hold: hold.by,
            "SINCE": lambda hold: display.format_time(hold.since_us),
            "UNTIL": lambda hold: display.format_time(hold.until_us),
            "REASON": lambda hold: hold.reason,
        },
        json=json,
        empty="all jobs of the holds that were released go on"
        if query.released
        else "there are no holds; 'spinney list --state held' shows jobs that their own stages hold",
    )


@app.command()
@with_option_groups
def release(
    jobs: SomeJobsArgument = None,
    *,
    hold: Annotated[
        list[int] | None,
        option(
            metavar="ID",
            min=1,
            max=JOB_ID_MAX,
            complete=completion.holds,
            help_="The hold with this number ('spinney holds' lists them); may be repeated.",
        ),
    ] = None,
    options: ReleaseOptions,
) -> None:
    """Release held jobs: single ones, or all that a hold covers. A job stays held while another hold covers it."""
    single_jobs = options.selects_jobs(hold)
    if not single_jobs and bool(jobs) + bool(hold) + bool(options.scopes) > 1:
        raise UsageError(
            "name either jobs, or holds with --hold ID, or a scope such as --queue NAME, not several of these"
        )
    if single_jobs or jobs:
        run_verb(Verb.RELEASE, jobs, options, print_step=_print_released)
        return
    if not hold and len(options.scopes) != 1:
        raise UsageError(
            "name the jobs to release, or a hold: --hold ID ('spinney holds' lists them) or exactly one scope (--queue "
            "NAME)"
        )
    with open_commands(options.store, options.by) as performer:
        ids = hold or [active.id for active in lying_on(performer, *options.scopes[0])]
        if options.dry_run:
            _preview_release(performer, ids, json=options.json)
            return
        lift = partial(_lift_hold, performer, options.reason, options.json)
        if hold:
            for_each(hold, lift)
        else:
            for number in ids:
                lift(number)


def _preview_release(performer: Performs, holds: Sequence[int], *, json: bool) -> None:
    """Print how many jobs would continue if all of these holds were released together."""
    first, *others = holds
    preview = performer.do(PlanRelease(hold=first, together=others))
    several = len(holds) > 1
    cause = f"after the release of {'holds' if several else 'hold'} {', '.join(map(str, holds))},"
    _print_preview(preview, cause, "continue", json=json)


def _lift_hold(performer: Performs, reason: str | None, json: bool, number: int) -> None:
    """Release a hold, and print a sentence about it, or with ``json`` the hold as a line."""
    hold = performer.do(LiftHold(hold=number, reason=reason))
    if json:
        display.print_json_lines([hold])
    else:
        typer.echo(f"hold {hold.id} on {display.safe(scope_text(hold.scope, hold.name))} is released")


def _print_preview(preview: HoldPreview, cause: str, would: str, *, json: bool) -> None:
    """Print a preview as a sentence: ``cause`` names the hold or release, with its preposition; ``would`` says what
    would become of the jobs."""
    later = f"; {preview.later:,} more when they would start next" if preview.later else ""
    display.print_result(
        {"jobs": preview.jobs, "later": preview.later},
        f"{cause} {counted(preview.jobs, 'job')} would {would}{later}",
        json=json,
    )


def _print_held(performer: Performs, command: RunBulk, step: BulkProgress) -> None:
    """Print the hold that a step has laid on each of its jobs. Somebody may have released a job again by
    then."""
    for job in step.jobs:
        holds = performer.do(ListHoldsOn(job=job)).items
        placed = [hold for hold in holds if (hold.scope, hold.reason) == (Scope.JOB, command.reason)]
        typer.echo(
            _placed_text(performer, placed[-1]) if placed else f"job {job} was held, and is released again"
        )


def _placed_text(performer: Performs, hold: Hold) -> str:
    """Return a sentence about a new hold, with the number of jobs that are held by now."""
    count = performer.do(CountHeld(hold=hold.id)).jobs
    if hold.scope is Scope.JOB:
        after = "it is held" if count else "it is held when it would start next"
        return f"hold {hold.id} on job {hold.name}: {after}"
    jobs = counted(count, "job is", "jobs are")
    return f"hold {hold.id} on {display.safe(scope_text(hold.scope, hold.name))}: {jobs} held"


def _print_released(performer: Performs, command: RunBulk, step: BulkProgress) -> None:
    """Print each job that a step has released, and which other hold still covers it."""
    for job in step.jobs:
        holds = performer.do(ListHoldsOn(job=job)).items
        more = f" and {len(holds) - 1} more" if len(holds) > 1 else ""
        stays = f", but stays under {display.safe(str(holds[0]))}{more}" if holds else ""
        typer.echo(f"job {job} is released{stays}")
