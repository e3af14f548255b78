"""The monitor's pages: who may see them, what they show, and the address that nobody can guess."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from server.conftest import World, world_at
from spinney.apps.monitor import app, requests
from spinney.apps.monitor.database import database
from spinney.apps.monitor.inventory import entities, results
from spinney.apps.monitor.inventory.model import Result

from .monitor import Monitor, service

pytestmark = pytest.mark.parametrize("monitor", ["sqlite"], indirect=True)
BROWSER = {"accept": "text/html"}


@pytest.fixture
def world(monitor: Monitor, tmp_path: Path) -> Iterator[World]:
    """A server whose store knows the monitor's types, with three services and some results."""
    monitor.import_([service(1), service(2, description="<b>Map</b>"), service(3, entity="Town")])
    rows = [
        Result(gid=1, task="http", status=status, info=info, at_us=at_us, duration_s=1, job_id=at_us)
        for at_us, status, info in ((1, "ok", ""), (2, "error", "It <is> broken"))
    ]
    (tmp_path / "server").mkdir()
    with world_at(tmp_path / "server") as made:
        now_us = made.control().clock()
        for result in rows:
            results.write(database(), [_at(result, now_us + result.at_us)])
        made.store.register([kind.spec for kind in app.types.values()], app.queues, app.locks)
        yield made


def _at(result: Result, at_us: int) -> Result:
    return Result(
        **{name: getattr(result, name) for name in Result.__slots__ if name != "at_us"}, at_us=at_us
    )


def read(world: World, path: str, name: str | None = "viewer") -> str:
    page = world.client(name).get(f"/apps/monitor{path}", headers=BROWSER)
    assert page.status_code == 200, page.text
    return page.text


