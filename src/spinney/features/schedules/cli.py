"""The command ``schedule``: submit jobs at set times."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinney.features.submission.cli import params_from_options
from spinney.model.values import durations
from spinney.terminal import completion, display, endpoint
from spinney.terminal.arguments import ByOption, InternalOption, JsonOption, StoreOption
from spinney.terminal.connection import open_commands, open_control

if TYPE_CHECKING:
    from spinney.model.settings.schedules import Schedule

COMING = 5
RUNS = 10
NewNameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="The schedule's name.", show_default=False)
]
NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The schedule's name.", show_default=False, autocompletion=completion.schedules
    ),
]
ActiveArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="The schedule's name.",
        show_default=False,
        autocompletion=completion.active_schedules,
    ),
]
PausedArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="The schedule's name.",
        show_default=False,
        autocompletion=completion.paused_schedules,
    ),
]
ReasonOption = Annotated[
    str | None, typer.Option("--reason", help="The reason, recorded in the audit log.", show_default=False)
]

group = typer.Typer(
    help="Manage schedules, which submit jobs by a cron expression or at an interval.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def add_to(app: typer.Typer) -> None:
    for command in (add, show, pause, resume, drop, run):
        group.command()(command)
    group.command("list")(list_schedules)
    app.add_typer(group, name="schedule")


def add(
    name: NewNameArgument,
    type_: Annotated[
        str,
        typer.Argument(
            metavar="TYPE", help="The job type.", show_default=False, autocompletion=completion.types
        ),
    ],
    cron: Annotated[
        str | None,
        typer.Option(
            metavar="EXPRESSION",
            help="A cron expression, for example '0 6 * * mon' (minute, hour, day, month, weekday) or @daily.",
            show_default=False,
        ),
    ] = None,
    zone: Annotated[
        str, typer.Option(metavar="ZONE", help="The time zone of --cron, for example Europe/Berlin.")
    ] = "UTC",
    every: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="An interval, for example 15m or 1h30m.", show_default=False),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", "-p", metavar="NAME=VALUE", help="A parameter; may be repeated."),
    ] = None,
    params: Annotated[
        str | None,
        typer.Option(
            "--json", metavar="FILE", help="Read the parameters from a file with a JSON object; - is stdin."
        ),
    ] = None,
    overlap: Annotated[
        str,
        typer.Option(
            metavar="POLICY", help="What to do when the last job is still open: skip, queue or allow."
        ),
    ] = "skip",
    catch_up: Annotated[
        str,
        typer.Option(
            metavar="POLICY", help="Which times missed while no node ran are made up for: none, last or all."
        ),
    ] = "last",
    queue: Annotated[
        str | None, typer.Option(help="The queue (default: the type's).", autocompletion=completion.queues)
    ] = None,
    priority: Annotated[int | None, typer.Option(help="The priority, 0 (first) to 99 (last).")] = None,
    collection: Annotated[
        str | None,
        typer.Option(help="The collection of its jobs.", autocompletion=completion.collections),
    ] = None,
    submitter: Annotated[
        str | None,
        typer.Option(help="The submitter of its jobs (default: you).", autocompletion=completion.submitters),
    ] = None,
    share: Annotated[str | None, typer.Option(help="The share that its jobs count against.")] = None,
    paused: Annotated[bool, typer.Option("--paused", help="Create the schedule paused.")] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace an existing schedule of that name.")
    ] = False,
    internal: InternalOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Create a schedule, or replace one (--replace)."""
    from spinney.features.schedules.commands import PutSchedule
    from spinney.model.settings.schedules import CatchUp, Overlap

    if endpoint.server(store):
        endpoint.require_not_internal(internal)
    options = {
        "queue": queue,
        "priority": priority,
        "collection": collection,
        "submitter": submitter,
        "share": share,
    }
    with open_control(store, by) as control:
        asked = PutSchedule(
            name=name,
            type=type_,
            cron=cron,
            zone=zone,
            every_s=durations.optional(every, "--every"),
            params=params_from_options(control, type_, param or [], params),
            options={k: v for k, v in options.items() if v is not None},
            overlap=_policy(overlap, Overlap),
            catch_up=_policy(catch_up, CatchUp),
            paused=paused,
            replace=replace,
        )
        made = asked.put(control, internal=True) if internal else control.do(asked)
    typer.echo(f"schedule {name} {_next(made)}")


def list_schedules(json: JsonOption = False, store: StoreOption = None) -> None:
    """List the schedules, by name."""
    from spinney.features.schedules.commands import ListSchedules

    with open_commands(store) as performer:
        found = performer.do(ListSchedules()).items
    if json:
        display.print_json_lines(found)
        return
    columns = ["name", "type", "when", "next", "state", "last job", "by"]
    rows = [
        (
            s.name,
            s.type,
            _when(s),
            _shown(s, s.next_us) if s.next_us else "never",
            _state(s),
            s.last_job_id,
            _by(s),
        )
        for s in found
    ]
    display.print_table(columns, rows)


