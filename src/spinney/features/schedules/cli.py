"""The command ``schedule``: submit jobs at set times.

It only changes and shows schedules. Jobs are made by the leading node or a server, so a schedule without
either waits, and its catch-up policy decides about the times that passed.
"""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from spinney.features.submission.cli import JobOptions, ParamOption, ParamsFileOption, params_from_options
from spinney.model.values import durations
from spinney.model.values.hints import did_you_mean
from spinney.terminal import completion, display, endpoint
from spinney.terminal.arguments import (
    ByOption,
    InternalOption,
    JsonOption,
    StoreOption,
    argument,
    command_group,
    option,
)
from spinney.terminal.connection import open_commands, perform
from spinney.terminal.option_groups import ChangeOptions, with_option_groups

if TYPE_CHECKING:
    from spinney.commands import LocalPerformer
    from spinney.model.settings.schedules import Schedule

COMING = 5
"""How many coming times ``show`` lists."""
RUNS = 10
"""How many past times ``show`` lists by default."""
NewNameArgument = Annotated[str, argument("NAME", "The schedule's name.")]
NameArgument = Annotated[str, argument("NAME", "The schedule's name.", completion.schedules)]
ActiveArgument = Annotated[str, argument("NAME", "The schedule's name.", completion.active_schedules)]
PausedArgument = Annotated[str, argument("NAME", "The schedule's name.", completion.paused_schedules)]


@dataclass(frozen=True, kw_only=True)
class TimeOptions:
    """The options that say when a schedule submits jobs: by a cron expression or at an interval."""

    cron: Annotated[
        str | None,
        option(
            metavar="EXPRESSION",
            help_="A cron expression, for example '0 6 * * mon' (minute, hour, day, month, weekday) or @daily.",
        ),
    ] = None
    zone: Annotated[
        str, typer.Option(metavar="ZONE", help="The time zone of --cron, for example Europe/Berlin.")
    ] = "UTC"
    every: Annotated[str | None, option(metavar="TIME", help_="An interval, for example 15m or 1h30m.")] = (
        None
    )
    overlap: Annotated[
        str,
        typer.Option(
            metavar="POLICY", help="What to do when the last job is still open: skip, queue or allow."
        ),
    ] = "skip"
    catch_up: Annotated[
        str,
        typer.Option(
            metavar="POLICY",
            help="Which times missed while no node ran are made up for: none, last or all (with --overlap queue, since "
            "skip skips those at which the job of the first is open).",
        ),
    ] = "last"


app = typer.Typer()
schedule = command_group(app, "schedule")


