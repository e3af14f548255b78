"""Jobs, looked at over the API."""

import pytest

from spinney.client.errors import error_from_response
from spinney.model.errors import StoreUnusable
from spinney.model.outcomes import Outcome
from spinney.service.queries import Queries

from ..conftest import World


def test_a_job_is_shown_with_its_numbers_and_the_verbs_that_are_allowed(world: World) -> None:
    job = world.submit("one")

    shown = world.client("operator").get(f"/api/v1/jobs/{job}").json()

    assert (shown["id"], shown["state"], shown["status"]) == (job, "pending", {"disbatch": -2, "motus": 0})
    assert "cancel" in shown["allowed"]
    assert world.client("operator").get(shown["links"]["self"]).json()["id"] == job


def test_what_failed_bears_its_fingerprint_and_what_was_killed_its_number(world: World) -> None:
    broken, killed = world.site.submit("one", n=2)
    leases = world.site.claim_by_job()
    world.site.fail(leases[broken])
    world.site.record(leases[killed], Outcome.TIMEOUT, retryable=False, message="its time was over")

    jobs = {job["id"]: job for job in world.client("viewer").get("/api/v1/jobs").json()["items"]}

    assert jobs[broken]["status"] == {"disbatch": 2, "motus": -1}
    assert jobs[killed]["status"] == {"disbatch": -3, "motus": -1}
    by_cause = (
        world.client("viewer").get("/api/v1/jobs", params={"failure": jobs[broken]["fingerprint"][:8]}).json()
    )
    assert [job["id"] for job in by_cause["items"]] == [broken]


def test_a_subjob_of_a_stage_that_runs_again_says_which_job_runs_again(world: World) -> None:
    top, (branch,) = world.site.family("batch", n=1, child="batch")
    lease = world.site.run(branch)
    (leaf,) = world.site.spawn(lease)
    world.site.pass_(lease)
    world.site.drain(failing=[leaf])
    assert world.client("viewer").get(f"/api/v1/jobs/{leaf}").json()["superseded_by"] is None

    world.site.rerun(top)

    jobs = {job["id"]: job for job in world.client("viewer").get("/api/v1/jobs").json()["items"]}
    assert {job: jobs[job]["superseded_by"] for job in (top, branch, leaf)} == {
        top: None,
        branch: top,
        leaf: top,
    }


def test_pages_have_every_job_once(world: World) -> None:
    jobs = world.site.submit("one", n=7)
    seen, after = [], 0

    while after is not None:
        page = world.client("viewer").get("/api/v1/jobs", params={"limit": 3, "after": after}).json()
        seen += [job["id"] for job in page["items"]]
        after = page["next"]

    assert seen == sorted(jobs, reverse=True)


def test_jobs_are_listed_and_counted_by_their_numbers(world: World) -> None:
    jobs = world.site.submit("one", n=4)
    client, ids = world.client("viewer"), {"ids": [jobs[0], jobs[2], 10**6]}

    assert [job["id"] for job in client.get("/api/v1/jobs", params=ids).json()["items"]] == [jobs[2], jobs[0]]
    assert client.get("/api/v1/jobs/count", params=ids).json() == {"pending": 2}


def test_an_unknown_filter_is_refused_by_name(world: World) -> None:
    answer = world.client("viewer").get("/api/v1/jobs", params={"stat": "failed"})

    assert answer.status_code == 422
    assert "'stat'" in answer.json()["detail"]
    assert "state" in answer.json()["detail"]


def test_a_name_that_does_not_exist_is_refused_where_that_is_asked_for(world: World) -> None:
    viewer = world.client("viewer")
    mistyped = {"type": "dubble"}

    assert viewer.get("/api/v1/jobs", params=mistyped).json()["items"] == []
    for path in ("/api/v1/jobs", "/api/v1/jobs/count"):
        answer = viewer.get(path, params={**mistyped, "existing": True})
        assert (answer.status_code, "double" in answer.json()["detail"]) == (422, True)


def test_pending_jobs_that_nobody_can_run_are_listed_with_the_cause(world: World) -> None:
    job = world.submit("one")

    body = world.client("viewer").get("/api/v1/jobs/obstacles", params={"jobs": [job, job + 1]}).json()

    assert [(each["job_id"], each["cause"]) for each in body["items"]] == [(job, "no_node")]


def test_a_store_that_is_being_restored_is_no_fault_of_the_server(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sentence = (
        "the store does not match this version of Spinney: if it is being restored, wait until that is done"
    )

    def incomplete(*_: object, **__: object) -> None:
        raise StoreUnusable(sentence)

    monkeypatch.setattr(Queries, "jobs", incomplete)

    answer = world.client("viewer").get("/api/v1/jobs")

    problem = answer.json()
    assert (answer.status_code, problem["type"]) == (503, "urn:spinney:problem:store-unusable")
    assert problem["detail"] == sentence
    assert type(error_from_response(503, answer.content)) is StoreUnusable
    assert f"at /api/v1/jobs: {sentence}" in caplog.text


def test_secrets_are_masked(world: World) -> None:
    job = world.submit("double", {"n": 1, "pin": "open sesame"})

    assert "open sesame" not in world.client("admin").get(f"/api/v1/jobs/{job}").text
    assert "open sesame" not in world.client("admin").get("/api/v1/jobs").text


@pytest.mark.parametrize(
    "what",
    ["", "/tree", "/children", "/children/count", "/attempts", "/data", "/results", "/explain", "/holds"],
)
def test_what_is_out_of_sight_is_not_there(world: World, what: str) -> None:
    hidden, own = world.submit("one", collection="other"), world.submit("one", collection="lab")

    answer = world.client("limited").get(f"/api/v1/jobs/{hidden}{what}")
    none = world.client("limited").get(f"/api/v1/jobs/{own + 1000}{what}")

    assert answer.status_code == none.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert world.client("limited").get(f"/api/v1/jobs/{own}{what}").status_code == 200
