"""Schedules, as people handle them: checked as a submission is, and asked for by name."""

import dataclasses
from collections.abc import Sequence

import orjson

from spinney.control.hand import Hand
from spinney.control.lines import known_type
from spinney.job.options import Options
from spinney.model.errors import Refused
from spinney.model.schedules import Schedule, ScheduleRun
from spinney.params.hints import did_you_mean
from spinney.params.schema import checker
from spinney.params.values import to_text
from spinney.scheduling import recurrence


class Schedules(Hand):
    """Every verb is durable when it returns, and wakes the nodes."""

    def put(self, schedule: Schedule, *, replace: bool = False) -> Schedule:
        """Make one, or ``replace`` one; it is as this person wants it from now on, whatever code declares.

        Raises UsageError (cron, zone), UnknownType, BadParameters, Refused when it is there already.
        """
        checker(known_type(self.store.types(), schedule.type))(dict(schedule.params))
        text = to_text(schedule.params, f"a parameter of {schedule.type!r}")
        Options.of(schedule.options).submission(schedule.type, [text])  # whose limits hold for its jobs, too
        checked = dataclasses.replace(schedule, params=orjson.loads(text))
        done = self.store.schedules.put(checked, self.author(), replace=replace, now_us=self.clock())
        self.nudge()
        return done

    def pause(self, name: str, *, reason: str | None = None) -> Schedule:
        """Let it make no jobs until it is resumed. Raises Refused when there is none."""
        self.find(name)
        return self.store.schedules.pause(name, self.author(reason), paused=True, now_us=self.clock())

    def resume(self, name: str, *, reason: str | None = None) -> Schedule:
        """Let it go on; what passed meanwhile is caught up with by its policy. Raises Refused when there is none."""
        self.find(name)
        done = self.store.schedules.pause(name, self.author(reason), paused=False, now_us=self.clock())
        self.nudge()
        return done

    def drop(self, name: str, *, reason: str | None = None) -> Schedule | None:
        """Remove it; its jobs stay. What it was; None: that could not be read. Raises Refused when there is none."""
        known = {s.name: s for s in self.store.schedules.all()}
        try:
            self.store.schedules.drop(name, self.author(reason), now_us=self.clock())
        except Refused:
            self.find(name)  # which names the nearest
            raise
        return known.get(name)

    def run(self, name: str) -> int:
        """Make one job now, apart from its times; returns the job. Raises Refused when there is no such
        schedule, or when its last job is open and its jobs must not overlap."""
        self.find(name)
        job_id = self.store.schedules.run(name, self.author(), now_us=self.clock())
        self.nudge()
        return job_id

    # --- looking --------------------------------------------------------------------------

    def find(self, name: str) -> Schedule:
        """The schedule of that name. Raises Refused with the nearest name there is."""
        known = {s.name: s for s in self.store.schedules.all()}
        if name not in known:
            raise Refused(
                f"there is no schedule {name!r}{did_you_mean(name, known)}; 'spinney schedule list' shows those "
                f"there are"
            )
        return known[name]

    def runs(self, name: str, *, limit: int = 20) -> Sequence[ScheduleRun]:
        """Its latest times, newest first. Raises Refused when there is none."""
        self.find(name)
        return self.store.schedules.runs(name, limit=limit)

    def coming(self, name: str, *, count: int) -> list[int]:
        """Its next times (µs since 1970), whether it is paused or not. Raises Refused when there is none."""
        return recurrence.coming(self.find(name), count)
