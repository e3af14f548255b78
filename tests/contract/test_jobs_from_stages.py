"""Jobs of their own that a stage submits: born with it, and from then on nothing ties them to it. And the priority
that a stage gives to its own job."""

from collections.abc import Callable

import pytest

from long_tests import LONG
from spinney.model.errors import DuplicateKey, NoSuchJob, Refused, StaleFence, UnknownType, UsageError
from spinney.model.jobs import Lease
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.outcomes import Outcome
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Scope
from spinney.model.states import State
from spinney.store.parts import Store

from .words import Site, kind, stage, submission

MANY = 700 if LONG else 450
"""More than are put in place by the transaction that records the stage, or in one step."""

# --- birth ----------------------------------------------------------------------------------


def test_they_have_ids_at_once_and_are_seen_by_nobody_before_their_stage_has_passed(
    site: Site, open_another: Callable[[], Store]
) -> None:
    other = open_another()
    lease = site.run(site.submit_one())

    sent = site.submit_from(lease, n=3)

    assert len(set(sent)) == 3
    assert site.ids() == [lease.job_id]
    with pytest.raises(NoSuchJob):
        other.job(sent[0])
    assert site.claim() == []


def test_they_are_born_at_the_top_in_the_transaction_that_records_their_stage(
    site: Site, open_another: Callable[[], Store]
) -> None:
    other = open_another()
    lease = site.run(site.submit_one("parent"))
    sent = site.submit_from(lease, n=2)

    answer = site.flush_and_claim([site.entry(lease)], site.want(site.here))

    assert sorted(le.job_id for le in answer.leases) == [lease.job_id, *sent]
    assert [(other.job(i).parent_id, other.job(i).root_id, other.job(i).lineage) for i in sent] == [
        (None, i, f"{i:012d}") for i in sent
    ]
    assert [(le.parent_id, le.root_id) for le in answer.leases if le.job_id in sent] == [
        (None, i) for i in sent
    ]
    assert site.children(lease.job_id) == []


@pytest.mark.parametrize(
    ("outcome", "n"),
    [
        (Outcome.OK, 1),
        (Outcome.OK, MANY),
        (Outcome.WARNING, 1),
        (Outcome.NOT_APPLICABLE, 1),
        (Outcome.FINISH, 1),
    ],
)
def test_whatever_passes_bears_them_all(site: Site, outcome: Outcome, n: int) -> None:
    lease = site.run(site.submit_one())
    sent = site.submit_from(lease, n=n)

    site.record(lease, outcome)

    assert site.state(lease.job_id) is State.COMPLETED
    assert site.ids() == [lease.job_id, *sent]
    assert sorted(job for job, _ in site.drain()) == sent


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
    lease = site.run(site.submit_one())
    site.submit_from(lease, n=MANY if outcome is Outcome.ERROR else 1)

    site.record(lease, outcome, lock="door" if outcome is Outcome.LOCKED else None)
    site.sweep()

    assert site.ids() == [lease.job_id]


def test_a_lost_attempt_leaves_none_and_the_next_does_not_double_them(site: Site) -> None:
    node = site.node("n")
    first = site.run(site.submit_one(), node)
    site.submit_from(first, n=3)
    site.recover(node)

    second = site.run(first.job_id)
    sent = site.submit_from(second, n=3)
    site.pass_(second)
    site.sweep()

    assert site.ids() == [first.job_id, *sent]


def test_housekeeping_leaves_alone_what_a_running_attempt_has_submitted(site: Site) -> None:
    lease = site.run(site.submit_one())
    sent = site.submit_from(lease, n=2)

    site.later(3600)
    site.pass_(lease)

    assert site.ids() == [lease.job_id, *sent]


def test_several_thousand_are_born_together(site: Site) -> None:
    lease = site.run(site.submit_one())

    sent = site.submit_from(lease, n=4500)
    assert site.ids() == [lease.job_id]
    site.pass_(lease)

    assert site.ids() == [lease.job_id, *sent]
    site.sweep()
    assert site.count() == {"completed": 1, "pending": 4500}


def test_a_late_attempt_submits_nothing(site: Site) -> None:
    lease = site.run(site.submit_one())
    site.pass_(lease)

    with pytest.raises(StaleFence):
        site.submit_from(lease)
    with pytest.raises(StaleFence):
        site.submit_from(lease, keys=("k",))

    assert site.ids() == [lease.job_id]


