"""The commands ``hold``, ``holds`` and ``release``: hold jobs back with a reason, and let them go on."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from spinney.features.bulk.cli import EachOptions
from spinney.model.errors import UsageError
from spinney.model.jobs import JOB_ID_MAX
from spinney.model.rights.operators import Verb
from spinney.model.settings.holds import Scope
from spinney.model.values import durations
from spinney.terminal import completion, display
from spinney.terminal.arguments import ByOption, JsonOption, SomeJobsArgument, StoreOption
from spinney.terminal.connection import now_us, open_commands
from spinney.terminal.for_each import for_each
from spinney.terminal.option_groups import with_option_groups

if TYPE_CHECKING:
    from spinney.commands import Performs
    from spinney.features.bulk.commands import RunBulk
    from spinney.model.rights.operators import HoldPreview
    from spinney.model.settings.holds import Hold
    from spinney.schemas import BulkProgress

QueueOption = Annotated[
    str | None,
    typer.Option(
        "--queue", help="All jobs in this queue.", show_default=False, autocompletion=completion.queues
    ),
]
TypeOption = Annotated[
    str | None,
    typer.Option(
        "--type", help="All jobs of this type.", show_default=False, autocompletion=completion.types
    ),
]
CollectionOption = Annotated[
    str | None,
    typer.Option(
        "--collection",
        help="All jobs of this collection.",
        show_default=False,
        autocompletion=completion.collections,
    ),
]
SubmitterOption = Annotated[
    str | None,
    typer.Option(
        "--submitter",
        help="All jobs of this submitter.",
        show_default=False,
        autocompletion=completion.submitters,
    ),
]
TreeOption = Annotated[
    int | None,
    typer.Option(
        "--tree",
        metavar="JOB",
        min=1,
        max=JOB_ID_MAX,
        help="A job and all jobs below it.",
        show_default=False,
    ),
]
AllOption = Annotated[bool, typer.Option("--all", help="All jobs.")]
UntilOption = Annotated[
    str | None,
    typer.Option(
        "--until",
        metavar="TIME",
        help="End the hold by itself: after 2h or 1d12h, or at 2030-01-31T08:00.",
        show_default=False,
    ),
]


def add_to(app: typer.Typer) -> None:
    for command in (hold, holds, release):
        app.command()(command)


@with_option_groups
def hold(
    jobs: SomeJobsArgument = None,
    *,
    queue: QueueOption = None,
    type_: TypeOption = None,
    collection: CollectionOption = None,
    submitter: SubmitterOption = None,
    tree: TreeOption = None,
    all_: AllOption = False,
    reason: Annotated[
        str, typer.Option("--reason", help="The reason, shown with every held job.", show_default=False)
    ] = "",
    until: UntilOption = None,
    by: ByOption = None,
    store: StoreOption = None,
    each_options: EachOptions,
) -> None:
    """Hold jobs until they are released. Running jobs finish their stage; jobs submitted later are held, too."""
    fits = each_options.selects_jobs(jobs, wide=all_ or tree is not None)
    scopes = [] if fits else _scopes(jobs, queue, type_, collection, submitter, tree, all_=all_)
    if not reason:
        raise UsageError("a hold needs a reason, which is shown with every held job; add --reason TEXT")
    until_us = None if until is None else moment(until, now_us())
    if fits or jobs:
        each_options.run_verb(
            Verb.HOLD,
            jobs,
            queue=queue,
            type_=type_,
            collection=collection,
            submitter=submitter,
            by=by,
            store=store,
            reason=reason,
            until=until_us,
            print_step=_tell_held,
        )
        return
    from spinney.features.holds.commands import LayHold, PlanHold

    with open_commands(store, by) as performer:
        for scope, name in scopes:
            if each_options.dry_run:
                preview = performer.do(PlanHold(scope=scope, name=name, reason=reason, until=until_us))
                _tell_preview(preview, f"a hold on {_of(scope, name)}", "be held", json=each_options.json)
                continue
            laid = performer.do(LayHold(scope=scope, name=name, reason=reason, until=until_us))
            typer.echo(_laid(performer, laid))


def holds(json: JsonOption = False, store: StoreOption = None) -> None:
    """List the active holds, the oldest first."""
    from spinney.features.holds.commands import ListHolds

    with open_commands(store) as performer:
        found = performer.do(ListHolds()).items
    if json:
        display.print_json_lines(found)
    elif not found:
        typer.echo("there are no holds; 'spinney list --state held' shows jobs that their own stages hold")
    else:
        rows = [
            (h.id, _on(h), h.by, display.format_time(h.since_us), display.format_time(h.until_us), h.reason)
            for h in found
        ]
        display.print_table(("HOLD", "ON", "BY", "SINCE", "UNTIL", "REASON"), rows)


@with_option_groups
def release(
    jobs: SomeJobsArgument = None,
    *,
    hold: Annotated[
        list[int] | None,
        typer.Option(
            "--hold",
            metavar="ID",
            min=1,
            max=JOB_ID_MAX,
            show_default=False,
            autocompletion=completion.holds,
            help="The hold with this number ('spinney holds' lists them); may be repeated.",
        ),
    ] = None,
    queue: QueueOption = None,
    type_: TypeOption = None,
    collection: CollectionOption = None,
    submitter: SubmitterOption = None,
    tree: TreeOption = None,
    all_: Annotated[
        bool, typer.Option("--all", help="The hold on all jobs; other holds stay in force.")
    ] = False,
    reason: Annotated[
        str | None, typer.Option(help="The reason, recorded in the audit log.", show_default=False)
    ] = None,
    by: ByOption = None,
    store: StoreOption = None,
    each_options: EachOptions,
) -> None:
    """Release held jobs: single ones, or all that a hold covers. A job stays held while another hold covers it."""
    fits = each_options.selects_jobs(jobs, wide=bool(hold) or all_ or tree is not None)
    wide = all_ or any(w is not None for w in (queue, type_, collection, submitter, tree))
    if not fits and bool(jobs) + bool(hold) + wide > 1:
        raise UsageError(
            "name either jobs, or holds with --hold ID, or a scope such as --queue NAME, not several of these"
        )
    if fits or jobs:
        each_options.run_verb(
            Verb.RELEASE,
            jobs,
            queue=queue,
            type_=type_,
            collection=collection,
            submitter=submitter,
            by=by,
            store=store,
            reason=reason,
            print_step=_tell_released,
        )
        return
    if not (hold or wide):
        raise UsageError(
            "name the jobs to release, or a hold: --hold ID ('spinney holds' lists them) or its scope (--queue NAME)"
        )
    from spinney.features.holds.commands import LiftHold, PlanRelease, lying_on

    with open_commands(store, by) as performer:

        def lift(number: int) -> "Hold":
            return performer.do(LiftHold(hold=number, reason=reason))

        on = [] if hold else _scopes(None, queue, type_, collection, submitter, tree, all_=all_)
        ids = hold or [each.id for each in lying_on(performer, *on[0])]
        if each_options.dry_run:
            first, *others = ids
            what = f"the release of hold{'s' * (len(ids) > 1)} {', '.join(map(str, ids))}"
            preview = performer.do(PlanRelease(hold=first, together=others))
            _tell_preview(preview, what, "go on", json=each_options.json)
        elif hold:
            for_each(hold, lambda number: _tell_lifted([lift(number)]))
        else:
            _tell_lifted([*map(lift, ids)])


def moment(text: str, at_us: int) -> int:
    """A time as people write it: so long from now, or a time of the calendar (local unless it has a zone)."""
    try:
        return at_us + round(durations.seconds(text) * 1e6)
    except UsageError:
        pass
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1e6)
    except (ValueError, OverflowError):
        raise UsageError(
            f"--until {text!r:.80} is not a time; write how long, as in 2h or 1d12h, or when, as in 2030-01-31T08:00"
        ) from None


def _scopes(
    jobs: Sequence[int] | None,
    queue: str | None,
    type_: str | None,
    collection: str | None,
    submitter: str | None,
    tree: int | None,
    *,
    all_: bool,
) -> list[tuple[Scope, str]]:
    """What is meant: one wide scope, or nothing but some jobs."""
    named: list[tuple[Scope, str | int | None]] = [
        (Scope.QUEUE, queue),
        (Scope.TYPE, type_),
        (Scope.COLLECTION, collection),
        (Scope.SUBMITTER, submitter),
        (Scope.TREE, tree),
        (Scope.EVERYTHING, "" if all_ else None),
    ]
    wide = [(scope, str(name)) for scope, name in named if name is not None]
    if len(wide) + bool(jobs) != 1:
        raise UsageError(
            "name what to hold or release with exactly one of --queue, --type, --collection, --submitter, --tree, "
            "--all, or with jobs' numbers"
        )
    return wide


def _tell_preview(preview: "HoldPreview", what: str, would: str, *, json: bool) -> None:
    if json:
        display.print_json({"jobs": preview.jobs, "later": preview.later})
        return
    jobs = "1 job" if preview.jobs == 1 else f"{preview.jobs:,} jobs"
    later = f"; {preview.later:,} more when they would start next" if preview.later else ""
    typer.echo(f"by {display.safe(what)} {jobs} would {would}{later}")


def _tell_held(performer: "Performs", command: "RunBulk", step: "BulkProgress") -> None:
    from spinney.features.holds.commands import ListHoldsOn

    for job in step.jobs:
        holds = performer.do(ListHoldsOn(job=job)).items
        laid = [hold for hold in holds if (hold.scope, hold.reason) == (Scope.JOB, command.reason)]
        typer.echo(_laid(performer, laid[-1]) if laid else f"job {job} was held, and is released again")


def _laid(performer: "Performs", laid: "Hold") -> str:
    from spinney.features.holds.commands import CountHeld

    count = performer.do(CountHeld(hold=laid.id)).jobs
    if laid.scope is Scope.JOB:
        after = "it is held" if count else "it is held when it would start next"
        return f"hold {laid.id} on job {laid.name}: {after}"
    return f"hold {laid.id} on {display.safe(_on(laid))}: {_jobs(count)} held"


def _tell_lifted(lifted: "Sequence[Hold]") -> None:
    for each in lifted:
        typer.echo(f"hold {each.id} on {display.safe(_on(each))} is released")


def _tell_released(performer: "Performs", command: "RunBulk", step: "BulkProgress") -> None:
    from spinney.features.holds.commands import ListHoldsOn

    for job in step.jobs:
        holds = performer.do(ListHoldsOn(job=job)).items
        more = f" and {len(holds) - 1} more" if len(holds) > 1 else ""
        stays = f", but stays under {display.safe(str(holds[0]))}{more}" if holds else ""
        typer.echo(f"job {job} is released{stays}")


def _on(hold: "Hold") -> str:
    return _of(hold.scope, hold.name)


def _of(scope: Scope, name: str) -> str:
    return "everything" if scope is Scope.EVERYTHING else f"{scope} {name}"


def _jobs(count: int) -> str:
    return "1 job is" if count == 1 else f"{count:,} jobs are"
