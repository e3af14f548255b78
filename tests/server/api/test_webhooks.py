"""Webhooks over the API: for operators, within their limits, with a secret that is told once."""

import json
from typing import Any

import pytest

from spinney.model.settings.webhooks import DeliveryOutcome, DeliveryResult

from ..conftest import World

HOOK = {"name": "archive", "url": "https://example.org/hook?token=hush"}
WEBHOOKS = "/api/v1/webhooks"


def add(world: World, who: str = "operator", **more: Any) -> dict[str, Any]:
    answer = world.client(who).post(WEBHOOKS, json=HOOK | more)
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


def settle(world: World, **options: Any) -> int:
    job = world.submit("one", **options)
    world.site.drain()
    return job


def test_a_webhook_is_made_and_its_secret_is_told_once(world: World) -> None:
    made = add(world, events=["failed", "batch"], type="one", reason="they asked")

    assert len(made["secret"]) >= 32
    webhook = made["webhook"]
    assert (webhook["events"], webhook["type"], webhook["roots_only"]) == (["failed", "batch"], "one", True)
    assert webhook["by"] == "operator"
    client = world.client("operator")
    assert client.get(f"{WEBHOOKS}/archive").json() == webhook
    assert client.get(WEBHOOKS).json() == {"items": [webhook], "next": None}
    for what in ("", "/archive", "/archive/deliveries"):
        assert made["secret"] not in client.get(f"{WEBHOOKS}{what}").text
    (entry,) = [entry for entry, _ in world.store.audit.entries() if entry.verb == "webhook add"]
    assert (entry.by, entry.reason) == ("operator", "they asked")
    assert made["secret"] not in entry.what
    assert "hush" not in entry.what


def test_another_secret_is_told_once(world: World) -> None:
    first = add(world)["secret"]
    answer = world.client().post(f"{WEBHOOKS}/archive/rotate")
    assert (answer.status_code, answer.json()["webhook"]["name"]) == (200, "archive")
    assert answer.json()["secret"] != first


def test_it_is_set_otherwise_by_what_is_named(world: World) -> None:
    add(world, type="one", collection="lab")

    changed = world.client().patch(f"{WEBHOOKS}/archive", json={"type": None, "events": ["failed"]}).json()

    assert (changed["type"], changed["collection"], changed["events"]) == (None, "lab", ["failed"])
    assert changed["url"] == HOOK["url"]


def test_it_is_paused_and_goes_on(world: World) -> None:
    add(world)
    client = world.client()
    paused = client.patch(f"{WEBHOOKS}/archive", json={"paused": True, "reason": "they move house"}).json()
    assert paused["paused"] == "they move house"
    read = client.get(f"{WEBHOOKS}/archive").json()
    back = {
        name: read[name] for name in ("url", "events", "type", "collection", "queue", "roots_only", "paused")
    }
    assert client.patch(f"{WEBHOOKS}/archive", json=back).json()["paused"] == "they move house"
    assert client.patch(f"{WEBHOOKS}/archive", json={"paused": False}).json()["paused"] is None


def test_deliveries_are_pages_with_their_last_answer(world: World) -> None:
    add(world)
    jobs = [settle(world) for _ in range(3)]
    now = world.site.now
    due, *_ = world.store.webhooks.lease({"archive": 3}, now_us=now, until_us=now + 10**9)
    world.store.webhooks.record_result(
        due, DeliveryResult(outcome=DeliveryOutcome.FAILED, status=503, answer="closed"), now_us=now
    )
    client = world.client()

    page = client.get(f"{WEBHOOKS}/archive/deliveries", params={"limit": 2}).json()
    rest = client.get(f"{WEBHOOKS}/archive/deliveries", params={"after": page["next"]}).json()

    assert [d["job_id"] for d in (*page["items"], *rest["items"])] == jobs[::-1]
    assert rest["next"] is None
    (failed,) = client.get(f"{WEBHOOKS}/archive/deliveries", params={"outcome": "failed"}).json()["items"]
    assert (failed["status"], failed["answer"], failed["tries"], failed["event"]) == (
        503,
        "closed",
        1,
        "completed",
    )
    one = f"{WEBHOOKS}/deliveries/{failed['delivery']}"
    assert client.get(one).json() == failed
    again = client.post(f"{one}/retry", json={"reason": "they opened"})
    assert (again.status_code, again.json()["outcome"]) == (202, "due")