def test_an_unknown_type_is_refused_and_nothing_is_born(site: Site) -> None:
    lease = site.run(site.submit_one())

    with pytest.raises(UnknownType):
        site.submit_from(lease, "nobody_knows_it")
    with pytest.raises(Refused, match="separate calls"):
        site.store.submit_from(
            lease.job_id, lease.fence, [submission(), submission(keys=("k",))], now_us=site.now
        )
    site.pass_(lease)

    assert site.ids() == [lease.job_id]


# --- what it takes from the job that submits -------------------------------------------------


def test_it_takes_collection_and_submitter_and_nothing_else(site: Site) -> None:
    outer = site.submit_one(
        collection="alpha", submitter="ann", queue="aside", priority=7, share="customer", data={"x": "1"}
    )
    lease = site.run(outer)

    (sent,) = site.submit_from(lease)
    (other,) = site.submit_from(
        lease, collection="beta", submitter="ben", queue="slow", priority=9, share="house"
    )
    site.pass_(lease)

    plain = site.job(site.submit_one())
    job = site.job(sent)
    assert (job.collection, job.submitter) == ("alpha", "ann")
    assert (job.queue, job.priority, job.share) == (plain.queue, plain.priority, str(sent))
    assert site.store.get_data(sent) == {}
    job = site.job(other)
    assert (job.collection, job.submitter, job.queue, job.priority, job.share) == (
        "beta",
        "ben",
        "slow",
        9,
        "house",
    )


def test_a_call_is_one_share_also_when_it_comes_in_parts(site: Site) -> None:
    lease = site.run(site.submit_one())
    first = site.submit_from(lease, n=2)
    other = site.submit_from(lease, n=2)
    more = site.store.submit_from(
        lease.job_id, lease.fence, [submission(n=2)], beside=first[0], now_us=site.now
    )
    keyed = site.submit_from(lease, n=2, keys=("a", "b"))
    site.pass_(lease)

    shares = [[site.job(i).share for i in ids] for ids in ([*first, *more], other, keyed)]
    assert shares == [[str(first[0])] * 4, [str(other[0])] * 2, [str(keyed[0])] * 2]


def test_one_below_a_serial_tree_is_not_in_its_line(site: Site) -> None:
    site.knows(kind("line", "expand", serial=True))
    _, (first, second) = site.family("line", n=2)
    lease = site.run(first)
    (sent,) = site.submit_from(lease)
    site.pass_(lease)

    assert sorted(le.job_id for le in site.claim()) == [second, sent]


def test_a_wide_hold_covers_it_when_it_is_born(site: Site) -> None:
    lease = site.run(site.submit_one("three"))
    sent = site.submit_from(lease, n=2)
    _hold_type(site, "one")

    site.pass_(lease)

    assert site.states(sent) == [State.HELD, State.HELD]


def _hold_type(site: Site, name: str) -> None:
    actor = Actor(by="ann", call="c", reason="looks odd")
    site.store.holds.lay(Scope.TYPE, name, "looks odd", actor, until_us=None, now_us=site.now)


# --- times and needs ------------------------------------------------------------------------


def test_one_for_later_is_scheduled_and_nobody_waits_for_it(site: Site) -> None:
    lease = site.run(site.submit_one())
    (sent,) = site.submit_from(lease, at_us=site.now + 60_000_000)
    site.pass_(lease)

    assert site.states([lease.job_id, sent]) == [State.COMPLETED, State.SCHEDULED]
    site.later(60)
    assert site.drain() == [(sent, "work")]


def test_it_may_need_what_is_born_with_it_and_the_job_that_submits_it(site: Site) -> None:
    lease = site.run(site.submit_one("parent"))
    (child,) = site.spawn(lease)
    (sent,) = site.submit_from(lease)
    (last,) = site.submit_from(lease, needs=(child, sent, lease.job_id))
    site.pass_(lease)
    assert site.state(last) is State.WAITING

    ran = [job for job, _ in site.drain()]

    assert ran[-2:] == [lease.job_id, last]
    assert set(site.count()) == {"completed"}


def test_a_child_may_need_one_unless_that_waits_for_the_parent(site: Site) -> None:
    lease = site.run(site.submit_one("parent"))
    (free,) = site.submit_from(lease)
    (bound,) = site.submit_from(lease, needs=(lease.job_id,))

    (child,) = site.spawn(lease, needs=(free,))
    with pytest.raises(UsageError, match="wait for ever"):
        site.spawn(lease, needs=(bound,))
    site.pass_(lease)

    assert [job for job, _ in site.drain()] == [free, child, lease.job_id, bound]


