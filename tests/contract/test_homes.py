"""Homes: where folders are local, a job is claimable only where its folder is, once an attempt of it has begun."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from explanations import explained
from spinney.model.errors import NodeRefused, Refused
from spinney.model.homes import PIECE_BYTES, DirectoryEntry, Fetch, FetchResult, FolderRoot
from spinney.model.jobs import Lease
from spinney.model.outcomes import Outcome
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Scope
from spinney.model.settings.queues import QueueSpec
from spinney.model.settings.webhooks import Webhook
from spinney.model.states import State
from spinney.store.parts import Store

from .behind import damage, refresh
from .words import USUAL, Clock, Node, Site, kind, locked, stage

ANN = Actor(by="ann", call="c1")
KNOWN = tuple(spec.name for spec in USUAL)


@pytest.fixture
def local(store: Store, clock: Clock) -> Iterator[Site]:
    """A site whose folders are local. (The database is that of other tests, so it is told afterwards.)"""
    damage(store, "insert into meta (name, value) values ('folders', 'local')")
    refresh(store)
    site = Site(store, clock)
    site.knows(*USUAL)
    yield site
    damage(store, "delete from meta where name = 'folders'")


def _home(site: Site, job: int) -> str:
    home = site.store.homes.of(job)
    assert home is not None
    return home.host


def at(site: Site, place: str, name: str | None = None, *, root: str | None = None, **more: Any) -> Node:
    """A node on a host, with the root there."""
    folder_root = FolderRoot(mark=root or f"mark-{place}", path=f"/var/{place}")
    return site.node(
        name or f"node-{place}",
        root=folder_root,
        **{"host": place, "boot_id": place, "types": KNOWN} | more,
    )


def give_back(site: Site, lease: Lease) -> None:
    """It had not begun."""
    site.record(lease, Outcome.RETURNED, started_us=0)


def break_off(site: Site, lease: Lease) -> None:
    """It had begun, and its node was stopped."""
    site.start(lease)
    site.record(lease, Outcome.RETURNED, message="its node was stopped")


def ids(leases: list[Lease]) -> list[int]:
    return sorted(lease.job_id for lease in leases)


# --- the rule ---------------------------------------------------------------------------------


def test_a_job_that_was_broken_off_goes_on_where_its_folder_is(local: Site) -> None:
    thor, odin = at(local, "thor"), at(local, "odin")
    job = local.submit_one()
    (lease,) = local.claim(thor)

    break_off(local, lease)

    assert [attempt.message for attempt in local.store.attempts(job)] == ["its node was stopped"]
    assert local.claim(odin) == []
    assert ids(local.claim(thor)) == [job]


def test_a_job_goes_on_only_where_its_folder_is(local: Site) -> None:
    thor, odin = at(local, "thor"), at(local, "odin")
    # Given a job whose first stage has passed on thor
    job = local.submit_one("three")
    (lease,) = local.claim(thor)
    local.pass_(lease)
    # When odin asks, it gets nothing, though its slots are free
    assert local.claim(odin) == []
    # Then thor gets the next stage, and after that the last
    (lease,) = local.claim(thor)
    assert (lease.job_id, lease.stage) == (job, "second")
    local.pass_(lease)
    assert local.claim(odin) == []
    (lease,) = local.claim(thor)
    local.pass_(lease)
    assert local.state(job) is State.COMPLETED
    # And whoever asks for it again, gets it there
    local.rerun(job)
    assert local.claim(odin) == []
    assert ids(local.claim(thor)) == [job]


def test_one_that_has_not_begun_goes_anywhere(local: Site) -> None:
    thor, odin = at(local, "thor"), at(local, "odin")
    jobs = local.submit("three", n=2)
    (lease,) = local.claim(thor, slots=1)
    # Handed back without having begun, it has no folder anywhere
    give_back(local, lease)
    assert ids(local.claim(odin)) == jobs


def test_nodes_of_one_root_share_its_jobs(local: Site) -> None:
    thor, also = at(local, "thor"), at(local, "thor", "another")
    job = local.submit_one("three")
    (lease,) = local.claim(thor)
    local.pass_(lease)
    assert ids(local.claim(also)) == [job]


def test_a_host_that_was_renamed_keeps_its_jobs(local: Site) -> None:
    """The root says where folders are, whatever its host is called by now."""
    old = at(local, "thor")
    job = local.submit_one("three")
    (lease,) = local.claim(old)
    local.pass_(lease)
    local.store.update_node(old.id, state="left", now_us=local.now)
    new = at(local, "tyr", root="mark-thor")
    assert ids(local.claim(new)) == [job]
    assert [(home.host, home.path) for home in local.store.homes.all()] == [("tyr", "/var/tyr")]


def test_a_stage_kept_in_its_slot_has_the_home_of_that_slot(local: Site) -> None:
    thor, odin = at(local, "thor"), at(local, "odin")
    local.submit_one("three")
    (lease,) = local.claim(thor)
    (next_lease,) = local.flush_and_claim([local.entry(lease, keep=True)], local.want(thor, slots=0)).leases
    assert next_lease.stage == "second"
    give_back(local, next_lease)
    assert local.claim(odin) == []
    assert len(local.claim(thor)) == 1


@pytest.mark.parametrize("outcome", ["failed", "deferred", "lost", "held", "cancelled"])
def test_however_an_attempt_ended_its_folder_is_there(local: Site, outcome: str) -> None:
    local.knows(kind("tough", stage("work", max_attempts=3)))
    types = (*KNOWN, "tough")
    thor, odin = at(local, "thor", types=types), at(local, "odin", types=types)
    job = local.submit_one("tough")
    (lease,) = local.claim(thor)
    if outcome == "failed":
        local.fail(lease, retryable=True)
    elif outcome == "deferred":
        local.record(lease, Outcome.DEFER, delay_s=1.0)
    elif outcome == "lost":
        local.recover(thor, {lease.fence: local.now})
        thor = at(local, "thor", types=types)
    elif outcome == "held":
        local.record(lease, Outcome.HOLD)
        local.release(job)
    else:
        local.cancel(job)
        local.fail(lease)
        local.retry(job)
    local.later(10)
    assert local.state(job) is State.PENDING
    assert local.claim(odin) == []
    assert ids(local.claim(thor)) == [job]


def test_a_child_has_a_home_of_its_own(local: Site) -> None:
    thor, odin = at(local, "thor"), at(local, "odin")
    local.submit_one("parent")
    (lease,) = local.claim(thor)
    (child,) = local.spawn(lease, "one")
    local.pass_(lease)
    (born,) = local.claim(odin)
    assert born.job_id == child
    local.pass_(born)
    assert local.claim(odin) == []
    assert [claimed.stage for claimed in local.claim(thor)] == ["merge"]


# --- what holds over all homes ----------------------------------------------------------------


def test_a_limit_counts_over_all_homes(local: Site) -> None:
    local.knows(queues=[QueueSpec(name="narrow", limit=2)])
    thor, odin = at(local, "thor"), at(local, "odin")
    local.submit("three", n=4, queue="narrow")
    first = [*local.claim(thor, slots=1), *local.claim(odin, slots=1)]
    for lease in first:
        local.pass_(lease)
    second = local.claim(thor, slots=4)
    assert len(second) == 2
    assert local.claim(odin, slots=4) == []


def test_a_hold_sweeps_all_homes_and_lets_go_to_the_same(local: Site) -> None:
    thor, odin = at(local, "thor"), at(local, "odin")
    jobs = local.submit("three", n=3)
    for node in (thor, odin):
        (lease,) = local.claim(node, slots=1)
        local.pass_(lease)
    hold = local.store.holds.lay(Scope.TYPE, "three", "stop", ANN, now_us=local.now)
    while local.store.holds.sweep(now_us=local.now):
        pass
    assert set(local.states(jobs)) == {State.HELD}
    local.store.holds.lift(hold.id, ANN, now_us=local.now)
    while local.store.holds.sweep(now_us=local.now):
        pass
    stages = {lease.job_id: lease.stage for lease in local.claim(odin)}
    assert stages == {jobs[1]: "second", jobs[2]: "first"}
    assert {lease.job_id: lease.stage for lease in local.claim(thor)} == {jobs[0]: "second"}
    assert _violations(local) == []


def test_one_probe_wakes_a_stage_that_sleeps_in_all_homes(local: Site) -> None:
    thor, odin = at(local, "thor"), at(local, "odin")
    jobs = local.submit("three", n=4)
    for node in (thor, odin):
        for lease in local.claim(node, slots=2):
            local.pass_(lease)
    (lease,) = local.claim(thor, slots=1)
    local.record(lease, Outcome.DEFER, lane=True, delay_s=5.0)
    assert local.claim(odin) == []
    local.later(6)
    (probe,) = [*local.claim(odin), *local.claim(thor)]
    local.pass_(probe)
    assert len(local.claim(thor)) + len(local.claim(odin)) == len(jobs)


def test_a_home_that_comes_late_to_a_stage_that_sleeps_waits_too(local: Site) -> None:
    thor, odin = at(local, "thor"), at(local, "odin")
    first, second = local.submit("three", n=2)
    (one,) = local.claim(thor, slots=1)
    local.pass_(one)
    (other,) = local.claim(odin, slots=1)
    (lease,) = local.claim(thor, slots=1)
    local.record(lease, Outcome.DEFER, lane=True, delay_s=5.0)
    local.pass_(other)
    assert local.claim(odin) == [], "its lane is new, but the stage sleeps"
    assert (lease.job_id, other.job_id) == (first, second)


def test_a_lock_is_not_kept_for_a_job_where_no_node_runs(local: Site) -> None:
    local.knows(kind("two", "prepare", stage("work", locks=locked("tape"))))
    types = (*KNOWN, "two")
    thor, odin = at(local, "thor", types=types), at(local, "odin", types=types)
    waits, has, wants = local.submit("two", n=3)
    for node, count in ((thor, 1), (odin, 2)):
        for lease in local.claim(node, slots=count):
            local.pass_(lease)
    (owner,) = local.claim(odin, slots=1)
    assert owner.job_id == has
    assert local.claim(thor) == []  # waits for the lock now
    assert local.claim(odin) == []
    local.recover(thor)
    local.pass_(owner)
    assert ids(local.claim(odin)) == [wants], "though another has waited for longer"
    assert local.job(waits).waits_for == "lock:tape"


# --- explaining -------------------------------------------------------------------------------


def test_why_a_job_waits_whose_host_is_gone(local: Site) -> None:
    thor = at(local, "thor")
    at(local, "odin")
    job = local.submit_one("three")
    (lease,) = local.claim(thor)
    local.pass_(lease)
    local.recover(thor)
    explanation = explained(local.store, job, local.now)
    assert (explanation.cause, explanation.command) == ("home", f"spinney rehome {job}")
    assert "host thor (/var/thor), where no node runs; start one there, or let go" in explanation.sentence
    again = at(local, "thor")
    assert explained(local.store, job, local.now).cause == "next"
    assert ids(local.claim(again)) == [job]


def test_why_a_job_waits_whose_host_may_not_run_it(local: Site) -> None:
    thor = at(local, "thor")
    at(local, "odin")
    job = local.submit_one("three")
    (lease,) = local.claim(thor)
    local.pass_(lease)
    local.recover(thor)
    at(local, "thor", types=("one",))
    explanation = explained(local.store, job, local.now)
    assert explanation.cause == "home"
    assert "and no node there (node-thor) may run it, as node-odin might" in explanation.sentence


# --- letting go -------------------------------------------------------------------------------


def _stranded(local: Site) -> tuple[int, Node]:
    """A job that has passed two stages on a host which is gone, and a node elsewhere."""
    thor, odin = at(local, "thor"), at(local, "odin")
    job = local.submit_one("three")
    for _ in range(2):
        (lease,) = local.claim(thor)
        local.pass_(lease)
    local.recover(thor)
    assert local.claim(odin) == []
    return job, odin


def test_a_job_that_is_let_go_of_goes_on_elsewhere_where_it_stopped(local: Site) -> None:
    job, odin = _stranded(local)
    home = local.store.homes.let_go_of_job(job, ANN, now_us=local.now)
    assert home.host == "thor"
    (lease,) = local.claim(odin)
    assert (lease.job_id, lease.stage) == (job, "third")
    local.pass_(lease)
    assert (local.state(job), _home(local, job)) == (State.COMPLETED, "odin")
    assert local.stages_run(job) == ["first", "second", "third"]
    ((entry, _),) = local.store.audit.entries(verb="rehome")
    assert (entry.by, json.loads(entry.what)) == ("ann", {"job": job, "host": "thor", "path": "/var/thor"})
    assert _violations(local) == []


def test_numbers_of_jobs_that_have_a_folder_are_skipped_with_fences_that_a_backup_does_not_know(
    site: Site,
) -> None:
    site.knows(*USUAL)
    site.store.webhooks.add(Webhook(name="all", url="https://example.org/"), "secret", ANN, now_us=site.now)
    before = site.submit_one("one")
    (lease,) = site.claim(site.here)
    site.pass_(lease)

    # When there is no folder of a job that the store has not numbered, then nothing changes
    assert not site.store.homes.skip_numbers(before, ANN, now_us=site.now)
    assert site.store.audit.entries(verb="skip numbers") == []

    # When there is one, then the next job comes behind it, and its fence and its event behind those since the backup
    assert site.store.homes.skip_numbers(before + 500, ANN, now_us=site.now)
    assert not site.store.homes.skip_numbers(before + 500, ANN, now_us=site.now)
    after = site.submit_one("one")
    (later,) = site.claim(site.here)
    assert after == before + 501
    assert later.fence > lease.fence + 1_000_000
    site.pass_(later)
    second, first = (delivery.seq for delivery in site.store.webhooks.deliveries("all"))
    assert second > first + 1_000_000
    ((entry, _),) = site.store.audit.entries(verb="skip numbers")
    assert json.loads(entry.what) == {"job": before + 500, "fences": 1_000_000, "events": 1_000_000}


def test_a_completed_job_can_be_let_go_of(local: Site) -> None:
    """Its history stays, though its row names no node any more."""
    thor = at(local, "thor")
    job = local.submit_one("one")
    (lease,) = local.claim(thor)
    local.pass_(lease)
    before = local.store.attempts(job)
    local.store.homes.let_go_of_job(job, ANN, now_us=local.now)
    assert local.store.attempts(job) == before
    assert local.store.homes.of(job) is None
    odin = at(local, "odin")
    local.rerun(job)
    assert ids(local.claim(odin)) == [job]


def test_a_whole_home_is_let_go_of_at_once_and_returns_with_its_root(local: Site) -> None:
    thor, odin = at(local, "thor"), at(local, "odin")
    jobs = local.submit("three", n=3)
    for lease in local.claim(thor, slots=3):
        local.pass_(lease)
    with pytest.raises(Refused, match=r"nodes run on .*: node-thor"):
        local.store.homes.let_go(1, ANN, now_us=local.now)
    local.recover(thor)
    assert local.store.homes.waiting(1, most=100) == 3
    local.store.homes.let_go(1, ANN, now_us=local.now)
    # What is claimed elsewhere gets its home there
    (lease,) = local.claim(odin, slots=1)
    assert (lease.job_id, lease.stage) == (jobs[0], "second")
    local.pass_(lease)
    assert explained(local.store, jobs[1], local.now).cause == "next"
    # What is not, is its own again when the host returns
    again = at(local, "thor")
    (lease,) = local.claim(odin)
    assert (lease.job_id, lease.stage) == (jobs[0], "third")
    assert ids(local.claim(again)) == jobs[1:]
    assert _violations(local) == []


def test_what_cannot_be_let_go_of_is_refused(local: Site) -> None:
    thor = at(local, "thor")
    fresh, busy = local.submit("three", n=2)
    with pytest.raises(Refused, match="bound to no host"):
        local.store.homes.let_go_of_job(fresh, ANN, now_us=local.now)
    leases = local.claim(thor)
    local.pass_(leases[1])
    (lease,) = local.claim(thor)
    assert lease.job_id == busy
    with pytest.raises(Refused, match="is running on host thor"):
        local.store.homes.let_go_of_job(busy, ANN, now_us=local.now)


def test_where_folders_are_shared_nothing_is_bound(site: Site) -> None:
    thor = site.node("thor", root=FolderRoot(mark="m", path="/p"), host="thor")
    odin = site.node("odin", host="odin")
    job = site.submit_one("three")
    (lease,) = site.claim(thor)
    site.pass_(lease)
    assert (site.store.homes.all(), site.store.homes.of(job)) == ([], None)
    with pytest.raises(Refused, match="shared"):
        site.store.homes.let_go_of_job(job, ANN, now_us=site.now)
    assert ids(site.claim(odin)) == [job]


# --- joining ----------------------------------------------------------------------------------


def test_a_copy_of_a_root_is_refused_while_the_other_is_in_use(local: Site) -> None:
    thor = at(local, "thor")
    with pytest.raises(NodeRefused, match="a copy; name another folder"):
        at(local, "odin", root="mark-thor")
    # A container beside it sees the same root, and so does whoever took its place
    at(local, "box", root="mark-thor", boot_id="thor")
    local.store.update_node(thor.id, state="left", now_us=local.now)


def test_a_copy_of_a_root_on_the_same_host_is_refused_while_the_other_is_in_use(local: Site) -> None:
    # Given a node at work, and a copy of its root beside it
    thor = at(local, "thor")
    copy = FolderRoot(mark="mark-thor", path="/var/thor-copy")
    with pytest.raises(NodeRefused, match=r"/var/thor-copy .* same path as node node-thor, /var/thor"):
        local.node("beside", root=copy, host="thor", boot_id="thor")
    # When a container has joined, which sees the same root elsewhere, and has a host name of its own
    box = at(local, "box", root="mark-thor", boot_id="thor")
    # Then another node beside the first may still join
    at(local, "thor", "another")
    # And when all have left, the root may have moved
    for node in local.store.nodes():
        local.store.update_node(node.id, state="left", now_us=local.now)
    assert local.node("moved", root=copy, host="thor", boot_id="thor").id not in (thor.id, box.id)
    assert [(home.host, home.path) for home in local.store.homes.all()] == [("thor", "/var/thor-copy")]


def test_another_root_in_the_place_of_one_is_refused_until_that_is_let_go_of(local: Site) -> None:
    """Its disk is not mounted, or has failed; jobs would go on without their files."""
    thor = at(local, "thor")
    local.store.update_node(thor.id, state="left", now_us=local.now)
    with pytest.raises(NodeRefused, match="is the disk mounted"):
        at(local, "thor", root="new")
    local.store.homes.let_go(1, ANN, now_us=local.now)
    at(local, "thor", root="new")


def test_a_node_that_does_not_say_where_its_folders_are_is_refused(local: Site) -> None:
    with pytest.raises(NodeRefused, match="folders of this store are local"):
        local.node("old")


# --- deleted ----------------------------------------------------------------------------------


def test_each_home_removes_the_folders_of_its_own_deleted_jobs(local: Site) -> None:
    thor = at(local, "thor")
    at(local, "odin")
    fresh, begun = local.submit("one", n=2)
    unrun, lease = local.claim(thor)
    local.pass_(lease)
    give_back(local, unrun)
    local.cancel(fresh)
    gone = local.delete(begun) | local.delete(fresh)
    home, other = 1, 2
    assert set(local.store.deleted_folders(10)) == gone
    assert set(local.store.deleted_folders(10, home=home)) == gone
    assert list(local.store.deleted_folders(10, home=other)) == [fresh]
    # Who has not got it cannot say that it is gone
    local.store.note_removed_folders([fresh, begun])
    local.store.note_removed_folders([begun], home=other)
    assert list(local.store.deleted_folders(10)) == [begun]
    local.store.note_removed_folders([begun], home=home)
    assert list(local.store.deleted_folders(10)) == []


def test_folders_of_a_home_that_was_let_go_of_are_forgotten(local: Site) -> None:
    thor = at(local, "thor")
    at(local, "odin")
    job = local.submit_one("one")
    (lease,) = local.claim(thor)
    local.pass_(lease)
    local.delete(job)
    local.recover(thor)
    local.store.homes.let_go(1, ANN, now_us=local.now)
    assert list(local.store.deleted_folders(10, home=2)) == [job]
    local.store.note_removed_folders([job], home=2)
    assert list(local.store.deleted_folders(10)) == []


def _violations(site: Site) -> list[str]:
    return [
        v.sentence
        for v in site.store.doctor.examine(now_us=site.now)
        if v.rule.startswith(("ready", "pending"))
    ]


# --- reading from elsewhere -------------------------------------------------------------------


def _requested_file(local: Site) -> tuple[int, int]:
    """Return a job that has begun on thor, and the number of a request for a file of it."""
    thor = at(local, "thor")
    job = local.submit_one("three")
    (lease,) = local.claim(thor)
    local.pass_(lease)
    return job, local.store.fetches.ask(job, "made/file", start=3, length=10**9, now_us=local.now)


def test_a_question_goes_to_the_home_and_its_first_answer_back_once(local: Site) -> None:
    job, number = _requested_file(local)
    fetches = local.store.fetches
    assert list(fetches.due(1)) == [Fetch(number, job, "made/file", 3, PIECE_BYTES)]
    assert list(fetches.due(2)) == []
    assert fetches.take(number) is None
    fetches.answer(number, FetchResult(data=b"\0\xff"))
    fetches.answer(number, FetchResult(error="too late"))
    assert list(fetches.due(1)) == []
    assert fetches.take(number) == FetchResult(data=b"\0\xff")
    with pytest.raises(Refused, match="try again"):
        fetches.take(number)
    names = fetches.ask(job, "", length=0, now_us=local.now)
    fetches.answer(
        names, FetchResult(names=(DirectoryEntry("a", "file", 7), DirectoryEntry("b", "folder", 0)))
    )
    assert fetches.take(names) == FetchResult(
        names=(DirectoryEntry("a", "file", 7), DirectoryEntry("b", "folder", 0))
    )


def test_one_that_runs_for_the_first_time_is_asked_for_where_it_runs(local: Site) -> None:
    thor = at(local, "thor")
    job = local.submit_one("three")
    assert local.store.homes.of(job) is None
    local.claim(thor)
    assert _home(local, job) == "thor"
    assert local.store.fetches.ask(job, "x", length=1, now_us=local.now) == 1


def test_questions_are_few_and_do_not_stay(local: Site) -> None:
    job, number = _requested_file(local)
    for _ in range(31):
        local.store.fetches.ask(job, "x", length=1, now_us=local.now)
    with pytest.raises(Refused, match="too many files"):
        local.store.fetches.ask(job, "x", length=1, now_us=local.now)
    assert len(local.store.fetches.due(1)) == 32
    local.later(61)
    assert list(local.store.fetches.due(1)) == []
    local.store.fetches.answer(number, FetchResult(data=b"x"))
    with pytest.raises(Refused, match="expired"):
        local.store.fetches.take(number)


def test_where_nobody_could_answer_the_question_is_refused(local: Site) -> None:
    job, _ = _requested_file(local)
    fresh = local.submit_one("three")
    with pytest.raises(Refused, match="no folder on another host"):
        local.store.fetches.ask(fresh, "x", length=1, now_us=local.now)
    with pytest.raises(Refused, match="such a path cannot be requested"):
        local.store.fetches.ask(job, "\udcff", length=1, now_us=local.now)
    (thor,) = local.store.nodes()
    local.store.update_node(thor.id, state="left", now_us=local.now)
    with pytest.raises(Refused, match=r"on host thor \(/var/thor\), where no node runs"):
        local.store.fetches.ask(job, "x", length=1, now_us=local.now)
