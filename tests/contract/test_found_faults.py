"""Faults that were found by looking for them, each told as it was met."""

import pytest

from spinney.model.errors import Refused
from spinney.model.outcomes import Outcome
from spinney.model.settings.queues import QueueSpec
from spinney.model.states import State

from .words import Site, kind, locked, stage, submission


def test_slots_stay_busy_when_the_last_share_in_turn_holds_a_long_job(site: Site) -> None:
    share_of = {job: n for n in range(10) for job in site.submit(n=30, share=f"u{n}")}
    node, live = site.node("n", slots=4), {}

    for _ in range(16):
        live |= {lease.fence: lease for lease in site.claim(node)}
        assert len(live) == 4
        short = [fence for fence in sorted(live) if share_of[live[fence].job_id] != 9]
        site.pass_(*(live.pop(fence) for fence in short[:2]))


def test_two_jobs_of_a_serial_tree_never_run_at_once_however_many_are_opened_again(site: Site) -> None:
    site.knows(kind("line", "expand", "end", serial=True, children="settled"))
    lease = site.run(site.submit_one("line"))
    born = site.spawn(lease, n=3)
    site.pass_(lease)
    site.fail(site.claim_one())
    site.fail(site.claim_one())
    running = site.claim_one()
    site.start(running)

    site.retry(born[1])
    site.retry(born[0])

    assert site.claim() == []
    site.pass_(running)
    assert [job for job, _ in site.drain()][:2] == born[:2]


def test_a_queue_that_changes_its_sharing_loses_nothing_that_comes_back(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q")])
    job = site.submit_one(queue="q")
    lease = site.claim_one()
    site.store.register([], [QueueSpec(name="q", sharing="none")])

    site.record(lease, Outcome.RETURNED, started_us=0)

    assert site.claim_one().job_id == job


def test_a_tree_is_cancelled_behind_any_number_of_settled_jobs(site: Site) -> None:
    site.knows(kind("sub", "grow"))
    top = site.submit_one("batch")
    lease = site.run(top)
    site.spawn(lease, n=230)
    (branch,) = site.spawn(lease, "sub")
    site.pass_(lease)
    while leases := site.claim(lanes=[("one", "work")]):
        site.pass_(*leases)
    (lease,) = site.claim(lanes=[("sub", "grow")])
    site.spawn(lease, keys=("k",))
    site.record(lease, Outcome.HOLD)

    site.cancel(top, tree=True)
    for _ in range(5):
        site.later(60)

    assert (site.state(branch), site.state(top)) == (State.CANCELLED, State.CANCELLED)
    site.retry(top)


def test_locks_kept_over_stages_do_not_block_a_serial_line(site: Site) -> None:
    both = [stage(name, locks=locked("r:{x}", "job")) for name in ("a", "b")]
    site.knows(kind("line", "expand", "end", serial=True, children="settled"), kind("c", *both))
    lease = site.run(site.submit_one("line"))
    born = site.spawn_all(lease, submission("c", {"x": 1}, {"x": 1}))
    site.pass_(lease)
    site.fail(site.claim_one())
    second = site.claim_one()

    site.retry(born[0])
    site.pass_(second)
    site.drain()

    assert site.states(born) == [State.COMPLETED] * 2


def test_a_child_runs_under_the_lock_that_its_parent_keeps(site: Site) -> None:
    site.knows(
        kind("above", stage("a", locks=locked("r:{x}", "job")), "b"),
        kind("below", stage("w", locks=locked("r:{x}"))),
    )
    parent = site.submit_one("above", {"x": 1})
    lease = site.run(parent)
    born = site.spawn_all(lease, submission("below", {"x": 1}, {"x": 1}))
    site.pass_(lease)

    assert len(site.claim()) == 1, "the lock is the children's one after the other"
    site.recover(site.here)
    site.drain(node=site.node("other", slots=4))

    assert site.states([parent, *born]) == [State.COMPLETED] * 3


def test_children_with_and_without_keys_are_not_born_by_one_call(site: Site) -> None:
    lease = site.run(site.submit_one("parent"))

    with pytest.raises(Refused, match="separate calls"):
        site.spawn_all(lease, submission(keys=("k",)), submission())


def test_a_keyed_child_that_is_spawned_again_while_open_is_waited_for(site: Site) -> None:
    parent = site.submit_one("parent")
    lease = site.run(parent)
    (child,) = site.spawn(lease, keys=("k",))
    site.pass_(lease)
    site.fail(site.claim_one())
    site.rerun(parent)
    site.retry(child)
    leases = site.claim_by_job()

    site.spawn(leases[parent], keys=("k",))
    site.pass_(leases[parent])

    assert site.state(parent) is State.WAITING


def test_a_queue_that_was_shut_keeps_no_slot_for_the_next_stage(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q")])
    site.submit_one("three", queue="q")
    node = site.node("n", slots=1)
    lease = site.claim_one(node)
    site.store.register([], [QueueSpec(name="q", limit=0)])

    assert site.flush_and_claim([site.entry(lease, keep=True)], site.want(node)).leases == []


def test_a_lane_that_probes_is_not_in_the_way_of_others(site: Site) -> None:
    site.knows(kind("a", "work"), kind("b", "work"))
    site.submit("a", share="x")
    site.record(site.claim_one(), Outcome.DEFER, delay_s=10, lane=True)
    site.submit("a", n=20, share="x")
    site.submit("b", n=20, share="x")
    site.later(11)

    assert sorted(lease.type for lease in site.claim(slots=4)) == ["a", "b", "b", "b"]


def test_a_lane_sleeps_in_every_queue(site: Site) -> None:
    site.submit_one()
    site.submit_one(queue="other")

    site.record(site.claim_one(), Outcome.DEFER, delay_s=60, lane=True)

    assert site.claim() == []
