"""Why a job is not running: one sentence for every cause, in agreement with what a claim does."""

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from explanations import explained
from spinney.features.explain.commands import Obstacle, _obstacles
from spinney.features.explain.explanation import Explanation
from spinney.model.errors import NoSuchJob
from spinney.model.fleet import OVER
from spinney.model.jobs import ClaimRequest, Lease, SlotRequest
from spinney.model.operators.queues import QueueChange
from spinney.model.outcomes import Outcome
from spinney.model.queue_selection import QueueSelection
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Scope
from spinney.model.settings.queues import QueueSpec
from spinney.model.states import SETTLED, State
from spinney.model.types import Backoff

from .conftest import PLACES
from .words import USUAL, Clock, Site, kind, locked, stage, submission

TYPES = tuple(spec.name for spec in USUAL)
ANN = Actor(by="ann", call="c", reason="because")


def explain(site: Site, job_id: int) -> Explanation:
    return explained(site.store, job_id, site.now)


def test_a_job_that_nobody_knows_is_refused(site: Site) -> None:
    with pytest.raises(NoSuchJob):
        explain(site, 7)


def test_no_node(site: Site) -> None:
    explanation = explain(site, site.submit_one())

    assert (explanation.cause, explanation.command) == ("no node", "spinney node")


def test_no_node_that_knows_the_type(site: Site) -> None:
    site.node("a", types=("another",))

    explanation = explain(site, site.submit_one())

    assert explanation.cause == "unknown type"
    assert "no running node (a) knows job type 'one'" in explanation.sentence


def test_no_node_whose_code_has_the_stage(site: Site) -> None:
    site.node("old", types=TYPES, stages=("one/former",))
    job_id = site.submit_one()

    def obstacle() -> Obstacle | None:
        return _obstacles(site.store, site.now)(site.store.job(job_id))

    explanation = explain(site, job_id)
    assert (explanation.cause, explanation.command) == ("unknown stage", "spinney node")
    assert "no running node (old) has code with stage 'work' of job type 'one'" in explanation.sentence
    assert obstacle() == Obstacle(job_id=job_id, cause="unknown_stage")

    site.node("new", types=TYPES, stages=("one/work",))
    assert explain(site, job_id).cause == "next"
    assert obstacle() is None


def test_the_only_node_that_knows_the_type_drains(site: Site) -> None:
    node = site.node("a", types=TYPES)
    site.store.update_node(node.id, state="draining", now_us=site.now)

    explanation = explain(site, site.submit_one())

    assert explanation.cause == "draining"
    assert "node a" in explanation.sentence


def test_a_node_that_was_killed_while_it_drained_is_not_said_to_drain(site: Site) -> None:
    node = site.node("a", types=TYPES)
    site.store.update_node(node.id, state="draining", now_us=site.now)
    job = site.submit_one()
    site.clock.forward(30)

    explanation = explain(site, job)

    assert (explanation.cause, explanation.command) == ("no node", "spinney node")


def test_all_nodes_that_could_run_it_are_in_trouble(site: Site) -> None:
    oak, elm = (site.node(name, types=TYPES) for name in ("oak", "elm"))
    job = site.submit_one()
    site.store.beat(oak.id, trouble="the folder root /srv is read-only; make it writable", now_us=site.now)
    site.store.beat(elm.id, trouble=f"{OVER} 10:00:00 to 10:00:05 UTC", now_us=site.now)
    assert explain(site, job).cause == "next"

    site.store.update_node(elm.id, state="left", now_us=site.now)

    explanation = explain(site, job)
    assert (explanation.cause, explanation.command) == ("degraded", "spinney nodes")
    assert explanation.sentence == (
        "node oak, which may run it, is degraded: the folder root /srv is read-only; make it writable"
    )


def test_the_free_slots_of_a_node_in_trouble_start_nothing(site: Site) -> None:
    oak, elm = (site.node(name, slots=1, types=TYPES) for name in ("oak", "elm"))
    site.submit_one()
    job = site.submit_one()
    site.claim(elm)
    assert explain(site, job).facts["nodes"] == ["oak"]

    site.store.beat(oak.id, trouble="the folder root /srv is read-only; make it writable", now_us=site.now)

    explanation = explain(site, job)
    assert (explanation.cause, explanation.facts["nodes"]) == ("slots", ["elm"])


