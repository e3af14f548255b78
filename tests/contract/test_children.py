"""Children are born with their stage; their parent waits without a slot and goes on by its policy."""

from collections.abc import Callable

import pytest

from spinney.model.access import AccessScope
from spinney.model.errors import DuplicateKey, NoSuchJob, UnknownType
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.outcomes import Outcome
from spinney.model.rights.actor import Actor
from spinney.model.states import State
from spinney.store.parts import Store

from .behind import new_jobs, staging
from .words import Site, kind, stage, submission

# --- birth ----------------------------------------------------------------------------------


def test_children_have_ids_at_once_and_are_seen_by_nobody_before_their_stage_has_passed(
    site: Site, open_another: Callable[[], Store]
) -> None:
    other = open_another()
    lease = site.run(site.submit_one("parent"))

    born = site.spawn(lease, n=3)

    assert len(set(born)) == 3
    assert site.ids() == [lease.job_id]
    assert site.children(lease.job_id) == []
    assert [job.id for job in site.store.tree(lease.job_id)] == [lease.job_id]
    assert sum(site.count().values()) == 1
    with pytest.raises(NoSuchJob):
        other.job(born[0])
    assert site.claim() == []


def test_what_children_come_to_is_told_of_many_parents_at_once(site: Site) -> None:
    first, (done, failed, open_) = site.family("batch", n=3)
    second, born = site.family("batch", n=2)
    none = site.submit_one()
    leases = site.claim_by_job()
    site.record(leases[done], Outcome.WARNING, message="odd")
    site.fail(leases[failed])
    site.start(leases[open_])

    summaries = site.store.below([first, second, none])

    assert {parent: dict(below.states) for parent, below in summaries.items()} == {
        first: {"completed": 1, "failed": 1, "running": 1},
        second: {"claimed": 2},
    }
    assert [summaries[parent].warnings for parent in (first, second)] == [1, 0]
    assert site.store.below([first], within=AccessScope(collections=("others",))) == {}
    # What a stage bore that ran again counts no more.
    site.pass_(*(leases[child] for child in born), leases[open_])
    site.drain()
    site.rerun(second)
    assert second not in site.store.below([first, second])


def test_children_are_born_in_the_transaction_that_records_their_stage(
    site: Site, open_another: Callable[[], Store]
) -> None:
    other = open_another()
    lease = site.run(site.submit_one("parent"))
    born = site.spawn(lease, n=2)

    answer = site.flush_and_claim([site.entry(lease)], site.want(site.here))

    assert sorted(le.job_id for le in answer.leases) == born
    assert [job.id for job in other.children(lease.job_id)] == born


def test_a_child_knows_its_parent_its_root_and_its_lineage(site: Site) -> None:
    grandparent, (parent,) = site.family(child="parent", n=1)
    lease = site.run(parent)
    (child,) = site.spawn(lease)
    site.pass_(lease)

    job = site.job(child)
    assert (job.parent_id, job.root_id) == (parent, grandparent)
    assert job.lineage == f"{grandparent:012d}.{parent:012d}.{child:012d}"


def test_ids_come_in_the_order_asked(site: Site) -> None:
    lease = site.run(site.submit_one("parent"))

    born = site.spawn_all(lease, submission("one", {"k": 1}, {"k": 2}), submission("three", {"k": 3}))
    site.pass_(lease)

    assert [(site.job(i).type, site.job(i).params["k"]) for i in born] == [
        ("one", 1),
        ("one", 2),
        ("three", 3),
    ]


def test_several_spawns_of_one_attempt_are_born_together(site: Site) -> None:
    lease = site.run(site.submit_one("parent"))
    born = [*site.spawn(lease, n=2), *site.spawn(lease, "three"), *site.spawn(lease, n=2)]

    site.pass_(lease)

    assert site.children(lease.job_id) == sorted(born)


@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.WARNING, Outcome.NOT_APPLICABLE, Outcome.FINISH])
def test_whatever_passes_bears_its_children(site: Site, outcome: Outcome) -> None:
    lease = site.run(site.submit_one("parent"))
    born = site.spawn(lease, n=2)

    site.record(lease, outcome)

    assert site.children(lease.job_id) == born
    assert site.state(lease.job_id) is State.WAITING


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome.ERROR,
        Outcome.TIMEOUT,
        Outcome.DIED,
        Outcome.DEFER,
        Outcome.HOLD,
        Outcome.RETURNED,
        Outcome.LOCKED,
    ],
)
def test_an_attempt_that_does_not_pass_leaves_none(site: Site, outcome: Outcome) -> None:
    lease = site.run(site.submit_one("parent"))
    born = site.spawn(lease, n=2)

    site.record(lease, outcome, lock="door" if outcome is Outcome.LOCKED else None)
    site.sweep()

    assert site.ids() == [lease.job_id]
    with pytest.raises(NoSuchJob):
        site.job(born[0])


