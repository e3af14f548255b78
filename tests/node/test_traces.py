"""Attempts and their records as spans, sent by a real node to a real collector."""

import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from node_fixtures import Cluster, cluster, kept
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from traced_app import app as traced_app

from otlp_collector import Collector, attributes, collecting
from spinney.model.errors import UsageError
from spinney.node.settings import NodeSettings
from spinney.tracing import traceparents
from waiting import until

__all__ = ["cluster", "kept"]
TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
TRACE = f"00-{TRACE_ID}-b7ad6b7169203331-01"


class Traced:
    """A node that sends its spans soon, and a trace that no other test has."""

    def __init__(self, cluster: Cluster, collector: Collector) -> None:
        self.cluster, self._collector = cluster, collector
        self.trace_id = uuid.uuid4().hex
        self.trace = f"00-{self.trace_id}-b7ad6b7169203331-01"

    def spans(self) -> list[Span]:
        """Return the spans of the trace that have come."""
        return [span for span in self._collector.spans() if span.trace_id.hex() == self.trace_id]

    def named(self, name: str) -> Span:
        """Return the one span of this name."""
        (span,) = [span for span in self.spans() if span.name == name]
        return span


@pytest.fixture(scope="module")
def collector(kept: Cluster) -> Iterator[Collector]:
    """A collector, and a node of ``kept`` that sends to it and was itself started in a trace."""
    with collecting() as collector:
        environment = {"OTEL_BSP_SCHEDULE_DELAY": "100", "TRACEPARENT": TRACE}
        kept.node(app="traced_app:app", otlp=collector.address, env=environment)
        yield collector


@pytest.fixture
def traced(kept: Cluster, collector: Collector) -> Traced:
    return Traced(kept, collector)


def result(cluster: Cluster, job_id: int) -> Any:
    (attempt,) = cluster.attempts(job_id)
    return cluster.store.results(job_id).get(attempt.stage)


@pytest.mark.parametrize("type_", ["process", "thread", "task"])
def test_user_code_is_in_the_span_of_its_attempt(traced: Traced, type_: str) -> None:
    cluster = traced.cluster
    (job,) = cluster.run(type_, trace=traced.trace)
    (untraced,) = cluster.run(type_)
    handle, current = result(cluster, job.id)
    until(lambda: len(traced.spans()) >= 2, "the spans come")
    span, record = (
        traced.named(f"{type_} {type_}"),
        traced.named("record") if type_ != "process" else None,
    )
    assert handle == current == f"00-{traced.trace_id}-{span.span_id.hex()}-01"
    assert span.trace_id.hex() == traced.trace_id
    assert span.parent_span_id.hex() == "b7ad6b7169203331"
    (attempt,) = cluster.attempts(job.id)
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (
        attempt.started_us * 1000,
        (attempt.ended_us or 0) * 1000,
    )
    assert attributes(span) == {
        "spinney.job.id": job.id,
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


def test_children_are_below_the_attempt_that_spawned_them(traced: Traced) -> None:
    cluster = traced.cluster
    (job,) = cluster.run("process", trace=traced.trace)
    until(lambda: len(traced.spans()) == 4, "the spans of both jobs")
    assert traced.named("child child").parent_span_id == traced.named("process process").span_id
    (child,) = cluster.store.children(job.id)
    assert child.trace == result(cluster, job.id)[0]


def test_each_stage_has_a_span_of_its_own_below_the_submission(traced: Traced) -> None:
    cluster = traced.cluster
    (job,) = cluster.run("two", trace=traced.trace)
    until(lambda: len(traced.spans()) == 4, "the spans of both stages")
    spans = [traced.named("two one"), traced.named("two other")]
    assert {span.parent_span_id.hex() for span in spans} == {"b7ad6b7169203331"}
    assert cluster.store.results(job.id)["other"] == [
        f"00-{traced.trace_id}-{span.span_id.hex()}-01" for span in spans for _ in range(2)
    ]


def test_a_program_gets_the_span_in_its_environment(traced: Traced) -> None:
    cluster = traced.cluster
    (job,), (untraced,) = cluster.run("program", trace=traced.trace), cluster.run("program")
    until(lambda: len(traced.spans()) == 2, "the spans")
    span = traced.named("program program")
    assert result(cluster, job.id) == f"00-{traced.trace_id}-{span.span_id.hex()}-01"
    assert result(cluster, untraced.id) is None


def test_a_failure_is_the_status_of_its_span(traced: Traced) -> None:
    cluster = traced.cluster
    cluster.run("fails", trace=traced.trace)
    until(lambda: len(traced.spans()) == 2, "the spans")
    span = traced.named("fails fails")
    assert span.status.code == Status.STATUS_CODE_ERROR
    assert "broken" in span.status.message


def test_a_trace_that_is_not_sampled_is_handed_on_and_not_sent(traced: Traced, collector: Collector) -> None:
    cluster = traced.cluster
    (job,) = cluster.run("process", trace=traced.trace.removesuffix("01") + "00")
    later = Traced(cluster, collector)
    cluster.run("program", trace=later.trace)
    until(later.spans, "a later span, before which it would have come")
    assert result(cluster, job.id)[0].startswith(f"00-{traced.trace_id}-")
    assert result(cluster, job.id)[0].endswith("-00")
    assert traced.spans() == []


def test_a_node_without_a_collector_hands_traces_on(cluster: Cluster) -> None:
    cluster.node(app="traced_app:app")
    (job,) = cluster.run("process", trace=TRACE)
    handle, current = result(cluster, job.id)
    (attempt,) = cluster.attempts(job.id)
    assert handle == current == traceparents.of_attempt(TRACE, attempt.fence)


def test_a_trace_that_is_none_is_left_out(cluster: Cluster, collector: Collector) -> None:
    """Given rows whose traces something else has damaged, then their jobs run without one."""
    types = ("process", "thread")
    cluster.store.register([traced_app.types[type_].spec for type_ in types], ())
    ids = [job_id for type_ in types for job_id in cluster.submit(type_, trace=TRACE)]
    with closing(sqlite3.connect(cluster.place / "spinney.db")) as database, database:
        database.execute("update jobs set trace = 'nonsense'")
    cluster.node(app="traced_app:app", otlp=collector.address)
    assert [job.state for job in cluster.settled(ids)] == ["completed"] * 2
    assert [result(cluster, job_id) for job_id in ids] == [[None, None]] * 2


def test_a_collector_that_is_away_delays_nothing(cluster: Cluster) -> None:
    """Given a port on which nobody listens, when the node stops, then it does so within the time of one request."""
    node = cluster.node(app="traced_app:app", otlp="http://127.0.0.1:9/v1/traces")
    cluster.run("process", trace=TRACE)
    assert node.stop() is not None


def test_what_is_no_address_of_a_collector_is_refused() -> None:
    with pytest.raises(UsageError, match="otlp is 'collector:4318'"):
        NodeSettings(store="sqlite:///a.db", app="a:b", folders="x", otlp="collector:4318")
