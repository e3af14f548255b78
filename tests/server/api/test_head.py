"""HEAD answers what GET would, without the body; other methods are told which there are."""

import pytest

from ..conftest import World


def test_head_is_get_without_the_body(world: World) -> None:
    job = world.submit("one")

    head = world.client("viewer").head(f"/api/v1/jobs/{job}")

    assert head.status_code == 200
    assert head.content == b""
    assert int(head.headers["content-length"]) > 100
    assert world.client("viewer").head("/api/v1/jobs/999999").status_code == 404
    assert world.client(None).head(f"/api/v1/jobs/{job}").status_code == 401
    assert world.client("operator").head(f"/api/v1/jobs/{job}/retry").status_code == 405


@pytest.mark.parametrize("path", ["/", "/jobs", "/health", "/ready", "/metrics", "/api/v1/openapi.json"])
def test_head_is_answered_wherever_get_is(world: World, path: str) -> None:
    head = world.client("viewer").head(path)

    assert head.status_code == 200
    assert head.content == b""
    assert head.headers["content-type"] == world.client("viewer").get(path).headers["content-type"]


@pytest.mark.parametrize("path", ["/events", "/api/v1/events"])
def test_head_of_an_event_stream_opens_none(world: World, path: str) -> None:
    head = world.client("viewer").head(f"{path}?topic=queues")

    assert head.status_code == 200
    assert head.headers["content-type"].startswith("text/event-stream")
    assert world.app.state.feed.streams == 0


def test_head_is_measured_as_such(world: World) -> None:
    world.client("viewer").head("/api/v1/me")

    figures = world.client("viewer").get("/metrics").text
    assert 'spinney_http_requests_total{method="HEAD",route="/api/v1/me",status="200"} 1.0' in figures


def test_given_a_method_that_there_is_not_then_all_that_there_are_are_told(world: World) -> None:
    assert world.client("viewer").put("/api/v1/jobs").headers["allow"] == "GET, HEAD, POST"
    assert world.client("viewer").post("/health").headers["allow"] == "GET, HEAD"


def test_given_a_slash_too_many_then_nothing_is_there(world: World) -> None:
    answer = world.client("viewer").get("/api/v1/jobs/")

    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/api/v1/jobs/batch", "POST"),
        ("PUT", "/api/v1/jobs/obstacles", "GET, HEAD"),
        ("PUT", "/api/v1/queues/default", "DELETE, GET, HEAD, PATCH"),
    ],
)
def test_allow_names_the_methods_of_the_route_itself(
    world: World, method: str, path: str, allowed: str
) -> None:
    answer = world.client("admin").request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
