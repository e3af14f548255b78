"""Nodes behind a pooler in transaction mode: a real PgBouncer, with fewer backends than connections."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
from node_fixtures import Cluster, lines

from servers import POOL, pooled, postgres_schema
from spinney.model.settings.queues import QueueSpec
from spinney.model.states import State
from spinney.store.sql import open_store
from waiting import until

LIMIT = 3


@pytest.fixture
def url() -> Iterator[str]:
    """Of the database itself."""
    with postgres_schema() as schema_url:
        yield schema_url


@pytest.fixture
def cluster(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    with pooled(url) as through:
        (tmp_path / "runtime").mkdir(mode=0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
        # By its name connections of this store are told from those of other tests: the pooler hands it on.
        made = Cluster(tmp_path, f"{through}&application_name={_name(url)}")
        yield made
        made.close()


def _name(url: str) -> str:
    return url.rpartition("schema=")[2]


def left_in_sessions(url: str) -> list[tuple[str, str]]:
    """What other clients of the pool would meet there: looked at in all of its backends at once."""
    through = url.partition("?")[0]
    statements: list[tuple[str, str]] = []
    with ExitStack() as opened:
        backends = set()
        for _ in range(POOL):
            connection = opened.enter_context(psycopg.connect(through, prepare_threshold=None))
            (pid,) = connection.execute("select pg_backend_pid()").fetchone() or (0,)
            backends.add(pid)
            statements += connection.execute(
                "select 'setting', name from pg_settings where source = 'session' and name not in "
                # What a pooler itself keeps apart.
                "('application_name', 'client_encoding', 'DateStyle', 'TimeZone', 'standard_conforming_strings', "
                "'IntervalStyle') "
                "union all select 'prepared', statement from pg_prepared_statements "
                "union all select 'channel', c from pg_listening_channels() c "
                "union all select 'lock', classid::text from pg_locks where locktype = 'advisory' "
                "and pid = pg_backend_pid()"
            ).fetchall()
        assert len(backends) == POOL
    return statements


def test_a_pooler_is_found_out_and_told(cluster: Cluster, url: str) -> None:
    assert cluster.store.facts()["wake_ups"] == "pooled: polling every 0.2 s"
    assert cluster.store.listen() is None
    cluster.file("spinney.toml").write_text(f'[spinney]\nstore = "{cluster.url}"\nfolders = "folders"\n')
    command = [sys.executable, "-m", "spinney", "doctor"]
    doctor = subprocess.run(command, cwd=cluster.place, capture_output=True, text=True)
    assert "\npooled: polling every 0.2 s; " in doctor.stdout
    direct = open_store(url)
    assert direct.facts()["wake_ups"] == "notifications"
    direct.close()


def test_two_nodes_work_within_a_limit_and_leave_nothing_in_the_sessions(cluster: Cluster) -> None:
    cluster.store.register([], [QueueSpec(name="narrow", limit=LIMIT)])
    # Leases as long as nodes have them: with short ones a beat may be late on a busy machine, pooler or not.
    usual: dict[str, Any] = {"slots": 2, "lease_period_s": 15.0, "beat_s": 1.0}
    nodes = [
        cluster.node(name="oak", **usual),
        cluster.node(name="elm", run_dir=str(cluster.place / "run-elm"), **usual),
    ]
    log, inside = cluster.file("log"), cluster.file("inside")

    ids = cluster.submit("meet", {"place": str(cluster.place), "n": LIMIT, "log": str(log)}, queue="narrow")
    ids += cluster.submit("stages", *[{"log": str(log), "seconds": 0.0}] * 10)
    ids += cluster.submit("locked", *[{"place": "here", "note_in": str(inside)}] * 4)
    ids += cluster.submit("crowded", *[{"place": str(cluster.place)}] * 12, queue="narrow")
    jobs = cluster.settled(ids)

    assert {job.state for job in jobs} == {State.COMPLETED}
    assert lines(inside) == ["in", "out"] * 4
    assert max(cluster.store.results(job.id)["crowded"] for job in jobs[-12:]) <= LIMIT
    assert all(
        [a.outcome for a in cluster.attempts(job.id)] == ["ok"] * len(cluster.attempts(job.id))
        for job in jobs
    )
    for node in nodes:
        # On a machine that is busy with other things a statement may be late; that is no matter of the pooler.
        assert [line for line in node.stop().splitlines() if "cannot" in line and "in time" not in line] == []
    assert left_in_sessions(cluster.url) == []


def test_work_goes_on_when_the_backends_behind_the_pooler_are_ended(cluster: Cluster, url: str) -> None:
    node = cluster.node()
    go, notes = cluster.file("go"), cluster.file("notes")
    (job_id,) = cluster.submit("wait_for", {"file": str(go), "note_in": str(notes)})
    until(lambda: lines(notes), "it runs")
    with psycopg.connect(url.rpartition("schema=")[0].rstrip("?&"), autocommit=True) as connection:
        ended = connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() "
            "and backend_type = 'client backend' and application_name = %s",
            (_name(url),),
        ).rowcount
    assert ended > 0
    go.touch()

    assert cluster.settled([job_id])[0].state is State.COMPLETED
    assert [a.outcome for a in cluster.attempts(job_id)] == ["ok"]
    assert node.process.poll() is None
