"""Nodes on a store in PostgreSQL: real servers, real processes, killed."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from node_fixtures import Cluster, lines

from servers import postgres_schema, postgres_url
from spinney.model.states import State
from waiting import until


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    with postgres_schema() as url:
        url += f"&application_name={url.rpartition('=')[2]}"  # by which its connections are told from other tests'
        # Only now: the private server has its own lock in the user's run-time directory.
        (tmp_path / "runtime").mkdir(mode=0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
        made = Cluster(tmp_path, url)
        yield made
        made.close()


def test_two_nodes_share_the_work_and_nothing_is_lost(cluster: Cluster) -> None:
    nodes = {
        name: cluster.node(name=name, lease_period_s=15.0) for name in ("oak", "elm")
    }  # also on a busy machine
    log = cluster.file("log")

    jobs = cluster.run("stages", *[{"log": str(log), "seconds": 0.0}] * 60)

    assert {job.state for job in jobs} == {State.COMPLETED}
    assert [[a.outcome for a in cluster.attempts(job.id)] for job in jobs] == [
        ["ok"] * len(cluster.attempts(jobs[0].id))
    ] * 60

    # When the server ends their connections, these are made again, and what runs is not interrupted
    job_id, go = _begun(cluster, "first")
    with psycopg.connect(postgres_url(), autocommit=True) as connection:
        ended = connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() "
            "and backend_type = 'client backend' and application_name = %s",
            (cluster.url.rpartition("=")[2],),
        ).rowcount
    assert ended > 0
    go.touch()
    assert cluster.settled([job_id])[0].state is State.COMPLETED
    assert [a.outcome for a in cluster.attempts(job_id)] == ["ok"]
    assert {node.process.poll() for node in nodes.values()} == {None}

    # When the node is killed that runs a job, this goes on in the other
    job_id, go = _begun(cluster, "second")
    killed = nodes.pop(cluster.store.job(job_id).node or "")
    its = set(killed.processes())
    killed.kill()
    until(lambda: not its & cluster.living(), "everything of it has ended")
    go.touch()
    (job,) = cluster.settled([job_id])
    assert (job.state, [job.node]) == (State.COMPLETED, list(nodes))
    assert [a.outcome for a in cluster.attempts(job_id)] == ["lost", "ok"]
    for node in nodes.values():
        node.stop()


def _begun(cluster: Cluster, name: str) -> tuple[int, Path]:
    """A job that runs until a file is there."""
    go, notes = cluster.file(f"{name} go"), cluster.file(f"{name} notes")
    (job_id,) = cluster.submit("wait_for", {"file": str(go), "note_in": str(notes)})
    until(lambda: lines(notes), "it runs")
    return job_id, go
