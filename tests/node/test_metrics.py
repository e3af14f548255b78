"""The metrics that a node exposes, read from a real one over HTTP."""

import os
import re
import socket
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Mapping

import psutil
import pytest
from node_fixtures import HERE, Cluster, cluster, lines
from prometheus_client.parser import text_string_to_metric_families

from spinney.model.errors import UsageError
from spinney.node.measurements import TimeHistogram
from spinney.node.settings import NodeSettings
from waiting import until

__all__ = ["cluster"]
_AT = re.compile(r"metrics are at (http://\S+/metrics)")


class Scraped:
    """A node that exposes metrics."""

    def __init__(self, cluster: Cluster, **settings: str | int | float) -> None:
        log = cluster.place / "metrics.log"
        self.node = cluster.node(log=log, **{"metrics": "0"} | settings)
        self.url = until(lambda: (at := _AT.search(log.read_text())) and at[1], "the node exposes metrics")

    def figures(self) -> Mapping[str, float]:
        """Return the samples of one scrape by name and labels, as Prometheus writes them without quotes."""
        with urllib.request.urlopen(self.url) as answer:
            families = text_string_to_metric_families(answer.read().decode())
        return {
            f"{sample.name}{{{','.join(f'{name}={sample.labels[name]}' for name in sorted(sample.labels))}}}": (
                sample.value
            )
            for family in families
            for sample in family.samples
        }

    def until(self, sample: str, value: float) -> Mapping[str, float]:
        until(lambda: self.figures().get(sample) == value, f"{sample} is {value}")
        return self.figures()


def test_attempts_are_counted_and_timed_by_type_and_stage(cluster: Cluster) -> None:
    scraped = Scraped(cluster)
    cluster.run("noop", {}, {}, {})
    cluster.run("nap", {"seconds": 0.2})
    cluster.run("dies_once")
    cluster.run("threaded")
    figures = scraped.until("spinney_attempt_wait_seconds_count{stage=threaded,type=threaded}", 1)
    attempts = {name: value for name, value in figures.items() if name.startswith("spinney_attempts_total")}
    assert attempts.pop("spinney_attempts_total{outcome=died,stage=noop,type=noop}") == 0
    assert {name: value for name, value in attempts.items() if value} == {
        "spinney_attempts_total{outcome=ok,stage=noop,type=noop}": 3,
        "spinney_attempts_total{outcome=ok,stage=nap,type=nap}": 1,
        "spinney_attempts_total{outcome=died,stage=dies_once,type=dies_once}": 1,
        "spinney_attempts_total{outcome=ok,stage=dies_once,type=dies_once}": 1,
        "spinney_attempts_total{outcome=ok,stage=threaded,type=threaded}": 1,
    }
    assert figures["spinney_attempt_run_seconds_bucket{le=0.1,stage=nap,type=nap}"] == 0
    assert figures["spinney_attempt_run_seconds_count{stage=nap,type=nap}"] == 1
    assert figures["spinney_attempt_run_seconds_sum{stage=nap,type=nap}"] >= 0.2
    # The attempt after the death waited for a backoff, and not for its turn.
    assert figures["spinney_attempt_wait_seconds_count{stage=dies_once,type=dies_once}"] == 1
    assert figures["spinney_attempt_wait_seconds_count{stage=noop,type=noop}"] == 3
    assert figures["spinney_node_info{node=oak,version=0.1.0}"] == 1


def test_each_stage_has_waited_since_the_one_before_it_ended(cluster: Cluster) -> None:
    scraped = Scraped(cluster)
    (job,) = cluster.run("stages", {"log": str(cluster.file("log")), "seconds": 0.2})
    figures = scraped.until("spinney_attempt_wait_seconds_count{stage=third,type=stages}", 1)
    since_us = job.created_us
    for attempt in cluster.attempts(job.id):
        assert attempt.ended_us is not None
        of_stage = f"seconds_sum{{stage={attempt.stage},type=stages}}"
        waited_s, ran_s = (attempt.started_us - since_us) / 1e6, (attempt.ended_us - attempt.started_us) / 1e6
        assert figures[f"spinney_attempt_wait_{of_stage}"] == pytest.approx(waited_s)
        assert figures[f"spinney_attempt_run_{of_stage}"] == pytest.approx(ran_s)
        since_us = attempt.ended_us


def test_exchanges_and_transactions_are_timed(cluster: Cluster) -> None:
    scraped = Scraped(cluster)
    cluster.run("noop", {}, {})
    figures = scraped.until("spinney_records_total{}", 2)
    assert figures["spinney_claimed_jobs_total{}"] == 2
    assert figures["spinney_refused_records_total{}"] == 0
    kinds = ("claim", "flush", "both")
    exchanges = sum(figures.get(f"spinney_exchange_seconds_count{{kind={kind}}}", 0) for kind in kinds)
    commits = figures["spinney_transaction_seconds_count{phase=commit}"]
    assert exchanges >= 2
    assert commits >= exchanges - 1  # an exchange that finds nothing to do may need none
    assert figures["spinney_transaction_seconds_count{phase=turn}"] == commits
    assert figures["spinney_own_slots{}"] == 2
    assert figures["spinney_own_degraded{}"] == 0


