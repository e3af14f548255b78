"""What a store keeps of external workers that are no nodes, and what a claim gives them."""

from collections.abc import Mapping
from typing import Any

import pytest

import job_verbs
from explanations import explained
from spinney.model.errors import Refused, UnknownType, UsageError
from spinney.model.external import ExternalWorker, ExternalWorkerGone, NoSuchExternalWorker
from spinney.model.jobs import ClaimRequest, LaneRequest, Lease, SlotRequest
from spinney.model.outcomes import Outcome
from spinney.model.queue_selection import QueueSelection
from spinney.model.rights.actor import Actor
from spinney.model.settings.queues import QueueSpec
from spinney.model.states import State
from spinney.model.types import Isolation
from spinney.store.external_timeouts import take_back_silent, take_overdue
from spinney.store.parts import Store

from .behind import open_store
from .words import Clock, Site, kind, stage

EAR = ("talk", "listen")
ANN = Actor(by="ann", call="1")


@pytest.fixture
def site(store: Store, clock: Clock) -> Site:
    """Talks are fetched by a node, listened to by an external worker, kept by a node."""
    made = Site(store, clock)
    made.knows(
        kind("talk", stage("listen", isolation=Isolation.EXTERNAL, timeout_s=100.0, grace_s=5.0), "keep"),
        kind("once", stage("listen", isolation=Isolation.EXTERNAL), on_lost="orphan"),
        queues=[QueueSpec(name="narrow", limit=1)],
    )
    return made


def external_worker(**fields: Any) -> ExternalWorker:
    usual: Mapping[str, Any] = {"name": "ear", "owner": "ann", "lanes": (EAR,), "slots": 2, "lease_s": 60.0}
    return ExternalWorker(id=0, join_count=0, **{**usual, **fields})


def join(site: Site, **fields: Any) -> ExternalWorker:
    return site.store.external_workers.join(external_worker(**fields), ANN, version="1", now_us=site.now)


def claim(site: Site, of: ExternalWorker, lanes: tuple[tuple[str, str], ...] = (EAR,)) -> list[Lease]:
    slots = [SlotRequest(n, 1, 0.0, True) for n in range(of.slots)]
    want = ClaimRequest(node_id=of.id, slots=slots, lanes=dict.fromkeys(lanes, LaneRequest()))
    leases = site.store.flush_and_claim([], want, now_us=site.now).leases
    site.start(*leases)
    return leases


def test_a_party_is_found_by_who_let_it_join_and_by_nobody_else(site: Site) -> None:
    joined = join(site, serves=QueueSelection(active=("default",)))

    assert site.store.external_workers.find(joined.id, 1, "ann") == joined
    assert joined.serves == QueueSelection(active=("default",))
    with pytest.raises(NoSuchExternalWorker):
        site.store.external_workers.find(joined.id, 1, "bob")
    with pytest.raises(NoSuchExternalWorker):
        site.store.external_workers.find(joined.id + 1, 1, "ann")


def test_a_node_is_no_party(site: Site) -> None:
    node = site.node("oak")
    assert site.store.external_workers.all() == []
    with pytest.raises(NoSuchExternalWorker):
        site.store.external_workers.find(node.id, 1, "ann")


def test_a_party_is_listed_among_the_nodes_with_its_lease_and_its_stages(site: Site) -> None:
    join(site)
    (seen,) = site.store.nodes()
    assert (seen.name, seen.host, seen.types) == ("external:ear", "ann", ("talk/listen",))
    assert (seen.lease_s, seen.is_external_worker, seen.slots) == (60.0, True, 2)


def test_a_party_is_shown_as_silent_when_its_lease_is_over_and_not_before(site: Site) -> None:
    join(site)

    def shown() -> str:
        (status,) = site.store.fleet.all(now_us=site.now)
        return status.state

    site.clock.forward(60)
    assert shown() == "active"
    site.clock.forward(1)
    assert shown() == "silent"


def test_a_party_need_not_have_noticed_that_nobody_keeps_house(site: Site) -> None:
    keeper = site.node("oak")
    site.store.elect_leader(keeper.id, now_us=site.now)
    joined = join(site)
    site.clock.forward(600)
    site.store.beat(joined.id, now_us=site.now)
    assert [v.rule for v in site.store.doctor.examine(["leader-silent"], now_us=site.now)] == []