def test_the_navigation_names_the_monitor_where_there_is_one(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = 'href="/apps/monitor"'
    assert link in world.client("viewer").get("/holds", headers=BROWSER).text

    monkeypatch.delenv("SPINNEY_MONITOR", raising=False)
    monkeypatch.setenv("SPINNEY_STORE", f"sqlite:///{tmp_path / 'elsewhere' / 'spinney.db'}")
    monkeypatch.chdir(tmp_path / "server")
    assert link not in world.client("viewer").get("/holds", headers=BROWSER).text


def test_the_overview_tells_states_changes_and_entities(world: World) -> None:
    page = read(world, "")

    assert "It &lt;is&gt; broken" in page
    assert "Sea Institute" in page
    assert "Town" in page
    assert "Check all" not in page  # a viewer may not
    assert "Check all" in read(world, "", "submitter")


def test_the_overview_shows_an_outage_behind_many_first_results_and_says_what_it_leaves_out(
    world: World, monitor: Monitor
) -> None:
    monitor.import_([service(gid) for gid in range(1, 102)])
    later_us = world.control().clock() + 10

    def write(gids: range, status: str) -> None:
        results.write(
            database(),
            [
                Result(gid=gid, task="http", status=status, at_us=later_us, duration_s=1, job_id=1000 + gid)
                for gid in gids
            ],
        )

    write(range(2, 52), "ok")
    page = read(world, "")
    assert "It &lt;is&gt; broken" in page
    assert "The newest" not in page

    write(range(52, 102), "error")
    page = read(world, "")
    assert "It &lt;is&gt; broken" not in page
    assert "The newest 50;" in page


def test_a_server_without_a_monitor_says_how_to_make_one_and_not_that_the_store_is_away(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPINNEY_STORE", f"sqlite:///{tmp_path}/elsewhere.db")

    page = world.client("viewer").get("/apps/monitor", headers=BROWSER)

    assert page.status_code == 503
    assert "There is no monitor at" in page.text
    assert "spinney monitor init" in page.text
    assert "store does not answer" not in page.text


def test_entity_service_and_tasks_have_pages(world: World) -> None:
    assert "&lt;b&gt;Map&lt;/b&gt;" in read(world, "/entities/1")
    assert "It &lt;is&gt; broken" in read(world, "/services/1")
    assert "No tasks" in read(world, "/tasks")
    assert '<a href="/apps/monitor/entities/1">Sea Institute</a>' in read(world, "/services/1")
    for path in ("/entities/1", "/services/1", "/tasks"):
        assert '<ol><li><a href="/apps/monitor">Monitor</a></li>' in read(world, path)
    assert world.client("viewer").get("/apps/monitor/services/99", headers=BROWSER).status_code == 404


def test_the_page_of_a_large_entity_has_pages(world: World, monitor: Monitor) -> None:
    monitor.import_([service(number, entity="Large") for number in range(10, 361)])
    entity = next(entity for entity in entities.query(database()) if entity.description == "Large")
    own, public = f"/entities/{entity.eid}", f"/of/{entity.page_key}"
    first, last = read(world, own), read(world, f"{public}?start=250", None)

    assert first.count("<tr data-row>") == 250
    assert 'href="?start=250"' in first
    assert "Next page" in first
    assert "First page" not in first
    assert last.count("<tr data-row>") == 101
    assert "Next page" not in last
    assert 'href="?start=0"' in last


def test_a_service_is_as_bad_as_the_worst_of_its_results(world: World) -> None:
    now_us = world.control().clock()
    statuses = {2: ("ok", "strange"), 3: ("ok", "ok")}
    results.write(
        database(),
        [
            Result(
                gid=gid, task=f"t{n}", status=status, info=f"said {n}", at_us=now_us, duration_s=1, job_id=gid
            )
            for gid, pair in statuses.items()
            for n, status in enumerate(pair)
        ],
    )
    first, second = read(world, "/entities/1").split("<tr data-row>")[1:]
    (third,) = read(world, "/entities/2").split("<tr data-row>")[1:]

    assert "s-error" in first
    assert "s-warning" in second
    assert "said 1" in second
    assert "s-ok" in third
    assert "said" not in third


def test_an_entity_s_public_page_needs_its_key_and_no_sign_in(world: World) -> None:
    entity = entities.get(database(), 1)
    assert entity is not None
    page = read(world, f"/of/{entity.page_key}", None)

    assert "It &lt;is&gt; broken" in page
    assert "/apps/monitor/services/" not in page
    assert 'class="crumbs"' not in page
    assert len(entity.page_key) >= 20
    assert world.client(None).get("/apps/monitor/of/guess", headers=BROWSER).status_code == 404


def test_who_is_limited_or_unknown_sees_none_of_the_other_pages(world: World) -> None:
    for path in ("", "/entities/1", "/services/1", "/tasks"):
        limited = world.client("limited").get(f"/apps/monitor{path}", headers=BROWSER)
        assert limited.status_code == 403
        assert "Sea Institute" not in limited.text
        assert world.client(None).get(f"/apps/monitor{path}", headers=BROWSER).status_code == 303


def test_a_check_is_started_and_stopped_by_a_form(world: World) -> None:
    client = world.client("submitter")
    response = client.post("/apps/monitor/check", data={"eid": "1"}, headers=BROWSER)
    refused = world.client("viewer").post("/apps/monitor/check", data={"eid": "1"}, headers=BROWSER)
    listed = requests.sequences(world.control())

    assert response.headers["location"] == "/apps/monitor/entities/1"
    assert refused.status_code == 403
    assert [sequence.name for sequence in listed] == ["Sea Institute"]
    overview = read(world, "", "submitter")
    assert "Sea Institute" in overview
    assert "A sequence is the group of checks of one request." in overview
    client.post("/apps/monitor/stop", data={"sequence": str(listed[0].job_id)}, headers=BROWSER)
    assert requests.sequences(world.control()) == []


def test_a_check_of_a_service_that_is_retired_or_does_not_exist_is_refused(
    world: World, monitor: Monitor
) -> None:
    monitor.import_([service(1)])  # which retires the others
    client = world.client("submitter")
    for gid in ("2", "99"):
        refused = client.post(
            "/apps/monitor/check", data={"gid": gid}, headers=BROWSER, follow_redirects=True
        )
        assert f"There is no service {gid}" in refused.text
    assert requests.sequences(world.control()) == []