def test_a_test_is_a_delivery_like_others(world: World) -> None:
    add(world)
    answer = world.client().post(f"{WEBHOOKS}/archive/test")
    assert (answer.status_code, answer.json()["event"], answer.json()["job_id"]) == (202, "ping", None)


def test_removed_it_is_not_there(world: World) -> None:
    add(world)
    assert world.client().delete(f"{WEBHOOKS}/archive").status_code == 204
    answer = world.client().get(f"{WEBHOOKS}/archive")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


@pytest.mark.parametrize(
    "more",
    [
        {"url": "ftp://example.org/"},
        {"url": "https://u:p@example.org/"},
        {"url": "nowhere"},
        {"url": ""},
        {"url": 7},
        {"events": []},
        {"events": ["held"]},
        {"events": "failed"},
        {"type": "nosuch"},
        {"queue": "nosuch"},
        {"name": "../x"},
        {"name": ""},
        {"secret": "mine"},
        {"roots_only": "yes"},
    ],
)
def test_what_cannot_be_meant_is_refused(world: World, more: dict[str, Any]) -> None:
    answer = world.client().post(WEBHOOKS, json=HOOK | more)
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert "u:p" not in answer.text
    assert world.client().get(WEBHOOKS).json()["items"] == []


def test_a_name_that_is_taken_is_refused(world: World) -> None:
    add(world)
    assert world.client().post(WEBHOOKS, json=HOOK).status_code == 409


ROUTES = [
    ("GET", ""),
    ("POST", ""),
    ("GET", "/archive"),
    ("PATCH", "/archive"),
    ("DELETE", "/archive"),
    ("POST", "/archive/rotate"),
    ("POST", "/archive/test"),
    ("GET", "/archive/deliveries"),
    ("GET", "/deliveries/{id}"),
    ("POST", "/deliveries/{id}/retry"),
]
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", ""): HOOK,
    ("PATCH", "/archive"): {"events": ["failed"]},
}


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_only_operators_may(world: World, method: str, path: str) -> None:
    add(world)
    settle(world)
    (delivery,) = world.store.webhooks.deliveries("archive")
    where = f"{WEBHOOKS}{path.format(id=delivery.delivery)}"
    for who, status in ((None, 401), ("viewer", 403), ("submitter", 403)):
        answer = world.client(who).request(method, where, json=BODIES.get((method, path)))
        assert answer.status_code == status, (who, answer.text)
    assert world.store.webhooks.get("archive").events == ("*",)


@pytest.mark.parametrize(("method", "path"), ROUTES[2:])
def test_one_that_tells_of_more_than_its_asker_may_see_is_not_there(
    world: World, method: str, path: str
) -> None:
    add(world)
    settle(world)
    (delivery,) = world.store.webhooks.deliveries("archive")
    where = f"{WEBHOOKS}{path.format(id=delivery.delivery)}"

    answer = world.client("limited").request(method, where, json=BODIES.get((method, path)))

    assert answer.status_code == 404, answer.text
    assert world.client("limited").get(WEBHOOKS).json()["items"] == []
    assert world.store.webhooks.get("archive").events == ("*",)


def test_what_somebody_limited_makes_tells_of_what_he_may_see(world: World) -> None:
    made = add(world, who="limited")
    assert made["webhook"]["within"] == {"collections": ["lab"], "queues": None}
    settle(world)
    settle(world, collection="other")
    own = settle(world, collection="lab")

    body = world.client("limited").get(f"{WEBHOOKS}/archive/deliveries").json()["items"]

    assert [d["job_id"] for d in body] == [own]
    answer = world.client("limited").patch(f"{WEBHOOKS}/archive", json={"collection": "other"})
    assert (answer.status_code, "other" in answer.text) == (403, True)
    assert (
        world.client("limited").post(WEBHOOKS, json=HOOK | {"name": "b", "collection": "other"}).status_code
        == 403
    )


def test_every_answer_is_documented(world: World) -> None:
    document = world.client().get("/api/v1/openapi.json").json()
    routes = {path: methods for path, methods in document["paths"].items() if path.startswith(WEBHOOKS)}
    assert sum(len(methods) for methods in routes.values()) == len(ROUTES)
    for path, methods in routes.items():
        for method, operation in methods.items():
            assert operation["summary"]
            assert operation["description"]
            assert "{" not in path or "404" in operation["responses"], (method, path)
    assert "secret" not in json.dumps(document["components"]["schemas"]["Webhook"]["properties"])