def test_only_external_stages_are_run_by_parties(site: Site) -> None:
    with pytest.raises(UsageError, match="no external stage 'keep'"):
        join(site, lanes=(("talk", "keep"),))
    with pytest.raises(UnknownType):
        join(site, lanes=(("walk", "listen"),))


def test_one_that_joins_again_has_its_old_number_and_who_speaks_for_the_old_one_is_told(site: Site) -> None:
    first = join(site)
    site.store.external_workers.left(first, ANN, now_us=site.now)
    again = join(site, slots=5, lanes=(EAR, ("once", "listen")))

    assert (again.id, again.join_count, again.slots, len(again.lanes)) == (first.id, 2, 5, 2)
    assert [n.id for n in site.store.nodes()] == [first.id]
    with pytest.raises(ExternalWorkerGone, match="has joined again since"):
        site.store.external_workers.find(first.id, first.join_count, "ann")


def test_a_name_is_one_partys_at_a_time(site: Site) -> None:
    join(site)
    with pytest.raises(Refused, match="has joined just now"):
        join(site)


def test_what_it_had_is_taken_back_before_it_comes_again(site: Site) -> None:
    site.submit("talk")
    first = join(site)
    claim(site, first)
    site.store.external_workers.left(first, ANN, now_us=site.now)
    with pytest.raises(Refused, match="still being taken back"):
        join(site)
    site.store.recover(first.id, None, now_us=site.now)
    assert join(site).join_count == 2


def test_a_claim_gives_a_party_what_a_node_would_be_given(site: Site) -> None:
    site.submit("talk", n=3)
    site.submit("talk", n=3, queue="narrow", priority=10)
    joined = join(site, slots=3)

    leases = claim(site, joined)
    assert sorted(site.store.job(lease.job_id).queue for lease in leases) == ["default", "default", "narrow"]
    assert claim(site, joined) == []  # its slots are taken


def test_a_party_limited_to_queues_is_given_nothing_of_others(site: Site) -> None:
    site.submit("talk")
    (inside,) = site.submit("talk", queue="narrow")
    joined = join(site, serves=QueueSelection(active=("narrow",)))
    assert [lease.job_id for lease in claim(site, joined)] == [inside]

    # and when it comes again without that limit, what was known of its number before counts no more
    site.store.recover(joined.id, {}, now_us=site.now)
    assert len(claim(site, join(site))) == 2


def test_a_drained_party_is_given_nothing(site: Site) -> None:
    site.submit("talk")
    joined = join(site)
    site.store.fleet.drain("external:ear", ANN, now_us=site.now)
    assert claim(site, joined) == []


def test_after_an_external_stage_the_job_goes_on_at_a_node(site: Site) -> None:
    job_id = site.submit_one("talk")
    (lease,) = claim(site, join(site))
    site.flush_and_claim([site.entry(lease, Outcome.OK, result="hello", keep=True)])

    job = site.store.job(job_id)
    assert (job.state, job.stage) == (State.PENDING, "keep")
    assert site.claim_one().stage == "keep"
    assert site.store.results(job_id) == {"listen": "hello"}


def test_what_a_party_has_is_told_with_the_wish_to_cancel_it(site: Site) -> None:
    job_id = site.submit_one("talk")
    joined = join(site)
    (lease,) = claim(site, joined)
    (lease_info,) = site.store.external_workers.leases(joined.id)
    assert (lease_info.job_id, lease_info.fence, lease_info.type, lease_info.stage) == (
        job_id,
        lease.fence,
        *EAR,
    )
    assert (lease_info.running_us, lease_info.cancel_requested_us) == (site.now, None)

    at_us = site.clock.forward(3)
    job_verbs.cancel(site.store, job_id, tree=False, by="ann", reason=None, now_us=at_us)
    assert [g.cancel_requested_us for g in site.store.external_workers.leases(joined.id)] == [at_us]


def test_a_wish_over_a_tree_is_told_too(site: Site) -> None:
    site.knows(kind("batch", "expand"))
    top = site.run(site.submit_one("batch"))
    (child,) = site.spawn(top, "talk")
    site.pass_(top)
    joined = join(site)
    (lease,) = claim(site, joined)
    assert lease.job_id == child
    job_verbs.cancel(site.store, top.job_id, tree=True, by="ann", reason=None, now_us=site.now)
    assert [g.cancel_requested_us for g in site.store.external_workers.leases(joined.id)] == [site.now]


