"""Schedules: one job a nominal time, whoever makes it and however often he is interrupted."""

import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from long_tests import long_alone
from spinney.model.access import ALL_RIGHTS, AccessScope, Rights, Role
from spinney.model.errors import BadName, BadParameters, Refused, UnknownType, UsageError
from spinney.model.jobs import Filter
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Scope
from spinney.model.settings.schedules import CatchUp, Overlap, Schedule, ScheduleRun
from spinney.model.states import State
from spinney.scheduling import cron
from spinney.store.parts import Store

from .behind import damage
from .words import SECOND_US, Site, kind

ANN = Actor(by="ann", call="c1")
CODE = Actor(by="code", call="c2")
HOUR = 3600


@pytest.fixture(autouse=True)
def on_the_hour(site: Site) -> None:
    """It is 12:00 UTC on the 1st of June 2026."""
    site.clock.now_us = _us("2026-06-01T12:00:00+00:00")


def _us(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp()) * SECOND_US


def hourly(name: str = "report", type_: str = "one", **more: Any) -> Schedule:
    return Schedule(name=name, type=type_, **{"every_s": HOUR} | more)


def put(site: Site, schedule: Schedule, **how: Any) -> Schedule:
    return site.store.schedules.put(schedule, ANN, now_us=site.now, **how)


def tick(site: Site) -> int:
    """All there is to do now; how many steps it took."""
    for steps in range(1000):
        if not site.store.schedules.tick(now_us=site.now):
            return steps
    raise AssertionError("the ticking does not end")


def later(site: Site, seconds: float) -> None:
    site.clock.forward(seconds)
    tick(site)


def runs(site: Site, name: str = "report", limit: int = 5000) -> list[ScheduleRun]:
    """Oldest first."""
    return list(reversed(site.store.schedules.runs(name, limit=limit)))


def outcomes(site: Site, name: str = "report") -> list[str]:
    return [run.outcome for run in runs(site, name)]


def jobs(site: Site, name: str = "report") -> list[int]:
    return [run.job_id for run in runs(site, name) if run.job_id is not None]


def stored_schedule(site: Site, name: str = "report") -> Schedule:
    return next(s for s in site.store.schedules.all() if s.name == name)


# --- one job a nominal time --------------------------------------------------------------------


def test_a_job_is_made_at_its_time_and_not_before(site: Site) -> None:
    put(site, hourly())
    later(site, HOUR - 0.001)
    assert site.ids() == []

    later(site, 0.001)

    (job_id,) = site.ids()
    assert runs(site) == [
        ScheduleRun(schedule="report", nominal_us=site.now, job_id=job_id, outcome="submitted")
    ]
    assert stored_schedule(site).next_us == site.now + HOUR * SECOND_US
    assert stored_schedule(site).last_job_id == job_id


def test_ticking_again_makes_nothing_more(site: Site) -> None:
    put(site, hourly())
    later(site, HOUR)
    assert tick(site) == 0
    assert len(site.ids()) == 1


def test_cron_goes_by_the_clock_of_its_zone(site: Site) -> None:
    site.clock.now_us = _us("2026-10-24T12:00:00+02:00")
    put(site, hourly(every_s=None, cron="30 2 * * *", zone="Europe/Berlin", overlap="allow"))

    for _ in range(3 * 24 * 2):
        later(site, HOUR / 2)

    assert [run.nominal_us for run in runs(site)] == [
        _us("2026-10-25T02:30:00+02:00"),
        _us("2026-10-26T02:30:00+01:00"),
        _us("2026-10-27T02:30:00+01:00"),
    ]
    assert site.store.get_data(jobs(site)[0])["schedule"] == {
        "name": "report",
        "at": "2026-10-25T02:30:00+02:00",
    }


