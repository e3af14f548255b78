"""Lists of the API as CSV."""

import csv
import io
from typing import Any

import pytest

from spinney.commands import csv_lines
from spinney.features.holds.commands import LayHold
from spinney.features.locks.commands import SetCapacity
from spinney.features.retention.commands import SetRetention
from spinney.features.schedules.commands import PutSchedule
from spinney.model.settings.holds import Scope
from spinney.server.api import COMMANDS

from ..conftest import World

LISTS = [
    command
    for commands in COMMANDS.values()
    for command in commands
    if command.route.method == "GET" and csv_lines.item_type(command.answer()) is not None
]
WITHOUT_PARAMETERS = [
    command for command in LISTS if not any(field.is_required() for field in command.model_fields.values())
]

FILL = (
    LayHold(scope=Scope.QUEUE, name="slow", reason="x"),
    PutSchedule(name="nightly", type="one", every_s=60),
    SetCapacity(name="receiver", capacity=2),
    SetRetention(type="one", state="failed", keep_s=60),
)
FILLED = {
    "ListJobs",
    "ListFailures",
    "ListQueues",
    "ListTypes",
    "ListHolds",
    "ListSchedules",
    "ListCapacities",
    "ListRetention",
    "ListAuditCalls",
    "ListAuditEntries",
}
"""The lists that have lines then."""


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("command", WITHOUT_PARAMETERS, ids=lambda command: command.__name__)
def test_every_list_is_answered_as_csv_with_the_same_rows(world: World, command: Any) -> None:
    world.submit("one")
    world.site.fail(world.site.claim_one())
    world.submit("one")
    for made in FILL:
        world.control("admin").do(made)
    client, path = world.client("admin"), f"/api/v1{command.route.path}"
    answer = client.get(path, params={"format": "csv"})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == f'attachment; filename="{path.rpartition("/")[2]}.csv"'
    columns = csv_lines.columns(csv_lines.item_type(command.answer()))
    assert csv.DictReader(io.StringIO(answer.text)).fieldnames == columns
    assert rows(answer.text) or command.__name__ not in FILLED
    if command.__name__ != "ListAuditCalls":  # which the requests of this test add to
        assert len(rows(answer.text)) == len(client.get(path).json()["items"])
    for accept, kind in (("text/csv", "text/csv"), ("application/json, text/csv;q=0.5", "application/json")):
        assert client.get(path, headers={"Accept": accept}).headers["content-type"].startswith(kind)


def test_at_least_two_dozen_lists_are_there() -> None:
    assert len(LISTS) >= 24


def test_all_pages_are_in_one_file_and_filters_hold(world: World) -> None:
    made = world.control().submit("one", [{}] * 1_005).ids
    world.submit("double", {"n": 1})
    client = world.client("viewer")
    exported = rows(client.get("/api/v1/jobs?format=csv&type=one").text)
    assert sorted(int(row["id"]) for row in exported) == sorted(made)
    limited = rows(client.get("/api/v1/jobs?format=csv&limit=3").text)
    assert len(limited) == 3


def test_a_tree_is_in_one_file_whole_or_refused(world: World) -> None:
    client = world.client("viewer")
    trees = []
    for children in (1_200, 10_000):
        top = world.submit("batch", priority=10)
        lease = world.site.run(top)
        world.site.spawn(lease, "one", n=children)
        world.site.pass_(lease)
        trees.append(f"/api/v1/jobs/{top}/tree")
    assert len(rows(client.get(trees[0], params={"format": "csv"}).text)) == 1_201
    refused = client.get(trees[1], params={"format": "csv"})
    assert refused.status_code == 422
    assert "10,000 lines or more" in refused.json()["detail"]
    assert len(rows(client.get(trees[1], params={"format": "csv", "limit": 7}).text)) == 7


def test_what_a_caller_may_not_see_is_not_in_it(world: World) -> None:
    job = world.submit("one", collection="lab")
    world.submit("one", collection="secret")
    assert [row["id"] for row in rows(world.client("limited").get("/api/v1/jobs?format=csv").text)] == [
        str(job)
    ]
    assert world.client("viewer").get("/api/v1/users?format=csv").status_code == 403
    assert world.client(None).get("/api/v1/jobs?format=csv").status_code == 401


def test_a_formula_in_a_reason_is_made_harmless(world: World) -> None:
    hold = {"scope": "queue", "name": "default", "reason": "=HYPERLINK(1)"}
    assert world.client("operator").post("/api/v1/holds", json=hold).status_code < 300
    (row,) = rows(world.client("viewer").get("/api/v1/holds?format=csv").text)
    assert row["reason"] == "'=HYPERLINK(1)"


def test_another_format_is_refused(world: World) -> None:
    assert world.client("viewer").get("/api/v1/jobs?format=xml").status_code == 422
