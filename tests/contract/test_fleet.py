"""What operators want of nodes, obeyed by every claim at once; and how nodes are shown."""

from collections.abc import Callable

import pytest

from spinney.model.errors import Refused, UsageError
from spinney.model.fleet import OVER, Load, NodeStatus
from spinney.model.jobs import ClaimRequest, SlotRequest
from spinney.model.rights.actor import Actor
from spinney.model.settings.queues import QueueSpec
from spinney.store.parts import Store

from .words import Node, Site, kind

ANN = Actor(by="ann", call="c", reason="new disk")


def drain(site: Site, name: str = "elm") -> None:
    site.store.fleet.drain(name, ANN, now_us=site.now)


def slots(site: Site, number: int | None, name: str = "elm") -> None:
    site.store.fleet.set_slots(name, number, ANN, now_us=site.now)


def status(site: Site, node: Node) -> NodeStatus:
    return next(s for s in site.store.fleet.all(now_us=site.now) if s.id == node.id)


# --- drained ----------------------------------------------------------------------------------


def test_a_drained_node_is_given_nothing_and_others_are(site: Site) -> None:
    elm, oak = site.node("elm"), site.node("oak")
    jobs = site.submit(n=2)

    drain(site)

    assert site.claim(elm) == []
    assert sorted(lease.job_id for lease in site.claim(oak)) == jobs


def test_what_a_drained_node_runs_is_recorded_and_goes_on_elsewhere(site: Site) -> None:
    elm = site.node("elm")
    lease = site.run(site.submit_one("three"), elm)

    drain(site)
    answer = site.flush_and_claim([site.entry(lease, keep=True)], site.want(elm, 0))

    assert (answer.leases, answer.refused) == ([], [])
    assert site.claim_one(site.node("oak")).stage == "second"


def test_nothing_is_looked_ahead_for_a_drained_node(site: Site) -> None:
    elm = site.node("elm", slots=1)
    site.submit(n=5)
    site.claim(elm)

    drain(site)

    ahead = ClaimRequest(node_id=elm.id, slots=[SlotRequest(0, 5, 1e5, False)], lanes=site.lanes(run_us=1.0))
    assert site.flush_and_claim([], ahead).leases == []


def test_a_drain_outlasts_a_restart_and_ends_with_resume(site: Site) -> None:
    drain_first = site.node("elm")
    drain(site)
    site.store.update_node(drain_first.id, state="left", now_us=site.now)
    job = site.submit_one()

    again = site.node("elm")
    assert site.claim(again) == []
    site.store.fleet.resume("elm", ANN, now_us=site.now)

    assert site.claim_one(again).job_id == job


