"""Schedules as pages."""

import re
from typing import Any

import pytest

from server.conftest import World
from spinney.features.schedules.commands import PutSchedule
from spinney.model.settings.schedules import CatchUp, Overlap

HTML = {"Accept": "text/html"}


@pytest.fixture
def nightly(world: World) -> str:
    made = PutSchedule(name="nightly", type="double", cron="0 3 * * *", params={"n": 1, "pin": "s3cret"})
    world.control().do(made)
    return "nightly"


def get(world: World, path: str, principal: str = "operator", status: int = 200) -> str:
    answer = world.client(principal).get(path, headers=HTML)
    assert answer.status_code == status, answer.text[:500]
    return str(answer.text)


def post(world: World, path: str, principal: str = "operator", **form: str) -> Any:
    return world.client(principal).post(path, data=form, headers=HTML)


def test_given_a_schedule_when_looked_at_then_its_times_and_parameters_are_there_but_no_secret(
    world: World, nightly: str
) -> None:
    text = get(world, "/schedules") + get(world, "/schedules/nightly")

    assert "0 3 * * *" in text
    assert len(re.findall(r"03:00:00 UTC</time>", text)) == 8
    assert "s3cret" not in text
    assert "••••••" in text


def test_given_a_schedule_in_another_zone_then_its_times_are_those_of_its_clock_and_utc(world: World) -> None:
    made = PutSchedule(name="early", type="double", cron="0 3 * * *", zone="Asia/Tokyo", params={"n": 1})
    world.control().do(made)

    text = get(world, "/schedules/early")

    assert len(re.findall(r"\d{4}-\d\d-\d\d 03:00 JST<br>", text)) == 8
    assert len(re.findall(r"18:00:00 UTC</time>", text)) == 8


def test_given_a_schedule_when_paused_resumed_run_and_dropped_then_it_is(world: World, nightly: str) -> None:
    control = world.control()

    assert (
        post(world, "/schedules/nightly/pause", back="list", reason="moving").headers["location"]
        == "/schedules"
    )
    assert control.queries.schedule("nightly").paused
    assert "paused" in get(world, "/schedules")
    post(world, "/schedules/nightly/resume")
    assert not control.queries.schedule("nightly").paused
    post(world, "/schedules/nightly/run")
    (job,) = world.site.ids()
    assert f'href="/jobs/{job}"' in get(world, "/schedules")
    assert post(world, "/schedules/nightly/run").status_code == 303  # refused: its last job is open
    assert world.site.ids() == [job]
    refused = post(world, "/schedules/nightly/drop", reason="x" * 3000)
    assert refused.headers["location"] == "/schedules/nightly"
    assert post(world, "/schedules/nightly/drop", reason="not needed").headers["location"] == "/schedules"
    assert not control.queries.schedules()
    assert "No schedules yet" in get(world, "/schedules")
    get(world, "/schedules/nightly", status=404)
    assert post(world, "/schedules/nightly/pause").status_code == 303


def test_given_a_later_page_of_the_list_then_what_is_done_there_leads_back_to_it(
    world: World, nightly: str
) -> None:
    text = get(world, "/schedules?after=a")

    forms = re.findall(r'<form [^>]*action="/schedules/nightly/(?:run|pause)".*?</form>', text, re.S)
    assert len(forms) == 2
    assert all('name="after" value="a"' in form for form in forms)
    answer = post(world, "/schedules/nightly/pause", back="list", after="a")
    assert answer.headers["location"] == "/schedules?after=a"


def test_given_a_form_when_sent_then_the_schedule_is_made_as_it_says(world: World) -> None:
    answer = post(
        world,
        "/make-schedule",
        **{
            "type": "double",
            "name": "hourly",
            "every": "1h",
            "overlap": "queue",
            "catch_up": "none",
            "p.n": "5",
            "priority": "9",
            "queue": "slow",
        },
    )

    schedule = world.control().queries.schedule("hourly")
    assert (answer.status_code, answer.headers["location"]) == (303, "/schedules/hourly")
    assert (schedule.every_s, schedule.overlap, schedule.catch_up, schedule.by) == (
        3600,
        Overlap.QUEUE,
        CatchUp.NONE,
        "operator",
    )
    assert schedule.params == {"n": 5}
    assert (schedule.options["priority"], schedule.options["queue"]) == (9, "slow")
    form, shown = get(world, "/make-schedule?type=double"), get(world, "/schedules/hourly")
    for words in ("the run waits", "none is caught up"):
        assert f">{words}</option>" in form
        assert f"<dd>{words}</dd>" in shown


@pytest.mark.parametrize(
    ("form", "field"),
    [
        ({"p.n": "many"}, "p-n"),
        ({"cron": "61 * * * *"}, "f-cron"),
        ({"cron": "", "every": "soon"}, "f-every"),
        ({"every": "1h"}, "f-cron"),
        ({"name": "a/b"}, "f-name"),
        ({"name": "nightly"}, "f-name"),
        ({"zone": "Mars/Olympus"}, "f-zone"),
        ({"priority": "100"}, "f-priority"),
    ],
)
def test_given_what_cannot_be_meant_when_sent_then_it_is_told_at_its_field(
    world: World, nightly: str, form: dict[str, str], field: str
) -> None:
    answer = post(
        world, "/make-schedule", **{"type": "double", "name": "x", "cron": "0 6 * * *", "p.n": "1", **form}
    )

    assert answer.status_code in (409, 422)
    assert re.search(rf'id="{field}"[^>]* aria-invalid="true"', answer.text, re.S)
    assert [s.name for s in world.control().queries.schedules()] == ["nightly"]


def test_given_who_is_no_operator_when_looking_then_nothing_can_be_done_and_nothing_is(
    world: World, nightly: str
) -> None:
    text = get(world, "/schedules", "submitter") + get(world, "/schedules/nightly", "submitter")

    assert 'method="post" action="/schedules' not in text
    assert "/make-schedule" not in text
    get(world, "/make-schedule", "submitter", status=403)
    assert post(world, "/schedules/nightly/pause", "submitter").status_code == 403
    assert not world.control().queries.schedule("nightly").paused