def test_a_silent_party_loses_what_it_had_as_an_interruption(site: Site) -> None:
    job_id = site.submit_one("talk")
    claim(site, join(site))
    (seen,) = site.store.nodes()

    assert list(take_back_silent(site.store, seen, now_us=site.now)) == [job_id]
    job = site.store.job(job_id)
    assert (job.state, job.interruptions) == (State.PENDING, 1)
    assert site.store.attempts(job_id)[0].message == "its external worker sent no more heartbeats"
    assert site.store.external_workers.all() == []


def test_a_party_that_was_heard_of_since_somebody_looked_loses_nothing(site: Site) -> None:
    site.submit("talk")
    joined = join(site)
    claim(site, joined)
    (seen,) = site.store.nodes()
    site.store.beat(joined.id, now_us=site.now)

    assert list(take_back_silent(site.store, seen, now_us=site.now)) == []
    assert len(site.store.external_workers.leases(joined.id)) == 1


def test_what_a_silent_party_had_of_a_type_that_must_not_run_twice_is_orphaned(site: Site) -> None:
    job_id = site.submit_one("once")
    claim(site, join(site, lanes=(("once", "listen"),)), (("once", "listen"),))
    (seen,) = site.store.nodes()
    take_back_silent(site.store, seen, now_us=site.now)
    job = site.store.job(job_id)
    assert job.state is State.ORPHANED
    assert job.message == "its type forbids a silent second run: its external worker sent no more heartbeats"


def test_an_attempt_that_exceeds_its_time_limit_is_taken_from_its_party(site: Site) -> None:
    job_id = site.submit_one("talk")
    joined = join(site)
    claim(site, joined)
    site.clock.forward(99)
    assert take_overdue(site.store, now_us=site.now) == 0
    site.clock.forward(1)
    assert take_overdue(site.store, now_us=site.now) == 1
    assert site.store.job(job_id).message == "exceeded its time limit of 100 s"
    assert site.store.attempts(job_id)[0].outcome is Outcome.TIMEOUT


def test_an_attempt_that_does_not_end_when_it_should_is_cancelled_without_its_party(site: Site) -> None:
    job_id = site.submit_one("talk")
    claim(site, join(site))
    job_verbs.cancel(site.store, job_id, tree=False, by="ann", reason=None, now_us=site.now)
    site.clock.forward(60 + 4)  # its lease, within which it hears of it, and nearly its grace
    assert take_overdue(site.store, now_us=site.now) == 0
    site.clock.forward(1)
    assert take_overdue(site.store, now_us=site.now) == 1
    assert site.store.job(job_id).state is State.CANCELLED


def test_why_a_job_waits_for_a_party_is_one_sentence(site: Site) -> None:
    site.node("oak", types=("talk", "once"))
    job_id = site.submit_one("talk")

    def why() -> str:
        return explained(site.store, job_id, site.now).sentence

    assert why().startswith(
        "there is no external worker that claims external stage 'listen' of job type 'talk'"
    )
    joined = join(site, serves=QueueSelection(active=("narrow",)))
    assert (
        why()
        == "no external worker that claims external stage 'listen' of job type 'talk' (ear) may serve queue 'default'"
    )
    site.store.recover(joined.id, {}, now_us=site.now)
    joined = join(site)
    assert why() == "nothing keeps it: it starts with the next claim"
    site.clock.forward(61)
    assert "has given no sign of life for 61 seconds" in why()
    site.store.beat(joined.id, now_us=site.now)
    claim(site, joined)
    assert why() == "external worker ear has it"
    site.clock.forward(61)
    assert "is about to be taken back" in why()


def test_a_party_keeps_no_house_and_is_no_node_to_a_job_that_wants_one(site: Site) -> None:
    join(site)
    site.knows(kind("plain", "work"))
    job_id = site.submit_one("plain")
    assert explained(site.store, job_id, site.now).sentence == "no node is running"


def test_where_folders_are_local_there_are_no_parties(tmp_path: Any, clock: Clock) -> None:
    store = open_store(f"sqlite:///{tmp_path}/x.db")
    store.create(local_folders=True)
    site = Site(store, clock)
    site.knows(kind("talk", stage("listen", isolation=Isolation.EXTERNAL)))
    with pytest.raises(Refused, match="folders of this store are local"):
        join(site)
    store.close()