def test_a_lost_attempt_leaves_none(site: Site) -> None:
    node = site.node("n")
    lease = site.run(site.submit_one("parent"), node)
    site.spawn(lease, n=3)

    site.recover(node)
    site.pass_(site.run(lease.job_id))

    assert site.children(lease.job_id) == []


def test_a_stage_that_runs_again_cannot_double_its_children(site: Site) -> None:
    site.knows(kind("t", stage("expand", max_attempts=2), "merge"))
    first = site.run(site.submit_one("t"))
    site.spawn(first, n=3)
    site.record(first, Outcome.ERROR)
    site.later(1)

    second = site.run(first.job_id)
    born = site.spawn(second, n=3)
    site.pass_(second)

    assert site.children(first.job_id) == born
    assert site.count() == {"waiting": 1, "pending": 3}


def test_an_unknown_type_among_children_is_refused_and_bears_nobody(site: Site) -> None:
    lease = site.run(site.submit_one("parent"))

    with pytest.raises(UnknownType):
        site.spawn_all(lease, submission(n=2), submission("nobody_knows_it"))
    site.pass_(lease)

    assert site.children(lease.job_id) == []


def test_a_child_for_later_is_scheduled_and_waited_for(site: Site) -> None:
    lease = site.run(site.submit_one("parent"))
    (child,) = site.spawn(lease, at_us=site.now + 60_000_000)
    site.pass_(lease)

    assert site.states([lease.job_id, child]) == [State.WAITING, State.SCHEDULED]
    site.later(60)
    site.drain()

    assert site.states([lease.job_id, child]) == [State.COMPLETED, State.COMPLETED]


# --- keys -----------------------------------------------------------------------------------


def test_a_child_with_a_key_is_born_at_once(site: Site) -> None:
    lease = site.run(site.submit_one("parent"))

    (child,) = site.spawn(lease, keys=("k",))

    assert site.state(child) is State.PENDING
    assert site.claim_one().job_id == child


def test_the_same_key_under_one_parent_is_the_same_child(site: Site) -> None:
    lease = site.run(site.submit_one("parent"))

    first = site.spawn(lease, n=2, keys=("a", "b"))
    second = site.spawn(lease, n=3, keys=("c", "b", "a"))

    assert second[1:] == first[::-1]
    assert site.children(lease.job_id) == sorted({*first, *second})
    assert len(site.children(lease.job_id)) == 3


def test_a_child_with_a_key_outlives_the_attempt_and_is_found_by_the_next(site: Site) -> None:
    site.knows(kind("t", stage("expand", max_attempts=2), "merge"))
    first = site.run(site.submit_one("t"))
    born = site.spawn(first, keys=("k",))
    site.record(first, Outcome.ERROR)
    assert site.children(first.job_id) == born
    site.later(1)

    second = site.claim_by_job()[first.job_id]

    assert site.spawn(second, keys=("k",)) == born


def test_the_same_key_is_still_the_same_child_when_that_has_settled(site: Site) -> None:
    lease = site.run(site.submit_one("parent"))
    (child,) = site.spawn(lease, keys=("k",))
    site.pass_(site.run(child))

    assert site.spawn(lease, keys=("k",)) == [child]
    assert site.state(child) is State.COMPLETED


def test_the_key_of_a_child_of_another_type_is_refused(site: Site) -> None:
    lease = site.run(site.submit_one("parent"))
    (child,) = site.spawn(lease, keys=("k",))

    with pytest.raises(DuplicateKey, match=f"taken for ever by job {child}; .* choose another key"):
        site.spawn(lease, "three", n=2, keys=("before", "k"))

    assert site.ids() == [lease.job_id, child]


def test_the_same_key_under_another_parent_is_another_child(site: Site) -> None:
    one, other = site.submit("parent", n=2)
    leases = site.claim_by_job()

    ours, theirs = (site.spawn(leases[p], keys=("k",)) for p in (one, other))

    assert ours != theirs
    assert (site.children(one), site.children(other)) == (ours, theirs)


def test_a_parent_goes_on_at_once_when_its_keyed_children_have_settled_before_it(site: Site) -> None:
    lease = site.run(site.submit_one("parent"))
    (child,) = site.spawn(lease, keys=("k",))
    site.pass_(site.run(child))

    site.pass_(lease)

    assert (site.state(lease.job_id), site.job(lease.job_id).stage) == (State.PENDING, "merge")


def test_a_parent_fails_because_of_a_keyed_child_that_failed_before_it_passed(site: Site) -> None:
    lease = site.run(site.submit_one("parent"))
    (child,) = site.spawn(lease, keys=("k",))
    site.fail(site.run(child))
    assert site.state(lease.job_id) is State.RUNNING

    site.pass_(lease)

    assert site.state(lease.job_id) is State.FAILED


