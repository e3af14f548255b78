"""Queues, nodes, holds, locks, schedules, users and the rest: set over the API, and in the store."""

from typing import Any

import pytest

from spinney.model.rights.actor import Actor

from ..conftest import World


def test_a_queue_is_set_and_put_back(world: World) -> None:
    client = world.client()

    set_ = client.patch("/api/v1/queues/slow", json={"limit": 3, "pin": ["node-1"], "reason": "busy"}).json()
    part = client.patch("/api/v1/queues/slow", json={"limit": "50%"}).json()
    none = client.patch("/api/v1/queues/slow", json={"limit": None}).json()
    back = client.patch("/api/v1/queues/slow", json={"declared": ["limit", "pinned"]}).json()

    assert (set_["in_force"]["limit"], set_["in_force"]["pinned"]) == (3, ["node-1"])
    assert (part["in_force"]["limit"], type(part["limit"])) == ("50%", int)
    assert client.patch("/api/v1/queues/slow", json={"limit": "0%"}).status_code == 422
    assert none["in_force"]["limit"] is None
    assert (back["in_force"]["limit"], back["in_force"]["pinned"]) == (1, [])
    assert client.get("/api/v1/queues/slwo").status_code == 404


def test_a_queue_is_made_and_deleted_when_it_is_empty(world: World) -> None:
    client = world.client("admin")

    made = client.post("/api/v1/queues", json={"name": "nightly", "limit": 2, "order": "fifo"})
    again = client.post("/api/v1/queues", json={"name": "nightly"})
    job = world.submit("one", queue="nightly")
    refused = client.delete("/api/v1/queues/nightly")
    client.post(f"/api/v1/jobs/{job}/move", json={"queue": "default"})
    deleted = client.delete("/api/v1/queues/nightly")

    assert (made.status_code, made.json()["in_force"]["limit"]) == (201, 2)
    assert (again.status_code, refused.status_code, deleted.status_code) == (409, 409, 204)
    assert client.get("/api/v1/queues/nightly").status_code == 404


def test_a_node_is_drained_with_a_reason(world: World) -> None:
    world.site.node("alpha")

    world.client().post("/api/v1/nodes/alpha/drain", json={"reason": "a new disk"})

    (node,) = world.client().get("/api/v1/nodes").json()["items"]
    assert (node["state"], node["drained_reason"], node["drained_by"]) == (
        "drained",
        "a new disk",
        "operator",
    )
    assert world.client().post("/api/v1/nodes/beta/drain", json={}).status_code in (404, 409)


def test_a_hold_is_laid_swept_and_lifted(world: World) -> None:
    job = world.submit("one")

    hold = (
        world.client()
        .post("/api/v1/holds", json={"scope": "type", "name": "one", "reason": "looking"})
        .json()
    )
    under = world.store.job(job).state
    lifted = world.client().delete(f"/api/v1/holds/{hold['id']}", params={"reason": "done"})

    assert under == "held"
    assert lifted.json()["id"] == hold["id"]
    assert world.store.job(job).state == "pending"
    assert world.client().delete(f"/api/v1/holds/{hold['id']}").status_code == 404


def test_what_a_hold_and_its_release_would_come_to(world: World) -> None:
    world.submit("one")
    form = {"scope": "type", "name": "one", "reason": "looking"}

    laid = world.client().post("/api/v1/holds", json={**form, "dry_run": True})
    none = world.client().get("/api/v1/holds").json()["items"]
    hold = world.client().post("/api/v1/holds", json=form).json()
    lifted = world.client().delete(
        f"/api/v1/holds/{hold['id']}", params={"dry_run": True, "together": [hold["id"]]}
    )

    assert (laid.status_code, laid.json(), none) == (200, {"jobs": 1, "later": 0}, [])
    assert (lifted.status_code, lifted.json()) == (200, {"jobs": 1, "later": 0})
    assert len(world.client().get("/api/v1/holds").json()["items"]) == 1


def test_a_release_that_was_cut_off_before_its_sweep_is_asked_for_again(world: World) -> None:
    job = world.submit("one")
    hold = (
        world.client()
        .post("/api/v1/holds", json={"scope": "type", "name": "one", "reason": "looking"})
        .json()
    )
    world.store.holds.lift(hold["id"], Actor(by="operator", call="c"), now_us=world.site.now)
    assert world.store.job(job).state == "held"

    (listed,) = world.client().get("/api/v1/holds", params={"released": True}).json()["items"]
    again = world.client().delete(f"/api/v1/holds/{hold['id']}")

    assert (listed["id"], again.status_code) == (hold["id"], 200)
    assert world.store.job(job).state == "pending"
    assert world.client().get("/api/v1/holds", params={"released": True}).json()["items"] == []