def test_a_job_is_as_its_schedule_says(site: Site) -> None:
    site.knows(queues=())
    options = {"queue": "slow", "priority": 7, "share": "mine", "collection": "pets", "submitter": "bob"}
    put(site, hourly(params={"n": 1, "deep": [1, {"x": None}]}, options=options))
    put(site, hourly("plain"))

    later(site, HOUR)

    job = site.job(jobs(site)[0])
    assert job.params == {"n": 1, "deep": [1, {"x": None}]}
    assert (job.queue, job.priority, job.share, job.collection, job.submitter) == (
        "slow",
        7,
        "mine",
        "pets",
        "bob",
    )
    plain = site.job(jobs(site, "plain")[0])
    assert (plain.queue, plain.priority, plain.submitter) == ("default", 50, "ann")
    assert site.store.get_data(plain.id) == {"schedule": {"name": "plain", "at": "2026-06-01T13:00:00+00:00"}}


def test_an_interval_does_not_drift_when_ticks_are_late(site: Site) -> None:
    site.clock.forward(0.7)
    put(site, hourly(every_s=10, overlap="allow"))
    for late in (0.3, 4.0, 2.9, 9.1):
        next_us = stored_schedule(site).next_us
        assert next_us is not None
        site.clock.now_us = next_us + round(late * SECOND_US)
        tick(site)

    start = _us("2026-06-01T12:00:00+00:00")
    assert [run.nominal_us for run in runs(site)] == [start + n * 10 * SECOND_US for n in (1, 2, 3, 4)]


@pytest.mark.parametrize(
    "spec", ["{}", "no json", '{"type": "one", "every_s": 60, "overlap": "a newer one"}', "7"]
)
def test_one_that_cannot_be_read_keeps_no_other_from_its_jobs(site: Site, spec: str) -> None:
    """Written by a newer version, or by a hand in the file: nodes go on, and people can put it right."""
    put(site, hourly("broken", overlap=Overlap.QUEUE))
    put(site, hourly())
    later(site, HOUR)
    later(site, HOUR)
    damage(site.store, "update schedules set spec = ? where name = 'broken'", spec)

    site.clock.forward(HOUR)
    with pytest.raises(UsageError, match=r"schedule 'broken': .*spinney schedule drop broken"):
        tick(site)
    tick(site)

    assert [s.name for s in site.store.schedules.all()] == ["report"]
    assert outcomes(site) == ["submitted", "skipped", "skipped"]
    with pytest.raises(UsageError, match="cannot be read"):
        site.store.schedules.pause("broken", ANN, paused=True, now_us=site.now)
    with pytest.raises(Refused, match="already, by ann"):
        put(site, hourly("broken"), replace=False)
    assert list(site.store.schedules.declare([hourly("broken")], CODE, now_us=site.now)) == ["broken"]
    put(site, hourly("broken"))
    assert stored_schedule(site, "broken").every_s == HOUR
    damage(site.store, "update schedules set spec = ? where name = 'broken'", spec)
    site.store.schedules.drop("broken", ANN, now_us=site.now)
    assert runs(site, "broken") == []


def test_a_clock_that_goes_back_makes_nothing_twice(site: Site) -> None:
    put(site, hourly(overlap="allow", catch_up="all"))
    later(site, 5 * HOUR)
    site.clock.forward(-4 * HOUR)
    tick(site)
    # Given besides that the times are begun anew under the clock that is behind
    put(site, hourly(every_s=None, cron="0 * * * *", overlap="allow", catch_up="all"))
    assert stored_schedule(site).next_us == _us("2026-06-01T14:00:00+00:00")

    for _ in range(6):
        later(site, HOUR)

    assert [run.nominal_us for run in runs(site)] == [
        _us(f"2026-06-01T{hour}:00:00+00:00") for hour in range(13, 20)
    ]
    assert len(jobs(site)) == len(site.ids()) == 7


def test_due_schedules_come_in_the_order_of_their_times(site: Site) -> None:
    for name, minutes in (("late", 50), ("early", 10), ("middle", 30)):
        put(site, hourly(name, every_s=minutes * 60))
    site.clock.forward(HOUR - 1)

    for name in ("early", "middle", "late"):
        assert site.store.schedules.tick(now_us=site.now)
        assert len(jobs(site, name)) == 1
    assert not site.store.schedules.tick(now_us=site.now)


