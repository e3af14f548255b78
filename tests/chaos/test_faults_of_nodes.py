"""Workers and nodes are killed, stand still past their lease, or bear one name; the load goes on."""

import os
import random
import signal
import time
from collections.abc import Callable, Iterable
from functools import partial

import pytest
from chaos_load import Grove, Harvest, works
from node_fixtures import Node

from long_tests import long_alone
from waiting import until

BLOWS = 25
FREEZE_LEASE_S = 6.0
"""Longer than a server lets a transaction stand still for such a node, so that the others live."""
Plant, Tell = Callable[..., Grove], Callable[[str, str, Harvest], None]


def kill(*pids: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def kill_a_worker(node: Node, draw: random.Random) -> None:
    if workers := node.workers():
        kill(draw.choice(workers))


def kill_the_node(node: Node, draw: random.Random) -> None:
    """Its guard, its supervisor, or all of it at once."""
    kill(*draw.choice([node.processes(), node.processes()[:1], node.processes()[1:2]]))


@long_alone
@pytest.mark.timeout(600)
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_workers_are_killed(plant: Plant, tell: Tell, store: str) -> None:
    grove = plant(store)
    for name in ("oak", "elm"):
        grove.start(name)
    with grove.under_load(100):
        works(grove)
        for _ in range(BLOWS):
            grove.rest(grove.draw.uniform(0.3, 1.2))  # so that some have begun something by then
            node = grove.nodes[grove.draw.choice(["oak", "elm"])]
            grove.blow(partial(kill_a_worker, node, grove.draw))
    harvest = grove.harvest()
    assert harvest.recovery_s is not None, "nothing was hit"
    tell("worker killed", _NAMES[store], harvest)


@long_alone
@pytest.mark.timeout(600)
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_nodes_are_killed_and_started_again(plant: Plant, tell: Tell, store: str) -> None:
    grove = plant(store)
    for name in ("oak", "elm"):
        grove.start(name)
    with grove.under_load(100):
        works(grove)
        for _ in range(BLOWS):
            grove.rest(grove.draw.uniform(0.2, 1.0))
            name = grove.draw.choice(["oak", "elm"])
            node = until(partial(_joined, grove, name), "it works")
            grove.blow(partial(kill_the_node, node, grove.draw))
            node.wait()
    harvest = grove.harvest()
    assert grove.restarts >= BLOWS - 1
    tell("node killed, the other on its host", _NAMES[store], harvest)


@long_alone
@pytest.mark.timeout(600)
def test_nodes_of_other_hosts_are_killed(plant: Plant, tell: Tell) -> None:
    """Nothing proves that they are gone, so their leases are waited out."""
    grove = plant("postgresql")
    for name in ("oak", "elm"):
        grove.start(name, host=f"host-of-{name}")
    with grove.under_load(100):
        works(grove)
        for name in ["oak", "elm"] * 4:
            grove.rest(1.0)
            grove.blow(partial(kill, *grove.nodes[name].processes()))
            grove.nodes[name].wait()
            # Its own successor finds the proof on its host: so for a while there is none.
            settings = grove.serving.pop(name)
            grove.rest(4.0)
            grove.start(name, **settings)
    tell("node killed, the other on another host", "PostgreSQL", grove.harvest())


@long_alone
@pytest.mark.timeout(600)
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_a_node_stands_still_past_its_lease_and_goes_on(plant: Plant, tell: Tell, store: str) -> None:
    """On PostgreSQL it is on another host than the other, which can do no more than declare it dead. On one host the
    other kills it. Should it stand still in the midst of a write, nobody else can write: to a file until it goes on,
    on PostgreSQL until the server ends its transaction."""
    grove = plant(store, lease_period_s=FREEZE_LEASE_S)
    for name in ("oak", "elm"):
        grove.start(name, host=f"host-of-{name}" if store == "postgresql" else None)
    with grove.under_load(100):
        works(grove)
        for name in ["oak", "elm"] * 3:
            grove.rest(1.0)
            node = until(partial(_joined, grove, name), "it works")
            settings = grove.serving.pop(name)
            stopped: list[int] = []
            grove.blow(lambda node=node, stopped=stopped: stopped.extend(node.pause()))
            give_up = time.monotonic() + 2 * FREEZE_LEASE_S
            while node.info() is not None and time.monotonic() < give_up:
                grove.rest(0.05)
            grove.rest(0.5)
            grove.thaws |= dict.fromkeys(stopped, time.monotonic())
            go_on(stopped)
            assert node.wait() != 0, "it has not noticed that its lease is gone"
            grove.start(name, **settings)
    tell("node stopped past its lease, then continued", _NAMES[store], grove.harvest())


@long_alone
@pytest.mark.timeout(600)
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_two_nodes_of_one_name(plant: Plant, tell: Tell, store: str) -> None:
    """Each is started again and again by its own service manager; who works is killed now and then."""
    grove = plant(store)
    hosts = {"left": "host-a", "right": "host-b"} if store == "postgresql" else {"left": None, "right": None}
    grove.start("elm")
    for key, host in hosts.items():
        grove.begin(key, {"name": "oak", "host": host})
    with grove.under_load(100):
        works(grove)
        for _ in range(6):
            grove.rest(1.0)
            node = until(lambda: _who_works(grove, hosts), "one of them works")
            grove.rest(0.5)
            grove.blow(partial(kill, *node.processes()))
            node.wait()
    harvest = grove.harvest()
    assert any("is alive on" in grove.log(key) for key in hosts), "none was ever refused"
    tell("two nodes of one name, the one that works is killed", _NAMES[store], harvest)


_NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


def go_on(pids: list[int]) -> None:
    """Let them go on from where they stand; a guard that does so ends the others at once when it finds itself late."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            continue


def _joined(grove: Grove, name: str) -> Node | None:
    grove.tend()
    return grove.nodes[name] if grove.nodes[name].info() is not None else None


def _who_works(grove: Grove, keys: Iterable[str]) -> Node | None:
    return next((node for key in keys if (node := _joined(grove, key)) is not None), None)