def test_locks_are_seen_freed_and_given_a_capacity(world: World) -> None:
    world.submit("locked", {"serno": "SG-1"})
    world.site.claim()

    (seen,) = world.client().get("/api/v1/locks").json()["items"]
    without = world.client().delete("/api/v1/locks/receiver:SG-1")
    freed = world.client().delete("/api/v1/locks/receiver:SG-1", params={"reason": "it is gone"})
    capacity = world.client().put("/api/v1/capacities/receiver:*", json={"capacity": 5})

    assert seen["name"] == "receiver:SG-1"
    assert without.status_code == 422
    assert freed.json() == {"lost": 1}
    assert capacity.json() == {"name": "receiver:*", "capacity": 5}


def test_a_schedule_is_made_run_paused_and_dropped(world: World) -> None:
    client = world.client()
    form = {
        "type": "double",
        "cron": "0 6 * * mon",
        "zone": "Europe/Berlin",
        "params": {"n": 1, "pin": "open sesame"},
    }

    response = client.put("/api/v1/schedules/weekly", json=form)
    again = client.put("/api/v1/schedules/weekly", json=form)
    run = client.post("/api/v1/schedules/weekly/run")
    paused = client.patch("/api/v1/schedules/weekly", json={"paused": True})

    assert (response.status_code, again.status_code, run.status_code) == (200, 409, 201)
    assert "sesame" not in response.text + client.get("/api/v1/schedules").text
    assert paused.json()["paused"] is True
    assert len(client.get("/api/v1/schedules/weekly/coming", params={"count": 3}).json()) == 3
    assert client.delete("/api/v1/schedules/weekly").status_code == 204
    for what in ("", "/runs", "/coming"):
        assert client.get(f"/api/v1/schedules/weekly{what}").status_code == 404
    assert client.put("/api/v1/schedules/x", json={**form, "cron": "often"}).status_code == 422


def test_the_audit_is_read_and_proven(world: World) -> None:
    world.client().post("/api/v1/holds", json={"scope": "type", "name": "one", "reason": "looking"})

    calls = world.client("admin").get("/api/v1/audit", params={"verb": "hold"}).json()["items"]
    entries = world.client("admin").get("/api/v1/audit/entries").json()["items"]
    head = world.client("admin").get("/api/v1/audit/head").json()["head"]
    proof = world.client("admin").get("/api/v1/audit/verify", params={"head": head}).json()
    forged = world.client("admin").get("/api/v1/audit/verify", params={"head": f"1:{'0' * 64}"}).json()

    assert [(c["by"], c["reason"]) for c in calls] == [("operator", "looking")]
    assert head == f"{entries[0]['seq']}:{entries[0]['link']}"
    assert (proof["proven"], proof["broken"]) == (len(entries), None)
    assert forged["broken"]


def test_a_refusal_is_in_the_audit(world: World) -> None:
    world.client("viewer").post("/api/v1/jobs", json={"type": "one"})

    by = [c["by"] for c in world.client("admin").get("/api/v1/audit").json()["items"]]

    assert by == ["viewer"]


def test_a_secret_is_told_once_and_kept_by_nobody(world: World) -> None:
    response = world.client("admin").post(
        "/api/v1/tokens", json={"name": "night", "rights": {"role": "submitter"}}
    )
    link = world.client("admin").post("/api/v1/users", json={"name": "ann", "rights": {"role": "viewer"}})
    sent = world.client("admin").post("/api/v1/users/ann/link")

    assert link.status_code == 201
    for answer in (response, sent):
        assert answer.headers["cache-control"] == "no-store"
        secret = answer.json()["secret"]
        assert secret not in world.client("admin").get("/api/v1/tokens").text
        assert secret not in world.client("admin").get("/api/v1/audit/entries").text


def test_nobody_gives_rights_beyond_his_own(world: World) -> None:
    form: dict[str, Any] = {"name": "bob", "rights": {"role": "admin"}}

    assert world.client("operator").post("/api/v1/users", json=form).status_code == 403
    own = world.client("operator").post("/api/v1/tokens", json={**form, "owner": "operator"})
    assert own.status_code == 404, "who asks here is no user of the store"


def test_who_asks_is_told_what_he_may(world: World) -> None:
    body = world.client("limited").get("/api/v1/me").json()

    assert (body["name"], body["rights"]["role"]) == ("limited", "operator")
    assert body["rights"]["within"] == {"collections": ["lab"], "queues": None}