# --- the past ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "made", "outcomes_"),
    [
        (CatchUp.NONE, [], ["missed"]),
        (CatchUp.LAST, ["2026-06-01T17:00:00+00:00"], ["missed", "submitted"]),
        (CatchUp.ALL, [f"2026-06-01T{hour}:00:00+00:00" for hour in range(13, 18)], ["submitted"] * 5),
    ],
)
def test_downtime_is_caught_up_with_by_the_policy(
    site: Site, policy: CatchUp, made: list[str], outcomes_: list[str]
) -> None:
    put(site, hourly(catch_up=policy, overlap="allow"))

    later(site, 5 * HOUR + 600)

    assert [site.store.get_data(j)["schedule"]["at"] for j in jobs(site)] == made
    assert outcomes(site) == outcomes_
    assert stored_schedule(site).next_us == _us("2026-06-01T18:00:00+00:00")


def test_a_run_of_missed_times_is_one_line_that_tells_how_far_it_goes(site: Site) -> None:
    put(site, hourly(every_s=None, cron="* * * * *", catch_up="last"))

    later(site, 300 * 24 * HOUR)

    missed, made = runs(site)
    assert (missed.outcome, missed.nominal_us) == ("missed", _us("2026-06-01T12:01:00+00:00"))
    assert "up to 2027-03-28T11:59:00+00:00" in (missed.message or "")
    assert made.nominal_us == site.now


def test_all_of_a_long_time_come_in_short_steps(site: Site) -> None:
    put(site, hourly(every_s=60, catch_up="all", overlap="allow"))
    site.clock.forward(1000 * 60)

    assert tick(site) >= 10

    start = _us("2026-06-01T12:00:00+00:00")
    assert [run.nominal_us for run in runs(site)] == [start + n * 60 * SECOND_US for n in range(1, 1001)]
    assert len({run.job_id for run in runs(site)}) == 1000


# --- overlap -----------------------------------------------------------------------------------


def test_skip_makes_no_job_while_the_last_is_open(site: Site) -> None:
    put(site, hourly())
    later(site, HOUR)
    lease = site.claim_one()

    later(site, HOUR)
    site.pass_(lease)
    later(site, HOUR)

    assert outcomes(site) == ["submitted", "skipped", "submitted"]
    assert runs(site)[1].message == f"the previous job {lease.job_id} was still open"


@pytest.mark.parametrize("ending", ["pass", "fail", "cancel", "delete"])
def test_a_job_that_ended_in_any_way_lets_the_next_come(site: Site, ending: str) -> None:
    put(site, hourly(overlap="queue"))
    later(site, HOUR)
    (job_id,) = jobs(site)
    later(site, HOUR)
    assert outcomes(site) == ["submitted", "queued"]

    if ending in ("pass", "fail"):
        (site.pass_ if ending == "pass" else site.fail)(site.claim_one())
    else:
        site.cancel(job_id)
        if ending == "delete":
            site.delete(job_id)
    tick(site)

    assert outcomes(site) == ["submitted", "submitted"]


def test_queue_makes_one_after_the_other_in_order(site: Site) -> None:
    put(site, hourly(overlap="queue", catch_up="all"))
    later(site, 4 * HOUR)
    assert outcomes(site) == ["submitted", "queued", "queued", "queued"]
    assert stored_schedule(site).queued == 3

    ended = []
    while leases := site.claim():
        (lease,) = leases
        ended.append(lease.job_id)
        site.pass_(lease)
        tick(site)

    assert ended == jobs(site)
    assert [site.store.get_data(j)["schedule"]["at"] for j in ended] == [
        f"2026-06-01T{hour}:00:00+00:00" for hour in range(13, 17)
    ]
    assert stored_schedule(site).queued == 0


def test_what_comes_new_stands_behind_what_waits(site: Site) -> None:
    put(site, hourly(overlap="queue"))
    later(site, HOUR)
    later(site, HOUR)
    site.pass_(site.claim_one())
    # Given that the last job has settled, one time waits, and another comes in the same moment
    site.clock.forward(HOUR)
    tick(site)

    assert outcomes(site) == ["submitted", "submitted", "queued"]


def test_a_job_opened_again_is_open(site: Site) -> None:
    put(site, hourly())
    later(site, HOUR)
    (job_id,) = jobs(site)
    site.fail(site.claim_one())
    site.retry(job_id)

    later(site, HOUR)

    assert outcomes(site) == ["submitted", "skipped"]


