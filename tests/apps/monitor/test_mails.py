"""Mails to owners, and what programs read by the API."""

import csv
import io
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.conftest import World, world_at
from spinney.apps.monitor import app, upkeep
from spinney.apps.monitor.database import database
from spinney.apps.monitor.inventory import entities, results
from spinney.apps.monitor.inventory.model import Result
from spinney.testing import StageHarness

from .monitor import Monitor, service

pytestmark = pytest.mark.parametrize("monitor", ["sqlite"], indirect=True)
API = "/api/v1/apps/monitor"


@pytest.fixture
def changed(monitor: Monitor) -> Monitor:
    """A monitor with mail, whose service 1 has broken a moment ago."""
    with (monitor.place / "monitor.toml").open("a") as file:
        file.write(
            '[mail]\nhost = "127.0.0.1"\nsender = "monitor@example.org"\nurl = "https://m.example.org/"\n'
        )
    monitor.import_([service(1, email="sea@example.org", contact="Ann"), service(2, entity="Town")])
    break_(1, "It <is> broken")
    return monitor


def break_(gid: int, info: str, status: str = "error", *, at_us: int | None = None) -> None:
    now_us = time.time_ns() // 1000
    results.write(
        database(),
        [
            Result(
                gid=gid,
                task="http",
                status=status,
                info=info,
                at_us=at_us or now_us,
                duration_s=1,
                job_id=now_us,
            )
        ],
    )


def test_an_owner_gets_one_mail_a_day_with_what_changed(changed: Monitor) -> None:
    harness = StageHarness()
    sent = harness.run(upkeep.mails, "send")
    mail = sent.submitted[0].params

    assert mail["to"] == ["sea@example.org"]
    assert mail["subject"] == "Services of Sea Institute: 1 error"
    assert re.search(
        r"^- \d{4}-\d\d-\d\d \d\d:\d\d UTC, Map 1: http, new -> error. It <is> broken$", mail["text"], re.M
    )
    assert "It &lt;is&gt; broken" in mail["html"]
    entity = entities.get(database(), 1)
    assert entity is not None
    assert f"https://m.example.org/apps/monitor/of/{entity.page_key}" in mail["text"]
    harness.run(upkeep.mails, "record")
    break_(1, "fine again", "ok")
    assert StageHarness().run(upkeep.mails, "send").submitted == []  # not twice a day