# --- nothing ties them ----------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, MANY])
def test_the_job_that_submits_does_not_wait_for_them(site: Site, n: int) -> None:
    lease = site.run(site.submit_one("parent"))
    site.submit_from(lease, n=n)

    site.pass_(lease)

    assert (site.state(lease.job_id), site.job(lease.job_id).stage) == (State.PENDING, "merge")


def test_it_keeps_its_slot_for_the_next_stage(site: Site) -> None:
    lease = site.run(site.submit_one("three"))
    site.submit_from(lease)

    answer = site.flush_and_claim([site.entry(lease, keep=True)], site.want(site.here, slots=1))

    assert answer.leases[0][:1] + answer.leases[0][2:5] == (lease.job_id, lease.slot, "three", "second")


@pytest.mark.parametrize("end", ["fail", "cancel"])
def test_it_does_not_fail_with_them_and_does_not_regrow_with_them(site: Site, end: str) -> None:
    lease = site.run(site.submit_one("parent"))
    (sent,) = site.submit_from(lease)
    site.pass_(lease)
    parent = lease.job_id

    if end == "fail":
        site.drain(failing={sent})
    else:
        site.cancel(sent)
        site.drain()
    assert site.state(parent) is State.COMPLETED
    site.retry(sent)

    assert site.states([parent, sent]) == [State.COMPLETED, State.PENDING]
    assert site.drain() == [(sent, "work")]


def test_they_go_on_when_the_job_that_submitted_them_fails_later(site: Site) -> None:
    lease = site.run(site.submit_one("parent"))
    (sent,) = site.submit_from(lease)
    site.pass_(lease)

    site.drain(failing={lease.job_id})

    assert site.states([lease.job_id, sent]) == [State.FAILED, State.COMPLETED]


@pytest.mark.parametrize("n", [2, MANY])
def test_cancelling_the_tree_does_not_reach_them(site: Site, n: int) -> None:
    lease = site.run(site.submit_one("parent"))
    site.spawn(lease)
    sent = site.submit_from(lease, n=n)
    site.pass_(lease)

    site.cancel(lease.job_id, tree=True)

    assert site.count(ids=tuple(sent)) == {"pending": n}


def test_deleting_the_job_that_submitted_them_does_not_reach_them(site: Site) -> None:
    lease = site.run(site.submit_one())
    sent = site.submit_from(lease, n=2)
    site.pass_(lease)

    assert site.delete(lease.job_id) == {lease.job_id}

    assert sorted(job for job, _ in site.drain()) == sent


@pytest.mark.parametrize("of", ["one", "three"])
def test_a_stage_that_passes_after_it_was_to_be_cancelled_has_submitted(site: Site, of: str) -> None:
    lease = site.run(site.submit_one(of))
    site.cancel(lease.job_id)
    (sent,) = site.submit_from(lease)

    site.pass_(lease)

    ended = State.COMPLETED if of == "one" else State.CANCELLED
    assert site.states([lease.job_id, sent]) == [ended, State.PENDING]


def test_a_stage_whose_children_are_not_born_any_more_has_submitted_nothing(site: Site) -> None:
    lease = site.run(site.submit_one("parent"))
    site.submit_from(lease)
    site.spawn(lease)
    site.submit_from(lease)
    site.cancel(lease.job_id)

    site.pass_(lease)
    site.sweep()

    assert site.count() == {"cancelled": 1}


def test_children_and_others_of_one_attempt_are_told_apart(site: Site) -> None:
    lease = site.run(site.submit_one("parent"))
    born = [*site.spawn(lease, n=2)]
    sent = [*site.submit_from(lease, n=2), *site.submit_from(lease)]
    born += site.spawn(lease, n=MANY)
    sent += site.submit_from(lease, n=MANY)

    site.pass_(lease)
    site.sweep()

    assert site.state(lease.job_id) is State.WAITING
    assert site.ids(parent_id=lease.job_id) == born
    assert site.ids(roots_only=True) == [lease.job_id, *sent]


# --- keys -----------------------------------------------------------------------------------


def test_one_with_a_key_is_born_at_once_and_outlives_the_attempt(site: Site) -> None:
    lease = site.run(site.submit_one())

    (sent,) = site.submit_from(lease, keys=("mail-7",))
    site.fail(lease)

    assert (site.state(sent), site.job(sent).key, site.job(sent).parent_id) == (State.PENDING, "mail-7", None)