def test_allow_makes_jobs_side_by_side(site: Site) -> None:
    put(site, hourly(overlap="allow"))
    later(site, HOUR)
    later(site, HOUR)
    assert outcomes(site) == ["submitted", "submitted"]
    assert len(site.claim()) == 2


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (Overlap.ALLOW, ["submitted", "submitted", "submitted"]),
        (Overlap.SKIP, ["submitted", "skipped", "skipped"]),
    ],
)
def test_what_waits_follows_the_policy_when_it_is_changed(
    site: Site, now: Overlap, expected: list[str]
) -> None:
    put(site, hourly(overlap="queue"))
    for _ in range(3):
        later(site, HOUR)
    put(site, hourly(overlap=now))

    tick(site)

    assert outcomes(site) == expected


@long_alone
def test_a_long_queue_keeps_its_order_and_what_is_remembered_is_bounded(site: Site) -> None:
    put(site, hourly(every_s=1, overlap="queue", catch_up="all"))
    later(site, 1300)
    assert Counter(outcomes(site)) == {"submitted": 1, "queued": 1299}

    done = []
    for _ in range(1300):
        (lease,) = site.claim()
        done.append(lease.job_id)
        site.pass_(lease)
        tick(site)

    assert done == sorted(set(done))
    assert len(done) == 1300
    assert outcomes(site) == ["submitted"] * 1000
    assert runs(site)[0].nominal_us == _us("2026-06-01T12:00:00+00:00") + 301 * SECOND_US


# --- what cannot be made -----------------------------------------------------------------------


def test_a_time_whose_job_is_refused_is_told_and_the_schedule_goes_on(site: Site) -> None:
    from .words import kind, locked, stage

    put(site, hourly(params={"place": "x"}))
    # Given that its type has got a lock meanwhile, which its parameters do not name
    site.knows(kind("one", stage("work", locks=locked("receiver:{serno}"))))
    later(site, HOUR)
    (run,) = runs(site)
    assert (run.outcome, run.job_id) == ("refused", None)
    assert "serno" in (run.message or "")

    site.knows(kind("one", "work"))
    later(site, HOUR)

    assert outcomes(site) == ["refused", "submitted"]


@pytest.mark.parametrize(
    ("rights", "disabled", "why"),
    [
        (Rights(role=Role.OPERATOR), True, "ben is disabled and may not make schedules"),
        (Rights(role=Role.VIEWER), False, "ben is only a viewer now and may not make schedules"),
        (
            Rights(role=Role.OPERATOR, within=AccessScope(queues=("quick",))),
            False,
            "no longer submit to queue 'default'",
        ),
        (
            Rights(role=Role.OPERATOR, within=AccessScope(collections=("maps",))),
            False,
            "longer submit to no collection",
        ),
        (Rights(role=Role.OPERATOR, priorities=(50, 99)), False, "may no longer submit to priority 10"),
    ],
)
def test_whose_maker_may_not_submit_any_more_makes_no_jobs_until_somebody_answers_for_it(
    site: Site, rights: Rights, disabled: bool, why: str
) -> None:
    ben, root = Actor(by="ben", call="c", account="ben"), Actor(by="root", call="d", account="root")
    site.store.accounts.add("root", ALL_RIGHTS, None, ANN, now_us=site.now)
    site.store.accounts.add("ben", Rights(role=Role.OPERATOR), None, ANN, now_us=site.now)
    site.store.schedules.put(hourly(options={"priority": 10}), ben, now_us=site.now)
    later(site, HOUR)
    site.drain()

    site.store.accounts.change("ben", rights, ANN, now_us=site.now)
    site.store.accounts.disable("ben", ANN, disabled=disabled, now_us=site.now)
    later(site, HOUR)

    assert outcomes(site) == ["submitted", "refused"]
    assert why in str(runs(site)[-1].message)
    site.store.schedules.pause("report", root, paused=False, now_us=site.now)
    later(site, HOUR)
    assert outcomes(site) == ["submitted", "refused", "submitted"]
    assert site.store.schedules.all()[0].by == "root"


