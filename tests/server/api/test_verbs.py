"""Verbs, on one job and on many."""

import json

import pytest

from spinney.model.jobs import Filter
from spinney.web.media_types import NDJSON

from ..conftest import World

VERBS = "/api/v1/jobs/verbs"


def failed(world: World, n: int = 1) -> list[int]:
    jobs = world.site.submit("one", n=n)
    world.site.drain(failing=jobs)
    return jobs


def test_a_verb_says_what_it_did(world: World) -> None:
    (job,) = failed(world)

    response = world.client().post(f"/api/v1/jobs/{job}/retry", json={"reason": "the disk is back"})

    assert response.json() == {"touched": [job], "reopened": []}
    assert world.store.job(job).state == "pending"
    (entry,) = [e for e, _ in world.store.audit.entries() if e.verb == "retry"]
    assert (entry.by, entry.reason) == ("operator", "the disk is back")


def test_a_verb_without_a_body_is_enough(world: World) -> None:
    (job,) = failed(world)

    assert world.client().post(f"/api/v1/jobs/{job}/retry").status_code == 200


@pytest.mark.parametrize(
    ("verb", "body", "status"),
    [
        ("retry", {}, 409),
        ("rerun", {}, 409),
        ("release", {}, 409),
        ("run-now", {}, 409),
        ("hold", {}, 422),
        ("hold", {"reason": "x", "until": 1}, 422),
        ("move", {"queue": "nowhere"}, 422),
        ("move", {}, 422),
        ("priority", {"priority": 100}, 422),
        ("cancel", {"all": True}, 422),
        ("cancel", {"tree": "yes"}, 422),
        ("explode", {}, 404),
    ],
)
def test_what_cannot_be_is_refused_with_a_problem(
    world: World, verb: str, body: dict[str, object], status: int
) -> None:
    job = world.submit("one")

    answer = world.client().post(f"/api/v1/jobs/{job}/{verb}", json=body)

    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert world.store.job(job).state == "pending"


def test_a_deleted_job_has_no_folder(world: World) -> None:
    (job,) = failed(world)
    folder = world.folder(job)

    response = world.client().delete(f"/api/v1/jobs/{job}", params={"reason": "old"})

    assert response.json()["touched"] == [job]
    assert not folder.exists()


def test_many_are_looked_at_first_and_then_done(world: World) -> None:
    jobs = failed(world, 5)
    order = {"verb": "retry", "filter": {"state": ["failed"]}}

    planned = world.client().post(VERBS, json={**order, "dry_run": True}).json()
    stale = world.client().post(VERBS, json={**order, "expect": 4})
    body = world.client().post(VERBS, json={**order, "expect": planned["jobs"]}).json()

    assert (planned["jobs"], planned["more"], planned["sample"]) == (5, False, jobs)
    assert planned["stages"] == [{"type": "one", "stage": "work", "jobs": 5}]
    assert stale.status_code == 409
    assert (body["touched"], body["refused_jobs"]) == (5, 0)
    assert world.store.counts(Filter()) == {"pending": 5}


def test_a_dry_run_says_why_jobs_would_be_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spinney.features.bulk.commands.REFUSALS_LISTED", 1)
    (job,), pending = failed(world), [world.submit("one") for _ in range(2)]
    order = {"verb": "retry", "ids": [*pending, job]}

    planned = world.client().post(VERBS, json={**order, "dry_run": True}).json()
    counted = world.client().post(VERBS, json={**order, "dry_run": True, "exact": False}).json()

    assert (planned["jobs"], planned["matching"], planned["refused_jobs"]) == (1, 1, 2)
    assert [*planned["refused"]] == [str(pending[0])]
    assert "pending" in planned["refused"][str(pending[0])]
    assert (counted["jobs"], counted["matching"], counted["refused"], counted["refused_jobs"]) == (
        1,
        1,
        {},
        0,
    )


def test_progress_comes_in_lines(world: World) -> None:
    failed(world, 60)

    answer = world.client().post(
        VERBS, json={"verb": "retry", "filter": {"type": "one"}}, headers={"Accept": NDJSON}
    )

    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert all("step" in line for line in lines[:-1])
    assert len(lines) > 2
    assert lines[-1]["report"]["touched"] == 60


def test_a_refusal_is_the_last_line(world: World) -> None:
    answer = world.client().post(
        VERBS, json={"verb": "retry", "filter": {"type": "onne"}}, headers={"Accept": NDJSON}
    )

    assert json.loads(answer.text.splitlines()[-1])["problem"]["status"] == 422


@pytest.mark.parametrize(
    "body",
    [
        {"verb": "cancel"},
        {"verb": "cancel", "filter": {}},
        {"verb": "cancel", "ids": []},
        {"verb": "cancel", "filter": {"stat": ["failed"]}},
        {"verb": "cancel", "filter": {"root": "1"}},
        {"verb": "explode", "ids": [1]},
        {"verb": "move", "ids": [1]},
        {"verb": "cancel", "ids": [1], "canary": {"first": 1}},
    ],
)
def test_what_would_touch_everything_or_nothing_is_refused(world: World, body: dict[str, object]) -> None:
    job = world.submit("one")

    assert world.client().post(VERBS, json=body).status_code == 422
    assert world.store.job(job).state == "pending"


def test_a_limited_operator_reaches_his_own_alone(world: World) -> None:
    own, others = world.submit("one", collection="lab"), world.submit("one", collection="other")

    by_filter = world.client("limited").post(VERBS, json={"verb": "cancel", "filter": {"type": "one"}}).json()
    by_number = world.client("limited").post(VERBS, json={"verb": "cancel", "ids": [others]}).json()

    assert by_filter["touched"] == 1
    assert by_number["refused"] == {
        str(others): f"there is no job {others}; check its number in the list of jobs"
    }
    assert (world.store.job(own).state, world.store.job(others).state) == ("cancelled", "pending")


def test_submitters_reach_their_own_jobs(world: World) -> None:
    own, others = world.submit("one", submitter="submitter"), world.submit("one", submitter="other")

    assert world.client("submitter").post(f"/api/v1/jobs/{own}/cancel", json={}).status_code == 200
    assert world.client("submitter").post(f"/api/v1/jobs/{others}/cancel", json={}).status_code == 403


def test_a_canary_stops_where_too_many_fail(world: World) -> None:
    failed(world, 5)

    answer = world.client().post(
        VERBS,
        json={
            "verb": "retry",
            "filter": {"type": "one"},
            "canary": {"first": 1, "stop_at": 0.5, "patience_s": 0.1},
        },
    )

    assert answer.json()["touched"] == 1
    assert answer.json()["stopped"]
