"""Schedules, as people handle them: checked as a submission is, and changed by name."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import orjson

from spinney.define.job.options import Options
from spinney.define.params.schema import checker
from spinney.define.params.values import to_text
from spinney.model.access import Role
from spinney.model.errors import Forbidden, Refused
from spinney.model.jobs import Submission
from spinney.model.settings.schedules import Schedule
from spinney.service.masks import Masks
from spinney.service.queries import Queries
from spinney.service.service import ASK, Service
from spinney.service.submission_lines import known_type
from spinney.service.submit_rights import authorized, require_type


class Schedules(Service):
    """Every verb is durable when it returns, and wakes the nodes. What is out of sight is not there; to change what is
    there takes an operator, and others get Forbidden. Secrets in what is returned are masked."""

    def put(self, schedule: Schedule, *, replace: bool = False, internal: bool = False) -> Schedule:
        """Make one, or ``replace`` one; it is as this person wants it from now on, whatever code declares.

        It takes an operator who may submit such a job. ``internal``: as ``Control.submit`` has it.

        Raises UsageError (cron, zone), UnknownType, BadParameters, Refused when it is there already, Forbidden.
        """
        self.require(Role.OPERATOR, "make schedules")
        types = self.store.types()
        checker(known_type(types, schedule.type))(dict(schedule.params))
        text = to_text(schedule.params, f"a parameter of {schedule.type!r}")
        # The limits of a submission hold for its jobs, too.
        submission = Options.of(schedule.options).submission(schedule.type, [text])
        (allowed,) = authorized(self, [submission], types, internal=internal)
        checked = dataclasses.replace(
            schedule, params=orjson.loads(text), options=_options(schedule.options, allowed)
        )
        if replace and not self.rights.everywhere:
            self._require_own(schedule.name)
        done = self.store.schedules.put(checked, self.actor(), replace=replace, now_us=self.clock())
        self.wake_nodes()
        return self._shown(done)

    def pause(self, name: str, *, reason: str | None = None) -> Schedule:
        """Let it make no jobs until it is resumed. Raises Refused when there is none."""
        self.require(Role.OPERATOR, "pause schedules")
        self._find(name)
        done = self.store.schedules.pause(name, self.actor(reason), paused=True, now_us=self.clock())
        return self._shown(done)

    def resume(self, name: str, *, reason: str | None = None) -> Schedule:
        """Let it go on; what passed meanwhile is caught up with by its policy. Raises Refused when there is none."""
        self.require(Role.OPERATOR, "resume schedules")
        self._find(name)
        done = self.store.schedules.pause(name, self.actor(reason), paused=False, now_us=self.clock())
        self.wake_nodes()
        return self._shown(done)

    def drop(self, name: str, *, reason: str | None = None) -> Schedule | None:
        """Remove it; its jobs stay. What it was; None: that could not be read. Raises Refused when there is none."""
        self.require(Role.OPERATOR, "drop schedules")
        known = {schedule.name: schedule for schedule in self.part(Queries).schedules()}
        if not self.rights.everywhere:
            self._find(name)
        try:
            self.store.schedules.drop(name, self.actor(reason), now_us=self.clock())
        except Refused:
            self._find(name)  # which names the nearest
            raise
        return known.get(name)

    def run(self, name: str) -> int:
        """Make one job now, apart from its times; returns the job. Raises Refused when there is no such
        schedule, or when its last job is open and its jobs must not overlap."""
        self.require(Role.OPERATOR, "run schedules")
        schedule = self._find(name)
        spec = self.store.types().get(schedule.type)
        if spec is not None:
            # Of an internal type it was made by the application, or by somebody who has the store itself.
            require_type(self, spec, [orjson.dumps(schedule.params).decode()], internal=True)
        job_id = self.store.schedules.run(name, self.actor(), now_us=self.clock())
        self.wake_nodes()
        return job_id

    # --- who may --------------------------------------------------------------------------

    def _find(self, name: str) -> Schedule:
        """The one of that name that is in sight. Raises NoSuch with the nearest name there is."""
        return self.part(Queries).schedule(name)

    def _shown(self, schedule: Schedule) -> Schedule:
        return Masks(self.store.types()).schedule(schedule)

    def _require_own(self, name: str) -> None:
        """Raise Forbidden where there is one of this name that is out of sight."""
        seen = {schedule.name for schedule in self.part(Queries).schedules()}
        if name not in seen and any(s.name == name for s in self.store.schedules.all()):
            raise Forbidden(f"the name {name!r} of a schedule is taken; choose another, or {ASK}")


def _options(given: Mapping[str, Any], allowed: Submission) -> Mapping[str, Any]:
    """With what who asks has not said and was filled in."""
    filled = {name: getattr(allowed, name) for name in ("collection", "submitter")}
    return {**given, **{name: value for name, value in filled.items() if value is not None}}
