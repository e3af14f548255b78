"""Attempts and their records as spans, sent by a real node to a real collector."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from node_fixtures import Cluster, Node, cluster
from opentelemetry.proto.trace.v1.trace_pb2 import Status
from traced_app import app as traced_app

from otlp_collector import Collector, attributes, collecting
from spinney.model.errors import UsageError
from spinney.node.settings import NodeSettings
from spinney.tracing import traceparents
from waiting import until

__all__ = ["cluster"]
TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
TRACE = f"00-{TRACE_ID}-b7ad6b7169203331-01"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as collector:
        yield collector


def start(cluster: Cluster, collector: Collector, **environment: str) -> Node:
    """Start a node that sends its spans soon."""
    soon = {"OTEL_BSP_SCHEDULE_DELAY": "100"}
    return cluster.node(app="traced_app:app", otlp=collector.address, env=soon | environment)


def result(cluster: Cluster, job_id: int) -> Any:
    (attempt,) = cluster.attempts(job_id)
    return cluster.store.results(job_id).get(attempt.stage)


@pytest.mark.parametrize("type_", ["process", "thread", "task"])
def test_user_code_is_in_the_span_of_its_attempt(cluster: Cluster, collector: Collector, type_: str) -> None:
    start(cluster, collector)
    (traced,) = cluster.run(type_, trace=TRACE)
    (untraced,) = cluster.run(type_)
    handle, current = result(cluster, traced.id)
    until(lambda: len(collector.spans()) >= 2, "the spans come")
    span, record = (
        collector.named(f"{type_} {type_}"),
        collector.named("record") if type_ != "process" else None,
    )
    assert handle == current == f"00-{TRACE_ID}-{span.span_id.hex()}-01"
    assert span.trace_id.hex() == TRACE_ID
    assert span.parent_span_id.hex() == "b7ad6b7169203331"
    (attempt,) = cluster.attempts(traced.id)
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (
        attempt.started_us * 1000,
        (attempt.ended_us or 0) * 1000,
    )
    assert attributes(span) == {
        "spinney.job.id": traced.id,
        "spinney.job.type": type_,
        "spinney.job.stage": type_,
        "spinney.job.attempt": 1,
        "spinney.node": "oak",
        "spinney.outcome": "ok",
    }
    if record is not None:
        assert record.parent_span_id == span.span_id
        assert span.end_time_unix_nano <= record.end_time_unix_nano
    assert result(cluster, untraced.id) == [None, None]


def test_children_are_below_the_attempt_that_spawned_them(cluster: Cluster, collector: Collector) -> None:
    start(cluster, collector)
    (job,) = cluster.run("process", trace=TRACE)
    until(lambda: len(collector.spans()) == 4, "the spans of both jobs")
    assert collector.named("child child").parent_span_id == collector.named("process process").span_id
    (child,) = cluster.store.children(job.id)
    assert child.trace == result(cluster, job.id)[0]


def test_each_stage_has_a_span_of_its_own_below_the_submission(
    cluster: Cluster, collector: Collector
) -> None:
    start(cluster, collector)
    (job,) = cluster.run("two", trace=TRACE)
    until(lambda: len(collector.spans()) == 4, "the spans of both stages")
    spans = [collector.named("two one"), collector.named("two other")]
    assert {span.parent_span_id.hex() for span in spans} == {"b7ad6b7169203331"}
    assert cluster.store.results(job.id)["other"] == [
        f"00-{TRACE_ID}-{span.span_id.hex()}-01" for span in spans for _ in range(2)
    ]


def test_a_program_gets_the_span_in_its_environment(cluster: Cluster, collector: Collector) -> None:
    start(cluster, collector, TRACEPARENT=TRACE)
    (traced,), (untraced,) = cluster.run("program", trace=TRACE), cluster.run("program")
    until(lambda: len(collector.spans()) == 2, "the spans")
    span = collector.named("program program")
    assert result(cluster, traced.id) == f"00-{TRACE_ID}-{span.span_id.hex()}-01"
    assert result(cluster, untraced.id) is None


def test_a_failure_is_the_status_of_its_span(cluster: Cluster, collector: Collector) -> None:
    start(cluster, collector)
    cluster.run("fails", trace=TRACE)
    until(lambda: len(collector.spans()) == 2, "the spans")
    span = collector.named("fails fails")
    assert span.status.code == Status.STATUS_CODE_ERROR
    assert "broken" in span.status.message


def test_a_trace_that_is_not_sampled_is_handed_on_and_not_sent(
    cluster: Cluster, collector: Collector
) -> None:
    node = start(cluster, collector)
    (job,) = cluster.run("process", trace=TRACE.removesuffix("01") + "00")
    node.stop()
    assert result(cluster, job.id)[0].startswith(f"00-{TRACE_ID}-")
    assert result(cluster, job.id)[0].endswith("-00")
    assert collector.spans() == []


def test_a_node_without_a_collector_hands_traces_on(cluster: Cluster) -> None:
    cluster.node(app="traced_app:app")
    (job,) = cluster.run("process", trace=TRACE)
    handle, current = result(cluster, job.id)
    (attempt,) = cluster.attempts(job.id)
    assert handle == current == traceparents.of_attempt(TRACE, attempt.fence)


@pytest.mark.parametrize("type_", ["process", "thread"])
def test_a_trace_that_is_none_is_left_out(cluster: Cluster, collector: Collector, type_: str) -> None:
    """Given a row whose trace something else has damaged, then its job runs without one."""
    cluster.store.register([traced_app.types[type_].spec], ())
    (job_id,) = cluster.submit(type_, trace=TRACE)
    with closing(sqlite3.connect(cluster.place / "spinney.db")) as database, database:
        database.execute("update jobs set trace = 'nonsense' where id = ?", (job_id,))
    start(cluster, collector)
    (job,) = cluster.settled([job_id])
    assert job.state == "completed"
    assert result(cluster, job_id) == [None, None]


def test_a_collector_that_is_away_delays_nothing(cluster: Cluster) -> None:
    """Given a port on which nobody listens, when the node stops, then it does so within the time of one request."""
    node = cluster.node(app="traced_app:app", otlp="http://127.0.0.1:9/v1/traces")
    cluster.run("process", trace=TRACE)
    assert node.stop() is not None


def test_what_is_no_address_of_a_collector_is_refused() -> None:
    with pytest.raises(UsageError, match="otlp is 'collector:4318'"):
        NodeSettings(store="sqlite:///a.db", app="a:b", folders="x", otlp="collector:4318")