def test_a_node_counts_the_dead_nodes_whose_jobs_it_takes_back(cluster: Cluster) -> None:
    long = {"lease_period_s": 600.0, "beat_s": 0.2}
    dies, leaves = cluster.node(name="elm", **long), cluster.node(name="ash", **long)
    scraped = Scraped(cluster, **long)
    assert scraped.figures()["spinney_dead_nodes_total{}"] == 0
    leaves.stop()
    dies.kill()
    scraped.until("spinney_dead_nodes_total{}", 1)


def test_database_errors_are_counted_while_the_file_is_locked(cluster: Cluster) -> None:
    scraped = Scraped(cluster, lease_period_s=4.0)
    foreign = sqlite3.connect(cluster.place / "spinney.db", isolation_level=None)
    foreign.execute("begin exclusive")
    figures = scraped.until("spinney_own_degraded{}", 1)
    foreign.execute("rollback")
    foreign.close()
    assert figures["spinney_database_errors_total{kind=StoreLocked}"] >= 1
    scraped.until("spinney_own_degraded{}", 0)


def test_the_wait_of_an_attempt_that_ends_while_the_file_is_locked_is_looked_up_later(
    cluster: Cluster,
) -> None:
    scraped = Scraped(cluster, lease_period_s=8.0)  # it waits for a locked file for a quarter of it
    go, notes = cluster.file("go"), cluster.file("notes")
    cluster.submit("wait_for", {"file": str(go), "note_in": str(notes)})
    until(lambda: lines(notes), "it runs")
    foreign = sqlite3.connect(cluster.place / "spinney.db", isolation_level=None)
    foreign.execute("begin exclusive")
    go.touch()
    scraped.until("spinney_own_degraded{}", 1)
    scraped.until("spinney_own_records_waiting{}", 1)
    foreign.execute("rollback")
    foreign.close()
    scraped.until("spinney_attempt_wait_seconds_count{stage=wait_for,type=wait_for}", 1)


def test_a_node_waits_for_a_port_that_is_taken(cluster: Cluster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        log = cluster.place / "oak.log"
        cluster.node(log=log, metrics=str(port))
        until(lambda: any("metrics wait for 127.0.0.1" in line for line in lines(log)), "it says so")
        assert cluster.run("noop")
    until(lambda: f"metrics are at http://127.0.0.1:{port}/metrics" in log.read_text(), "it listens")


def test_a_node_without_prometheus_client_says_so_before_it_joins(cluster: Cluster) -> None:
    folder = cluster.place / "without"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("import sys\nsys.modules['prometheus_client'] = None\n")
    path = os.pathsep.join((str(folder), os.environ.get("PYTHONPATH", "")))
    words = (
        "node",
        "node_app:app",
        "--metrics",
        "0",
        "--store",
        cluster.url,
        "--folders",
        str(cluster.folders),
    )
    node = subprocess.run(
        [sys.executable, "-m", "spinney", *words],
        cwd=HERE,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert node.stderr.endswith("install it with: pip install 'spinney[metrics]'\n")
    assert node.returncode == 2
    with cluster.store.database.look() as tx:
        assert tx.value("select count(*) from nodes") == 0


def test_a_node_without_the_option_listens_nowhere_and_loads_nothing(cluster: Cluster) -> None:
    log = cluster.place / "oak.log"
    node = cluster.node(log=log, env={"PYTHONPROFILEIMPORTTIME": "1"})
    cluster.run("noop")
    supervisor = node.supervisor()
    sockets = psutil.Process(supervisor).net_connections("inet")
    assert psutil.CONN_LISTEN not in {one.status for one in sockets}
    imported = log.read_text()
    assert "spinney.node.supervisor" in imported
    assert "prometheus_client" not in imported


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("9620", ("127.0.0.1", 9620)),
        ("192.0.2.7:9620", ("192.0.2.7", 9620)),
        ("[2001:db8::7]:0", ("2001:db8::7", 0)),
    ],
)
def test_metrics_are_of_this_host_alone_unless_an_address_is_named(text: str, address: object) -> None:
    assert (
        NodeSettings(store="sqlite:////x", app="a:b", folders="x", metrics=text).metrics_address() == address
    )


@pytest.mark.parametrize("text", ["", "metrics", "70000", "127.0.0.1:", "-1"])
def test_what_is_no_port_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="write a port"):
        NodeSettings(store="sqlite:////x", app="a:b", folders="x", metrics=text)


def test_a_time_counts_in_the_first_bucket_that_is_not_below_it() -> None:
    histogram = TimeHistogram((10, 100))
    for time_us in (-5, 10, 11, 100, 101):
        histogram.add(time_us)
    assert (histogram.counts, histogram.sum_us) == ([2, 2, 1], 222)
