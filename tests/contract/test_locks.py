"""Locks: named places that a stage must have while it runs, or a job until it settles."""

import pytest

from spinney.model.errors import UsageError
from spinney.model.jobs import Lease
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.outcomes import Outcome
from spinney.model.rights.actor import Actor
from spinney.model.settings.capacities import LockCapacity
from spinney.model.settings.holds import Scope
from spinney.model.settings.queues import QueueSpec
from spinney.model.states import State
from spinney.model.types import LockSpec

from .behind import PASSED_BY_MOST
from .words import Site, kind, locked, stage

SERNO = {"serno": "SG-1"}
LOCK = "receiver:SG-1"
ANN = Actor(by="ann", call="c1", reason="")


def _rivals(site: Site, n: int = 3) -> tuple[Lease, list[int]]:
    """``n`` jobs that want the same lock: the lease of the first, and the ids of those that wait."""
    ids = site.submit("locked", *[SERNO] * n)
    (lease,) = site.claim()
    assert lease.job_id == ids[0]
    return lease, ids[1:]


def test_one_at_a_time_has_a_lock(site: Site) -> None:
    _rivals(site)

    assert site.claim() == []


def test_who_meets_a_taken_lock_waits_and_says_for_which(site: Site) -> None:
    _, waiting = _rivals(site)

    for job in map(site.job, waiting):
        assert (job.state, job.waits_for) == (State.WAITING, f"lock:{LOCK}")
        assert job.message == f"waits for the lock {LOCK!r}"


def test_other_names_are_other_locks(site: Site) -> None:
    _rivals(site)
    other = site.submit_one("locked", {"serno": "SG-2"})

    assert site.claim_one().job_id == other


def test_a_lock_is_one_over_all_nodes_and_all_types(site: Site) -> None:
    site.knows(kind("also", stage("read", locks=locked("receiver:{serno}"))))
    _rivals(site, n=1)
    job = site.submit_one("also", SERNO)

    assert site.claim(site.node("other")) == []
    assert site.job(job).waits_for == f"lock:{LOCK}"


def test_a_name_without_fields_is_one_lock_for_all(site: Site) -> None:
    site.knows(kind("printer", stage("work", locks=locked("printer"))))
    site.submit("printer", n=3)

    assert len(site.claim()) == 1


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome.OK,
        Outcome.WARNING,
        Outcome.FINISH,
        Outcome.ERROR,
        Outcome.TIMEOUT,
        Outcome.DIED,
        Outcome.DEFER,
        Outcome.HOLD,
    ],
)
def test_however_an_attempt_ends_the_first_that_waits_is_moved_back(site: Site, outcome: Outcome) -> None:
    lease, (first, second) = _rivals(site)

    site.record(lease, outcome, delay_s=60.0)

    assert site.states([first, second]) == [State.PENDING, State.WAITING]
    assert [le.job_id for le in site.claim()] == [first]


def test_a_recovered_nodes_lock_is_free(site: Site) -> None:
    ids = site.submit("locked", SERNO, SERNO)
    node = site.node("n")
    site.start(*site.claim(node))

    site.recover(node)

    assert sorted(job for job, _ in site.drain()) == ids


def test_a_cancelled_attempts_lock_goes_to_the_next(site: Site) -> None:
    lease, (first, _) = _rivals(site)
    site.cancel(lease.job_id)

    site.record(lease, Outcome.CANCELLED)

    assert site.claim_one().job_id == first


def test_all_that_wait_get_their_turn_in_order(site: Site) -> None:
    lease, waiting = _rivals(site, n=6)
    site.pass_(lease)

    assert [job for job, _ in site.drain()] == waiting


def test_who_waited_goes_before_who_came_later(site: Site) -> None:
    lease, (waiting,) = _rivals(site, n=2)
    site.submit_one("locked", SERNO)

    site.pass_(lease)

    assert site.claim_one().job_id == waiting


def test_who_waited_gets_the_lock_in_the_transaction_that_frees_it(site: Site) -> None:
    lease, (waiting,) = _rivals(site, n=2)

    answer = site.flush_and_claim([site.entry(lease)], site.want(site.here))

    assert [le.job_id for le in answer.leases] == [waiting]


def test_a_cancelled_waiter_holds_nobody_up(site: Site) -> None:
    lease, (first, second) = _rivals(site)
    site.cancel(first)

    site.pass_(lease)

    assert site.claim_one().job_id == second


def test_a_job_moved_back_and_then_cancelled_holds_nobody_up(site: Site) -> None:
    lease, (first, second) = _rivals(site)
    site.pass_(lease)
    assert site.state(first) is State.PENDING

    site.cancel(first)
    site.sweep()

    assert site.claim_one().job_id == second