def test_the_only_node_that_knows_the_type_is_drained(site: Site) -> None:
    site.node("elm", types=TYPES)
    site.node("oak", types=("another",))
    site.store.fleet.drain("elm", ANN, now_us=site.now)
    job = site.submit_one()

    explanation = explain(site, job)

    assert (explanation.cause, explanation.command, explanation.facts["nodes"]) == (
        "drained",
        "spinney resume elm",
        ["elm"],
    )
    assert explanation.sentence == "node elm, which knows job type 'one', is drained by ann (because)"
    site.store.fleet.resume("elm", ANN, now_us=site.now)
    assert explain(site, job).cause == "next"


def test_all_nodes_that_know_the_type_are_drained(site: Site) -> None:
    for name in ("elm", "oak"):
        site.node(name, types=TYPES)
        site.store.fleet.drain(name, ANN, now_us=site.now)

    explanation = explain(site, site.submit_one())

    assert (explanation.cause, explanation.facts["nodes"]) == ("drained", ["elm", "oak"])
    assert (
        "all nodes that know job type 'one' are drained: elm, oak; elm by ann (because)"
        in explanation.sentence
    )


def test_a_drained_node_beside_one_that_was_killed(site: Site) -> None:
    site.node("oak", types=TYPES)
    site.clock.forward(150)
    site.node("elm", types=TYPES)
    site.store.fleet.drain("elm", ANN, now_us=site.now)

    explanation = explain(site, site.submit_one())

    assert (explanation.cause, explanation.facts["nodes"]) == ("silent", ["oak"])


def test_slots_of_a_node_that_was_killed_are_not_free(site: Site) -> None:
    site.node("oak", slots=9, types=TYPES)
    site.clock.forward(150)
    elm = site.node("elm", slots=1, types=TYPES)
    site.submit_one()
    site.claim(elm)

    assert explain(site, site.submit_one()).cause == "slots"


def test_slots_that_an_operator_took_away_are_not_free(site: Site) -> None:
    elm = site.node("elm", slots=4, types=TYPES)
    site.submit(n=2)
    site.claim(elm, slots=2)
    site.store.fleet.set_slots("elm", 2, ANN, now_us=site.now)

    explanation = explain(site, site.submit_one())

    assert explanation.cause == "slots"
    assert "all 2 slots" in explanation.sentence


def test_what_a_dead_node_had_is_being_taken_back(site: Site) -> None:
    elm = site.node("elm", types=TYPES)
    job = site.submit_one()
    site.claim(elm)
    site.store.update_node(elm.id, state="left", now_us=site.now)

    explanation = explain(site, job)

    assert explanation.cause == "recovering"
    assert "node elm, which had it, has ended" in explanation.sentence


def test_nothing_keeps_it(site: Site) -> None:
    site.node("a", types=TYPES)

    explanation = explain(site, site.submit_one())

    assert (explanation.cause, explanation.start_us) == ("next", site.now)


def test_all_slots_taken_and_how_many_stand_before(site: Site) -> None:
    node = site.node("a", slots=1, types=TYPES)
    site.submit(n=3)
    site.claim(node)
    last = site.submit_one(priority=60)

    explanation = explain(site, last)

    assert explanation.cause == "slots"
    assert (
        explanation.sentence
        == "the only slot of the nodes that may run it (a) is taken; 2 jobs come before it"
    )
    assert explanation.facts["ahead"] == 2
    assert explanation.command == f"spinney priority {last} --to 0"


def test_more_urgent_jobs_for_the_free_slots(site: Site) -> None:
    site.node("a", slots=2, types=TYPES)
    site.submit(n=5, priority=1)

    explanation = explain(site, site.submit_one(priority=9))

    assert explanation.cause == "priority"
    assert "5 jobs come before it for 2 free slots" in explanation.sentence


def test_its_own_hold(site: Site) -> None:
    job = site.submit_one()
    site.record(site.claim_one(), Outcome.HOLD, message="look at the paper")

    explanation = explain(site, job)

    assert (explanation.cause, explanation.command) == ("own hold", f"spinney release {job}")
    assert "look at the paper" in explanation.sentence