# --- waiting --------------------------------------------------------------------------------


def test_a_parent_waits_for_its_children_without_a_slot(site: Site) -> None:
    node = site.node("n", slots=1)
    lease = site.run(site.submit_one("parent"), node)
    (child,) = site.spawn(lease)
    site.pass_(lease)

    parent = site.job(lease.job_id)
    assert (parent.state, parent.waits_for, parent.stage) == (State.WAITING, "children", "merge")
    assert parent.message == "waits for its subjobs"
    assert site.claim_one(node).job_id == child


def test_a_parent_without_children_does_not_wait(site: Site) -> None:
    parent = site.submit_one("parent")

    site.pass_(site.run(parent))

    assert site.state(parent) is State.PENDING


def test_the_last_child_that_completes_moves_its_parent_on_in_the_same_transaction(site: Site) -> None:
    parent, born = site.family(n=2)
    leases = site.claim_by_job()

    site.pass_(leases[born[0]])
    assert site.state(parent) is State.WAITING
    answer = site.flush_and_claim([site.entry(leases[born[1]])], site.want(site.here))

    assert [(le.job_id, le.stage) for le in answer.leases] == [(parent, "merge")]


def test_all_children_that_settle_in_one_exchange_move_their_parent_on(site: Site) -> None:
    parent, _ = site.family(n=20)

    site.pass_(*site.claim())

    assert (site.state(parent), site.job(parent).stage) == (State.PENDING, "merge")


def test_a_job_whose_last_stage_bore_children_completes_when_they_have(site: Site) -> None:
    parent, (child,) = site.family("one", n=1)
    assert site.state(parent) is State.WAITING

    site.pass_(site.run(child))

    assert (site.state(parent), site.job(parent).stage) == (State.COMPLETED, None)


def test_a_finished_job_waits_for_its_children_and_runs_no_later_stage(site: Site) -> None:
    lease = site.run(site.submit_one("three"))
    (child,) = site.spawn(lease)

    site.record(lease, Outcome.FINISH)
    assert site.drain() == [(child, "work")]

    assert site.state(lease.job_id) is State.COMPLETED
    assert site.stages_run(lease.job_id) == ["first"]


def test_every_stage_may_bear_children_and_is_waited_for(site: Site) -> None:
    parent = site.submit_one("three")
    for name in ("first", "second", "third"):
        lease = site.run(parent)
        assert lease.stage == name
        site.spawn(lease, n=2)
        site.pass_(lease)
        assert site.state(parent) is State.WAITING
        site.pass_(*site.claim())

    assert site.state(parent) is State.COMPLETED
    assert len(site.children(parent)) == 6


def test_only_a_stage_with_open_children_waits(site: Site) -> None:
    parent, _ = site.family(n=2)

    ran = site.drain()

    assert ran[-1] == (parent, "merge")
    assert site.state(parent) is State.COMPLETED


# --- policy ---------------------------------------------------------------------------------


def test_a_parent_fails_because_of_a_child_that_failed_when_the_last_has_settled(site: Site) -> None:
    parent, born = site.family(n=3)
    leases = site.claim_by_job()

    site.fail(leases[born[0]])
    site.pass_(leases[born[1]])
    assert site.state(parent) is State.WAITING
    site.pass_(leases[born[2]])

    failed = site.job(parent)
    assert (failed.state, failed.settled_us) == (State.FAILED, site.now)
    assert failed.message
    assert (failed.failed_because, site.job(born[0]).failed_because) == ("children", None)
    assert site.stages_run(parent) == ["expand"]


def test_a_cancelled_child_fails_its_parent_too(site: Site) -> None:
    parent, (child,) = site.family(n=1)

    site.cancel(child)

    assert site.state(parent) is State.FAILED


def test_an_orphaned_child_fails_its_parent_too(site: Site) -> None:
    site.knows(kind("fragile", "work", on_lost="orphan"))
    parent, (child,) = site.family(n=1, child="fragile")
    node = site.node("n")
    site.run(child, node)

    site.recover(node)

    assert site.states([child, parent]) == [State.ORPHANED, State.FAILED]


@pytest.mark.parametrize("end", ["fail", "cancel"])
def test_a_batch_goes_on_whatever_became_of_its_children(site: Site, end: str) -> None:
    batch, born = site.family("batch", n=2)
    leases = site.claim_by_job(slots=1)
    site.pass_(leases[born[0]])
    assert site.state(batch) is State.WAITING

    if end == "fail":
        site.fail(site.run(born[1]))
    else:
        site.cancel(born[1])

    assert (site.state(batch), site.job(batch).stage) == (State.PENDING, "report")