def test_short_steps_of_housekeeping_reach_all_locks_that_have_room(site: Site) -> None:
    # Given more locks with waiting jobs than one step looks at
    rows = [{"serno": f"SG-{n}"} for n in range(5)] * 3
    ids = site.submit("locked", *rows)
    site.claim()
    site.claim()
    # When an application declares that two may have each of them
    site.store.register([], [], [LockCapacity(name="receiver:*", capacity=2)])
    # Then a second job of every lock goes on, and the scan begins again at the first lock
    for _ in range(3):
        site.store.sweep(now_us=site.now, limit=2)
    assert site.states(ids[5:10]) == [State.PENDING] * 5
    site.store.register([], [], [LockCapacity(name="receiver:*", capacity=3)])
    for _ in range(3):
        site.store.sweep(now_us=site.now, limit=2)
    assert site.states(ids[10:]) == [State.PENDING] * 5


def test_housekeeping_does_not_pass_over_a_lock_of_which_it_woke_only_some_jobs(site: Site) -> None:
    # Given more jobs that wait for one lock than one transaction wakes, and a second lock behind it
    count = 2 * PASSED_BY_MOST + 10
    many = site.submit("locked", *[{"serno": "SG-1"}] * count)
    others = site.submit("locked", *[{"serno": "SG-2"}] * 2)
    while site.states([*many, *others]).count(State.WAITING) < count:
        site.claim()
    # When all of them may have both locks, and steps look at one lock each
    site.store.register([], [], [LockCapacity(name="receiver:*", capacity=count)])
    steps = 1
    while site.store.sweep(now_us=site.now, limit=1).more:
        steps += 1
    site.store.sweep(now_us=site.now, limit=1)
    # Then the first lock is continued until none waits for it, and then the second one follows
    assert State.WAITING not in site.states([*many, *others])
    assert steps == 3


def test_two_jobs_with_one_lock_are_not_given_ahead_to_one_slot(site: Site) -> None:
    site.submit("locked", SERNO, SERNO, SERNO)
    node = site.node("n", slots=1)

    assert len(site.claim(node, jobs=10, run_us=1.0)) == 1


def test_many_jobs_that_wait_for_a_lock_bar_nobody_else(site: Site) -> None:
    site.submit("locked", *[SERNO] * 300)
    other = site.submit_one()

    claimed = []
    for _ in range(20):
        claimed += [lease.job_id for lease in site.claim()]
    assert other in claimed
    assert len(claimed) == 2


def test_a_claim_that_ends_before_the_jobs_behind_those_that_wait_says_to_claim_again(site: Site) -> None:
    site.submit("locked", *[SERNO] * 1000, share="x")
    free = site.submit_one("locked", {"serno": "SG-2"}, share="x")

    claimed: list[int] = []
    waiting = [0]
    answer = site.flush_and_claim([], site.want(site.here))
    while answer.claim_again:
        claimed += [lease.job_id for lease in answer.leases]
        waiting.append(site.count()["waiting"])
        answer = site.flush_and_claim([], site.want(site.here))
    claimed += [lease.job_id for lease in answer.leases]

    assert (len(claimed), claimed[-1]) == (2, free)
    assert waiting == sorted(set(waiting))  # each such claim has moved some, so that the claims end


def test_a_claim_fails_a_limited_number_of_jobs_whose_lock_has_no_name(site: Site) -> None:
    site.knows(kind("t", "work"))
    site.submit("t", n=1000)
    site.knows(kind("t", stage("work", locks=locked("receiver:{serno}"))))

    answer = site.flush_and_claim([], site.want(site.here, slots=1))

    assert answer.claim_again
    assert site.count()[State.PENDING] > 500


def test_a_claim_that_has_looked_at_all_jobs_does_not_say_to_claim_again(site: Site) -> None:
    site.submit("locked", *[SERNO] * 50)

    assert [site.flush_and_claim([], site.want(site.here)).claim_again for _ in range(2)] == [False, False]


# --- until the job settles ------------------------------------------------------------------


@pytest.fixture
def keeping(site: Site) -> Site:
    site.knows(
        kind("keeper", stage("first", locks=locked("receiver:{serno}", until="job")), "second", "third")
    )
    return site


def test_a_lock_may_be_kept_over_stages_until_the_job_settles(keeping: Site) -> None:
    keeper = keeping.submit_one("keeper", SERNO)
    keeping.pass_(keeping.run(keeper))
    rival = keeping.submit_one("locked", SERNO)

    assert [le.job_id for le in keeping.claim()] == [keeper]
    assert keeping.state(rival) is State.WAITING


@pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
def test_a_settled_job_has_given_its_locks_back(keeping: Site, end: str) -> None:
    keeper = keeping.submit_one("keeper", SERNO)
    keeping.pass_(keeping.run(keeper))
    rival = keeping.submit_one("locked", SERNO)
    lease = keeping.claim_by_job()[keeper]

    match end:
        case "complete":
            keeping.pass_(lease)
            keeping.pass_(keeping.run(keeper))
        case "fail":
            keeping.fail(lease)
        case "cancel":
            keeping.cancel(keeper)
            keeping.record(lease, Outcome.CANCELLED)

    assert keeping.claim_one().job_id == rival


def test_a_job_that_is_deferred_keeps_its_lock(keeping: Site) -> None:
    keeper = keeping.submit_one("keeper", SERNO)
    keeping.record(keeping.run(keeper), Outcome.DEFER, delay_s=60.0)
    rival = keeping.submit_one("locked", SERNO)

    assert keeping.claim() == []
    assert keeping.state(rival) is State.WAITING


def test_a_job_passes_its_own_lock(keeping: Site) -> None:
    keeping.knows(
        kind(
            "both",
            stage("first", locks=locked("receiver:{serno}", until="job")),
            stage("second", locks=locked("receiver:{serno}")),
            "third",
        )
    )
    job = keeping.submit_one("both", SERNO)

    ran = keeping.drain()

    assert [name for _, name in ran] == ["first", "second", "third"]
    assert keeping.state(job) is State.COMPLETED


def test_a_job_whose_attempt_was_lost_keeps_its_lock_for_its_next(keeping: Site) -> None:
    keeper = keeping.submit_one("keeper", SERNO)
    node = keeping.node("n")
    keeping.run(keeper, node)
    keeping.submit_one("locked", SERNO)

    keeping.recover(node)

    assert [le.job_id for le in keeping.claim(slots=1)] == [keeper]


# --- several --------------------------------------------------------------------------------


@pytest.fixture
def several(site: Site) -> Site:
    both = (LockSpec(template="left:{a}"), LockSpec(template="right:{b}"))
    site.knows(
        kind("both", stage("work", locks=both)),
        kind("left", stage("work", locks=locked("left:{a}"))),
        kind("right", stage("work", locks=locked("right:{b}"))),
    )
    return site


@pytest.mark.parametrize(("first", "then"), [("left", "right"), ("right", "left")])
def test_several_locks_are_taken_all_or_none(several: Site, first: str, then: str) -> None:
    place = {"a": 1, "b": 1}
    owner = several.submit_one(first, place)
    lease = several.run(owner)
    wants_both = several.submit_one("both", place)
    free = several.submit_one(then, place)

    assert [le.job_id for le in several.claim()] == [free]
    assert several.job(wants_both).waits_for == f"lock:{first}:1"
    assert lease.job_id == owner


def test_who_needs_several_goes_on_when_all_are_free(several: Site) -> None:
    place = {"a": 1, "b": 1}
    left, right = several.submit_one("left", place), several.submit_one("right", place)
    leases = several.claim_by_job()
    wants_both = several.submit_one("both", place)
    assert several.claim() == []

    several.pass_(leases[left])
    assert several.claim() == []
    several.pass_(leases[right])

    assert several.claim_one().job_id == wants_both


def test_crosswise_wants_do_not_lock_each_other_out(several: Site) -> None:
    crossed = (LockSpec(template="right:{b}"), LockSpec(template="left:{a}"))
    several.knows(kind("crossed", stage("work", locks=crossed)))
    place = {"a": 1, "b": 1}
    ids = [several.submit_one(t, place) for t in ("both", "crossed", "both", "crossed")]

    assert sorted(job for job, _ in several.drain()) == ids


# --- inside a stage -------------------------------------------------------------------------


def test_a_running_attempt_may_take_one_more_lock(site: Site) -> None:
    lease = site.run(site.submit_one())

    assert site.store.take_lock(lease.job_id, lease.fence, LOCK, "attempt", now_us=site.now) is True
    site.submit_one("locked", SERNO)

    assert site.claim() == []


def test_to_take_what_one_has_is_no_mistake(site: Site) -> None:
    lease = site.run(site.submit_one("locked", SERNO))

    assert site.store.take_lock(lease.job_id, lease.fence, LOCK, "attempt", now_us=site.now) is True
    assert site.store.take_lock(lease.job_id, lease.fence, LOCK, "attempt", now_us=site.now) is True


