"""Nodes: a name, a boot, a heartbeat counter that moves."""

import dataclasses
from collections.abc import Callable

import pytest

from spinney.model.errors import StoreReplaced
from spinney.model.jobs import NodeInfo
from spinney.store.parts import Store

from .behind import LOST_BEATS, damage
from .words import Site


def _info(site: Site, node_id: int) -> NodeInfo:
    return next(info for info in site.store.nodes() if info.id == node_id)


def test_a_node_is_shown_as_it_entered(site: Site, open_another: Callable[[], Store]) -> None:
    info = NodeInfo(
        id=0,
        name="n",
        boot_id="b-1",
        host="h",
        pid=77,
        slots=3,
        state="active",
        beat=0,
        started_us=site.now,
        seen_us=site.now,
        version="0.1",
        types=("one", "three"),
        lease_s=7.5,
    )

    node_id = site.store.join(info, now_us=site.now)

    (seen,) = open_another().nodes()
    assert dataclasses.replace(seen, beat=0) == dataclasses.replace(info, id=node_id)


def test_every_entry_is_another_node(site: Site) -> None:
    first = site.node("n")
    site.recover(first)

    second = site.node("n")

    assert second.id != first.id
    assert [info.id for info in site.store.nodes()] == [second.id]


def test_a_heartbeat_moves_the_counter_and_the_time_seen(site: Site) -> None:
    node = site.node("n")
    before = _info(site, node.id)
    site.clock.forward(5)

    assert site.store.beat(node.id, now_us=site.now) is True

    after = _info(site, node.id)
    assert after.beat > before.beat
    assert (after.seen_us, after.started_us) == (site.now, before.started_us)


def test_a_heartbeat_moves_no_other_nodes_counter(site: Site) -> None:
    node, other = site.node("n"), site.node("other")
    before = _info(site, other.id)

    site.store.beat(node.id, now_us=site.now)

    assert _info(site, other.id) == before


def test_a_node_that_never_was_has_no_heartbeat(site: Site) -> None:
    assert site.store.beat(4711, now_us=site.now) is False


def test_the_leases_of_a_node_are_counted(site: Site) -> None:
    node = site.node("n")
    site.submit(n=3)
    leases = site.claim(node, slots=3)
    assert _info(site, node.id).leases == 3

    site.pass_(leases[0])

    assert _info(site, node.id).leases == 2


def test_a_node_that_drains_is_shown_so(site: Site) -> None:
    node = site.node("n")

    site.store.update_node(node.id, state="draining", now_us=site.now)

    assert _info(site, node.id).state == "draining"
    assert site.store.beat(node.id, now_us=site.now) is True


def test_a_node_that_left_is_shown_no_more(site: Site) -> None:
    node, other = site.node("n"), site.node("other")

    site.store.update_node(node.id, state="left", now_us=site.now)

    assert [info.id for info in site.store.nodes()] == [other.id]


def test_a_node_that_left_is_still_shown_while_it_owns_leases(site: Site) -> None:
    node = site.node("n")
    lease = site.run(site.submit_one(), node)

    site.store.update_node(node.id, state="left", now_us=site.now)

    assert (_info(site, node.id).state, _info(site, node.id).leases) == ("left", 1)
    assert site.recover(node) == [lease.job_id]
    assert list(site.store.nodes()) == []


def test_a_draining_node_hands_over_no_lease(site: Site) -> None:
    lease = site.run(site.submit_one("three"))
    site.store.update_node(site.here.id, state="draining", now_us=site.now)

    answer = site.flush_and_claim([site.entry(lease, keep=True)], site.want(site.here, 0))

    assert answer.leases == []
    assert site.job(lease.job_id).stage == "second"


def test_heartbeats_that_a_crash_may_lose_are_no_older_copy_of_the_store(site: Site) -> None:
    for _ in range(20):
        site.store.beat(site.here.id, now_us=site.now)

    damage(site.store, "update nodes set beat = beat - ?", LOST_BEATS)
    assert site.store.beat(site.here.id, now_us=site.now) is True

    damage(site.store, "update nodes set beat = beat - ?", LOST_BEATS + 1)
    assert site.store.beat(site.here.id, urgent=False, now_us=site.now) is True  # as for an external worker

    damage(site.store, "update nodes set beat = beat - ?", LOST_BEATS + 1)
    with pytest.raises(StoreReplaced, match="an older copy has taken its place"):
        site.store.beat(site.here.id, now_us=site.now)