def test_the_same_key_is_the_same_job_for_every_attempt_of_whatever_job(site: Site) -> None:
    one, two = site.submit(n=2)
    leases = site.claim_by_job()

    first = site.submit_from(leases[one], n=2, keys=("a", "b"))
    second = site.submit_from(leases[two], n=3, keys=("c", "b", "a"))

    assert second[1:] == first[::-1]
    assert site.ids() == [one, two, *first, second[0]]


def test_a_key_is_one_with_those_of_submissions_from_outside(site: Site) -> None:
    outside = site.submit_one(keys=("k",))
    lease = _run_three(site)

    assert site.submit_from(lease, keys=("k",)) == [outside]
    (inside,) = site.submit_from(lease, keys=("l",))
    with pytest.raises(DuplicateKey) as refusal:
        site.submit_one(keys=("l",))

    assert refusal.value.job_id == inside


def _run_three(site: Site) -> Lease:
    """A job that runs beside whatever is there."""
    job = site.submit_one("three")
    return site.claim_by_job()[job]


def test_a_key_of_a_job_of_another_type_is_refused(site: Site) -> None:
    outside = site.submit_one("three", keys=("k",))
    lease = _run_three(site)

    with pytest.raises(DuplicateKey) as refusal:
        site.submit_from(lease, n=2, keys=("before", "k"))

    assert refusal.value.job_id == outside
    assert site.ids() == [outside, lease.job_id]


def test_a_key_is_free_again_when_its_job_has_settled_unless_it_is_for_ever(site: Site) -> None:
    lease = site.run(site.submit_one())
    (once,) = site.submit_from(lease, keys=("k",))
    (ever,) = site.submit_from(lease, keys=("e",), forever=True)
    site.pass_(*site.claim())

    assert site.submit_from(lease, keys=("k",)) != [once]
    assert site.submit_from(lease, keys=("e",), forever=True) == [ever]


def test_a_key_at_the_top_and_one_below_a_parent_are_two(site: Site) -> None:
    lease = site.run(site.submit_one("parent"))

    sent, born = site.submit_from(lease, keys=("k",)), site.spawn(lease, keys=("k",))

    assert sent != born
    assert site.children(lease.job_id) == born


def test_a_key_of_an_internal_type_is_apart_from_those_that_people_may_take(site: Site) -> None:
    site.knows(kind("mail", "send", submit="internal"), kind("one", "work"))
    taken = site.submit_one(keys=("report-1",), forever=True)
    lease = site.claim_by_job()[taken]

    (sent,) = site.submit_from(lease, "mail", keys=("report-1",), forever=True)

    assert sent != taken
    assert site.submit_from(lease, "mail", keys=("report-1",), forever=True) == [sent]
    assert sorted(site.ids(key="report-1")) == [taken, sent]


@pytest.mark.parametrize("submit", [("submitter", "internal"), ("internal", "submitter")])
def test_an_attempt_after_a_change_of_who_may_submit_a_type_makes_its_job_no_second_time(
    site: Site, submit: tuple[str, str]
) -> None:
    site.knows(kind("mail", "send", submit=submit[0]))
    first = site.submit_from(lease := site.run(site.submit_one()), "mail", keys=("report:1",), forever=True)
    site.record(lease, Outcome.RETURNED)

    site.knows(kind("mail", "send", submit=submit[1]))

    (lease,) = site.claim(lanes={("one", "work")})
    assert site.submit_from(lease, "mail", keys=("report:1",), forever=True) == first


def test_a_job_of_an_internal_type_that_is_opened_again_takes_its_key_again(site: Site) -> None:
    site.knows(kind("mail", "send", submit="internal"))
    (job,) = site.submit("mail", keys=("k",))
    site.fail(site.run(job))

    site.retry(job)

    with pytest.raises(DuplicateKey) as refusal:
        site.submit("mail", keys=("k",))
    assert refusal.value.job_id == job


@pytest.mark.parametrize("how", ["spawn", "submit_from"])
def test_one_with_a_key_may_not_need_what_is_perhaps_never_born(site: Site, how: str) -> None:
    lease = site.run(site.submit_one("parent"))
    make = getattr(site, how)
    (unborn,) = make(lease)
    (born,) = make(lease, keys=("a",))

    with pytest.raises(Refused, match=f"job {unborn}, which it needs, only when the stage has passed"):
        make(lease, keys=("b",), needs=(unborn,))

    make(lease, keys=("c",), needs=(born,))
    make(lease, needs=(unborn, born))