@pytest.mark.parametrize(
    ("submit", "submit_limits", "why"),
    [
        ("internal", {}, "may not submit 'one' jobs"),
        ("admin", {}, "may not submit 'one' jobs"),
        ("submitter", {"collection": "dataset"}, "the collection that parameter 'dataset' names"),
    ],
)
def test_a_schedule_makes_no_jobs_of_a_type_that_its_maker_may_not_submit(
    site: Site, submit: str, submit_limits: dict[str, str], why: str
) -> None:
    ben, within = Actor(by="ben", call="c", account="ben"), AccessScope(collections=("birds",))
    site.store.accounts.add("root", ALL_RIGHTS, None, ANN, now_us=site.now)
    site.store.accounts.add("ben", Rights(role=Role.OPERATOR, within=within), None, ANN, now_us=site.now)
    site.store.schedules.put(
        hourly(params={"dataset": "bats"}, options={"collection": "birds"}), ben, now_us=site.now
    )
    later(site, HOUR)
    site.drain()

    site.knows(replace(kind("one", "one"), submit=submit, submit_limits=submit_limits))
    later(site, HOUR)

    assert outcomes(site) == ["submitted", "refused"]
    assert why in str(runs(site)[-1].message)


def test_a_schedule_that_was_made_where_the_store_is_at_hand_goes_by_no_user(site: Site) -> None:
    site.store.schedules.put(hourly(), ANN, now_us=site.now)
    site.store.accounts.add("ann", Rights(role=Role.VIEWER), None, ANN, now_us=site.now)

    later(site, HOUR)

    assert outcomes(site) == ["submitted"]


def test_a_zone_unknown_here_stops_its_schedule_alone(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    put(site, hourly("abroad", every_s=None, cron="30 14 * * *", zone="Europe/Berlin"))
    put(site, hourly())
    zone_of = cron.zone_of

    def here(name: str) -> Any:
        if name == "Europe/Berlin":
            raise UsageError("there is no time zone 'Europe/Berlin'")
        return zone_of(name)

    monkeypatch.setattr(cron, "zone_of", here)
    site.clock.forward(HOUR)
    with pytest.raises(UsageError, match="schedule 'abroad': there is no time zone"):
        site.store.schedules.tick(now_us=site.now)
    assert tick(site) == 1
    assert outcomes(site) == ["submitted"]
    # When it has become known, it is made by whoever looks a minute later
    monkeypatch.setattr(cron, "zone_of", zone_of)
    later(site, 61)
    assert outcomes(site, "abroad") == ["submitted"]


def test_a_zone_unknown_here_is_told_once_an_hour(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("abroad", "also-abroad"):
        put(site, hourly(name, every_s=None, cron="30 14 * * *", zone="Europe/Berlin"))

    def unknown(name: str) -> Any:
        raise UsageError(f"there is no time zone {name!r}")

    monkeypatch.setattr(cron, "zone_of", unknown)
    for _ in range(2):
        site.clock.forward(HOUR)
        with pytest.raises(UsageError, match="abroad': there is no time zone 'Europe/Berlin'"):
            site.store.schedules.tick(now_us=site.now)
        for _ in range(3):
            later(site, 61)


@pytest.mark.parametrize(
    ("schedule", "error"),
    [
        (hourly(type_="unheard"), UnknownType),
        (hourly(every_s=None, cron="61 * * * *"), UsageError),
        (hourly(every_s=None, cron="0 6 * * *", zone="Europe/Berln"), UsageError),
        (hourly(type_="locked"), BadParameters),
    ],
)
def test_what_could_never_be_made_is_not_put(site: Site, schedule: Schedule, error: type[Exception]) -> None:
    with pytest.raises(error):
        put(site, schedule)
    with pytest.raises(error):
        site.store.schedules.declare([schedule], CODE, now_us=site.now)
    assert list(site.store.schedules.all()) == []


def test_an_author_who_cannot_be_a_submitter_is_refused(site: Site) -> None:
    with pytest.raises(BadName):
        site.store.schedules.put(hourly(), Actor(by="a\nb", call="c"), now_us=site.now)


def test_a_hold_keeps_the_jobs_of_a_schedule_as_it_keeps_any(site: Site) -> None:
    put(site, hourly(options={"collection": "pets"}))
    hold = site.store.holds.lay(Scope.COLLECTION, "pets", "no food", ANN, now_us=site.now)

    later(site, HOUR)

    (job_id,) = jobs(site)
    assert site.state(job_id) is State.HELD
    # It is open, so that the next time is skipped; and goes on when it is released
    later(site, HOUR)
    site.store.holds.lift(hold.id, ANN, now_us=site.now)
    while site.store.holds.sweep(now_us=site.now):
        pass
    assert site.claim_one().job_id == job_id
    assert outcomes(site) == ["submitted", "skipped"]


# --- pause, put, drop, run ---------------------------------------------------------------------


def test_a_paused_schedule_makes_nothing(site: Site) -> None:
    put(site, hourly(overlap="queue"))
    later(site, HOUR)
    later(site, HOUR)
    assert site.store.schedules.pause("report", ANN, paused=True, now_us=site.now).paused
    site.pass_(site.claim_one())

    later(site, 5 * HOUR)

    assert outcomes(site) == ["submitted", "queued"]
    assert stored_schedule(site).paused


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (CatchUp.NONE, ["missed"]),
        (CatchUp.LAST, ["missed", "submitted"]),
        (CatchUp.ALL, ["submitted"] * 3),
    ],
)
def test_a_pause_is_caught_up_with_like_downtime(site: Site, policy: CatchUp, expected: list[str]) -> None:
    put(site, hourly(catch_up=policy, overlap="allow"))
    site.store.schedules.pause("report", ANN, paused=True, now_us=site.now)
    # When it goes on just after one of its times
    later(site, 3 * HOUR + 1)
    site.store.schedules.pause("report", ANN, paused=False, now_us=site.now)
    tick(site)

    assert outcomes(site) == expected
    assert stored_schedule(site).next_us == _us("2026-06-01T16:00:00+00:00")


