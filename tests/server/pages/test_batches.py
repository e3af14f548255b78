"""Batches as pages: how far they are, their objects, and verbs on the whole."""

import re
from typing import Any

import pytest

from server.conftest import World
from spinney.features.submission import batch_page
from spinney.model.jobs import Submission
from spinney.model.settings.holds import Scope
from spinney.model.states import State

HTML = {"Accept": "text/html"}
PART = HTML | {"HX-Request": "true"}


def batch(
    world: World, objects: int = 4, failing: int = 1, name: str = "", **fields: Any
) -> tuple[int, list[int]]:
    """One whose first half has run, some of it badly; it goes before all that is there."""
    urgent = 49 - world.site.count(roots_only=True).get("waiting", 0)
    top = world.site.submit_one("batch", {"name": name} if name else {}, priority=urgent, **fields)
    lease = world.site.run(top)
    children = world.site.spawn(lease, "one", n=objects)
    world.site.pass_(lease)
    for child in children[: objects // 2]:
        (world.site.fail if child in children[:failing] else world.site.pass_)(world.site.run(child))
    return top, children


def get(
    world: World, path: str, principal: str = "operator", headers: dict[str, str] = HTML, status: int = 200
) -> str:
    answer = world.client(principal).get(path, headers=headers)
    assert answer.status_code == status, answer.text[:500]
    return str(answer.text)


def cells(text: str) -> list[tuple[int, str]]:
    return [(int(n), state) for state, n in re.findall(r'<a class="s-(\w+)" href="/jobs/(\d+)"', text)]


def test_given_batches_when_listed_then_each_says_how_far_it_is_and_filters_narrow_it(world: World) -> None:
    world.submit("one")
    first, _ = batch(world, submitter="ada", collection="lab")
    second, _ = batch(world, submitter="grace")

    text = get(world, "/batches")
    filtered = get(world, "/batches?submitter=ada")

    assert re.findall(r'href="/batches/(\d+)">#', text) == [str(second), str(first)]
    assert "50 %" in text
    assert re.findall(r'href="/batches/(\d+)">#', filtered) == [str(first)]
    assert "there is no state" in get(world, "/batches?state=broken", status=422)
    assert "batches cannot be filtered by this" in get(world, "/batches?parent=1", status=422)


def test_given_a_batch_then_its_subject_tells_it_from_others_of_its_type(world: World) -> None:
    top, _ = batch(world, name="maps")

    assert '<span class="sub">maps</span>' in get(world, "/batches")
    assert '<p class="subject break">maps</p>' in get(world, f"/batches/{top}")


def test_given_more_batches_than_a_page_when_paged_through_then_each_comes_once(world: World) -> None:
    tops = [batch(world, 2, 0)[0] for _ in range(27)]

    first = get(world, "/batches")
    link = re.search(r'href="(/batches\?after=\d+)" rel="next"', first)
    assert link
    second = get(world, link[1])

    ids = [int(n) for text in (first, second) for n in re.findall(r'href="/batches/(\d+)">#', text)]
    assert ids == tops[::-1]


def test_given_a_batch_when_opened_then_its_objects_stand_in_a_grid_by_their_states(world: World) -> None:
    top, children = batch(world)

    text = get(world, f"/batches/{top}")

    states = ["failed", "completed", "pending", "pending"]
    assert cells(text) == list(zip(children, states, strict=True))
    assert f"/jobs/verbs?verb=retry&amp;all=1&amp;root={top}&amp;failure=" in text
    assert f'href="/jobs?parent={top}"' in text
    assert cells(get(world, f"/batches/{top}?state=failed&state=pending")) == [
        (children[0], "failed"),
        (children[2], "pending"),
        (children[3], "pending"),
    ]
    assert cells(get(world, f"/batches/{top}/grid?state=completed", headers=PART)) == [
        (children[1], "completed")
    ]


def test_given_more_objects_than_a_grid_when_paged_through_then_each_comes_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_page, "CELLS", 3)
    top, children = batch(world, 8)

    ids, path = [], f"/batches/{top}"
    while path:
        text = get(world, path)
        ids += [n for n, _ in cells(text)]
        link = re.search(r'href="([^"]+)" rel="next"', text)
        path = link[1].replace("&amp;", "&") if link else ""

    assert ids == children


def test_given_deeper_trees_when_asked_then_what_is_below_the_objects_is_shown_too(world: World) -> None:
    top, children = batch(world, 4, 0)
    lease = world.site.run(children[2])
    (below,) = world.site.spawn(lease, "one")
    world.site.pass_(lease)

    assert "Include 1 deeper job<" in get(world, f"/batches/{top}")
    assert [n for n, _ in cells(get(world, f"/batches/{top}?below=true"))] == sorted([*children, below])