def test_a_taken_lock_is_answered_at_once_with_no(site: Site) -> None:
    site.run(site.submit_one("locked", SERNO))
    lease = site.run(site.submit_one())

    assert site.store.take_lock(lease.job_id, lease.fence, LOCK, "attempt", now_us=site.now) is False


def test_an_attempt_that_met_a_taken_lock_starts_again_once_it_is_free(site: Site) -> None:
    owner = site.run(site.submit_one("locked", SERNO))
    lease = site.run(site.submit_one())
    site.store.take_lock(lease.job_id, lease.fence, LOCK, "attempt", now_us=site.now)

    site.record(lease, Outcome.LOCKED, lock=LOCK)

    job = site.job(lease.job_id)
    assert (job.state, job.waits_for, job.attempts) == (State.WAITING, f"lock:{LOCK}", 0)
    assert site.claim() == []
    site.pass_(owner)
    assert site.claim_one().job_id == lease.job_id


def test_a_lock_that_came_free_before_the_record_leaves_nobody_waiting(site: Site) -> None:
    owner = site.run(site.submit_one("locked", SERNO))
    lease = site.run(site.submit_one())
    assert not site.store.take_lock(lease.job_id, lease.fence, LOCK, "attempt", now_us=site.now)
    site.pass_(owner)

    site.record(lease, Outcome.LOCKED, lock=LOCK)

    assert site.claim_one().job_id == lease.job_id


def test_a_lock_taken_inside_is_free_when_the_attempt_has_ended(site: Site) -> None:
    lease = site.run(site.submit_one("three"))
    site.store.take_lock(lease.job_id, lease.fence, LOCK, "attempt", now_us=site.now)
    rival = site.submit_one("locked", SERNO)
    assert site.claim() == []

    site.pass_(lease)

    assert rival in site.claim_by_job()


def test_a_lock_taken_inside_may_be_kept_until_the_job_settles(site: Site) -> None:
    lease = site.run(site.submit_one("three"))
    site.store.take_lock(lease.job_id, lease.fence, LOCK, "job", now_us=site.now)
    site.pass_(lease)
    rival = site.submit_one("locked", SERNO)

    assert [le.stage for le in site.claim()] == ["second"]
    assert site.state(rival) is State.WAITING


def test_a_lock_named_like_a_path_is_refused(site: Site) -> None:
    lease = site.run(site.submit_one())

    with pytest.raises(UsageError):
        site.store.take_lock(lease.job_id, lease.fence, "../etc", "attempt", now_us=site.now)


# --- locks that are reserved for a job that cannot run any more ---------------------------------


def test_a_job_that_is_moved_below_a_hold_lets_go_of_the_lock_reserved_for_it(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="shut")])
    lease, (first, second) = _rivals(site)
    site.pass_(lease)
    assert site.states([first, second]) == [State.PENDING, State.WAITING]
    site.store.holds.lay(Scope.QUEUE, "shut", "", ANN, now_us=site.now)

    site.store.bulk.apply(Order(verb=Verb.MOVE, queue="shut"), [first], ANN, job_filter=None, now_us=site.now)

    assert site.state(first) is State.HELD
    assert site.claim_one().job_id == second


@pytest.mark.parametrize(
    "verb", [Order(verb=Verb.MOVE, queue="open"), Order(verb=Verb.PRIORITY, priority=90)]
)
def test_a_job_that_stays_claimable_when_its_row_is_changed_keeps_the_lock_reserved_for_it(
    site: Site, verb: Order
) -> None:
    site.knows(queues=[QueueSpec(name="open")])
    lease, (first, _) = _rivals(site)
    site.pass_(lease)

    site.store.bulk.apply(verb, [first], ANN, job_filter=None, now_us=site.now)

    assert site.claim_one().job_id == first


def test_a_parent_that_waits_again_lets_go_of_the_lock_reserved_for_it(site: Site) -> None:
    site.knows(
        kind("above", "expand", stage("merge", locks=locked(LOCK)), children="settled"),
        kind("other", stage("work", locks=locked(LOCK))),
    )
    lease = site.run(site.submit_one("other"))
    parent, (child,) = site.family("above", n=1)
    site.fail(site.run(child))
    other = site.submit_one("other")
    assert site.claim() == []
    site.pass_(lease)
    assert site.states([parent, other]) == [State.PENDING, State.WAITING]

    site.retry(child)

    assert site.state(parent) is State.WAITING
    assert sorted(lease.job_id for lease in site.claim()) == [child, other]