@schedule.command()
@with_option_groups
def add(
    name: NewNameArgument,
    type_: Annotated[str, argument("TYPE", "The job type.", completion.types)],
    *,
    times: TimeOptions,
    param: ParamOption = None,
    params: ParamsFileOption = None,
    jobs: JobOptions,
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
    with open_commands(store, by) as performer:
        command = PutSchedule(
            name=name,
            type=type_,
            cron=times.cron,
            zone=times.zone,
            every_s=durations.optional(times.every, "--every"),
            params=params_from_options(performer, type_, param or [], params),
            options={key: value for key, value in asdict(jobs).items() if value is not None},
            overlap=_policy(times.overlap, Overlap),
            catch_up=_policy(times.catch_up, CatchUp),
            paused=paused,
            replace=replace,
        )
        schedule = (
            command.put(cast("LocalPerformer", performer), internal=True)
            if internal
            else performer.do(command)
        )
    typer.echo(f"schedule {name} {_next(schedule)}")


@schedule.command("list")
def list_schedules(json: JsonOption = False, store: StoreOption = None) -> None:
    """List the schedules, by name."""
    from spinney.features.schedules.commands import ListSchedules

    schedules = perform(ListSchedules(), store).items
    display.print_list(
        schedules,
        {
            "NAME": lambda schedule: schedule.name,
            "TYPE": lambda schedule: schedule.type,
            "WHEN": _when,
            "NEXT": lambda schedule: _time(schedule, schedule.next_us) if schedule.next_us else "never",
            "STATE": _state,
            "LAST JOB": lambda schedule: schedule.last_job_id,
            "BY": _by,
        },
        json=json,
    )


@schedule.command()
def show(
    name: NameArgument,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many past runs.")] = RUNS,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Show a schedule with its next times, in its time zone and in UTC, and its last runs."""
    from spinney.features.schedules.commands import ListComingTimes, ListScheduleRuns, ShowSchedule

    with open_commands(store) as performer:
        schedule = performer.do(ShowSchedule(name=name))
        coming = performer.do(ListComingTimes(name=name, count=COMING))
        runs = performer.do(ListScheduleRuns(name=name, limit=limit)).items
    if json:
        display.print_json({"schedule": schedule, "coming_us": coming, "runs": runs})
        return
    facts: list[tuple[str, Any]] = [
        ("type", schedule.type),
        ("when", _when(schedule)),
        ("state", _state(schedule)),
        ("overlap", schedule.overlap),
        ("catch-up", schedule.catch_up),
        ("by", _by(schedule)),
        ("last job", schedule.last_job_id),
        *(("parameter", f"{k} = {display.short_json(v)}") for k, v in schedule.params.items()),
        *schedule.options.items(),
    ]
    out = display.console()
    with display.closed_pipe_ends_output():
        out.print(f"schedule {display.safe(name)}")
        for label, value in facts:
            if value is not None:
                out.print(f"  {label}: {display.cell(value)}")
        out.print("comes next" if coming else "comes no more")
        for at_us in coming:
            in_utc = "" if schedule.zone == "UTC" else f"  {_utc(at_us)}"
            out.print(f"  {_time(schedule, at_us)}{in_utc}")
    if runs:
        display.print_table(
            ["LAST TIMES", "BECAME", "JOB", ""],
            [(_time(schedule, run.nominal_us), run.outcome, run.job_id, run.message) for run in runs],
        )


@schedule.command()
@with_option_groups
def pause(name: ActiveArgument, *, options: ChangeOptions) -> None:
    """Pause a schedule: it submits no jobs until it is resumed."""
    _set_paused(name, True, options)


@schedule.command()
@with_option_groups
def resume(name: PausedArgument, *, options: ChangeOptions) -> None:
    """Resume a paused schedule; its --catch-up policy decides about missed times."""
    _set_paused(name, False, options)


@schedule.command()
@with_option_groups
def drop(name: NameArgument, *, options: ChangeOptions) -> None:
    """Delete a schedule; the jobs that it submitted stay."""
    from spinney.features.schedules.commands import DropSchedule, ListSchedules

    with options.open_commands() as performer:
        # Read from the list, which leaves out a schedule that cannot be read; ShowSchedule would refuse to
        # drop that one.
        declared = any(s.name == name and s.declared for s in performer.do(ListSchedules()).items)
        performer.do(DropSchedule(name=name, reason=options.reason))
    back = "; it is declared in code, and the next node that starts creates it again: pause it to stop it for good"
    sentence = f"schedule {name} is dropped{back if declared else ''}"
    display.print_result({"dropped": name, "declared": declared}, sentence, json=options.json)


@schedule.command()
def run(name: NameArgument, json: JsonOption = False, by: ByOption = None, store: StoreOption = None) -> None:
    """Submit one job of a schedule now, besides its times, and print its number."""
    from spinney.features.schedules.commands import RunSchedule

    job_id = perform(RunSchedule(name=name), store, by).id
    display.print_result({"schedule": name, "job": job_id}, str(job_id), json=json)


# --- steps and texts ---------------------------------------------------------------------------


def _set_paused(name: str, paused: bool, options: ChangeOptions) -> None:
    from spinney.features.schedules.commands import PauseSchedule

    schedule = options.perform(PauseSchedule(name=name, paused=paused, reason=options.reason))
    display.print_result(schedule, f"schedule {name} {_next(schedule)}", json=options.json)


def _policy(word: str, kind: Any) -> Any:
    """Return the policy of that name. Raises UsageError, which names the nearest one."""
    from spinney.model.errors import UsageError

    if word not in set(kind):
        raise UsageError(
            f"there is no policy {word!r}{did_you_mean(word, map(str, kind))}; use {', '.join(kind)}"
        )
    return kind(word)


def _when(schedule: "Schedule") -> str:
    """Return the rule by which a schedule has its times."""
    if schedule.every_s is not None:
        return f"every {durations.shown(schedule.every_s)}"
    return f"{schedule.cron} {schedule.zone}"


def _next(schedule: "Schedule") -> str:
    """Return the end of the sentence "schedule NAME …" that says when it submits next."""
    if schedule.paused:
        return f"is paused; 'spinney schedule resume {schedule.name}' lets it go on"
    return (
        "comes no more" if schedule.next_us is None else f"comes next at {_time(schedule, schedule.next_us)}"
    )


def _state(schedule: "Schedule") -> str:
    state = "paused" if schedule.paused else "active"
    return f"{state}, {schedule.queued:,} waiting" if schedule.queued else state


def _by(schedule: "Schedule") -> str:
    return "declared in code" if schedule.declared else schedule.by


def _time(schedule: "Schedule", at_us: int) -> str:
    """Return a time in the schedule's time zone; in UTC where this host does not know the zone."""
    from spinney.model.errors import UsageError
    from spinney.scheduling import recurrence

    try:
        return recurrence.in_zone(schedule, at_us).isoformat(" ")
    except UsageError:
        return _utc(at_us)


def _utc(at_us: int) -> str:
    """Return a time in UTC, to the second."""
    return datetime.fromtimestamp(at_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