def test_a_mail_that_a_clock_sent_in_the_future_holds_up_no_other(changed: Monitor) -> None:
    entities.set_mailed(database(), 1, time.time_ns() // 1000 + 9 * 86_400_000_000, 0)
    assert len(StageHarness().run(upkeep.mails, "send").submitted) == 1


def test_a_result_that_is_written_after_a_mail_is_in_the_next_whatever_its_time(changed: Monitor) -> None:
    harness = StageHarness()
    harness.run(upkeep.mails, "send")
    harness.run(upkeep.mails, "record")
    mailed_us, mailed_id = entities.mailed(database(), 1)
    assert mailed_id == results.newest_id(database())
    break_(1, "late news", "warning", at_us=mailed_us - 1)
    entities.set_mailed(database(), 1, mailed_us - 2 * 86_400_000_000, mailed_id)

    (mail,) = StageHarness().run(upkeep.mails, "send").submitted

    assert next(line for line in mail.params["text"].splitlines() if line.startswith("- ")).endswith(
        "late news"
    )
    assert mail.params["text"].count("\n- ") == 1


def first_results(gids: range) -> None:
    """Write a first result of each service, all well, newer than anything before."""
    now_us = time.time_ns() // 1000
    listed = [
        Result(gid=gid, task="http", status="ok", info="", at_us=now_us, duration_s=1, job_id=gid)
        for gid in gids
    ]
    results.write(database(), listed)


def lines_of(mail: str) -> list[str]:
    return [line for line in mail.splitlines() if line.startswith("- ")]


def test_long_descriptions_are_shortened_so_that_the_mail_fits_a_job(changed: Monitor) -> None:
    """A catalogue may bring in descriptions of 2,000 characters, of which HTML needs six times as many."""
    long = [service(gid, email="sea@example.org", description='"' * 2000) for gid in range(1, 101)]
    changed.import_(long)
    for gid in range(1, 101):
        break_(gid, '"' * 20_000)

    (mail,) = StageHarness().run(upkeep.mails, "send").submitted

    assert len(lines_of(mail.params["text"])) == 100


def test_an_outage_is_mailed_however_many_first_results_are_newer(changed: Monitor) -> None:
    changed.import_([service(gid, email="sea@example.org") for gid in range(1, 112)])
    first_results(range(2, 112))

    (mail,) = StageHarness().run(upkeep.mails, "send").submitted

    (line,) = lines_of(mail.params["text"])
    assert line.endswith("It <is> broken")


def test_a_mail_that_lists_a_part_of_an_outage_says_so(changed: Monitor) -> None:
    changed.import_([service(gid, email="sea@example.org") for gid in range(1, 102)])
    for gid in range(2, 101):
        break_(gid, "down")
    (mail,) = StageHarness().run(upkeep.mails, "send").submitted
    assert len(lines_of(mail.params["text"])) == 100
    assert "newest" not in mail.params["text"] + mail.params["html"]

    break_(101, "down")
    (mail,) = StageHarness().run(upkeep.mails, "send").submitted
    assert len(lines_of(mail.params["text"])) == 100
    assert "\n\nOnly the newest 100 changes are listed.\n\nAll services: " in mail.params["text"]
    assert "<p>Only the newest 100 changes are listed.</p>" in mail.params["html"]


def test_what_changes_between_two_attempts_to_send_is_in_the_next_mail(changed: Monitor) -> None:
    changed.import_([service(gid, email="sea@example.org") for gid in (1, 2)])
    harness = StageHarness()
    # The node is killed before it has recorded the end of this attempt.
    (mail,) = harness.run(upkeep.mails, "send").submitted
    break_(2, "broken meanwhile")

    assert harness.run(upkeep.mails, "send").submitted == [mail]
    harness.run(upkeep.mails, "record")

    _, mailed_id = entities.mailed(database(), 1)
    entities.set_mailed(database(), 1, 0, mailed_id)  # a day later
    (later,) = StageHarness().run(upkeep.mails, "send").submitted
    (line,) = lines_of(later.params["text"])
    assert line.endswith("broken meanwhile")


def test_a_mail_of_another_range_has_another_key(changed: Monitor) -> None:
    # The job of this one fails before it has recorded it.
    (mail,) = StageHarness().run(upkeep.mails, "send").submitted
    break_(1, "worse", "critical")

    (other,) = StageHarness().run(upkeep.mails, "send").submitted

    assert other.key != mail.key


@pytest.fixture
def world(changed: Monitor, tmp_path: Path) -> Iterator[World]:
    (tmp_path / "server").mkdir()
    with world_at(tmp_path / "server") as made:
        made.store.register([kind.spec for kind in app.types.values()], app.queues, app.locks)
        yield made


def test_everything_is_read_as_json_and_csv(world: World) -> None:
    client = world.client("viewer")
    listed = client.get(f"{API}/services").json()["items"]
    assert [(s["gid"], [r["status"] for r in s["results"]]) for s in listed] == [(1, ["error"]), (2, [])]
    rows = list(csv.DictReader(io.StringIO(client.get(f"{API}/services?format=csv").text)))
    assert [(row["gid"], row["status"]) for row in rows] == [("1", "error"), ("2", "")]
    first = client.get(f"{API}/services?limit=1").json()
    rest = client.get(f"{API}/services?limit=1&after={first['next']}").json()
    assert [[s["gid"] for s in part["items"]] for part in (first, rest)] == [[1], [2]]
    assert client.get(f"{API}/services?after={rest['next']}").json() == {"items": [], "next": None}
    assert [c["gid"] for c in client.get(f"{API}/changes").json()["items"]] == [1]
    assert "page_key" not in client.get(f"{API}/entities").text
    for query in ("services?after", "changes?after_us"):  # no database has a number of so many bits
        assert client.get(f"{API}/{query}={2**64}").status_code == 422
    assert world.client("limited").get(f"{API}/services").status_code == 403
    assert world.client(None).get(f"{API}/services").status_code == 401


def test_no_text_of_a_service_is_a_formula_in_csv(world: World) -> None:
    break_(1, 'It says =1 and;=1;"=1')
    rows = csv.DictReader(io.StringIO(world.client("viewer").get(f"{API}/services?format=csv").text))
    assert next(rows)["info"] == "It says =1 and;'=1;\"'=1"


def test_figures_for_prometheus(world: World) -> None:
    text = world.client("viewer").get(f"{API}/metrics").text
    assert 'spinney_monitor_services{state="error"} 1\n' in text
    assert 'spinney_monitor_services{state="unchecked"} 1\n' in text
    assert "spinney_monitor_sequences 0\n" in text
