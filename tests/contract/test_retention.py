"""Retention: rows and folders of whole trees go when their time is over, and nothing else does."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from spinney.model.errors import DuplicateKey, NoSuchJob, Refused, UnknownType, UsageError
from spinney.model.outcomes import Outcome
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Scope
from spinney.model.settings.retention import RetentionRule
from spinney.model.states import SETTLED, State
from spinney.store.parts import Store

from .behind import rows
from .everything import STANDS, fill
from .words import Clock, Site, kind, submission

ANN = Actor(by="ann", call="c-1")
NODE = Actor(by="node oak", call="c-2")
DAY_S = 86_400.0


def keep(site: Site, state: str, keep_s: float | None = DAY_S, type_: str = "*") -> None:
    site.store.retention.set(type_, state, keep_s, ANN, now_us=site.now)


def walk(site: Site, store: Store | None = None, limit: int = 1_000) -> list[int]:
    """A whole walk; returns what it removed, in order."""
    gone: list[int] = []
    after: int | None = 0
    for _ in range(10_000):
        assert after is not None
        step, after = (store or site.store).retention.sweep(after, NODE, now_us=site.now, limit=limit)
        gone += step
        if after is None:
            return gone
    raise AssertionError("the walk does not end")


def done(site: Site, of: str = "one", **fields: Any) -> int:
    job = site.submit_one(of, **fields)
    site.drain()
    return job


# --- the rules --------------------------------------------------------------------------------


def test_without_a_rule_everything_is_kept_for_ever(site: Site) -> None:
    job = done(site)
    site.clock.forward(1000 * 365 * DAY_S)

    assert site.store.retention.all() == []
    assert site.store.retention.sweep(0, NODE, now_us=site.now) == ((), None)
    assert site.state(job) is State.COMPLETED


def test_a_job_goes_when_its_time_is_over_and_not_a_microsecond_before(site: Site) -> None:
    job = done(site)
    keep(site, "completed")
    site.clock.now_us += int(DAY_S * 1e6) - 1

    assert walk(site) == []
    site.clock.now_us += 1

    assert walk(site) == [job]
    with pytest.raises(NoSuchJob):
        site.job(job)


TREES = {"done": "done batch", "bad batch": "bad batch", "deep": "deep root"}
"""How the names of their members begin, and their tops."""
BELOW_OPEN = {"waiting batch ok", "waiting batch failed", "superseded ok", "superseded failed"}


def top(name: str) -> str:
    return next((top for beginning, top in TREES.items() if name.startswith(beginning)), name)


@pytest.mark.parametrize("state", sorted(SETTLED))
def test_each_settled_state_has_a_rule_of_its_own(store: Store, clock: Clock, state: str) -> None:
    site = Site(store, clock)
    made = fill(site)
    keep(site, state)
    site.clock.forward(2 * DAY_S)

    gone = walk(site)

    expected = {made[name] for name in set(STANDS) - BELOW_OPEN if STANDS[top(name)] == state}
    assert set(gone) == expected != set()
    assert site.ids() == sorted(set(made.jobs.values()) - expected)


def test_whose_word_counts(site: Site) -> None:
    site.knows(kind("declares", "work", keep={"completed": 10.0, "failed": None}))
    declared = [
        RetentionRule(type="declares", state="completed", keep_s=10.0, by=""),
        RetentionRule(type="declares", state="failed", keep_s=None, by=""),
    ]
    assert site.store.retention.all() == declared

    keep(site, "completed", 20.0)
    keep(site, "completed", 30.0, "declares")

    assert site.store.retention.all() == [
        RetentionRule(type="*", state="completed", keep_s=20.0, by="ann"),
        RetentionRule(type="declares", state="completed", keep_s=30.0, by="ann"),
        RetentionRule(type="declares", state="completed", keep_s=10.0, by="", in_force=False),
        declared[1],
    ]


@pytest.mark.parametrize(
    ("all_types", "own", "goes_after_s"),
    [(None, None, 10), (20.0, None, 20), (None, 30.0, 30), (20.0, 30.0, 30), (30.0, 20.0, 20)],
)
def test_an_operator_wins_over_the_type_and_a_name_over_all(
    site: Site, all_types: float | None, own: float | None, goes_after_s: float
) -> None:
    site.knows(kind("declares", "work", keep={"completed": 10.0}))
    job = done(site, "declares")
    if all_types is not None:
        keep(site, "completed", all_types)
    if own is not None:
        keep(site, "completed", own, "declares")

    site.clock.forward(goes_after_s - 1)
    assert walk(site) == []
    site.clock.forward(1)
    assert walk(site) == [job]


def test_for_ever_is_a_word_too_and_may_be_taken_back(site: Site) -> None:
    site.knows(kind("declares", "work", keep={"completed": 10.0}))
    job = done(site, "declares")
    keep(site, "completed", None)
    site.clock.forward(DAY_S)
    assert walk(site) == []

    assert site.store.retention.unset("*", "completed", ANN, now_us=site.now) is True
    assert site.store.retention.unset("*", "completed", ANN, now_us=site.now) is False

    assert walk(site) == [job]


def test_what_cannot_be_meant_is_refused_with_the_nearest(site: Site) -> None:
    with pytest.raises(UnknownType, match="did you mean 'tenacious'"):
        keep(site, "completed", type_="tenacius")
    with pytest.raises(UsageError, match="did you mean 'completed'"):
        keep(site, "complete")
    with pytest.raises(UsageError, match="running"):
        keep(site, "running")
    for wrong in (-1.0, float("nan"), 1e15):
        with pytest.raises(UsageError, match="kept for 0 to"):
            keep(site, "completed", wrong)
    assert site.store.retention.all() == []
    assert site.store.audit.entries() == []


def test_rules_and_removals_are_in_the_audit(site: Site) -> None:
    jobs = [done(site) for _ in range(3)]
    keep(site, "completed")
    site.clock.forward(DAY_S)
    walk(site)
    site.store.retention.unset("*", "completed", ANN, now_us=site.now)

    entries = [entry for entry, _ in site.store.audit.entries()]
    assert [(e.by, e.verb, orjson.loads(e.what), e.count) for e in entries] == [
        ("ann", "keep", {"type": "*", "state": "completed", "keep_s": DAY_S}, 1),
        ("node oak", "remove", {"jobs": f"{jobs[0]}-{jobs[-1]}"}, 3),
        ("ann", "keep", {"type": "*", "state": "completed", "keep_s": "as declared"}, 1),
    ]
    assert site.store.audit.verify() == 3


# --- what goes --------------------------------------------------------------------------------


def test_the_folders_are_told_until_they_are_gone(site: Site) -> None:
    parent, born = site.family(n=2)
    site.drain()
    keep(site, "completed")
    site.clock.forward(DAY_S)

    assert walk(site) == [*reversed(born), parent], "from the leaves up"

    assert set(site.store.deleted_folders(10)) == {parent, *born}
    site.store.note_removed_folders([parent, *born])
    assert list(site.store.deleted_folders(10)) == []


def test_nothing_of_a_tree_is_left_in_any_table(store: Store, clock: Clock) -> None:
    site = Site(store, clock)
    made = fill(site)
    for state in SETTLED:
        keep(site, state)
    site.clock.forward(2 * DAY_S)

    gone = set(walk(site))

    assert gone > set(made.standing(State.CANCELLED, State.ORPHANED, State.DELETED)) - {
        made["bad batch cancelled"]
    }
    columns = {
        "jobs": ("id", "parent_id", "root_id"),
        "ready": ("job_id",),
        "leases": ("job_id",),
        "inactive_jobs": ("job_id",),
        "attempts": ("job_id",),
        "children_left": ("parent_id", "child_id"),
        "needs": ("job_id",),
        "met_needs": ("need_id",),
        "serial_order": ("root_id", "job_id"),
        "cancel_requests": ("job_id",),
        "locks": ("job_id",),
        "keys": ("job_id", "scope"),
        "data": ("job_id",),
        "progress": ("job_id",),
        "removals": ("root_id",),
    }
    for table, names in columns.items():
        for name in names:
            assert not gone & {n for (n,) in rows(store, f"select {name} from {table}")}, (table, name)


def test_a_number_is_never_given_again(site: Site) -> None:
    jobs = site.submit(n=3)
    site.drain()
    keep(site, "completed", 0)

    assert set(walk(site)) == set(jobs)

    assert site.submit_one() == jobs[-1] + 1


@pytest.mark.parametrize("where", ["root", "child", "grandchild"])
def test_a_tree_stays_as_long_as_anything_in_it_is_open(site: Site, where: str) -> None:
    """Given a root that failed by a stage of its own, and a child that was opened again below it."""
    root, (child,) = site.family("batch", child="batch", n=1)
    lease = site.run(child)
    (leaf,) = site.spawn(lease, n=1)
    site.pass_(lease)
    site.drain(failing={root, child, leaf})
    assert site.states([root, child, leaf]) == [State.FAILED] * 3
    site.retry({"root": root, "child": child, "grandchild": leaf}[where])
    keep(site, "failed")
    site.clock.forward(DAY_S)

    assert walk(site) == []

    site.drain()
    keep(site, "completed")
    site.clock.forward(DAY_S)
    assert set(walk(site)) == {root, child, leaf}


def test_a_held_member_keeps_the_tree(site: Site) -> None:
    lease = site.run(site.submit_one("batch"))
    (child,) = site.spawn(lease, n=1, keys=("k",))
    site.record(site.run(child), Outcome.HOLD)
    site.fail(lease)
    keep(site, "failed")
    site.clock.forward(DAY_S)

    assert walk(site) == []
    assert site.states([lease.job_id, child]) == [State.FAILED, State.HELD]


def test_children_that_are_not_born_yet_keep_the_tree_until_they_are_dropped(site: Site) -> None:
    lease = site.run(site.submit_one("parent"))
    site.spawn(lease, n=2)
    site.fail(lease)
    keep(site, "failed", 0)

    walk(site)
    site.sweep()

    assert walk(site) in ([lease.job_id], [])
    assert site.ids() == []


def test_a_wide_and_a_deep_tree_go_in_steps_and_the_top_is_last(site: Site) -> None:
    root, born = site.family(n=900)
    site.drain()
    keep(site, "completed")
    site.clock.forward(DAY_S)

    steps, after = [], 0
    while after is not None:
        step, after = site.store.retention.sweep(after, NODE, now_us=site.now)
        steps.append(list(step))
        assert site.ids()[:1] == [root] or not site.ids()

    assert max(map(len, steps)) <= 200
    assert [job for step in steps for job in step] == [*reversed(born), root]


def test_a_walk_that_was_cut_off_is_gone_on_with_by_anybody(
    site: Site, open_another: Callable[[], Store]
) -> None:
    site.family(n=500)
    site.drain()
    keep(site, "completed")
    site.clock.forward(DAY_S)
    for _ in range(3):
        site.store.retention.sweep(0, NODE, now_us=site.now)
    assert 0 < len(site.ids()) < 501

    walk(site, open_another())

    assert site.ids() == []


def test_two_walk_at_once_without_harm(site: Site, open_another: Callable[[], Store]) -> None:
    for _ in range(30):
        site.family(n=9)
    site.drain()
    keep(site, "completed")
    site.clock.forward(DAY_S)
    stores, at = [site.store, open_another()], [0, 0]
    gone: list[int] = []
    turn = 0
    while not all(a is None for a in at):
        turn = 1 - turn
        if at[turn] is not None:
            step, at[turn] = stores[turn].retention.sweep(at[turn], NODE, now_us=site.now, limit=50)
            gone += step

    assert sorted(gone) == list(range(1, 301))
    assert site.ids() == []


def test_a_job_on_which_much_hangs_goes_in_steps(site: Site) -> None:
    needs = site.submit(n=2_500)
    job = site.submit_one("three", needs=tuple(needs))
    while leases := site.claim(jobs=100, run_us=1.0):
        site.pass_(*leases)
    assert site.state(job) is State.COMPLETED
    keep(site, "completed", 0, "three")
    sweep = site.store.retention.sweep
    assert sweep(0, NODE, now_us=site.now, limit=5_000) == ((), job), "it is marked"

    first, _ = sweep(job, NODE, now_us=site.now)
    with pytest.raises(Refused, match="is being removed"):
        site.rerun(job)
    later = [list(sweep(job, NODE, now_us=site.now)[0]) for _ in range(2)]

    assert (list(first), later) == ([], [[job], []]), "there was too much for one step"


# --- operators come first ---------------------------------------------------------------------


def ask(site: Site, verb: str, job: int) -> object:
    if verb == "cancel":
        return site.cancel(job, tree=True)
    return {"retry": site.retry, "rerun": site.rerun, "delete": site.delete}[verb](job)


@pytest.mark.parametrize("verb", ["retry", "rerun", "cancel", "delete"])
def test_an_operator_who_wants_a_tree_that_is_only_looked_at_has_it(site: Site, verb: str) -> None:
    root, born = site.family("batch", n=2)
    site.drain(failing={born[0]})
    keep(site, "failed")
    site.clock.forward(DAY_S)
    assert site.store.retention.sweep(0, NODE, now_us=site.now) == ((), born[-1]), "it is marked"

    ask(site, verb, root)

    after: int | None = born[-1]
    while after is not None:
        gone, after = site.store.retention.sweep(after, NODE, now_us=site.now)
        assert gone == ()
    assert site.ids() == [root, *born]


@pytest.mark.parametrize("verb", ["retry", "rerun", "cancel", "delete"])
@pytest.mark.parametrize("which", ["root", "child"])
def test_of_a_tree_that_is_being_removed_nothing_is_opened_again(site: Site, verb: str, which: str) -> None:
    root, born = site.family("batch", n=300)
    site.drain(failing=set(born))
    keep(site, "failed")
    site.clock.forward(DAY_S)
    while len(site.ids()) == 301:
        site.store.retention.sweep(born[-1] if site.ids()[0] != root else 0, NODE, now_us=site.now)
    job = root if which == "root" else born[0]

    with pytest.raises(Refused, match="is being removed"):
        ask(site, verb, job)

    site.sweep()
    walk(site)
    assert site.ids() == []


def test_who_needed_one_of_the_tree_is_not_opened_in_a_tree_that_goes(site: Site) -> None:
    """Given a job in a wide tree that failed because of a need outside it; when that is retried while the tree
    is removed, then the tree goes all the same."""
    need = site.submit_one()
    root = site.submit_one("batch", priority=1)
    lease = site.run(root)
    born = [*site.spawn(lease, "one", needs=(need,)), *site.spawn(lease, n=300)]
    site.pass_(lease)
    site.drain(failing={need, *born})
    assert site.state(born[0]) is State.FAILED
    keep(site, "failed", type_="batch")
    site.clock.forward(DAY_S)
    while len(site.ids()) == 303:
        site.store.retention.sweep(0, NODE, now_us=site.now)

    site.retry(need)

    assert site.state(need) is State.PENDING
    walk(site)
    assert site.ids() == [need]
    assert site.drain() == [(need, "work")]


def test_a_hold_on_a_tree_keeps_it(site: Site) -> None:
    root, _ = site.family(n=1)
    site.drain(failing={root})
    hold = site.store.holds.lay(Scope.TREE, str(root), "evidence", ANN, now_us=site.now)
    keep(site, "failed")
    site.clock.forward(DAY_S)
    assert walk(site) == []

    site.store.holds.lift(hold.id, ANN, now_us=site.now)

    assert len(walk(site)) == 2


def test_a_hold_on_a_subjob_with_all_below_it_keeps_the_whole_tree_until_it_is_lifted(site: Site) -> None:
    root, (child, _) = site.family(n=2)
    site.drain()
    other, _ = site.family(n=2)
    site.drain()
    hold = site.store.holds.lay(Scope.TREE, str(child), "evidence", ANN, now_us=site.now)
    keep(site, "completed")
    site.clock.forward(DAY_S)
    assert len(walk(site)) == 3
    assert other not in site.ids()
    assert root in site.ids()
    assert list(site.store.holds.all()) == [hold]

    site.store.holds.lift(hold.id, ANN, now_us=site.now)

    assert len(walk(site)) == 3


# --- what others know of it -------------------------------------------------------------------


def test_a_need_that_completed_is_met_although_it_has_gone(site: Site) -> None:
    need = done(site)
    later = site.submit_one(needs=(need,), at_us=site.now + 10**12)
    keep(site, "completed")
    site.clock.forward(DAY_S)
    assert walk(site) == [need]

    site.clock.forward(10**6)
    site.sweep()

    assert site.drain() == [(later, "work")]
    assert site.state(later) is State.COMPLETED


def test_a_need_that_failed_is_not_met_because_it_has_gone(site: Site) -> None:
    need = site.submit_one()
    site.fail(site.run(need))
    later = site.submit_one(needs=(need,), at_us=site.now + 10**12)
    keep(site, "failed")
    site.clock.forward(DAY_S)
    assert walk(site) == [need]

    site.clock.forward(10**6)
    site.sweep()

    assert site.state(later) is State.FAILED
    assert site.claim() == []


def test_many_who_need_one_that_goes_are_told_in_steps(site: Site) -> None:
    need = site.submit_one()
    later = site.submit(n=5_000, needs=(need,), at_us=site.now + 10**12)
    site.drain()
    site.sweep()
    keep(site, "completed", 0)

    assert walk(site) == [need]

    site.clock.forward(10**6)
    site.sweep()
    assert site.count() == {"pending": len(later)}


def test_a_key_that_was_taken_for_ever_stays_taken(site: Site) -> None:
    once = done(site, keys=("once",), forever=True)
    again = done(site, keys=("again",))
    keep(site, "completed", 0)
    assert set(walk(site)) == {once, again}

    site.submit_one(keys=("again",))
    with pytest.raises(DuplicateKey):
        site.submit_one(keys=("once",))


def test_the_sentence_on_a_key_of_a_removed_job_advises_no_rerun(site: Site) -> None:
    once = done(site, keys=("once",), forever=True)
    keep(site, "completed", 0)
    walk(site)

    with pytest.raises(DuplicateKey, match=f"job {once}, which retention has removed") as refusal:
        site.submit_one(keys=("once",))

    assert "rerun" not in str(refusal.value)


def test_a_stage_that_submits_under_a_key_taken_for_ever_is_given_the_job_that_was_removed(
    site: Site,
) -> None:
    once = done(site, keys=("once",), forever=True)
    keep(site, "completed", 0)
    assert set(walk(site)) == {once}
    lease = site.run(site.submit_one("three"))

    assert site.submit_from(lease, keys=("once",), forever=True) == [once]
    assert site.submit_from(lease, n=2, keys=("new", "once"), forever=True)[1:] == [once]


def test_no_job_needs_one_that_was_removed_and_has_its_key_for_ever(site: Site) -> None:
    once = done(site, keys=("once",), forever=True)
    keep(site, "completed", 0)
    walk(site)
    lease = site.run(site.submit_one("three"))
    order = [submission(keys=("once",), forever=True), submission(keys=("after",), needs=(-1,))]

    with pytest.raises(Refused, match=f"retention has removed job {once}"):
        site.store.submit_from(lease.job_id, lease.fence, order, now_us=site.now)

    assert site.submit_from(lease, keys=("after",))


def test_a_branch_that_was_deleted_goes_with_its_tree(site: Site) -> None:
    root, born = site.family(n=2)
    site.drain()
    site.delete(born[0])
    keep(site, "completed", 0)

    assert set(walk(site)) == {root, *born}
    assert set(site.store.deleted_folders(10)) == {root, *born}


def test_a_tombstone_goes_by_the_time_of_its_deletion(site: Site) -> None:
    job = site.submit_one()
    site.record(site.run(job), Outcome.HOLD)
    site.clock.forward(10 * DAY_S)
    site.delete(job)
    keep(site, "deleted")
    assert walk(site) == []
    site.clock.forward(DAY_S)

    assert walk(site) == [job]


def test_a_tree_that_regrew_has_its_time_from_when_it_settled_again(site: Site) -> None:
    root, born = site.family("batch", n=1)
    site.drain(failing={born[0]})
    keep(site, "failed")
    keep(site, "completed")
    site.clock.forward(DAY_S - 1)
    site.retry(root)
    site.drain()
    site.clock.forward(DAY_S - 1)
    assert walk(site) == []

    site.clock.forward(1)
    assert set(walk(site)) == {root, born[0]}


def test_children_counts_of_others_stay_true(site: Site) -> None:
    """Given a branch below an open root: it is no top, and stays."""
    root, (branch,) = site.family(child="parent", n=1)
    lease = site.run(branch)
    (leaf,) = site.spawn(lease, n=1)
    site.pass_(lease)
    keep(site, "completed", 0)
    keep(site, "failed", 0)
    site.fail(site.run(leaf))
    assert site.states([root, branch, leaf]) == [State.FAILED] * 3

    assert set(walk(site)) == {root, branch, leaf}
