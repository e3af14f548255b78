"""Nodes on a store in PostgreSQL: real servers, real processes, killed."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from node_fixtures import House, lines, until

from servers import postgres_schema, postgres_url
from spinney.model.states import State


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    with postgres_schema() as url:
        url += f"&application_name={url.rpartition('=')[2]}"  # by which its connections are told from other tests'
        # Only now: the private server has its own lock in the user's run-time directory.
        (tmp_path / "runtime").mkdir(mode=0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
        made = House(tmp_path, url)
        yield made
        made.close()


def test_work_of_a_killed_node_goes_on_in_the_next(house: House) -> None:
    node = house.node()
    go, notes = house.file("go"), house.file("notes")
    (job_id,) = house.submit("wait_for", {"file": str(go), "note_in": str(notes)})
    until(lambda: lines(notes), "it runs")
    node.kill()
    until(lambda: not house.living(), "everything has ended")
    go.touch()
    house.node()
    assert house.settled([job_id])[0].state is State.COMPLETED
    assert [a.outcome for a in house.attempts(job_id)] == ["lost", "ok"]


def test_two_nodes_share_the_work_and_nothing_is_lost(house: House) -> None:
    nodes = [house.node(name=name, lease_period_s=15.0) for name in ("oak", "elm")]  # also on a busy machine
    log = house.file("log")

    jobs = house.run("stages", *[{"log": str(log), "seconds": 0.0}] * 60)

    assert {job.state for job in jobs} == {State.COMPLETED}
    assert [[a.outcome for a in house.attempts(job.id)] for job in jobs] == [
        ["ok"] * len(house.attempts(jobs[0].id))
    ] * 60
    for node in nodes:
        node.stop()


def test_connections_that_the_server_ends_are_made_again(house: House) -> None:
    node = house.node()
    go, notes = house.file("go"), house.file("notes")
    (job_id,) = house.submit("wait_for", {"file": str(go), "note_in": str(notes)})
    until(lambda: lines(notes), "it runs")
    with psycopg.connect(postgres_url(), autocommit=True) as connection:
        ended = connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() "
            "and backend_type = 'client backend' and application_name = %s",
            (house.url.rpartition("=")[2],),
        ).rowcount
    assert ended > 0
    go.touch()

    assert house.settled([job_id])[0].state is State.COMPLETED
    assert [a.outcome for a in house.attempts(job_id)] == ["ok"]
    assert node.process.poll() is None