@pytest.mark.parametrize("swept", [False, True])
def test_a_hold_with_its_reason_and_whose(site: Site, swept: bool) -> None:
    site.node("a", types=TYPES)
    job = site.submit_one()
    hold = site.store.holds.lay(
        Scope.TYPE, "one", "disk swap", ANN, until_us=site.now + 60_000_000, now_us=site.now
    )
    while swept and site.store.holds.sweep(now_us=site.now):
        pass

    explanation = explain(site, job)

    assert explanation.cause == "hold"
    assert explanation.sentence == f"hold {hold.id} on type one by ann: disk swap"
    assert explanation.start_us == site.now + 60_000_000
    assert explanation.command == f"spinney release --hold {hold.id}"


def test_a_stage_that_has_vanished_from_the_type(site: Site) -> None:
    site.knows(kind("t", "first", "second"))
    job = site.submit_one("t")
    site.node("a", types=("t",))

    site.knows(kind("t", "second"))

    explanation = explain(site, job)
    assert (explanation.cause, explanation.command) == ("vanished stage", "spinney node")
    assert "its next stage 'first' has vanished from job type 't'" in explanation.sentence
    assert site.claim() == []

    site.sweep()
    explanation = explain(site, job)
    assert (explanation.cause, explanation.command) == ("vanished stage", "spinney node")
    assert "it is held: its next stage 'first' has vanished from job type 't'; start a node whose" in (
        explanation.sentence
    )

    site.knows(kind("t", "first", "second"))
    assert explain(site, job).command == f"spinney release {job}"


