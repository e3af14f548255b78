"""The picture of a job's relatives: grouped by type and state, opened by and by, within sight."""

import re

import pytest

from server.conftest import World
from server.pages.test_pages import HTML, get
from spinney.features.jobs import relatives_sql
from spinney.features.jobs.relatives_sql import Relation
from spinney.features.jobs.tree_page import MEMBERS
from spinney.model.jobs import Submission

BELOW = 60


@pytest.fixture
def batch(world: World) -> int:
    """A batch with many subjobs, three of them failed, one at work, and one with a subjob of its own."""
    top = world.submit("batch", collection="lab")
    lease = world.site.claim_by_job()[top]
    children = world.site.spawn(lease, "one", n=BELOW)
    world.site.spawn(lease, "three", n=2)
    world.site.pass_(lease)
    leases = world.site.claim_by_job()
    world.site.fail(*(leases[child] for child in children[:3] if child in leases))
    return top


def groups(text: str) -> dict[tuple[str, str], int]:
    """Number of jobs by type and state."""
    rows = re.findall(
        r'count">([\d,]+)</span>.*?class="state s-(\w+)".*?class="type break">(\w+)<', text, re.S
    )
    return {(type_, state): int(count.replace(",", "")) for count, state, type_ in rows}


def test_given_many_subjobs_then_a_few_groups_say_how_many_stand_where(world: World, batch: int) -> None:
    text = get(world.client("viewer"), f"/jobs/{batch}/tree")

    parts = groups(text)
    assert sum(parts.values()) == BELOW + 2
    assert parts["one", "failed"] == 3
    assert {type_ for type_, _ in parts} == {"one", "three"}
    assert 'href="/jobs/1/tree"' in get(world.client("viewer"), f"/jobs/{batch}")


def test_given_groups_then_only_those_at_the_top_have_ids_since_others_may_be_shown_twice(
    world: World,
) -> None:
    top = world.submit("batch")
    lease = world.site.claim_by_job()[top]
    world.site.spawn(lease, "one", n=1)
    world.site.pass_(lease)
    text = get(world.client("viewer"), f"/jobs/{top}/tree")

    assert text.count('id="group-subjobs-one-') == 1
    below = get(world.client("viewer"), f"/jobs/{top}/tree/groups")
    assert 'id="group-' not in below
    assert 'hx-target="#' not in text + below


def test_given_a_group_then_it_opens_some_at_a_time_until_all_have_been_shown(
    world: World, batch: int
) -> None:
    client = world.client("viewer")
    states = {state for (type_, state) in groups(get(client, f"/jobs/{batch}/tree")) if type_ == "one"}
    seen: list[str] = []

    for state in states:
        path: str | None = f"/jobs/{batch}/tree/members?relation=subjobs&type=one&state={state}"
        while path:
            part = client.get(path, headers=HTML | {"HX-Request": "true"}).text
            page = re.findall(r'href="/jobs/(\d+)"', part)
            assert len(page) <= MEMBERS
            seen += page
            following = re.search(r'<a class="button" href="([^"]+)"', part)
            path = following[1].replace("&amp;", "&") if following else None

    assert len(seen) == len({*seen}) == BELOW
    without_script = get(client, f"/jobs/{batch}/tree/members?relation=subjobs&type=one&state=failed")
    assert "<h1>Relatives of" in without_script


def test_given_a_subjob_with_subjobs_then_it_opens_in_place(world: World) -> None:
    top = world.submit("batch")
    lease = world.site.claim_by_job()[top]
    (middle,) = world.site.spawn(lease, "batch")
    world.site.pass_(lease)
    lease = world.site.claim_by_job()[middle]
    (leaf,) = world.site.spawn(lease, "one")
    world.site.pass_(lease)
    client = world.client("viewer")

    members = get(client, f"/jobs/{top}/tree/members?type=batch&state=waiting")

    assert f'hx-get="/jobs/{middle}/tree/groups"' in members
    summaries = re.findall("<summary.*?</summary>", members, re.S)
    assert [text for text in summaries if "<a " in text] == [], "within a button screen readers leave it out"
    assert groups(get(client, f"/jobs/{middle}/tree/groups")) == {("one", "pending"): 1}
    assert f"#{top}" in get(client, f"/jobs/{leaf}/tree"), "its ancestors lead up"


def test_given_needs_then_both_sides_are_grouped_too(world: World) -> None:
    first = world.submit("one")
    ids = world.store.submit([Submission(type="three", params=("{}",) * 30, needs=(first,))], now_us=1).ids
    client = world.client("viewer")

    text = get(client, f"/jobs/{first}/tree")
    assert "Needed by" in text
    assert groups(text) == {("three", "waiting"): 30}
    assert groups(get(client, f"/jobs/{ids[0]}/tree")) == {("one", "pending"): 1}
    members = get(client, f"/jobs/{first}/tree/members?relation=needed_by&type=three&state=waiting")
    assert len(re.findall(r'class="member"', members)) == MEMBERS
    assert "Tree and needs" in get(client, f"/jobs/{ids[0]}")


def test_given_limits_then_what_is_out_of_sight_is_neither_counted_nor_listed(world: World) -> None:
    mine = world.submit("one", collection="lab")
    other = world.store.submit([Submission(type="three", needs=(mine,), collection="other")], now_us=1).ids[0]
    limited = world.client("limited")

    assert groups(get(limited, f"/jobs/{mine}/tree")) == {}
    shown = get(limited, f"/jobs/{mine}/tree/members?relation=needed_by&type=three&state=waiting")
    assert f"#{other}" not in shown
    for path in ("tree", "tree/groups", "tree/members?type=one&state=pending"):
        assert limited.get(f"/jobs/{other}/{path}", headers=HTML).status_code == 404


def test_given_more_than_are_counted_then_the_picture_says_so(
    world: World, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, partial = world.store.relatives.groups(batch, Relation.SUBJOBS, None)
    assert not partial
    monkeypatch.setattr(relatives_sql, "RELATIVES_MAX", 20)

    groups_, partial = world.store.relatives.groups(batch, Relation.SUBJOBS, None)

    assert partial
    assert sum(group.jobs for group in groups_) == 21