def test_pausing_twice_is_pausing_once(site: Site) -> None:
    put(site, hourly())
    for paused in (True, True, False, False):
        site.store.schedules.pause("report", ANN, paused=paused, now_us=site.now)
    later(site, HOUR)
    assert outcomes(site) == ["submitted"]
    assert [e.verb for e, _ in site.store.audit.entries()] == [
        "schedule add",
        "schedule pause",
        "schedule resume",
    ]


def test_replacing_keeps_the_next_time_unless_the_times_change(site: Site) -> None:
    put(site, hourly(every_s=600))
    site.clock.forward(500)
    put(site, hourly(every_s=600, params={"n": 2}))
    assert stored_schedule(site).next_us == _us("2026-06-01T12:10:00+00:00")
    assert stored_schedule(site).params == {"n": 2}
    later(site, 100)
    assert stored_schedule(site).next_us == _us("2026-06-01T12:20:00+00:00"), "in the same rhythm"

    put(site, hourly(every_s=900))
    assert stored_schedule(site).next_us == site.now + 900 * SECOND_US


def test_replacing_lets_a_paused_one_rest_and_keeps_its_past(site: Site) -> None:
    put(site, hourly())
    later(site, HOUR)
    site.store.schedules.pause("report", ANN, paused=True, now_us=site.now)

    put(site, hourly(every_s=60))

    assert stored_schedule(site).paused
    assert stored_schedule(site).last_job_id == jobs(site)[0]
    assert outcomes(site) == ["submitted"]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (CatchUp.NONE, ["missed"]),
        (CatchUp.LAST, ["missed", "submitted"]),
        (CatchUp.ALL, ["submitted"] * 3),
    ],
)
@pytest.mark.parametrize("paused", [False, True])
def test_times_that_passed_before_a_change_of_the_times_are_caught_up_with(
    site: Site, policy: CatchUp, expected: list[str], paused: bool
) -> None:
    declare(site, hourly(catch_up=policy, overlap="allow"))
    if paused:
        site.store.schedules.pause("report", ANN, paused=True, now_us=site.now)
    # When no node ran before newer code came with other times
    site.clock.forward(3 * HOUR + 600)
    declare(site, hourly(catch_up=policy, overlap="allow", every_s=2 * HOUR))
    if paused:
        tick(site)
        assert jobs(site) == []
        site.store.schedules.pause("report", ANN, paused=False, now_us=site.now)
    tick(site)

    assert outcomes(site) == expected
    assert stored_schedule(site).next_us == site.now + 2 * HOUR * SECOND_US