def test_a_queue_at_its_limit_and_by_whom(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q", limit=2)])
    site.node("a", types=TYPES)
    site.submit(n=2, queue="q")
    site.claim(slots=2)

    explanation = explain(site, site.submit_one(queue="q"))

    assert explanation.cause == "queue limit"
    assert explanation.sentence == "queue 'q' is at its limit of 2 slots, used by 2 of type 'one'"


def test_a_queue_at_a_limit_of_one_and_a_node_with_one_free_slot(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q", limit=1)])
    node = site.node("a", slots=2, types=TYPES)
    site.submit_one(queue="q")
    site.claim(node, slots=1)

    assert explain(site, site.submit_one(queue="q")).sentence == (
        "queue 'q' is at its limit of 1 slot, used by 1 of type 'one'"
    )
    site.submit_one(priority=1)
    assert explain(site, site.submit_one(priority=9)).sentence == "1 job comes before it for 1 free slot"


def test_a_queue_that_is_shut(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q", limit=0)])
    site.node("a", types=TYPES)

    assert "is shut" in explain(site, site.submit_one(queue="q")).sentence


def test_a_share_over_its_quota(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q", sharing="quota")])
    node = site.node("a", slots=4, types=TYPES)
    first, *_ = site.submit(n=8, queue="q", share="ann")
    taken = site.claim(node)

    explanation = explain(site, first + 7)

    assert len(taken) == 3
    assert explanation.cause == "share"
    assert "holds 3 of the 3 slots" in explanation.sentence


def test_shares_that_wait_with_another_priority_make_no_quota_smaller(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q", sharing="quota")])
    node = site.node("a", slots=10, types=TYPES)
    for name in "bcdef":
        site.submit(n=2, queue="q", share=name)
    first, *_ = site.submit(n=8, queue="q", share="ann", priority=10)

    assert len(site.claim(node, slots=6)) == 6
    assert explain(site, first + 7).cause != "share"


def test_a_share_that_may_hold_as_many_slots_as_its_turn_has_jobs(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q", sharing="quota", turn=3)])
    node = site.node("a", slots=10, types=TYPES)
    jobs = [job for name in "abcde" for job in site.submit(n=8, queue="q", share=name)]
    site.claim(node, slots=3)
    waiting = next(job for job in jobs[2:] if explain(site, job).cause == "share")

    assert "holds 3 of the 3 slots" in explain(site, waiting).sentence


def test_who_cancelled_a_job_is_said_once(site: Site) -> None:
    job = site.submit_one()
    site.cancel(job)

    sentence = explain(site, job).sentence

    assert sentence.startswith("it was cancelled by ")
    assert sentence.count("cancelled") == 1


def test_a_lock_and_its_owner(site: Site) -> None:
    site.node("a", types=TYPES)
    owner = site.submit_one("locked", {"serno": "A"})
    site.claim(slots=1)
    other = site.submit_one("locked", {"serno": "A"})

    before = explain(site, other)
    site.claim(slots=1)
    after = explain(site, other)

    for explanation in (before, after):
        assert (explanation.cause, explanation.facts["owner"]) == ("lock", owner)
        assert explanation.sentence == f"job {owner} has the lock 'receiver:A'"
        assert explanation.command == f"spinney explain {owner}"


def test_only_a_lock_whose_owner_is_gone_may_be_taken_away(site: Site) -> None:
    node = site.node("a", types=TYPES)
    site.submit_one("locked", {"serno": "A"})
    site.claim(node)
    other = site.submit_one("locked", {"serno": "A"})
    site.claim(slots=1)  # it waits for the lock now
    briefly_silent, dead = 30, 1_000

    site.clock.forward(briefly_silent)
    assert explain(site, other).command != "spinney unlock receiver:A"
    site.clock.forward(dead)
    assert explain(site, other).command == "spinney unlock receiver:A"
    site.store.beat(node.id, now_us=site.now)
    assert explain(site, other).command != "spinney unlock receiver:A"
    site.store.update_node(node.id, state="left", now_us=site.now)
    assert explain(site, other).command == "spinney unlock receiver:A"


def test_a_lock_that_a_job_keeps_between_its_stages(site: Site) -> None:
    site.knows(kind("keeper", stage("first", locks=locked("receiver:{serno}", "job")), "second"))
    node = site.node("a", types=(*TYPES, "keeper"))
    owner = site.submit_one("keeper", {"serno": "A"})
    site.pass_(site.run(owner, node))
    other = site.submit_one("locked", {"serno": "A"}, priority=1)
    site.claim(node, slots=2)

    explanation = explain(site, other)

    assert explanation.sentence == f"job {owner} keeps the lock 'receiver:A' until it settles"
    assert explanation.command == f"spinney explain {owner}"


def test_a_lock_that_a_parent_keeps_is_no_obstacle_but_its_owner_below_is(site: Site) -> None:
    site.knows(kind("keeper", stage("first", locks=locked("receiver:{serno}", "job")), "second"))
    node = site.node("a", types=(*TYPES, "keeper"))
    lease = site.run(site.submit_one("keeper", {"serno": "A"}), node)
    first, second = site.spawn_all(lease, submission("locked", {"serno": "A"}, {"serno": "A"}))
    site.pass_(lease)
    site.claim(node, slots=2)

    assert explain(site, second).sentence == f"job {first} has the lock 'receiver:A'"


def test_a_job_that_it_needs(site: Site) -> None:
    need = site.submit_one()

    explanation = explain(site, site.submit_one(needs=(need,)))

    assert (explanation.cause, explanation.command) == ("needs", f"spinney explain {need}")
    assert f"job {need} (pending)" in explanation.sentence


def test_subjobs_that_are_open(site: Site) -> None:
    parent = site.submit_one("parent")
    lease = site.claim_one()
    children = site.spawn(lease, n=3)
    site.pass_(lease)

    explanation = explain(site, parent)

    assert (explanation.cause, explanation.facts["children"]) == ("children", 3)
    assert explanation.command == f"spinney explain {children[0]}"


def test_a_superseded_subjob_and_one_below_it(site: Site) -> None:
    top, (branch,) = site.family(n=1, child="parent")
    lease = site.run(branch)
    (leaf,) = site.spawn(lease)
    site.pass_(lease)
    site.drain(failing=[leaf])
    plain = {job: explain(site, job) for job in (branch, leaf)}

    site.rerun(top)

    for job, before in plain.items():
        explanation = explain(site, job)
        assert explanation.facts == {**before.facts, "superseded_by": top}
        sentence = f"it no longer counts, since job {top} was set to run again without it; {before.sentence}"
        assert explanation.sentence == sentence
    assert "superseded_by" not in explain(site, top).facts


def test_an_earlier_job_of_its_serial_tree(site: Site) -> None:
    site.knows(kind("line", "expand", "merge", serial=True))
    site.submit_one("line")
    lease = site.claim_one()
    first, second = site.spawn(lease, n=2)
    site.pass_(lease)

    explanation = explain(site, second)

    assert (explanation.cause, explanation.facts["before"]) == ("serial", first)


def test_a_time_still_to_come(site: Site) -> None:
    at_us = site.now + 5_000_000

    explanation = explain(site, site.submit_one(at_us=at_us))

    assert (explanation.cause, explanation.start_us) == ("scheduled", at_us)


def test_a_time_that_has_come_while_no_node_works(site: Site) -> None:
    job = site.submit_one(at_us=site.now + 5_000_000)
    site.clock.forward(6)

    explanation = explain(site, job)

    assert (explanation.cause, explanation.command) == ("no node", "spinney node")
    site.node("a", types=TYPES)
    assert explain(site, job).cause == "scheduled", "it is put in its place in a moment"


def test_the_pause_before_the_next_attempt(site: Site) -> None:
    job = site.submit_one("tenacious")
    site.record(site.claim_one(), Outcome.ERROR, message="no route")

    explanation = explain(site, job)

    assert explanation.cause == "retry"
    assert explanation.sentence == "attempt 1 of stage 'work' failed and it waits before the next: no route"
    assert explanation.start_us is not None


def test_put_off_by_its_own_stage(site: Site) -> None:
    job = site.submit_one()
    site.record(site.claim_one(), Outcome.DEFER, message="tape away", delay_s=30.0)

    explanation = explain(site, job)

    assert (explanation.cause, explanation.start_us) == ("scheduled", site.now + 30_000_000)
    assert "tape away" in explanation.sentence


def test_a_lane_that_sleeps_and_one_that_probes(site: Site) -> None:
    node = site.node("a", types=TYPES)
    *_, last = site.submit(n=4)
    _long, deferring = site.claim(node, slots=2)
    site.record(deferring, Outcome.DEFER, lane=True, delay_s=30.0)

    asleep = explain(site, last)
    site.store.beat(node.id, now_us=site.clock.forward(31))
    (probe,) = site.claim(node)
    probing = explain(site, last)

    assert (asleep.cause, asleep.start_us) == ("lane asleep", site.now - 1_000_000)
    assert (probing.cause, probing.facts["probe"]) == ("lane asleep", probe.job_id)


def test_running_claimed_cancelling_and_settled(site: Site) -> None:
    job = site.submit_one()
    lease = site.claim_one()
    running = explain(site, job)
    site.cancel(job)
    cancelling = explain(site, job)
    site.record(lease, Outcome.ERROR)
    settled = explain(site, job)

    assert [f.cause for f in (running, cancelling, settled)] == ["running", "cancelling", "settled"]
    assert settled.command == f"spinney retry {job}"


def test_behind_another_in_a_workers_list(site: Site) -> None:
    node = site.node("a", slots=1, types=TYPES)
    _, second = site.submit(n=2)
    site.claim(node, jobs=2, run_us=1.0)

    explanation = explain(site, second)

    assert explanation.cause == "claimed"
    assert "behind 1 job that it runs first" in explanation.sentence


def test_behind_others_of_other_types(site: Site) -> None:
    node = site.node("a", slots=2, types=TYPES)
    for n, of in enumerate(("one", "tenacious", "parent")):
        site.submit(of, n=4, queue=f"queue{n}")
    leases: dict[int, list[Lease]] = {}
    for lease in site.claim(node, jobs=6, run_us=1.0):
        leases.setdefault(lease.slot, []).append(lease)

    before = {
        slot: [explain(site, one.job_id).facts.get("ahead", 0) for one in mine]
        for slot, mine in leases.items()
    }

    assert before == {0: [0, 1, 2, 3, 4, 5], 1: [0, 1, 2, 3, 4, 5]}


def test_the_only_node_that_knows_the_type_was_killed(site: Site) -> None:
    dead = site.node("a", types=TYPES)
    site.clock.forward(150)
    job = site.submit_one()

    explanation = explain(site, job)

    assert (explanation.cause, explanation.command) == ("silent", "spinney node --name a")
    assert explanation.start_us is None
    assert (
        "node a, which knows job type 'one', has given no sign of life for 2 min 30 s" in explanation.sentence
    )
    site.store.beat(dead.id, now_us=site.now)
    assert explain(site, job).cause == "next"


def test_the_node_that_has_it_was_killed(site: Site) -> None:
    node = site.node("a", types=TYPES)
    job = site.submit_one()
    site.claim(node)
    site.clock.forward(7_200)

    explanation = explain(site, job)

    assert (explanation.cause, explanation.command) == ("silent", "spinney node --name a")
    assert explanation.sentence == (
        "node a has it in slot 0, but has given no sign of life for 2 hours; if it is dead, start it again"
    )
    site.store.beat(node.id, now_us=site.now)
    assert explain(site, job).cause == "running"


def test_the_node_that_has_it_is_in_trouble_and_does_not_begin(site: Site) -> None:
    node = site.node("a", types=TYPES)
    job = site.submit_one()
    site.claim(node)
    site.store.beat(node.id, trouble="the node cannot start a worker; fix 'jobs'", now_us=site.now)

    explanation = explain(site, job)

    assert (explanation.cause, explanation.command) == ("running", "spinney nodes")
    assert explanation.sentence == (
        "node a has it in slot 0, but is degraded: the node cannot start a worker; fix 'jobs'"
    )


def test_what_a_killed_node_has_is_taken_back_by_another_when_its_lease_is_over(site: Site) -> None:
    # Given a job in the only slot of its queue, on a node that beats no more, and another node that does
    site.knows(queues=[QueueSpec(name="q", limit=1)])
    dead, alive = site.node("a", types=TYPES, lease_s=30.0), site.node("b", types=TYPES)
    job, waiting = site.submit_one(queue="q"), site.submit_one(queue="q")
    site.claim(dead, slots=1)
    killed_us = site.now

    def explained_after(seconds: int) -> list[Explanation]:
        site.clock.now_us = killed_us + seconds * 1_000_000
        site.store.beat(alive.id, now_us=site.now)
        return [explain(site, job), explain(site, waiting)]

    assert [e.cause for e in explained_after(5)] == ["running", "queue limit"]
    has_it = "node a has it in slot 0, but has given no sign of life for"
    full = "queue 'q' is at its limit of 1 slot, used by 1 of type 'one'; node a, which has 1 of these slots, has given"
    for seconds, since, back, command in (
        (6, "6 seconds", "another node takes its jobs back once that has lasted 30 seconds", None),
        (31, "31 seconds", "another node is about to take its jobs back", None),
        (76, "76 seconds", "no other node has taken its jobs back", "spinney doctor"),
    ):
        # When it has been silent for a while
        running, limited = explained_after(seconds)
        # Then both are told of it, and no other limit is advised
        assert (running.cause, running.sentence) == ("silent", f"{has_it} {since}; {back}")
        assert (limited.cause, limited.sentence) == (
            "queue limit",
            f"{full} no sign of life for {since}; {back}",
        )
        assert running.command == limited.command == command
        assert running.start_us == (killed_us + 30_000_000 if seconds == 6 else None)


def test_what_may_not_run_twice_is_promised_no_start_when_its_node_is_silent(site: Site) -> None:
    site.knows(kind("once", "work", on_lost="orphan"))
    dead = site.node("a", types=("once",))
    job = site.submit_one("once")
    site.claim(dead)
    site.clock.forward(6)
    site.node("b")

    explanation = explain(site, job)

    assert (explanation.cause, explanation.facts["back"], explanation.start_us) == ("silent", "later", None)


def test_one_of_two_nodes_was_killed(site: Site) -> None:
    site.node("a", types=TYPES)
    site.clock.forward(150)
    site.node("b", types=TYPES)

    assert explain(site, site.submit_one()).cause == "next"


@pytest.mark.parametrize(("lifetime_s", "starts_s"), [(None, None), (60, 60), (3, 5)])
def test_what_waits_for_its_time_is_not_promised_a_start_under_a_hold(
    site: Site, lifetime_s: int | None, starts_s: int | None
) -> None:
    begun = site.now
    job = site.submit_one(at_us=begun + 5_000_000)
    until_us = None if lifetime_s is None else begun + lifetime_s * 1_000_000
    hold = site.store.holds.lay(Scope.TYPE, "one", "disk swap", ANN, until_us=until_us, now_us=begun)

    explanation = explain(site, job)

    assert explanation.cause == "scheduled"
    assert explanation.start_us == (None if starts_s is None else begun + starts_s * 1_000_000)
    assert (f"; hold {hold.id} on type one by ann: disk swap will keep it then" in explanation.sentence) == (
        starts_s != 5
    )


def test_a_retry_under_a_hold_is_promised_no_start(site: Site) -> None:
    job = site.submit_one("tenacious")
    site.record(site.claim_one(), Outcome.ERROR, message="no route")
    site.store.holds.lay(Scope.TREE, str(job), "why", ANN, now_us=site.now)

    explanation = explain(site, job)

    assert (explanation.cause, explanation.start_us, explanation.command) == (
        "retry",
        None,
        "spinney release --hold 1",
    )


def test_put_off_by_its_stage_after_an_attempt_that_failed(site: Site) -> None:
    job = site.submit_one("tenacious")
    site.record(site.claim_one(), Outcome.ERROR, message="no route")
    site.later(5)
    site.record(site.claim_one(), Outcome.DEFER, message="tape away", delay_s=30.0)

    explanation = explain(site, job)

    assert (explanation.cause, explanation.sentence) == (
        "scheduled",
        "its stage 'work' put it off: tape away",
    )


@pytest.mark.parametrize("swept", [False, True])
def test_a_hold_whose_time_is_over_and_that_nobody_has_ended(site: Site, swept: bool) -> None:
    node = site.node("a", types=TYPES)
    job = site.submit_one()
    site.store.holds.lay(Scope.TYPE, "one", "why", ANN, until_us=site.now + 10_000_000, now_us=site.now)
    while swept and site.store.holds.sweep(now_us=site.now):
        pass
    site.store.beat(node.id, now_us=site.clock.forward(11))

    explanation = explain(site, job)

    assert (explanation.cause, explanation.start_us, explanation.command) == (
        "released",
        None,
        "spinney release --hold 1",
    )
    assert "has come to its end" in explanation.sentence


def test_a_lock_with_a_blank_is_quoted_in_the_command(site: Site) -> None:
    node = site.node("a", types=TYPES)
    site.submit_one("locked", {"serno": "A b"})
    site.claim(node)
    site.store.update_node(node.id, state="left", now_us=site.now)
    site.node("b", types=TYPES)

    explanation = explain(site, site.submit_one("locked", {"serno": "A b"}))

    assert explanation.command == "spinney unlock 'receiver:A b'"


def test_one_that_failed_because_of_its_need_names_what_opens_it(site: Site) -> None:
    need = site.submit_one()
    job = site.submit_one(needs=(need,))
    last = site.submit_one(needs=(job,))
    site.fail(site.claim_one())

    explanation = explain(site, job)

    assert explanation.command == f"spinney retry {need}"
    assert explain(site, last).command == f"spinney explain {job}"
    site.retry(need)
    assert site.states([job, last]) == [State.WAITING, State.WAITING]


def test_one_whose_need_is_deleted_is_opened_by_nothing(site: Site) -> None:
    need = site.submit_one()
    job = site.submit_one(needs=(need,))
    site.cancel(need)
    site.delete(need)

    assert explain(site, job).command is None


def test_the_most_urgent_cannot_be_made_more_urgent(site: Site) -> None:
    node = site.node("a", slots=1, types=TYPES)
    site.submit(n=2, priority=0)
    site.claim(node)

    explanation = explain(site, site.submit_one(priority=0))

    assert (explanation.cause, explanation.command) == ("slots", None)


# --- agreement with the claim -----------------------------------------------------------------

NEVER = frozenset(
    {
        "hold",
        "own hold",
        "queue limit",
        "share",
        "lock",
        "needs",
        "children",
        "scheduled",
        "retry",
        "lane asleep",
        "unknown type",
        "unknown stage",
        "no node",
        "draining",
        "slots",
        "priority",
        "serial",
        "claimed",
        "running",
        "settled",
        "cancelling",
        "accepted",
        "released",
        "drained",
        "pinned",
        "barred",
        "not served",
    }
)

ACT = st.sampled_from(
    [
        "submit",
        "urgent",
        "limited",
        "quota",
        "locked",
        "needs",
        "later",
        "tenacious",
        "claim",
        "pass",
        "fail",
        "hold",
        "sweep",
        "lift",
        "forward",
        "lane",
        "pin",
        "bar",
        "open",
        "drain",
        "resume",
        "slots",
    ]
)


@pytest.mark.timeout(600)
# A failure is shown as it was found, at once.
@settings(
    suppress_health_check=[HealthCheck.too_slow],
    deadline=None,
    max_examples=40,
    phases=[Phase.explicit, Phase.generate],
)
@given(acts=st.lists(ACT, min_size=1, max_size=25), choose=st.randoms(use_true_random=False))
def test_what_is_next_is_claimed_and_what_waits_is_not(opener: str, acts: list[str], choose: Any) -> None:
    with PLACES[opener](usual=True) as another:
        store = another()
        _compare(Site(store, Clock()), acts, choose)


def _compare(site: Site, acts: list[str], choose: Any) -> None:
    types = (*TYPES, "patient")
    site.knows(
        kind("patient", stage("work", max_attempts=9, backoff=Backoff(base_s=9, jitter=0.0))),
        kind("twice", stage("work", locks=locked("receiver:{serno}"))),
        queues=[
            QueueSpec(name="q", limit=1),
            QueueSpec(name="s", sharing="quota"),
            QueueSpec(name="default"),
        ],
    )
    first = QueueSelection(ignored=choose.choice([(), (), ("q",)]))
    slots = choose.choice([1, 2])
    both = [site.node("a", slots=3, types=types, serves=first), site.node("b", slots=slots, types=types)]
    jobs: list[int] = []
    held: list[Lease] = []
    for act in acts:
        _do(act, site, both, jobs, held, choose)

    node = choose.choice(both)
    explanations = {job: explain(site, job) for job in jobs}
    lanes = {key: want for key, want in site.lanes().items() if key[0] in types}
    free = [SlotRequest(slot, 1, 1e5, True) for slot in node.free()]
    claimed = {
        lease.job_id
        for lease in site.flush_and_claim([], ClaimRequest(node_id=node.id, slots=free, lanes=lanes)).leases
    }

    for job, explanation in explanations.items():
        assert explanation.sentence
        if explanation.cause == "next":
            assert job in claimed or node.name not in explanation.facts["nodes"], explanation
        elif explanation.cause in NEVER:
            assert job not in claimed, explanation
        else:
            assert explanation.cause == "turn", explanation


def _do(act: str, site: Site, both: list[Any], jobs: list[int], held: list[Lease], choose: Any) -> None:
    store, now = site.store, site.now
    node, queue = choose.choice(both), choose.choice(["q", "s", "default"])
    match act:
        case "submit":
            jobs += site.submit(n=choose.randint(1, 3), priority=choose.choice([None, 3, 70]))
        case "urgent":
            jobs.append(site.submit_one(priority=0))
        case "limited":
            jobs += site.submit(n=2, queue="q")
        case "quota":
            jobs += site.submit(n=2, queue="s", share=choose.choice(["ann", "bob"]))
        case "locked":
            jobs.append(site.submit_one(choose.choice(["locked", "twice"]), {"serno": choose.choice("AB")}))
        case "needs" if jobs:
            jobs.append(site.submit_one(needs=(choose.choice(jobs),)))
        case "later":
            jobs.append(site.submit_one(at_us=now + 7_000_000))
        case "tenacious":
            jobs.append(site.submit_one("patient"))
        case "claim":
            held += site.claim(node, slots=1)
        case "pass" if held:
            site.pass_(held.pop(choose.randrange(len(held))))
        case "fail" if held:
            site.record(held.pop(choose.randrange(len(held))), Outcome.ERROR)
        case "lane" if held:
            site.record(held.pop(choose.randrange(len(held))), Outcome.DEFER, lane=True, delay_s=20.0)
        case "hold":
            open_ = [job for job in jobs if site.store.job(job).state not in SETTLED]
            scope, name = choose.choice(
                [
                    (Scope.QUEUE, "q"),
                    (Scope.TYPE, "one"),
                    (Scope.EVERYTHING, ""),
                    *((Scope.JOB, str(j)) for j in open_),
                ]
            )
            store.holds.lay(scope, name, "why", ANN, now_us=now)
        case "sweep":
            while store.holds.sweep(now_us=now):
                pass
        case "lift":
            for hold in store.holds.all()[:2]:
                store.holds.lift(hold.id, ANN, now_us=now)
        case "pin":
            pinned = choose.choice([node.name, node.name, "c"])
            store.queue_admin.change(queue, QueueChange(pin=(pinned,)), ANN, now_us=now)
        case "bar":
            store.queue_admin.change(queue, QueueChange(bar=(node.name,)), ANN, now_us=now)
        case "open":
            store.queue_admin.change(queue, QueueChange(set={"pinned": (), "barred": ()}), ANN, now_us=now)
        case "drain":
            store.fleet.drain(node.name, ANN, now_us=now)
        case "resume" if store.fleet.orders(node.name).drained:
            store.fleet.resume(node.name, ANN, now_us=now)
        case "slots":
            # No more than it has here: a real node would make the others, and offer them.
            store.fleet.set_slots(node.name, choose.choice([1, min(2, node.slots), None]), ANN, now_us=now)
        case "forward":
            site.clock.forward(8)
            for each in both:
                store.beat(each.id, now_us=site.now)
            store.sweep(now_us=site.now)