def test_a_batch_whose_child_failed_has_failed_when_it_has_reported(site: Site) -> None:
    batch, born = site.family("batch", n=2)

    ran = site.drain(failing={born[0]})

    assert ran[-1] == (batch, "report")
    assert site.state(batch) is State.FAILED
    assert str(born[0]) in (site.job(batch).message or "")


def test_a_batch_whose_child_was_orphaned_has_failed_when_it_has_reported(site: Site) -> None:
    site.knows(kind("fragile", "work", on_lost="orphan"))
    batch, (child,) = site.family("batch", n=1, child="fragile")
    node = site.node("n")
    site.run(child, node)

    site.recover(node)

    assert site.drain() == [(batch, "report")]
    assert site.states([batch, child]) == [State.FAILED, State.ORPHANED]


def test_a_batch_of_which_a_child_was_cancelled_completes_all_the_same(site: Site) -> None:
    batch, born = site.family("batch", n=2)
    site.cancel(born[0])

    assert site.drain() == [(born[1], "work"), (batch, "report")]

    assert site.states([batch, *born]) == [State.COMPLETED, State.CANCELLED, State.COMPLETED]


def test_a_parent_that_fails_because_of_its_children_fails_its_own_parent(site: Site) -> None:
    root, (middle,) = site.family(child="parent", n=1)
    lease = site.run(middle)
    (leaf,) = site.spawn(lease)
    site.pass_(lease)

    site.fail(site.run(leaf))

    assert site.states([root, middle, leaf]) == [State.FAILED] * 3


def test_a_tree_of_three_levels_completes_from_the_leaves_to_the_root(site: Site) -> None:
    root, middles = site.family(child="parent", n=2)
    for lease in site.claim():
        site.spawn(lease, n=2)
        site.pass_(lease)
    assert site.states([root, *middles]) == [State.WAITING] * 3

    ran = site.drain()

    assert [job for job, _ in ran][-1] == root
    assert [job for job, _ in ran].index(middles[0]) > 0
    assert set(site.count()) == {"completed"}


def test_a_failed_leaf_shows_up_to_the_root_through_a_batch_that_has_reported(site: Site) -> None:
    root, (batch,) = site.family(child="batch", n=1)
    lease = site.run(batch)
    (leaf,) = site.spawn(lease)
    site.pass_(lease)

    ran = site.drain(failing={leaf})

    assert ran == [(leaf, "work"), (batch, "report")]
    assert site.states([root, batch, leaf]) == [State.FAILED] * 3


def test_many_children_with_keys_are_born_in_steps_and_once(site: Site) -> None:
    site.submit_one("parent")
    lease = site.claim_one()
    keys = [f"k{n}" for n in range(350)]

    first = site.spawn(lease, n=350, keys=keys)
    again = site.spawn(lease, n=350, keys=keys)

    assert len(set(first)) == 350
    assert again == first
    assert site.count(parent_id=lease.job_id) == {"pending": 350}


# --- children that run before their turn to be placed -------------------------------------------


def _with_an_early_child(site: Site, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """A parent whose many children are accepted and not placed yet, except the last, which an operator made ready."""
    monkeypatch.setattr(new_jobs, "STEP", 100)  # a claim and a record leave a third of them
    parent = site.submit_one("parent")
    lease = site.run(parent)
    children = site.spawn(lease, n=staging.INLINE + 1)
    site.pass_(lease)
    for order in (Order(verb=Verb.HOLD, reason="a look at it"), Order(verb=Verb.PRIORITY, priority=1)):
        site.store.bulk.apply(order, [children[-1]], Actor(by="ann", call="c"), now_us=site.now)
    site.release(children[-1])
    return parent, children[-1]


def test_a_child_that_is_deferred_before_its_turn_to_be_placed_is_waited_for(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a child that ran early, and waits for another attempt
    parent, child = _with_an_early_child(site, monkeypatch)
    site.record(site.run(child), Outcome.DEFER, delay_s=60.0)
    # When all others are placed and have completed
    site.sweep()
    others = site.drain()
    # Then the parent waits for this one
    assert child not in [job for job, _ in others]
    assert (site.state(child), site.state(parent)) == (State.SCHEDULED, State.WAITING)
    site.later(60)
    assert site.drain() == [(child, "work"), (parent, "merge")]


def test_a_child_that_waits_before_its_turn_to_be_placed_runs_no_stage_twice(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a child that ran early, and waits for a child of its own
    parent, child = _with_an_early_child(site, monkeypatch)
    lease = site.run(child)
    (grandchild,) = site.spawn(lease)
    site.pass_(lease)
    # When all are placed
    site.sweep()
    # Then it still waits, and completes with its child
    assert (site.state(child), site.job(child).waits_for) == (State.WAITING, "children")
    ran = site.drain()
    assert (grandchild, "work") in ran
    assert child not in [job for job, _ in ran]
    assert site.states([child, parent]) == [State.COMPLETED, State.COMPLETED]