def test_types_have_their_schemas_and_figures_their_window(world: World) -> None:
    body = world.client("viewer").get("/api/v1/types/double").json()

    assert body["schema"]["required"] == ["n"]
    assert world.client("viewer").get("/api/v1/types/dubble").status_code == 404
    assert world.client("viewer").get("/api/v1/stats", params={"window_s": 30}).json()["window_s"] >= 30


@pytest.mark.parametrize(
    "path", ["/jobs/0", "/jobs/1e3", "/jobs/999999999999999999999", "/jobs/x", "/jobs/-1"]
)
def test_what_is_no_number_of_a_job_is_refused(world: World, path: str) -> None:
    assert world.client("viewer").get(f"/api/v1{path}").status_code == 422


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/jobs/x", "'job' in the address must be a whole number; "),
        ("/jobs/0", "'job' in the address must be greater than or equal to 1; "),
        ("/jobs?limit=x", "'limit' in the address must be a whole number; "),
        ("/jobs?state=foo", "'state.0' in the address must be 'scheduled', 'pending'"),
    ],
)
def test_what_is_wrong_in_an_address_is_said_in_plain_words(world: World, path: str, sentence: str) -> None:
    assert world.client("viewer").get(f"/api/v1{path}").json()["detail"].startswith(sentence)


def test_an_address_that_is_not_there_and_a_method_that_is_not_for_it(world: World) -> None:
    nowhere = world.client("viewer").get("/api/v1/job")
    wrong = world.client("viewer").put("/api/v1/jobs")

    assert (nowhere.status_code, wrong.status_code) == (404, 405)
    for answer in (nowhere, wrong):
        assert answer.headers["content-type"] == "application/problem+json"


def test_a_field_that_a_body_may_not_have_is_told_with_those_that_it_may_have(world: World) -> None:
    admin = world.client("admin")
    near = admin.put("/api/v1/schedules/s", json={"type": "one", "every": 60}).json()
    unknown = admin.put("/api/v1/nodes/n/slots", json={"slots": 1, "node": "n"}).json()
    submission = admin.post("/api/v1/jobs", json={"type": "one", "param": {}}).json()
    nested = admin.post("/api/v1/users", json={"name": "bob", "rights": {"rolle": "admin"}}).json()
    lanes = [{"type": "one", "stage": "work"}, {"type": "one", "stage": "work", "node": "n"}]
    in_list = admin.post("/api/v1/external", json={"name": "x", "lanes": lanes}).json()

    assert near["errors"] == [
        {"where": "body.every", "problem": "there is no such field (did you mean 'every_s'?)"}
    ]
    assert "body.node: there is no such field (there are: reason, slots)" in unknown["detail"]
    assert "body.param: there is no such field (did you mean 'params'?)" in submission["detail"]
    assert "body.rights.rolle: there is no such field (did you mean 'role'?)" in nested["detail"]
    assert "body.lanes.1.node: there is no such field (there are: stage, type)" in in_list["detail"]


def test_a_time_that_is_none_is_told_in_our_words_alone(world: World) -> None:
    answer = world.client("submitter").post("/api/v1/jobs", json={"type": "one", "at": "tomorrow"})

    assert answer.json()["detail"].startswith("body.at: a time is microseconds since 1970")


def test_rights_are_sent_as_they_are_answered(world: World) -> None:
    admin = world.client("admin")
    rights = {
        "role": "operator",
        "within": {"collections": ["lab"], "queues": None},
        "shares": ["lab:*"],
        "priorities": [40, 60],
        "locks": None,
        "external": [],
    }
    response = admin.post("/api/v1/users", json={"name": "ann", "rights": rights})
    assert (response.status_code, response.json()["rights"]) == (201, rights)

    shown = admin.get("/api/v1/users/ann").json()
    changed = admin.patch(
        "/api/v1/users/ann", json={"rights": shown["rights"], "disabled": shown["disabled"]}
    )
    assert (changed.status_code, changed.json()) == (200, shown)


def test_settings_of_a_queue_are_sent_as_they_are_answered(world: World) -> None:
    admin = world.client("admin")
    admin.patch("/api/v1/queues/default", json={"limit": "50%", "barred": ["node-9"]})
    shown = admin.get("/api/v1/queues/default").json()
    assert shown["settings"] == {"limit": "50%", "barred": ["node-9"]}
    changed = admin.patch("/api/v1/queues/default", json=shown["settings"])
    assert (changed.status_code, changed.json()["settings"]) == (200, shown["settings"])
