"""The command ``schedule``: submit jobs at set times.

It only changes and shows schedules. Jobs are made by the leading node or a server, so a schedule without
either waits, and its catch-up policy decides about the times that passed.
"""

from functools import partial
from typing import Any

import typer

from spinney.commands import Performs
from spinney.features.schedules.commands import (
    DropSchedule,
    ListComingTimes,
    ListScheduleRuns,
    ListSchedules,
    PauseSchedule,
    PutSchedule,
    RunSchedule,
    ShowSchedule,
)
from spinney.features.submission.cli import TemplateOptions
from spinney.model.errors import UsageError
from spinney.model.settings.schedules import Schedule
from spinney.model.values import durations
from spinney.model.values.times import utc_text
from spinney.scheduling import recurrence
from spinney.schemas import CreatedJob
from spinney.terminal import completion
from spinney.terminal.commands import Shown, command, list_command, steps
from spinney.terminal.options.arguments import JsonOption, StoreOption, argument, command_group, option
from spinney.terminal.output import display

COMING = 5
"""How many coming times ``show`` lists."""
NAME = argument("NAME", complete=completion.schedules)

app = typer.Typer()
group = command_group(app, "schedule")


def _when(schedule: Schedule) -> str:
    """Return the rule by which a schedule has its times."""
    if schedule.every_s is not None:
        return f"every {durations.shown(schedule.every_s)}"
    return f"{schedule.cron} {schedule.zone}"


def _next(schedule: Schedule) -> str:
    """Return the end of the sentence "schedule NAME …" that says when it submits next."""
    if schedule.paused:
        return f"is paused; 'spinney schedule resume {schedule.name}' lets it go on"
    return (
        "comes no more" if schedule.next_us is None else f"comes next at {_time(schedule, schedule.next_us)}"
    )


def _next_time(schedule: Schedule) -> str:
    """Return when it submits next; nothing while it is paused, whose next time may have passed."""
    if schedule.paused:
        return ""
    return "never" if schedule.next_us is None else _time(schedule, schedule.next_us)


def _state(schedule: Schedule) -> str:
    state = "paused" if schedule.paused else "active"
    return f"{state}, {schedule.queued:,} waiting" if schedule.queued else state


def _by(schedule: Schedule) -> str:
    return "declared in code" if schedule.declared else schedule.by


def _time(schedule: Schedule, at_us: int) -> str:
    """Return a time in the schedule's time zone; in UTC where this host does not know the zone."""
    try:
        return recurrence.in_zone(schedule, at_us).isoformat(" ")
    except UsageError:
        return utc_text(at_us)


@steps(
    group,
    PutSchedule,
    "add",
    name=argument("NAME"),
    type=argument("TYPE", "The job type.", completion.types),
    cron=option(
        metavar="EXPRESSION",
        help_="A cron expression, for example '0 6 * * mon' (minute, hour, day, month, weekday) or @daily.",
    ),
    zone=option(metavar="ZONE", help_="The time zone of --cron, for example Europe/Berlin."),
    every_s=option(
        "--every",
        metavar="TIME",
        parser=partial(durations.seconds, where="--every"),
        help_="An interval, for example 15m or 1h30m.",
    ),
    overlap=option(metavar="POLICY"),
    catch_up=option(
        metavar="POLICY",
        help_="Which times missed while no node ran, or in a pause, are made up for: none, last or all. Use all "
        "with --overlap queue: skip leaves out every time at which the job before is still open.",
    ),
    params={},
    options={},
)
def add(
    words: PutSchedule, performer: Performs, *, jobs: TemplateOptions, store: StoreOption = None
) -> Shown:
    """Create a schedule, or replace one (--replace)."""
    schedule: Schedule = jobs.put(words, performer, store)
    return Shown(schedule, f"schedule {words.name} {_next(schedule)}")


list_command(
    group,
    ListSchedules,
    "list",
    "List the schedules, by name.",
    {
        "NAME": lambda schedule: schedule.name,
        "TYPE": lambda schedule: schedule.type,
        "WHEN": _when,
        "NEXT": _next_time,
        "STATE": _state,
        "LAST JOB": lambda schedule: schedule.last_job_id,
        "BY": _by,
    },
    empty="there are no schedules; 'spinney schedule add NAME TYPE --every 1h' makes one",
)


@steps(
    group,
    ListScheduleRuns,
    "show",
    name=NAME,
    limit=option(default=10, help_="The maximum number of past runs."),
)
def show(query: ListScheduleRuns, performer: Performs, *, json: JsonOption = False) -> None:
    """Show a schedule with its next times, in its time zone and in UTC, and its last runs."""
    schedule = performer.do(ShowSchedule(name=query.name))
    coming = performer.do(ListComingTimes(name=query.name, count=COMING))
    runs = performer.do(query).items
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
    out.print(f"schedule {display.safe(schedule.name)}")
    for label, value in facts:
        if value is not None:
            out.print(f"  {label}: {display.cell(value)}")
    heading = "comes next, when resumed" if schedule.paused else "comes next"
    out.print(heading if coming else "comes no more")
    for at_us in coming:
        in_utc = "" if schedule.zone == "UTC" else f"  {utc_text(at_us)}"
        out.print(f"  {_time(schedule, at_us)}{in_utc}")
    if runs:
        display.print_table(
            ["LAST TIMES", "BECAME", "JOB", ""],
            [(_time(schedule, run.nominal_us), run.outcome, run.job_id, run.message) for run in runs],
        )


@command(
    group,
    PauseSchedule,
    "pause",
    name=argument("NAME", complete=completion.active_schedules),
    paused=True,
)
def paused_text(schedule: Schedule) -> str:
    """Pause a schedule: it submits no jobs until it is resumed."""
    return f"schedule {schedule.name} {_next(schedule)}"


@command(
    group,
    PauseSchedule,
    "resume",
    name=argument("NAME", complete=completion.paused_schedules),
    paused=False,
)
def resumed_text(schedule: Schedule) -> str:
    """Resume a paused schedule; its --catch-up policy decides about missed times."""
    return f"schedule {schedule.name} {_next(schedule)}"


@steps(group, DropSchedule, "drop", name=NAME)
def drop(dropping: DropSchedule, performer: Performs) -> Shown:
    """Delete a schedule; the jobs that it submitted stay."""
    # Read from the list, which leaves out a schedule that cannot be read; ShowSchedule would refuse to
    # drop that one.
    name = dropping.name
    declared = any(s.name == name and s.declared for s in performer.do(ListSchedules()).items)
    performer.do(dropping)
    back = "; it is declared in code, and the next node that starts creates it again: pause it to stop it for good"
    return Shown(
        {"deleted": name, "declared": declared}, f"schedule {name} is dropped{back if declared else ''}"
    )


@command(group, RunSchedule, "run", name=NAME)
def run(created: CreatedJob, run: RunSchedule) -> Shown:
    """Submit one job of a schedule now, besides its times, and print its number."""
    return Shown({"schedule": run.name, "job": created.id}, f"{created.id}")
