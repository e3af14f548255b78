"""Figures, log lines and spans of requests; the receiver of traces is a real HTTP server."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from contract.words import RealClock, Site
from new_store import new_store
from otlp_collector import attributes, collecting
from spinney.commands.control import Control
from spinney.features.external.service import External
from spinney.model.access import ALL_RIGHTS, AccessScope, Rights, Role
from spinney.model.jobs import NodeInfo
from spinney.model.types import Isolation, StageSpec, TypeSpec
from spinney.schemas import AuthMethod
from spinney.server.application import Parts, make
from spinney.store.sql import open_store
from spinney.tracing import current
from spinney.web.request_context import Principal, now_us
from spinney.web.settings import ServerSettings
from spinney.web.telemetry.counters import ServerCounters

TRACE = "0af7651916cd43dd8448eb211c80319c"


class Known:
    """Identity made for this test: whoever asks is this one."""

    def __init__(self, principal: Principal | None) -> None:
        self.principal = principal

    async def authenticate(self, request: Any) -> Principal | None:
        return self.principal

    async def reauthenticate(self, request: Any) -> Principal | None:
        return self.principal


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = new_store(tmp_path / "spinney.db")
    store = open_store(url)
    store.register([TypeSpec(name="work", stages=(StageSpec(name="work"),))], [])
    Control(store=store, clock=now_us, wake_nodes=lambda: None, by="somebody").submit("work", [{}, {}])
    store.close()
    return url


def application(url: str, principal: Principal | None, **settings: Any) -> FastAPI:
    return make(
        Parts(
            settings=ServerSettings(**settings),
            open_store=lambda: open_store(url),
            folders=Path("/nonexistent"),
            run_dir=None,
            identity=lambda stores, settings: Known(principal),
        )
    )


@asynccontextmanager
async def served(
    url: str, rights: Rights | None = ALL_RIGHTS, **settings: Any
) -> AsyncIterator[httpx.AsyncClient]:
    principal = None if rights is None else Principal(name="wanda", rights=rights, how=AuthMethod.TOKEN)
    app = application(url, principal, **settings)
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            yield client


def figures(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_metrics_tell_how_jobs_stand_and_what_was_asked(url: str) -> None:
    async with served(url) as client:
        await client.get("/health")
        await client.get("/nowhere")
        values = figures((await client.get("/metrics")).text)
    assert values["spinney_jobs", frozenset({("state", "pending")})] == 2
    assert values["spinney_queue_pending", frozenset({("queue", "default")})] == 2
    health = frozenset({("method", "GET"), ("route", "/health"), ("status", "200")})
    assert values["spinney_http_requests_total", health] == 1
    nowhere = frozenset({("method", "(none)"), ("route", "(none)"), ("status", "404")})
    assert values["spinney_http_requests_total", nowhere] == 1


async def test_a_node_is_presumed_dead_by_its_own_lease_and_external_workers_are_left_out(url: str) -> None:
    def seen(ago_s: float) -> int:
        return now_us() - round(ago_s * 1e6)

    with closing(open_store(url)) as store:
        for name, lease_s, ago_s in (("dead", 15.0, 61), ("patient", 60.0, 61), ("new", 15.0, 1)):
            node = NodeInfo(
                id=0,
                name=name,
                boot_id="",
                host="",
                pid=0,
                slots=1,
                state="active",
                beat=0,
                started_us=1,
                seen_us=1,
                version="",
                types=(),
                lease_s=lease_s,
            )
            store.join(node, now_us=seen(ago_s))
        store.register(
            [TypeSpec(name="far", stages=(StageSpec(name="s", isolation=Isolation.EXTERNAL),))], []
        )
        control = Control(store=store, clock=lambda: seen(3_000), wake_nodes=lambda: None, by="ann")
        control.part(External).join("worker", [("far", "s")])
    async with served(url) as client:
        samples = figures((await client.get("/metrics")).text)
    dead = {
        dict(labels)["node"]: value
        for (name, labels), value in samples.items()
        if name == "spinney_node_presumed_dead"
    }
    assert dead == {"dead": 1, "patient": 0, "new": 0}
    times = {
        dict(labels)["node"] for name, labels in samples if name == "spinney_node_seen_timestamp_seconds"
    }
    assert times == set(dead)


async def test_metrics_are_for_whoever_may_see_all(url: str) -> None:
    limited = Rights(role=Role.ADMIN, within=AccessScope(queues=("default",)))
    for rights, status in ((None, 401), (limited, 403), (Rights(role=Role.VIEWER), 200)):
        async with served(url, rights) as client:
            assert (await client.get("/metrics")).status_code == status
    async with served(url, None, metrics="open") as client:
        assert (await client.get("/metrics")).status_code == 200


async def test_errors_of_the_database_are_counted(tmp_path: Path) -> None:
    app = application(f"sqlite:///{tmp_path / 'nowhere' / 'spinney.db'}", None)
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            assert (await client.get("/ready")).status_code == 503
    errors = {
        sample.labels["kind"]: sample.value
        for family in app.state.registry.collect()
        for sample in family.samples
        if sample.name == "spinney_database_errors_total"
    }
    assert sum(errors.values()) >= 1


def test_each_counter_is_there_before_its_first_event() -> None:
    registry = CollectorRegistry()
    ServerCounters(registry)
    counters = {
        (sample.name, *sample.labels.values()): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name.endswith("_total")
    }
    assert set(counters.values()) == {0}
    assert set(counters) >= {
        ("spinney_webhook_deliveries_total", "failed"),
        ("spinney_sign_ins_total", "password", "refused"),
        ("spinney_sign_ins_total", "provider", "throttled"),
        ("spinney_database_errors_total", "StoreLocked"),
        ("spinney_database_errors_total", "CommitUncertain"),
    }


async def test_metrics_have_the_times_of_stages(url: str) -> None:
    with closing(open_store(url)) as store:
        site = Site(store, RealClock())
        site.drain()
    async with served(url) as client:
        samples = figures((await client.get("/metrics")).text)
    for name in ("wait", "run"):
        labels = frozenset({("type", "work"), ("stage", "work"), ("quantile", "0.5")})
        assert samples[f"spinney_stage_{name}_seconds", labels] >= 0


async def test_a_request_is_a_line_in_the_log_without_its_query(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "spinney.server.requests")
    async with served(url) as client:
        await client.get("/health?secret=hush")
        await client.get("/a%0Ab")
    messages = [r.getMessage() for r in caplog.records if r.name == "spinney.server.requests"]
    assert any(line.startswith("GET /health 200 ") for line in messages)
    assert "hush" not in "".join(messages)
    assert all("\n" not in line for line in messages)


async def test_traces_go_on_where_the_client_began_them(url: str) -> None:
    with collecting() as collector:
        async with served(url, otlp=collector.address) as client:
            await client.get("/health", headers={"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"})
    span = collector.named("GET /health")
    assert span.trace_id.hex() == TRACE
    assert attributes(span)["http.response.status_code"] == 200


async def test_a_job_is_in_the_trace_of_the_request_that_submitted_it(url: str) -> None:
    """Its traceparent is that of the submission's span, which is below the request's."""
    with collecting() as collector:
        async with served(url, otlp=collector.address) as client:
            answer = await client.post(
                "/api/v1/jobs",
                json={"type": "work"},
                headers={"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"},
            )
    request, submission = collector.named("POST /api/v1/jobs"), collector.named("submit work")
    assert submission.parent_span_id == request.span_id
    assert request.parent_span_id.hex() == "b7ad6b7169203331"
    with closing(open_store(url)) as store:
        assert store.job(answer.json()["id"]).trace == f"00-{TRACE}-{submission.span_id.hex()}-01"


async def test_the_span_of_jobs_of_several_types_names_no_type(url: str) -> None:
    headers = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01", "content-type": "application/x-ndjson"}
    with collecting() as collector:
        async with served(url, otlp=collector.address) as client:
            await client.post("/api/v1/jobs/batch", content='{"type": "work"}\n', headers=headers)
            await client.post("/api/v1/jobs/batch?type=work", content="{}\n", headers=headers)
    assert "spinney.job.type" not in attributes(collector.named("submit jobs"))
    assert attributes(collector.named("submit work"))["spinney.job.type"] == "work"


async def test_without_the_sdk_a_job_is_not_in_the_trace_of_whoever_started_the_server(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    current.enter(f"00-{TRACE}-b7ad6b7169203331-01")
    async with served(url, otlp="http://127.0.0.1:9/v1/traces") as client:
        answer = await client.post("/api/v1/jobs", json={"type": "work"})
    with closing(open_store(url)) as store:
        assert store.job(answer.json()["id"]).trace is None


async def test_white_space_behind_a_traceparent_is_none_of_it(url: str) -> None:
    trace = f"00-{TRACE}-b7ad6b7169203331-01"
    async with served(url) as client:
        answer = await client.post(
            "/api/v1/jobs", json={"type": "work"}, headers={"traceparent": f"{trace} "}
        )
    with closing(open_store(url)) as store:
        assert store.job(answer.json()["id"]).trace == trace


async def test_without_a_collector_a_job_keeps_the_traceparent_of_its_request(url: str) -> None:
    headers = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-00"}
    lines = {"content-type": "application/x-ndjson"}
    async with served(url) as client:
        ids = [
            (await client.post("/api/v1/jobs", json={"type": "work"}, headers=headers)).json()["id"],
            *(
                await client.post("/api/v1/jobs/batch", content='{"type": "work"}\n', headers=headers | lines)
            ).json()["ids"],
            (
                await client.post("/api/v1/jobs", json={"type": "work"}, headers={"traceparent": "00-0-0-01"})
            ).json()["id"],
            (await client.post("/api/v1/jobs", json={"type": "work"})).json()["id"],
        ]
        shown = (await client.get(f"/api/v1/jobs/{ids[0]}")).json()
    with closing(open_store(url)) as store:
        traces = [store.job(job_id).trace for job_id in ids]
    assert traces == [headers["traceparent"], headers["traceparent"], None, None]
    assert shown["trace"] == headers["traceparent"]
