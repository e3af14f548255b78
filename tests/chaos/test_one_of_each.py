"""One blow of each kind on one cluster on PostgreSQL, one after the other under one load: what ``make test`` has of the
long tests beside this one, each of which strikes many times with one kind."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from chaos_load import Grove, Harvest, works
from node_fixtures import Node
from test_faults_of_clocks import Clock
from test_faults_of_nodes import go_on, kill, kill_a_worker
from test_faults_of_people import cancel
from test_faults_of_the_server import END_ALL, all_taken

from private_server import PrivateServer, server_with_store_schema
from spinney.model.jobs import Filter
from spinney.model.states import State
from waiting import until

LASTING_S, SHORT_S = 30.0, 2.0
"""The lease of a node that is to outlive what is done to the server, and of the one that stands still past its own."""


@pytest.fixture
def server() -> Iterator[PrivateServer]:
    made = PrivateServer().start(max_connections="30")
    yield made
    made.stop("immediate")


@pytest.mark.timeout(300)
def test_one_blow_of_each_kind(
    plant: Callable[..., Grove],
    tell: Callable[[str, str, Harvest], None],
    server: PrivateServer,
    tmp_path: Path,
) -> None:
    # Given two nodes at work, each on a host of its own: the second's lease is short at first
    clock = Clock(tmp_path / "clock")
    with server_with_store_schema(server) as schema:
        grove = plant(server.url(schema=schema), lease_period_s=LASTING_S)
        grove.start("oak", env=clock.environment)
        grove.start("elm", host="host-of-elm", lease_period_s=SHORT_S)
        with grove.under_load(20):
            works(grove)

            # When a worker is killed, and a job is cancelled that runs
            grove.blow(lambda: kill_a_worker(grove.nodes["oak"], grove.draw))
            cancel(grove, until(lambda: _running(grove), "a job runs"))

            # When a node stands still past its lease, and goes on
            _stand_still_past_the_lease(grove, "elm")

            # When a node is killed with all its processes while the other's clock is wrong
            clock.step(3600)
            node = _joined(grove, "elm")
            grove.serving["elm"] = grove.serving["elm"] | {"lease_period_s": LASTING_S}
            grove.blow(lambda: kill(*node.processes()))
            node.wait()
            _joined(grove, "elm")
            clock.step(0)

            # When the server ends all connections, has none to give, and crashes
            restarts = grove.restarts
            with server.connect() as connection, all_taken(server) as taken:
                grove.blow(
                    lambda: connection.execute(END_ALL), lasts=lambda: (grove.rest(1.0), taken.clear())
                )
            _goes_on(grove)
            grove.blow(lambda: server.stop("immediate"), lasts=lambda: (grove.rest(0.5), server.start()))
            _goes_on(grove)
        harvest = grove.harvest()

    # Then nodes ended for what was done to them alone, and nothing is lost, double or over a limit
    assert grove.restarts == restarts
    tell("one of each kind", "PostgreSQL", harvest)


def _running(grove: Grove) -> int | None:
    jobs = grove.cluster.store.jobs(Filter(states=(State.RUNNING,)), limit=1, newest=True)
    return next((job.id for job in jobs if job.parent_id is None), None)


def _stand_still_past_the_lease(grove: Grove, name: str) -> None:
    node = _joined(grove, name)
    settings = grove.serving.pop(name)
    stopped: list[int] = []
    grove.blow(
        lambda: stopped.extend(node.pause()),
        lasts=lambda: until(lambda: node.info() is None, "it is recovered"),
    )
    grove.thaws |= dict.fromkeys(stopped, time.monotonic())
    go_on(stopped)
    assert node.wait() != 0, "it has not noticed that its lease is gone"
    grove.start(name, **settings)


def _joined(grove: Grove, name: str) -> Node:
    def look() -> Node | None:
        grove.tend()
        node = grove.nodes[name]
        return node if node.process.poll() is None and node.info() is not None else None

    return until(look, f"{name} works")


def _goes_on(grove: Grove) -> None:
    """Wait until something more has completed."""
    before = grove.cluster.counts().get("completed", 0)
    works(grove, before + 10)