def test_of_many_times_that_passed_before_a_change_the_first_are_caught_up_with(site: Site) -> None:
    put(site, hourly(every_s=1, catch_up="all", overlap="allow"))
    site.clock.forward(1200)
    put(site, hourly(catch_up="all", overlap="allow"))
    tick(site)

    assert Counter(outcomes(site)) == {"submitted": 999, "missed": 1}, "of which a thousand are kept"
    assert str(runs(site)[-1].message).endswith("nor for later ones up to 2026-06-01T12:20:00+00:00")


def test_one_that_is_there_is_not_replaced_unasked(site: Site) -> None:
    put(site, hourly())
    with pytest.raises(Refused, match="there is a schedule 'report' already, by ann"):
        put(site, hourly(every_s=60), replace=False)
    assert stored_schedule(site).every_s == HOUR


def test_a_schedule_can_be_put_paused(site: Site) -> None:
    put(site, hourly(paused=True))
    later(site, 3 * HOUR)
    assert site.ids() == []


def test_dropping_leaves_its_jobs_and_nothing_else(site: Site) -> None:
    put(site, hourly(every_s=1, overlap="queue", catch_up="all"))
    later(site, 2500)
    put(site, hourly("other"))

    site.store.schedules.drop("report", ANN, now_us=site.now)

    assert [s.name for s in site.store.schedules.all()] == ["other"]
    assert runs(site) == []
    assert site.states(site.ids()) == [State.PENDING]
    assert tick(site) == 0
    # And the name is free for one that begins anew
    put(site, hourly())
    assert (stored_schedule(site).last_job_id, stored_schedule(site).queued) == (None, 0)


@pytest.mark.parametrize("verb", ["pause", "drop", "run"])
def test_what_is_not_there_is_refused(site: Site, verb: str) -> None:
    more = {"paused": True} if verb == "pause" else {}
    with pytest.raises(Refused, match="no schedule 'nothing'"):
        getattr(site.store.schedules, verb)("nothing", ANN, now_us=site.now, **more)


def test_a_job_can_be_made_now_apart_from_the_times(site: Site) -> None:
    put(site, hourly(params={"n": 1}))
    site.clock.forward(90)

    job_id = site.store.schedules.run("report", ANN, now_us=site.now)

    assert site.job(job_id).params == {"n": 1}
    assert site.store.get_data(job_id)["schedule"] == {
        "name": "report",
        "at": "2026-06-01T12:01:30+00:00",
        "manual": True,
    }
    assert runs(site) == []
    assert stored_schedule(site).next_us == _us("2026-06-01T13:00:00+00:00")


def test_a_job_made_now_counts_for_the_overlap(site: Site) -> None:
    put(site, hourly())
    job_id = site.store.schedules.run("report", ANN, now_us=site.now)
    with pytest.raises(Refused, match=f"job {job_id} of schedule 'report' is still open"):
        site.store.schedules.run("report", ANN, now_us=site.now)
    later(site, HOUR)
    assert outcomes(site) == ["skipped"]
    # Nobody waits where jobs may overlap
    put(site, hourly(overlap="allow"))
    site.store.schedules.run("report", ANN, now_us=site.now)


def test_every_change_by_a_person_is_in_the_audit(site: Site) -> None:
    put(site, hourly())
    site.store.schedules.pause("report", ANN, paused=True, now_us=site.now)
    site.store.schedules.run("report", ANN, now_us=site.now)
    site.store.schedules.drop("report", ANN, now_us=site.now)

    entries = [entry for entry, _ in site.store.audit.entries()]
    assert [e.verb for e in entries] == ["schedule add", "schedule pause", "schedule run", "schedule drop"]
    assert {(e.by, e.call, json.loads(e.what)["schedule"]) for e in entries} == {("ann", "c1", "report")}
    assert json.loads(entries[0].what)["every_s"] == HOUR
    site.store.audit.verify()