def test_many_with_keys_are_born_in_steps_and_once(site: Site) -> None:
    lease = site.run(site.submit_one())
    keys = [f"k{n}" for n in range(250)]

    first = site.submit_from(lease, n=250, keys=keys)
    again = site.submit_from(lease, n=250, keys=keys)

    assert len(set(first)) == 250
    assert again == first
    assert site.count() == {"running": 1, "pending": 250}


# --- priority -------------------------------------------------------------------------------


def test_a_stage_sets_the_priority_of_later_stages_and_of_children_from_then_on(site: Site) -> None:
    lease = site.run(site.submit_one("parent", priority=50))
    (before,) = site.spawn(lease)
    _prioritise(site, lease, 3)
    (after,) = site.spawn(lease)
    (named,) = site.spawn(lease, priority=70)
    others = [site.submit_one(priority=p) for p in (2, 4, 60)]

    site.pass_(lease)

    ran = [job for job, _ in site.drain(node=site.node("n", slots=1))]
    assert ran == [others[0], after, others[1], before, others[2], named, lease.job_id]
    assert site.job(lease.job_id).priority == 3


def test_a_later_stage_is_claimed_by_the_priority_that_an_earlier_one_set(site: Site) -> None:
    lease = site.run(site.submit_one("three", priority=50))
    other = site.submit_one(priority=40)
    _prioritise(site, lease, 3)

    site.pass_(lease)

    assert [job for job, _ in site.drain(node=site.node("n", slots=1))] == [lease.job_id] * 2 + [other]


def test_it_may_step_back_and_its_slot_goes_to_what_is_more_urgent(site: Site) -> None:
    node = site.node("n", slots=1)
    lease = site.run(site.submit_one("three", priority=50), node)
    other = site.submit_one(priority=60)
    _prioritise(site, lease, 99)

    answer = site.flush_and_claim([site.entry(lease, keep=True)], site.want(node))

    assert answer.leases == []
    assert site.claim_one(node).job_id == other


def _prioritise(site: Site, lease: Lease, priority: int) -> None:
    site.store.prioritise(lease.job_id, lease.fence, priority)


@pytest.mark.parametrize("outcome", [Outcome.ERROR, Outcome.DEFER, Outcome.RETURNED, Outcome.LOST])
def test_a_priority_stays_whatever_becomes_of_the_attempt(site: Site, outcome: Outcome) -> None:
    site.knows(kind("patient", stage("work", max_attempts=3)))
    lease = site.run(site.submit_one("patient", priority=50))
    _prioritise(site, lease, 3)

    site.record(lease, outcome, delay_s=1.0)
    urgent = site.submit("one", n=2, priority=4)
    site.later(5)

    assert [le.job_id for le in (site.claim_one(), site.claim_one())] == [lease.job_id, urgent[0]]


def test_a_priority_counts_among_those_that_wait_for_a_lock(site: Site) -> None:
    owner = site.submit_one("locked", {"serno": "1"})
    held = site.run(owner)
    first, second = site.run(site.submit_one()), site.run(site.submit_one())
    _prioritise(site, second, 3)
    for lease in (first, second):
        site.record(lease, Outcome.LOCKED, lock="receiver:1")

    site.pass_(held)

    assert site.states([first.job_id, second.job_id]) == [State.WAITING, State.PENDING]


def test_an_operator_has_the_last_word(site: Site) -> None:
    lease = site.run(site.submit_one("three", priority=50))
    _prioritise(site, lease, 3)
    site.store.bulk.apply(
        Order(verb=Verb.PRIORITY, priority=90), [lease.job_id], Actor(by="ann", call="c"), now_us=site.now
    )

    site.pass_(lease)

    assert site.job(lease.job_id).priority == 90


def test_a_late_or_senseless_priority_is_refused(site: Site) -> None:
    lease = site.run(site.submit_one("three", priority=50))
    for senseless in (-1, 100):
        with pytest.raises(UsageError, match=r"0 \(first\) to 99"):
            _prioritise(site, lease, senseless)
    site.pass_(lease)

    with pytest.raises(StaleFence):
        _prioritise(site, lease, 3)

    assert site.job(lease.job_id).priority == 50
