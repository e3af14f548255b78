"""Clocks of hosts that differ: nothing is lost by them, but people are told."""

import threading
from contextlib import closing
from dataclasses import replace

import pytest
from node_fixtures import NODE, Cluster, cluster, now_us

from spinney.model.jobs import NodeInfo
from spinney.node.lifecycle.clock_watch import ClockWatch
from spinney.store.sql import open_store

__all__ = ["cluster"]

ELSEWHERE = replace(NODE, host="elsewhere", lease_s=600.0)
NOW_US = 1_800_000_000_000_000


def beaten(beat: int, ahead_s: float) -> NodeInfo:
    return replace(ELSEWHERE, beat=beat, seen_us=NOW_US + round(ahead_s * 1e6))


def test_only_a_node_that_has_just_beaten_shows_how_its_clock_differs() -> None:
    watch = ClockWatch()
    # A heartbeat that was there before the first look may be old.
    assert watch.look([beaten(7, -600)], 100.0, NOW_US, 100.0) == []
    assert watch.look([beaten(7, -600)], 101.0, NOW_US, 101.0) == []
    # One that came since the last query is at most 1.5 s old.
    assert watch.look([beaten(8, -600)], 102.0, NOW_US, 102.5) == [(beaten(8, -600), -598.5)]
    # It is said once, and again when the clock was right in between.
    assert watch.look([beaten(9, -600)], 103.0, NOW_US, 103.0) == []
    assert watch.look([beaten(10, 0)], 104.0, NOW_US, 104.0) == []
    assert watch.look([beaten(11, 600)], 105.0, NOW_US, 105.0) == [(beaten(11, 600), 600.0)]


@pytest.mark.parametrize("ahead_s", [-20.0, -5.0, 0.0, 5.0])
def test_an_observer_that_stood_still_takes_no_clock_for_wrong(ahead_s: float) -> None:
    watch = ClockWatch()
    watch.look([beaten(7, 0)], 100.0, NOW_US, 100.0)
    assert watch.look([beaten(8, ahead_s)], 120.0, NOW_US, 120.0) == []


def test_the_leader_logs_that_the_clock_of_another_host_is_wrong(cluster: Cluster) -> None:
    over = threading.Event()
    hour_us = 3_600_000_000
    oak = cluster.store.join(replace(ELSEWHERE, seen_us=now_us() - hour_us), now_us=now_us() - hour_us)

    def beat() -> None:
        with closing(open_store(cluster.url)) as store:
            while not over.wait(0.1):
                store.beat(oak, now_us=now_us() - hour_us)

    beating = threading.Thread(target=beat)
    beating.start()
    node = cluster.node(name="elm")
    try:
        assert node.process.stderr is not None
        line = next(line for line in node.process.stderr if "clock" in line)
    finally:
        over.set()
        beating.join()
    assert "the clock of node oak on elsewhere is " in line
    assert " behind this host's; set the clocks of both hosts by NTP" in line
