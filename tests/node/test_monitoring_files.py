"""The dashboard and the alert rules in ``docs/monitoring`` name metrics and labels that a node or a server exposes."""

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from fastapi.testclient import TestClient
from node_fixtures import Cluster, cluster
from prometheus_client.parser import text_string_to_metric_families

from spinney.model.errors import StoreUnusable
from spinney.server.application import Parts, make
from spinney.store.sql import open_store
from spinney.web.identity import StoreAuthenticator
from spinney.web.settings import ServerSettings
from waiting import until

__all__ = ["cluster"]
FILES = Path(__file__).parents[2] / "docs" / "monitoring"
_METRIC = re.compile(r"\b((?:spinney|process)_\w+)(?:{([^}]*)})?")
_BY = re.compile(r"\bby \(([^)]*)\)")
_OF_PROMETHEUS = {"instance", "job"}


@pytest.fixture
def exposed(cluster: Cluster) -> dict[str, set[str]]:
    """Return the labels of each metric that a node and a server expose."""
    cluster.node(metrics="0", log=cluster.place / "log")
    cluster.run("noop")
    at = until(
        lambda: re.search(r"metrics are at (\S+)", (cluster.place / "log").read_text()),
        "the node exposes metrics",
    )

    def of_node() -> str:
        text: str = urllib.request.urlopen(at[1]).read().decode()
        return text if "spinney_attempt_wait_seconds_bucket" in text else ""

    app = make(
        Parts(
            settings=ServerSettings(metrics="open"),
            open_store=lambda: open_store(cluster.url),
            folders=cluster.folders,
            run_dir=None,
            identity=StoreAuthenticator,
        )
    )
    counters = app.state.counters
    counters.delivered("due", 0.1)
    counters.store_failed(StoreUnusable("the disk is full"))
    with counters.sign_in("password"):
        pass
    with TestClient(app, base_url="http://localhost") as client:
        client.get("/health")
        of_server = client.get("/metrics").text
    labels: dict[str, set[str]] = {}
    for text in (until(of_node, "a waiting time was looked up"), of_server):
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                labels.setdefault(sample.name, set()).update(sample.labels)
    return labels


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((FILES / "prometheus-rules.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def expressions() -> Iterator[str]:
    dashboard = json.loads((FILES / "grafana-dashboard.json").read_text())
    for panel in dashboard["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    yield from (rule["expr"] for rule in rules())


def test_every_name_and_label_is_exposed(exposed: dict[str, set[str]]) -> None:
    expected = list(expressions())
    assert len(expected) > 30
    for expression in expected:
        metrics = _METRIC.findall(expression)
        assert metrics, expression
        for name, matchers in metrics:
            assert name in exposed, expression
            assert set(re.findall(r"(\w+)\s*[=!]", matchers)) <= exposed[name] | _OF_PROMETHEUS, expression
            for by in _BY.findall(expression):
                assert set(re.findall(r"\w+", by)) <= exposed[name] | _OF_PROMETHEUS, expression


def test_every_expression_can_be_read_by_prometheus() -> None:
    for expression in expressions():
        promql_parser.parse(
            expression.replace("$__rate_interval", "5m")
        )  # raises where syntax or a type is wrong
    with pytest.raises(ValueError, match="expected type matrix"):
        promql_parser.parse("rate(spinney_records_total)")


def test_every_rule_says_what_is_wrong_and_names_only_labels_that_remain() -> None:
    for rule in rules():
        remaining = {label for by in _BY.findall(rule["expr"]) for label in re.findall(r"\w+", by)} - {"le"}
        assert rule["labels"]["severity"] in ("warning", "critical"), rule["alert"]
        for text in (rule["annotations"]["summary"], rule["annotations"]["description"]):
            assert set(re.findall(r"\$labels\.(\w+)", text)) <= remaining, rule["alert"]