# --- what applications declare -----------------------------------------------------------------


def declare(site: Site, *schedules: Schedule) -> list[str]:
    return list(site.store.schedules.declare(schedules, CODE, now_us=site.now))


def test_what_code_declares_is_put_once(site: Site) -> None:
    assert declare(site, hourly(), hourly("other")) == []
    assert (stored_schedule(site).by, stored_schedule(site).declared) == ("code", True)
    site.clock.forward(600)
    # When every node of a cluster starts again
    for _ in range(3):
        assert declare(site, hourly(), hourly("other")) == []

    assert stored_schedule(site).next_us == _us("2026-06-01T13:00:00+00:00")
    assert len(site.store.audit.entries()) == 2


def test_newer_code_replaces_older(site: Site) -> None:
    declare(site, hourly())
    declare(site, hourly(params={"n": 2}))
    assert stored_schedule(site).params == {"n": 2}
    assert stored_schedule(site).declared


def test_a_persons_pause_outlasts_newer_code(site: Site) -> None:
    declare(site, hourly())
    site.store.schedules.pause("report", ANN, paused=True, now_us=site.now)

    assert declare(site, hourly(every_s=60)) == []

    assert stored_schedule(site).paused
    assert stored_schedule(site).every_s == 60


def test_a_persons_change_outlasts_the_code(site: Site) -> None:
    declare(site, hourly())
    put(site, hourly(every_s=60))
    assert (stored_schedule(site).by, stored_schedule(site).declared) == ("ann", False)

    assert declare(site, hourly()) == ["report"]
    assert stored_schedule(site).every_s == 60
    # As long as they differ: then there is nothing to tell
    assert declare(site, hourly(every_s=60)) == []
    # And until it is dropped
    site.store.schedules.drop("report", ANN, now_us=site.now)
    assert declare(site, hourly()) == []
    assert stored_schedule(site).declared


# --- waking, and many at once ------------------------------------------------------------------


def test_nodes_are_told_when_a_schedule_is_due(site: Site) -> None:
    assert site.store.flush_and_claim([], None, now_us=site.now).wake_us is None
    put(site, hourly("later"))
    put(site, hourly(every_s=60))
    assert site.store.flush_and_claim([], None, now_us=site.now).wake_us == site.now + 60 * SECOND_US
    assert site.store.sweep(now_us=site.now).wake_us == site.now + 60 * SECOND_US

    site.store.schedules.pause("report", ANN, paused=True, now_us=site.now)

    assert site.store.flush_and_claim([], None, now_us=site.now).wake_us == site.now + HOUR * SECOND_US


@pytest.mark.parametrize("overlap", [Overlap.ALLOW, Overlap.QUEUE])
def test_many_who_tick_at_once_make_one_job_a_time(
    site: Site, open_another: Callable[[], Store], overlap: Overlap
) -> None:
    for name in ("a", "b", "c"):
        put(site, hourly(name, every_s=1, overlap=overlap, catch_up="all"))
    put(site, hourly("last", every_s=1, overlap=overlap, catch_up="last"))
    now_us = site.clock.forward(300)
    broken: list[BaseException] = []
    together = threading.Barrier(4)

    def work(store: Store) -> None:
        try:
            together.wait()
            while store.schedules.tick(now_us=now_us):
                pass
        except BaseException as error:
            broken.append(error)
            raise

    threads = [threading.Thread(target=work, args=(open_another(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert broken == []
    start = _us("2026-06-01T12:00:00+00:00")
    for name in ("a", "b", "c"):
        assert [run.nominal_us for run in runs(site, name)] == [start + n * SECOND_US for n in range(1, 301)]
        assert len(set(jobs(site, name))) == (300 if overlap is Overlap.ALLOW else 1)
    assert outcomes(site, "last") == ["missed", "submitted"]
    made = [j for name in ("a", "b", "c", "last") for j in jobs(site, name)]
    assert sorted(made) == [job.id for job in site.store.jobs(Filter(), limit=10_000)]