def show(
    name: NameArgument,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many past runs.")] = RUNS,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Show a schedule with its next times, in its time zone and in UTC, and its last runs."""
    from spinney.features.schedules.commands import ListComingTimes, ListScheduleRuns, ShowSchedule

    with open_commands(store) as performer:
        found = performer.do(ShowSchedule(name=name))
        coming = performer.do(ListComingTimes(name=name, count=COMING))
        runs = performer.do(ListScheduleRuns(name=name, limit=limit)).items
    if json:
        display.print_json({"schedule": found, "coming_us": coming, "runs": runs})
        return
    facts: list[tuple[str, Any]] = [
        ("type", found.type),
        ("when", _when(found)),
        ("state", _state(found)),
        ("overlap", found.overlap),
        ("catch-up", found.catch_up),
        ("by", _by(found)),
        ("last job", found.last_job_id),
        *(("parameter", f"{k} = {display.short_json(v)}") for k, v in found.params.items()),
        *found.options.items(),
    ]
    out = display.console()
    with display.closed_pipe_ends_output():
        out.print(f"schedule {display.safe(name)}")
        for label, value in facts:
            if value is not None:
                out.print(f"  {label}: {display.cell(value)}")
        out.print("comes next" if coming else "comes no more")
        for at_us in coming:
            out.print(f"  {_shown(found, at_us)}  {_utc(at_us)}")
    if runs:
        display.print_table(
            ["last times", "became", "job", ""],
            [(_shown(found, r.nominal_us), r.outcome, r.job_id, r.message) for r in runs],
        )


def pause(
    name: ActiveArgument,
    reason: ReasonOption = None,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Pause a schedule: it submits no jobs until it is resumed."""
    from spinney.features.schedules.commands import PauseSchedule

    with open_commands(store, by) as performer:
        found = performer.do(PauseSchedule(name=name, paused=True, reason=reason))
    if json:
        display.print_json(found)
        return
    typer.echo(f"schedule {name} is paused; 'spinney schedule resume {name}' lets it go on")


def resume(
    name: PausedArgument,
    reason: ReasonOption = None,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Resume a paused schedule; its --catch-up policy decides about missed times."""
    from spinney.features.schedules.commands import PauseSchedule

    with open_commands(store, by) as performer:
        found = performer.do(PauseSchedule(name=name, paused=False, reason=reason))
    if json:
        display.print_json(found)
        return
    typer.echo(f"schedule {name} {_next(found)}")


def drop(
    name: NameArgument,
    reason: ReasonOption = None,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Delete a schedule; the jobs that it submitted stay."""
    from spinney.features.schedules.commands import DropSchedule, ListSchedules

    with open_commands(store, by) as performer:
        declared = any(s.name == name and s.declared for s in performer.do(ListSchedules()).items)
        performer.do(DropSchedule(name=name, reason=reason))
    if json:
        display.print_json({"dropped": name, "declared": declared})
        return
    back = "; it is declared in code, and the next node that starts creates it again: pause it to stop it for good"
    typer.echo(f"schedule {name} is dropped{back if declared else ''}")


def run(name: NameArgument, json: JsonOption = False, by: ByOption = None, store: StoreOption = None) -> None:
    """Submit one job of a schedule now, besides its times, and print its number."""
    from spinney.features.schedules.commands import RunSchedule

    with open_commands(store, by) as performer:
        job_id = performer.do(RunSchedule(name=name)).id
    if json:
        display.print_json({"schedule": name, "job": job_id})
        return
    typer.echo(job_id)


# --- words -------------------------------------------------------------------------------------


def _policy(word: str, kind: Any) -> Any:
    """The policy of that name; a wrong word is refused with the nearest."""
    from spinney.model.errors import UsageError
    from spinney.model.values.hints import did_you_mean

    if word not in set(kind):
        raise UsageError(
            f"there is no policy {word!r}{did_you_mean(word, map(str, kind))}; use {', '.join(kind)}"
        )
    return kind(word)


def _when(schedule: "Schedule") -> str:
    if schedule.every_s is not None:
        return f"every {durations.shown(schedule.every_s)}"
    return f"{schedule.cron} {schedule.zone}"


def _next(schedule: "Schedule") -> str:
    if schedule.paused:
        return f"is paused; 'spinney schedule resume {schedule.name}' lets it go on"
    return (
        "comes no more" if schedule.next_us is None else f"comes next at {_shown(schedule, schedule.next_us)}"
    )


def _state(schedule: "Schedule") -> str:
    state = "paused" if schedule.paused else "active"
    return f"{state}, {schedule.queued:,} waiting" if schedule.queued else state


def _by(schedule: "Schedule") -> str:
    return "declared in code" if schedule.declared else schedule.by


def _shown(schedule: "Schedule", at_us: int) -> str:
    """By the clock of its zone; in UTC where this host does not know the zone."""
    from spinney.model.errors import UsageError
    from spinney.scheduling import recurrence

    try:
        return recurrence.in_zone(schedule, at_us).isoformat(" ")
    except UsageError:
        return _utc(at_us)


def _utc(at_us: int) -> str:
    return datetime.fromtimestamp(at_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
