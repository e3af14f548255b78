"""The pages of one node and of retention."""

import re

import pytest

from server.conftest import World
from server.pages.test_pages import HTML, get
from spinney.features.nodes.node_page import slots
from spinney.features.nodes.recent_sql import NodeAttempt
from spinney.model.outcomes import Outcome
from spinney.web.request_context import now_us

SECOND = 1_000_000


def attempt(job: int, start_s: int, end_s: int | None, outcome: str | None = "ok") -> NodeAttempt:
    end_us = None if end_s is None else end_s * SECOND
    return NodeAttempt(job, "one", "work", outcome if end_s is not None else None, start_s * SECOND, end_us)


# --- a node -----------------------------------------------------------------------------------


def test_given_a_node_then_its_page_has_what_it_runs_its_slots_and_orders(world: World) -> None:
    name = world.site.here.name
    first, second = world.site.submit("one", n=2)
    leases = world.site.claim_by_job()
    began = now_us() - 5 * SECOND
    world.site.record(leases[first], Outcome.OK, started_us=began, ended_us=began + SECOND)
    world.site.start(leases[second])
    client = world.client("operator")

    text = get(client, f"/nodes/{name}")

    assert f'id="job-{second}"' in text
    assert f'id="job-{first}"' not in text
    assert f"#{first} one.work: ran 1.0 s, ok" in text
    assert re.search(rf"#{second} one\.work: runs for", text)
    assert f'action="/nodes/{name}/drain"' in text
    assert f'action="/nodes/{name}/drain"' not in get(world.client("viewer"), f"/nodes/{name}")
    for path in ("/nodes", "/", f"/jobs/{second}"):
        assert f'href="/nodes/{name}"' in get(client, path)
    assert f'href="/nodes/{name}"' not in get(client, f"/jobs/{first}"), "by now, that node may be gone"
    assert client.get("/nodes/nobody", headers=HTML).status_code == 404

    client.post(f"/nodes/{name}/drain", data={"reason": "a new disk"}, headers=HTML)
    assert "Drained by operator: a new disk" in get(client, f"/nodes/{name}")


def test_given_a_claimed_job_then_no_attempt_is_said_to_run(world: World) -> None:
    job = world.submit("one")
    lease = world.site.claim_one()
    client = world.client("operator")

    assert "s-running" not in get(client, f"/jobs/{job}")
    world.site.start(lease)
    assert "s-running" in get(client, f"/jobs/{job}")


def test_given_a_node_that_died_then_its_page_the_list_and_the_overview_say_so(world: World) -> None:
    elm = world.site.node("elm")
    world.site.recover(elm)
    client = world.client("operator")

    for path in ("/nodes/elm", "/nodes"):
        text = get(client, path)
        assert "s-dead" in text
        assert "its jobs were taken back" in text
    assert "Node elm is dead" in get(client, "/")


def test_given_limits_then_others_jobs_are_neither_listed_nor_drawn(world: World) -> None:
    name = world.site.here.name
    mine, other = world.submit("one", collection="lab"), world.submit("one", collection="other")
    leases = world.site.claim_by_job()
    world.site.pass_(leases[other], started_us=now_us() - SECOND, ended_us=now_us())
    world.site.start(leases[mine])

    text = get(world.client("limited"), f"/nodes/{name}")

    assert f"#{mine} one.work" in text
    assert f"#{other} one.work" not in text


def test_given_attempts_then_those_at_one_time_stand_in_rows_of_their_own() -> None:
    ended = [attempt(4, 50, 60), attempt(3, 45, 58, "error"), attempt(2, 10, 40, "returned")]

    drawn = slots([attempt(5, 55, None)], ended, 100 * SECOND)

    assert drawn is not None
    assert [[part.job_id for part in row.segments] for row in drawn.rows] == [[5, 2], [4], [3]]
    assert [row.segments[0].kind for row in drawn.rows] == ["running", "completed", "failed"]
    assert drawn.rows[0].segments[1].kind == "scheduled"  # neither passed nor failed
    assert list(drawn.legend) == ["completed", "failed", "running", "scheduled"]
    assert drawn.from_us == 10 * SECOND
    assert slots([], [], 1) is None


