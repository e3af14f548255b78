"""Jobs that are made again and again."""

from collections.abc import Mapping, Sequence
from typing import Any

from spinney.client.calls import Call, get, json_body, path, request, verb
from spinney.model.settings.schedules import Schedule, ScheduleRun
from spinney.model.values.durations import Duration, optional
from spinney.model.values.lists import Page
from spinney.schemas import CreatedJob


class ScheduleVerbs:
    """Schedules."""

    @verb
    def schedules(self: None) -> Call[Page[Schedule]]:
        """Schedules, by name."""
        return get("/schedules", Page[Schedule])

    @verb
    def schedule(self: None, name: str) -> Call[Schedule]:
        """What it makes, and when next."""
        return get(path("/schedules/{}", name), Schedule)

    @verb
    def put_schedule(
        self: None,
        name: str,
        type_: str,
        *,
        cron: str | None = None,
        every_s: Duration | None = None,
        zone: str = "UTC",
        params: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        overlap: str = "skip",
        catch_up: str = "last",
        replace: bool = False,
    ) -> Call[Schedule]:
        """Make a schedule by ``cron`` or by ``every_s`` (seconds, a timedelta, or text such as ``"1h30m"``), or replace
        one."""
        body = json_body(
            type_=type_,
            cron=cron,
            every_s=optional(every_s, "every_s"),
            zone=zone,
            params=params,
            options=options,
            overlap=overlap,
            catch_up=catch_up,
        )
        return request("PUT", path("/schedules/{}", name), Schedule, body, replace=replace)

    @verb
    def pause_schedule(
        self: None, name: str, *, paused: bool = True, reason: str | None = None
    ) -> Call[Schedule]:
        """Let it make no jobs, or go on."""
        return request(
            "PATCH", path("/schedules/{}", name), Schedule, json_body(paused=paused, reason=reason)
        )

    @verb
    def drop_schedule(self: None, name: str, *, reason: str | None = None) -> Call[None]:
        """Remove it; its jobs stay."""
        return request("DELETE", path("/schedules/{}", name), reason=reason)

    @verb
    def run_schedule(self: None, name: str, *, reason: str | None = None) -> Call[CreatedJob]:
        """Make one of its jobs now, apart from its times."""
        return request("POST", path("/schedules/{}/run", name), CreatedJob, json_body(reason=reason))

    @verb
    def runs(self: None, name: str, *, limit: int = 20) -> Call[Page[ScheduleRun]]:
        """Its latest times, newest first, and what became of each."""
        return get(path("/schedules/{}/runs", name), Page[ScheduleRun], limit=limit)

    @verb
    def coming(self: None, name: str, *, count: int = 5) -> Call[Sequence[int]]:
        """Its next times, in µs since 1970 UTC."""
        return get(path("/schedules/{}/coming", name), Sequence[int], count=count)
