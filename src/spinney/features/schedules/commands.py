"""The commands for schedules. A schedule is checked as a submission of its jobs would be.

A schedule that the caller may not see does not exist for the caller. Secrets in parameters are redacted in answers.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import orjson
from pydantic import Field, WithJsonSchema

from spinney.commands import Command
from spinney.commands.fields import JsonObject, Name, Reason
from spinney.define.job.options import Options
from spinney.define.params.duration_field import DurationField
from spinney.define.params.schema import checker
from spinney.define.params.validation_errors import of_schedule
from spinney.define.params.values import to_text
from spinney.model.access import Role
from spinney.model.errors import BadParameters, Forbidden, Refused
from spinney.model.jobs import Submission
from spinney.model.settings.schedules import CatchUp, Overlap, Schedule, ScheduleRun
from spinney.model.types import known_type
from spinney.model.values.lists import All
from spinney.schemas import CreatedJob
from spinney.service.queries import Queries
from spinney.service.redaction import Redactors
from spinney.service.service import ASK, Service
from spinney.service.submit_rights import authorized

ScheduleName = Annotated[Name, Field(description="The schedule's name.", examples=["nightly"])]


class ListSchedules(Command, route="GET /schedules"):
    """List schedules.

    All that the caller may see, with the time of the next job and the last one created, by name."""

    def run(self, service: Service) -> All[Schedule]:
        return All(items=service.part(Queries).schedules())


class ShowSchedule(Command, route="GET /schedules/{name}"):
    """Show a schedule.

    Its jobs, and its next time."""

    name: ScheduleName

    def run(self, service: Service) -> Schedule:
        return service.part(Queries).schedule(self.name)


class PutSchedule(
    Command, route="PUT /schedules/{name}", query=("replace",), role=Role.OPERATOR, to="make schedules"
):
    """Make or replace a schedule.

    Its jobs are checked as a submission is. A schedule of the same name that an application declares does not replace
    it."""

    name: ScheduleName
    type: Name = Field(description="The type of the jobs.")
    cron: Name | None = Field(
        default=None,
        description="A cron expression: five fields as in crontab(5), or a word such as `@daily`.",
        examples=["0 6 * * mon"],
    )
    every_s: Annotated[float, DurationField()] | None = Field(
        default=None, description="The interval from one time to the next: seconds, or text such as `1h30m`."
    )
    zone: Name = Field(default="UTC", description="IANA name of the time zone that `cron` is read in.")
    params: JsonObject = Field(default={}, description="The parameters of each job.")
    options: dict[str, Any] = Field(
        default={},
        description="Options of each job: `queue`, `priority`, `share`, `collection`, `submitter`.",
    )
    overlap: Annotated[str, WithJsonSchema({"type": "string", "enum": [*Overlap]})] = Field(
        default=Overlap.SKIP,
        description="What happens when the last job is still open: `skip`, `queue` or `allow`.",
    )
    catch_up: Annotated[str, WithJsonSchema({"type": "string", "enum": [*CatchUp]})] = Field(
        default=CatchUp.LAST, description="Which missed times are made up for: `none`, `last` or `all`."
    )
    paused: bool = Field(default=False, description="Submit no jobs before the schedule is resumed.")
    replace: bool = Field(
        default=False, description="Replace an existing schedule, which is refused otherwise."
    )
    reason: Reason = None

    def run(self, service: Service) -> Schedule:
        return self.put(service)

    def put(self, service: Service, *, internal: bool = False) -> Schedule:
        """Make or replace the schedule, and return it.

        ``internal``: as ``Submitter.submit`` has it. Raises what a submission raises, Refused and
        UsageError as ``SqlSchedules.put`` does, and Forbidden for the name of a schedule that the
        caller may not see.
        """
        fields = dict(self)
        replace, reason = fields.pop("replace"), fields.pop("reason")
        schedule, types = Schedule(**fields), service.store.types()
        try:
            checker(known_type(types, schedule.type))(dict(schedule.params))
        except BadParameters as error:
            raise of_schedule(error) from error.__cause__
        text = to_text(schedule.params, f"a parameter of {schedule.type!r}")
        # The limits of a submission hold for its jobs, too.
        submission = Options.of(schedule.options).submission(schedule.type, [text])
        (allowed,) = authorized(service, [submission], types, internal=internal)
        checked = dataclasses.replace(
            schedule, params=orjson.loads(text), options=_options(schedule.options, allowed)
        )
        if replace and not service.rights.everywhere:
            _require_own(service, self.name)
        done = service.store.schedules.put(
            checked, service.actor(reason), replace=replace, now_us=service.clock()
        )
        service.wake_nodes()
        return _shown(service, done)


class PauseSchedule(
    Command, route="PATCH /schedules/{name}", role=Role.OPERATOR, to="pause or resume schedules"
):
    """Pause a schedule, or resume it.

    A paused schedule submits no jobs; when it is resumed, its catch-up policy decides about the missed times."""

    name: ScheduleName
    paused: bool = Field(description="Whether the schedule is paused and submits no jobs.")
    reason: Reason = None

    def run(self, service: Service) -> Schedule:
        service.part(Queries).schedule(self.name)
        actor = service.actor(self.reason)
        done = service.store.schedules.pause(self.name, actor, paused=self.paused, now_us=service.clock())
        if not self.paused:
            service.wake_nodes()
        return _shown(service, done)


class DropSchedule(
    Command, route="DELETE /schedules/{name}", role=Role.OPERATOR, to="drop schedules", long=True
):
    """Drop a schedule.

    Its jobs stay."""

    name: ScheduleName
    reason: Reason = None

    def run(self, service: Service) -> None:
        """Drop the schedule. For a caller without limits it need not be readable, so that a damaged one can be
        dropped."""
        look = service.part(Queries)
        if not service.rights.everywhere:
            look.schedule(self.name)
        try:
            service.store.schedules.drop(self.name, service.actor(self.reason), now_us=service.clock())
        except Refused:
            look.schedule(self.name)  # raises NoSuch, with the nearest name
            raise


class RunSchedule(
    Command, route="POST /schedules/{name}/run", status=201, role=Role.OPERATOR, to="run schedules"
):
    """Make a job of a schedule now.

    In addition to its times. Refused while its last job is open, if its jobs must not overlap."""

    name: ScheduleName
    reason: Reason = None

    def run(self, service: Service) -> CreatedJob:
        """Submit a job now, with the rights of the caller and not of the maker."""
        schedule = service.part(Queries).schedule(self.name)
        spec = service.store.types().get(schedule.type)
        if spec is not None:
            text = orjson.dumps(schedule.params).decode()
            submission = Options.of(schedule.options).submission(schedule.type, [text])
            # A schedule of an internal type was made by the application, or by an operator with access to the store.
            authorized(service, [submission], {schedule.type: spec}, internal=True)
        job_id = service.store.schedules.run(self.name, service.actor(self.reason), now_us=service.clock())
        service.wake_nodes()
        return CreatedJob(id=job_id, held=False)


class ListScheduleRuns(Command, route="GET /schedules/{name}/runs"):
    """List the latest times of a schedule.

    Newest first, each with its outcome."""

    name: ScheduleName
    limit: Annotated[int, Field(ge=1, le=1_000, description="How many times are listed.")] = 20

    def run(self, service: Service) -> All[ScheduleRun]:
        return All(items=service.part(Queries).runs(self.name, limit=self.limit))


class ListComingTimes(Command, route="GET /schedules/{name}/coming"):
    """List the next times of a schedule.

    Microseconds since 1970 UTC, whether it is paused or not."""

    name: ScheduleName
    count: Annotated[int, Field(ge=1, le=100, description="How many times are listed.")] = 5

    def run(self, service: Service) -> Sequence[int]:
        return service.part(Queries).coming(self.name, self.count)


def _shown(service: Service, schedule: Schedule) -> Schedule:
    """Return a schedule with the secrets in its parameters redacted."""
    return Redactors(service.store.types()).schedule(schedule)


def _require_own(service: Service, name: str) -> None:
    """Raise Forbidden when there is a schedule of this name that the caller may not see."""
    visible = {schedule.name for schedule in service.part(Queries).schedules()}
    if name not in visible and any(s.name == name for s in service.store.schedules.all()):
        raise Forbidden(f"the name {name!r} of a schedule is taken; choose another, or {ASK}")


def _options(options: Mapping[str, Any], allowed: Submission) -> Mapping[str, Any]:
    """Return the options with the collection and submitter that the limits of the caller have filled in."""
    filled = {name: getattr(allowed, name) for name in ("collection", "submitter")}
    return {**options, **{name: value for name, value in filled.items() if value is not None}}