# --- retention --------------------------------------------------------------------------------


def test_given_an_admin_when_a_rule_is_set_and_removed_then_the_page_follows(world: World) -> None:
    client = world.client("admin")
    assert "All jobs are kept for ever" in get(client, "/retention")

    sent = {"type": "one", "state": "failed", "keep": "90d", "sure": "1"}
    client.post("/retention", data=sent, headers=HTML)
    text = get(client, "/retention")
    assert "Failed jobs of one are kept for 90 days" in text
    assert "set by admin" in text
    (rule,) = world.store.retention.all()
    assert (rule.type, rule.state, rule.keep_s) == ("one", "failed", 90 * 86_400)

    client.post("/retention", data={"type": "one", "state": "failed", "remove": "1"}, headers=HTML)
    assert world.store.retention.all() == []


def test_given_a_leader_whose_clock_has_jumped_then_the_page_says_so(world: World) -> None:
    retention = world.store.retention
    retention.observe_clock(now_us=now_us())
    assert "clock" not in get(world.client("viewer"), "/retention")

    retention.observe_clock(now_us=now_us() + 31 * 86_400 * SECOND)

    assert "Nodes remove no jobs" in get(world.client("viewer"), "/retention")


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ({"type": "one", "state": "failed", "keep": "soon"}, "soon"),
        ({"type": "one", "state": "failed", "keep": ""}, "how long"),
        ({"type": "", "state": "failed", "keep": "1d"}, "choose a type"),
        ({"type": "one", "state": "", "keep": "1d"}, "choose a state"),
        ({"type": "none", "state": "failed", "keep": "1d", "sure": "1"}, "none"),
        ({"type": "one", "state": "pending", "keep": "1d", "sure": "1"}, "pending"),
    ],
)
def test_given_a_rule_that_cannot_be_then_the_form_says_why_and_keeps_what_was_typed(
    world: World, form: dict[str, str], reason: str
) -> None:
    answer = world.client("admin").post("/retention", data=form, headers=HTML)

    assert answer.status_code == 422
    assert reason in re.sub(r"<[^>]*>", "", answer.text)
    assert f'value="{form["keep"]}"' in answer.text
    assert world.store.retention.all() == []


def test_given_the_page_of_retention_then_nothing_is_chosen_and_all_must_be_said(world: World) -> None:
    text = get(world.client("admin"), "/retention")

    assert '<option value="*">all types</option>' in text
    assert "selected" not in text.partition('id="set"')[2]
    for name in ("f-type", "f-state", "f-keep"):
        assert re.search(rf'<(?:select|input) id="{name}"[^>]* required', text), name


def test_given_a_rule_that_deletes_jobs_when_sent_then_it_is_asked_about_before_it_is_set(
    world: World,
) -> None:
    client, rule = world.client("admin"), {"type": "*", "state": "completed", "keep": "30d"}

    page_text = client.post("/retention", data=rule, headers=HTML).text
    assert "All completed jobs of all types are deleted 30 days after they settled" in page_text
    assert world.store.retention.all() == []

    sure = dict(re.findall(r'<input type="hidden" name="(type|state|keep)" value="([^"]*)"', page_text))
    assert sure == rule
    client.post("/retention", data={**sure, "sure": "1"}, headers=HTML)
    text = get(client, "/retention")
    assert "the rule for completed jobs of all types" in text
    assert [rule.type for rule in world.store.retention.all()] == ["*"]


def test_given_a_rule_by_which_no_job_is_deleted_when_sent_then_it_is_set_at_once(world: World) -> None:
    sent = {"type": "one", "state": "failed", "keep": "for ever"}

    world.client("admin").post("/retention", data=sent, headers=HTML)

    assert [rule.keep_s for rule in world.store.retention.all()] == [None]


def test_given_an_operator_then_rules_can_be_read_and_not_set(world: World) -> None:
    operator = world.client("operator")

    assert 'action="/retention"' not in get(operator, "/retention")
    answer = operator.post("/retention", data={"type": "one", "state": "failed", "keep": "1d"}, headers=HTML)
    assert answer.status_code == 403