def test_a_quota_counts_no_slots_of_drained_nodes(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q", sharing="quota")])
    elm, oak = site.node("elm", slots=4), site.node("oak", slots=4)
    site.submit(n=8, queue="q", share="ann")

    drain(site)

    # Of eight slots one share could hold seven, of four three.
    assert len(site.claim(oak)) == 3
    assert site.claim(elm) == []


# --- slots ------------------------------------------------------------------------------------


def test_more_slots_are_claimed_for_at_once(site: Site) -> None:
    elm = site.node("elm", slots=2)
    site.submit(n=9)
    assert len(site.claim(elm)) == 2

    slots(site, 5)
    elm.slots = 8  # it asks for more than it has

    assert len(site.claim(elm)) == 3


def test_while_more_run_than_there_are_slots_nothing_is_given(site: Site) -> None:
    elm = site.node("elm", slots=4)
    site.submit(n=9)
    first, second, third, fourth = site.claim(elm)

    slots(site, 2)
    claimed = []
    for lease in (first, second, third):
        assert site.claim(elm) == []
        site.pass_(lease)
        claimed.append(len(site.claim(elm)))

    assert claimed == [0, 0, 1]
    assert status(site, elm).used == 2
    assert fourth.slot == 3


def test_nothing_is_looked_ahead_while_more_run_than_there_are_slots(site: Site) -> None:
    elm = site.node("elm", slots=2)
    site.submit(n=9)
    site.claim(elm)
    ahead = ClaimRequest(node_id=elm.id, slots=[SlotRequest(0, 5, 1e5, False)], lanes=site.lanes(run_us=1.0))

    slots(site, 1)
    assert site.flush_and_claim([], ahead).leases == []
    slots(site, 2)
    assert site.flush_and_claim([], ahead).leases != []


@pytest.mark.parametrize(("number", "kept"), [(2, 1), (1, 0)])
def test_a_slot_too_many_does_not_go_on_with_the_next_stage(site: Site, number: int, kept: int) -> None:
    elm = site.node("elm", slots=2)
    site.submit("three", n=2)
    lease, _ = site.claim(elm)

    slots(site, number)

    assert len(site.flush_and_claim([site.entry(lease, keep=True)], site.want(elm, 0)).leases) == kept


def test_slots_hold_over_all_incarnations_of_a_name(site: Site) -> None:
    old = site.node("elm", slots=4)
    site.submit(n=9)
    site.claim(old, slots=3)
    site.store.update_node(old.id, state="draining", now_us=site.now)
    new = site.node("elm", slots=4)

    slots(site, 5)
    new.slots = 9

    assert len(site.claim(new)) == 2


def test_slots_outlast_a_restart_until_they_are_as_started_again(site: Site) -> None:
    slots_of = {}
    site.node("elm", slots=2)
    slots(site, 3)
    again = site.node("elm", slots=6)
    slots_of["set"] = status(site, again)

    slots(site, None)

    slots_of["default"] = status(site, again)
    assert {k: (s.slots, s.slots_started) for k, s in slots_of.items()} == {"set": (3, 6), "default": (6, 6)}


@pytest.mark.parametrize("number", [0, -1, 10_001])
def test_what_is_no_number_of_slots_is_refused(site: Site, number: int) -> None:
    site.node("elm")
    with pytest.raises(UsageError, match="spinney drain elm"):
        slots(site, number)


# --- refusing, and the audit ------------------------------------------------------------------


@pytest.mark.parametrize(
    "verb",
    [
        lambda s: s.store.fleet.drain("elmm", ANN, now_us=s.now),
        lambda s: s.store.fleet.resume("elmm", ANN, now_us=s.now),
        lambda s: s.store.fleet.set_slots("elmm", 3, ANN, now_us=s.now),
    ],
    ids=["drain", "resume", "slots"],
)
def test_a_name_that_no_node_has_borne_is_refused(site: Site, verb: Callable[[Site], object]) -> None:
    site.node("elm")
    with pytest.raises(Refused, match=r"no node 'elmm' has ever joined \(did you mean 'elm'\?\).*are: elm"):
        verb(site)
    assert site.store.audit.entries() == []


def test_a_node_that_is_not_drained_cannot_be_resumed(site: Site) -> None:
    site.node("elm")
    slots(site, 3)
    with pytest.raises(Refused, match="node elm is not drained"):
        site.store.fleet.resume("elm", ANN, now_us=site.now)


def test_every_order_is_in_the_audit(site: Site) -> None:
    site.node("elm")

    drain(site)
    slots(site, 3)
    site.store.fleet.resume("elm", ANN, now_us=site.now)

    entries = [entry for entry, _ in site.store.audit.entries()]
    assert [(e.verb, e.what) for e in entries] == [
        ("drain", '{"node":"elm"}'),
        ("slots", '{"node":"elm","slots":3}'),
        ("resume", '{"node":"elm"}'),
    ]
    assert {(e.by, e.reason, e.count) for e in entries} == {("ann", "new disk", 1)}


def test_one_order_leaves_the_other_as_it_is(site: Site) -> None:
    elm = site.node("elm")
    slots(site, 3)
    drain(site)
    assert (status(site, elm).state, status(site, elm).slots) == ("drained", 3)
    slots(site, None)
    assert (status(site, elm).state, status(site, elm).drained_by) == ("drained", "ann")
    site.store.fleet.resume("elm", ANN, now_us=site.now)
    assert site.store.fleet.orders("elm").drained is False


# --- looking ----------------------------------------------------------------------------------


def test_a_node_is_shown_with_what_it_does_and_how_it_fares(
    site: Site, open_another: Callable[[], Store]
) -> None:
    elm = site.node("elm", slots=3, types=("one",))
    site.submit(n=4)
    site.claim(elm, slots=2, run_us=1.0, jobs=2)
    load = Load(one_minute=0.5, cpus=2, memory_bytes=4096, memory_free_bytes=1024)
    site.store.beat(elm.id, load=load, trouble="the database answers slowly", now_us=site.now)

    (shown,) = open_another().fleet.all(now_us=site.now)

    assert (shown.node, shown.state, shown.slots, shown.used, shown.leases) == ("elm", "degraded", 3, 2, 4)
    assert (shown.load, shown.trouble, shown.types) == (load, "the database answers slowly", ("one",))


def test_load_stays_and_trouble_ends_with_the_next_beat(site: Site) -> None:
    elm = site.node("elm")
    load = Load(one_minute=0.5, cpus=2, memory_bytes=4096, memory_free_bytes=1024)
    site.store.beat(elm.id, load=load, trouble="slow", now_us=site.now)

    site.store.beat(elm.id, now_us=site.now)

    assert (status(site, elm).load, status(site, elm).trouble, status(site, elm).state) == (
        load,
        None,
        "active",
    )


def test_trouble_that_is_over_is_told_but_degrades_no_more(site: Site) -> None:
    elm = site.node("elm")
    site.store.beat(elm.id, trouble=f"{OVER} 10:00:00 to 10:00:09 UTC: gone", now_us=site.now)
    assert (status(site, elm).state, status(site, elm).trouble) == (
        "active",
        "was cut off 10:00:00 to 10:00:09 UTC: gone",
    )


@pytest.mark.parametrize(
    ("lease_s", "seconds", "state"),
    [
        (15.0, 5, "active"),
        (15.0, 6, "silent"),
        (15.0, 60, "silent"),
        (15.0, 61, "dead"),
        (600.0, 645, "silent"),
        (600.0, 646, "dead"),
        (None, 3645, "silent"),
        (None, 3646, "dead"),
    ],
)
def test_a_node_that_does_not_beat_is_shown_so(
    site: Site, lease_s: float | None, seconds: int, state: str
) -> None:
    elm = site.node("elm", lease_s=lease_s)
    site.clock.forward(seconds)
    assert (status(site, elm).state, status(site, elm).lease_s) == (state, lease_s)
    (shown,) = site.store.statistics.stats(window_s=60, now_us=site.now).nodes
    assert shown.state == state, "as the list of nodes shows it"


def test_a_node_that_drains_and_one_that_left_are_shown_so(site: Site) -> None:
    elm = site.node("elm")
    site.run(site.submit_one(), elm)
    drain(site)
    states = []
    for state in ("draining", "left"):
        site.store.update_node(elm.id, state=state, now_us=site.now)
        states.append(status(site, elm).state)
    assert states == ["draining", "left"]


def test_a_node_that_died_stays_listed_for_a_day(site: Site) -> None:
    elm, oak = site.node("elm"), site.node("oak")
    job = site.submit_one()
    site.run(job, elm)

    site.recover(elm)

    assert [s.node for s in site.store.fleet.all(now_us=site.now)] == ["elm", "oak"]
    dead = status(site, elm)
    assert (dead.state, dead.leases, dead.seen_us) == ("dead", 0, site.now)
    assert "its jobs were taken back" in (dead.trouble or "")
    assert [node.id for node in site.store.nodes()] == [oak.id]

    site.clock.forward(86_401)
    assert "elm" not in [s.node for s in site.store.fleet.all(now_us=site.now)]


def test_a_node_that_died_is_listed_no_more_when_one_of_its_name_joins(site: Site) -> None:
    site.recover(site.node("elm"))

    again = site.node("elm")

    assert [s.id for s in site.store.fleet.all(now_us=site.now)] == [again.id]


def test_a_node_that_left_by_itself_is_listed_no_more_though_its_leases_are_taken_back(site: Site) -> None:
    elm = site.node("elm")
    site.run(site.submit_one(), elm)
    site.store.update_node(elm.id, state="left", now_us=site.now)

    site.recover(elm)

    assert site.store.fleet.all(now_us=site.now) == []


# --- who leads --------------------------------------------------------------------------


def keeper(site: Site, node: Node, dead: Node | None = None) -> int | None:
    return site.store.elect_leader(node.id, dead=None if dead is None else dead.id, now_us=site.now).leader


def test_the_first_that_asks_keeps_house_and_the_others_hear_who(site: Site) -> None:
    elm, oak = site.node("elm"), site.node("oak")

    assert [keeper(site, n) for n in (oak, elm, oak)] == [oak.id] * 3
    assert [s.is_leader for s in site.store.fleet.all(now_us=site.now)] == [False, True]


@pytest.mark.parametrize("state", ["draining", "left"])
def test_one_that_drains_or_leaves_keeps_house_no_more(site: Site, state: str) -> None:
    elm, oak = site.node("elm"), site.node("oak")
    keeper(site, elm)

    site.store.update_node(elm.id, state=state, now_us=site.now)

    assert keeper(site, elm) is None
    assert not any(s.is_leader for s in site.store.fleet.all(now_us=site.now))
    assert keeper(site, oak) == oak.id


def test_one_that_was_recovered_keeps_house_no_more(site: Site) -> None:
    elm, oak = site.node("elm"), site.node("oak")
    keeper(site, elm)
    site.recover(elm)
    assert keeper(site, oak) == oak.id


def test_one_that_is_dead_by_the_watch_of_another_hands_over_once(site: Site) -> None:
    elm, oak, ash = site.node("elm"), site.node("oak"), site.node("ash")
    keeper(site, elm)

    assert keeper(site, oak, dead=elm) == oak.id
    assert keeper(site, ash, dead=elm) == oak.id


def test_one_that_only_fell_silent_keeps_house(site: Site) -> None:
    elm, oak = site.node("elm"), site.node("oak")
    keeper(site, elm)
    site.clock.forward(3_600)
    assert keeper(site, oak) == elm.id


def test_a_drained_node_may_keep_house(site: Site) -> None:
    elm = site.node("elm")
    drain(site)
    assert keeper(site, elm) == elm.id


def test_who_asks_hears_what_becomes_due_next(site: Site) -> None:
    site.knows(kind("later", "work"))
    elm = site.node("elm")
    assert site.store.elect_leader(elm.id, now_us=site.now).wake_us is None
    at_us = site.now + 5_000_000
    site.submit_one("later", at_us=at_us)
    assert site.store.elect_leader(elm.id, now_us=site.now).wake_us == at_us