def test_given_a_batch_when_held_released_and_cancelled_then_all_below_it_is(world: World) -> None:
    top, children = batch(world, failing=0)
    client = world.client("operator")

    held = client.post(f"/batches/{top}/verb", data={"verb": "hold", "reason": "until spring"}, headers=HTML)
    (hold,) = world.store.holds.all()
    assert (held.status_code, held.headers["location"]) == (303, f"/batches/{top}")
    assert (hold.scope, hold.name, hold.reason) == (Scope.TREE, str(top), "until spring")
    assert world.site.state(children[3]) is State.HELD
    assert "until spring" in get(world, f"/batches/{top}")

    client.post(f"/batches/{top}/verb", data={"verb": "release"}, headers=HTML)
    assert not world.store.holds.all()
    assert world.site.state(children[3]) is State.PENDING

    client.post(f"/batches/{top}/verb", data={"verb": "cancel"}, headers=HTML)
    assert world.site.states(children[2:]) == [State.CANCELLED, State.CANCELLED]


@pytest.mark.parametrize(
    "form", [{"verb": "hold"}, {"verb": "delete"}, {"verb": "hold", "reason": "x", "until": "never"}]
)
def test_given_what_cannot_be_done_when_asked_for_then_nothing_is_done_and_it_is_told(
    world: World, form: dict[str, str]
) -> None:
    top, children = batch(world)

    answer = world.client("operator").post(f"/batches/{top}/verb", data=form, headers=HTML)

    assert answer.status_code == 303
    assert "spinney_flash" in answer.headers["set-cookie"]
    assert not world.store.holds.all()
    assert world.site.state(children[3]) is State.PENDING


def test_given_a_viewer_when_he_looks_then_nothing_can_be_done_and_nothing_is(world: World) -> None:
    top, children = batch(world)

    text = get(world, f"/batches/{top}", "viewer")
    answer = world.client("viewer").post(f"/batches/{top}/verb", data={"verb": "cancel"}, headers=HTML)

    assert "/jobs/verbs" not in text
    assert f'action="/batches/{top}/verb"' not in text
    assert answer.status_code == 403
    assert world.site.state(children[3]) is State.PENDING


def test_given_a_batch_out_of_sight_when_opened_then_it_is_not_there(world: World) -> None:
    top, _ = batch(world, collection="other")
    own, _ = batch(world, collection="lab")

    for part in ("", "/grid", "/report"):
        get(world, f"/batches/{top}{part}", "limited", headers=PART, status=404)
    assert get(world, f"/batches/{own}", "limited")


def test_given_a_subjob_when_opened_as_a_batch_then_it_is_shown_as_a_job(world: World) -> None:
    _, children = batch(world, 1)

    answer = world.client("viewer").get(f"/batches/{children[0]}", headers=HTML)

    assert (answer.status_code, answer.headers["location"]) == (303, f"/jobs/{children[0]}")


def test_given_a_finished_batch_when_opened_then_its_report_is_what_the_last_stage_gave(world: World) -> None:
    top, children = batch(world, 2, 0)
    world.site.pass_(world.site.run(children[1]))
    world.site.pass_(world.site.run(top), result={"objects": 2})
    (world.folder(top) / "report.csv").write_text("a,b\n")

    text = get(world, f"/batches/{top}/report", headers=PART)

    assert "result of stage report" in text
    assert f"/api/v1/jobs/{top}/files/report.csv" in text


def test_given_an_open_batch_then_what_its_first_stage_returned_is_no_report(world: World) -> None:
    top = world.site.submit_one("batch")
    lease = world.site.run(top)
    world.site.spawn(lease, "one")
    world.site.pass_(lease, result={"objects": 1})

    text = get(world, f"/batches/{top}/report", headers=PART)

    assert "No report yet" in text
    assert "result of stage" not in text


def test_given_a_batch_that_was_retried_then_all_of_its_time_counts_wherever_it_stands(world: World) -> None:
    submitted_us = world.site.now - 3_600_000_000
    (top,) = world.store.submit([Submission(type="batch")], now_us=submitted_us).ids
    lease = world.site.run(top)
    (child,) = world.site.spawn(lease, "one")
    world.site.pass_(lease)
    world.site.fail(world.site.run(child))
    world.site.pass_(world.site.run(top))
    world.site.retry(child)
    world.site.pass_(world.site.run(child))
    world.site.pass_(world.site.run(top))

    assert world.store.job(top).state is State.COMPLETED
    for path in ("/batches", f"/batches/{top}"):
        assert re.search(r'title="3[67]\d\d\.\d{3} s">1 h</span>', get(world, path)), path
