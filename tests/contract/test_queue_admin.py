"""Queues set at run time: what operators say wins, at once and for every node; who may serve which."""

from collections.abc import Callable
from typing import Any

import pytest

from spinney.model.errors import BadName, Refused, UnknownType, UsageError
from spinney.model.jobs import Lease
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.operators.queues import QueueChange, QueueInfo
from spinney.model.queue_selection import QueueSelection
from spinney.model.rights.actor import Actor
from spinney.model.settings.inboxes import Inbox
from spinney.model.settings.queues import QueueSpec
from spinney.model.settings.schedules import Schedule
from spinney.model.states import State
from spinney.store.parts import Store

from .test_explainer import explain
from .words import USUAL, Node, Site, kind

TYPES = tuple(spec.name for spec in USUAL)
ANN = Actor(by="ann", call="c", reason="because")
DECLARED = QueueSpec(name="q", limit=2, type="one", barred=("elm",))


def change(site: Site, name: str = "q", **what: Any) -> QueueInfo:
    return site.store.queue_admin.change(name, QueueChange(**what), ANN, now_us=site.now)


@pytest.fixture
def queued(site: Site) -> Site:
    """It knows the queue ``q``, about which nothing is said."""
    site.knows(queues=[QueueSpec(name="q")])
    return site


# --- what is set, over what is declared -------------------------------------------------------


def test_what_is_said_of_a_queue_comes_back_as_it_was(site: Site, open_another: Callable[[], Store]) -> None:
    site.knows(queues=[DECLARED])

    assert open_another().queues()["q"] == DECLARED
    assert open_another().queue_admin.in_force("q") == DECLARED


def test_what_operators_set_wins_until_it_is_taken_back(
    site: Site, open_another: Callable[[], Store]
) -> None:
    site.knows(queues=[DECLARED])

    info = change(site, set={"limit": 7, "type": "three"}, pin=("oak",))

    assert info.in_force == QueueSpec(name="q", limit=7, type="three", pinned=("oak",), barred=("elm",))
    assert (info.declared, info.by, info.at_us) == (DECLARED, "ann", site.now)
    assert dict(info.settings) == {"limit": 7, "type": "three", "pinned": ("oak",)}
    assert open_another().queue_admin.get("q") == info
    assert site.store.queues()["q"] == DECLARED

    back = change(site, declared=("limit", "type", "pinned", "barred"))
    assert (back.in_force, dict(back.settings), back.by) == (DECLARED, {}, None)


def test_no_limit_is_not_the_limit_that_is_declared(site: Site) -> None:
    site.knows(queues=[DECLARED])

    assert change(site, set={"limit": None}).in_force.limit is None
    assert change(site, declared=("limit",)).in_force.limit == 2


def test_a_node_that_declares_anew_does_not_undo_what_is_set(site: Site) -> None:
    site.knows(queues=[DECLARED])
    change(site, set={"limit": 7})

    site.knows(queues=[QueueSpec(name="q", limit=3, type="three")])

    assert site.store.queue_admin.in_force("q") == QueueSpec(name="q", limit=7, type="three")
    assert change(site, declared=("limit",)).in_force.limit == 3


def test_pins_and_bars_are_added_and_taken_back_one_by_one(queued: Site) -> None:
    change(queued, bar=("yew",))
    change(queued, pin=("oak", "elm"))
    change(queued, pin=("ash", "oak"), unpin=("elm",))

    spec = queued.store.queue_admin.in_force("q")
    assert (spec.pinned, spec.barred) == (("oak", "ash"), ("yew",))
    assert change(queued, set={"pinned": (), "barred": ()}, bar=("elm",)).in_force.barred == ("elm",)


@pytest.mark.parametrize(
    ("name", "what", "error"),
    [
        ("qq", {"set": {"limit": 1}}, UsageError),
        ("q", {"set": {"limit": -1}}, UsageError),
        ("q", {"set": {"limit": True}}, UsageError),
        *(("q", {"set": {"limit": part}}, UsageError) for part in ("0%", "101%", "5", "050%", "%", "١%")),
        ("q", {"set": {"order": "lifo"}}, UsageError),
        ("q", {"declared": ("name",)}, UsageError),
        ("q", {"set": {"type": "onee"}}, UnknownType),
        ("q", {"pin": ("a b",)}, BadName),
        ("q", {"set": {"pinned": "oak"}}, UsageError),
        ("q", {"unpin": ("oak",)}, Refused),
        ("q", {"unbar": ("oak",)}, Refused),
        ("q", {"pin": ("oak",), "bar": ("oak",)}, Refused),
        ("q", {"pin": ("oak",), "set": {"barred": ("elm",)}}, Refused),
    ],
)
def test_what_cannot_be_meant_is_refused_and_changes_nothing(
    queued: Site, name: str, what: dict[str, Any], error: type[Exception]
) -> None:
    before = queued.store.audit.head()

    with pytest.raises(error):
        change(queued, name, **what)

    assert queued.store.queue_admin.get("q").settings == {}
    assert queued.store.audit.head() == before


def test_bars_that_a_pinned_queue_has_already_may_be_set_again_and_no_further_ones(queued: Site) -> None:
    change(queued, bar=("elm",))
    change(queued, pin=("oak",))

    info = change(queued, set={"barred": ("elm",), "limit": 3})
    with pytest.raises(Refused, match="a bar has no effect"):
        change(queued, set={"barred": ("elm", "ash")})

    assert (info.in_force.barred, info.in_force.limit) == (("elm",), 3)


def test_each_change_is_in_the_audit_and_none_that_changes_nothing(queued: Site) -> None:
    change(queued, set={"limit": 4})
    change(queued, set={"limit": 4})
    change(queued, set={"limit": None}, bar=("elm",))
    change(queued, declared=("limit",))

    entries = [entry for entry, _ in queued.store.audit.entries()]
    assert [(e.verb, e.by, e.reason) for e in entries] == [("queue", "ann", "because")] * 3
    assert [e.what for e in entries] == [
        '{"limit":4,"queue":"q"}',
        '{"barred":["elm"],"limit":"none","queue":"q"}',
        '{"limit":"as declared","queue":"q"}',
    ]


# --- limits -----------------------------------------------------------------------------------


def test_a_part_of_the_slots_holds_over_all_nodes_and_moves_with_them(
    site: Site, open_another: Callable[[], Store]
) -> None:
    site.knows(queues=[QueueSpec(name="q", limit="50%")])
    oak, elm = site.node("oak", 2, types=TYPES), site.node("elm", 3, types=TYPES)
    jobs = site.submit(n=9, queue="q")

    assert [len(site.claim(node)) for node in (oak, elm)] == [2, 1], "half of five slots, rounded up"
    assert explain(site, jobs[-1]).sentence.startswith("queue 'q' is at its limit of 3 slots (50% of all)")
    yew = site.node("yew", 4, types=TYPES)
    assert len(site.claim(yew)) == 2, "half of nine"
    info = open_another().queue_admin.get("q")
    assert (info.in_force.limit, info.limit, info.running) == ("50%", 5, 5)
    (stats,) = (q for q in site.store.statistics.stats(window_s=60, now_us=site.now).queues if q.queue == "q")
    assert (stats.limit_setting, stats.limit) == ("50%", 5)

    site.store.fleet.drain("yew", ANN, now_us=site.now)
    assert site.claim(elm) == [], "its slots count no more"
    change(site, set={"limit": None})
    assert len(site.claim(elm)) == 2
    assert change(site, set={"limit": "100%"}, bar=("elm",)).limit == 2, "of those that may serve it"
    assert change(site, declared=("limit", "barred")).limit == 3


def test_a_part_is_one_slot_at_least_and_keeps_a_slot_for_the_next_stage(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q", limit="1%")])
    node = site.node("oak", 3, types=TYPES)
    site.submit("three", n=3, queue="q")

    (lease,) = site.claim(node)
    answer = site.flush_and_claim([site.entry(lease, keep=True)], site.want(node, 0))

    assert [(kept.job_id, kept.slot) for kept in answer.leases] == [(lease.job_id, lease.slot)]
    assert site.claim(node) == []


def test_a_limit_is_obeyed_by_every_store_object_from_the_next_claim(
    queued: Site, open_another: Callable[[], Store]
) -> None:
    """As a node's own connection would, which had read the registry before."""
    queued.submit(n=9, queue="q")
    assert len(queued.claim(slots=1)) == 1
    other = open_another()

    other.queue_admin.change("q", QueueChange(set={"limit": 3}), ANN, now_us=queued.now)
    assert len(queued.claim(slots=8)) == 2

    other.queue_admin.change("q", QueueChange(set={"limit": 5}), ANN, now_us=queued.now)
    assert len(queued.claim(slots=8)) == 2


@pytest.mark.parametrize("beside", [0, 300], ids=["alone", "beside another queue"])
def test_a_lowered_limit_is_reached_although_slots_are_filled_ahead(queued: Site, beside: int) -> None:
    """A slot of the queue is given more before it is empty: it must not be while the queue has too many."""
    node = queued.node("oak", slots=5)
    queued.submit(n=300, queue="q")
    leases = queued.claim(node, jobs=4, run_us=100.0)
    queued.submit(n=beside)

    seen = [_of_queue(queued, leases)]
    change(queued, set={"limit": 2})
    for _ in range(30):
        leases = _one_each(queued, node, leases)
        seen.append(_of_queue(queued, leases))

    falling = [n for n in seen if n > 2]
    assert seen[0] == 5
    assert seen[: len(falling)] == sorted(falling, reverse=True), "it never rises above the limit"
    assert len(falling) <= 4, "no slot is given more of it until enough are free of it"
    assert 2 in seen


def _of_queue(site: Site, leases: list[Lease]) -> int:
    """Slots that the queue occupies."""
    return len({lease.slot for lease in leases if site.job(lease.job_id).queue == "q"})


def _one_each(site: Site, node: Node, leases: list[Lease]) -> list[Lease]:
    """Each slot ends its first, and all slots ask for more."""
    first = {lease.slot: lease for lease in reversed(leases)}
    site.pass_(*first.values())
    left = [lease for lease in leases if lease not in first.values()]
    want = site.want(node, jobs=4, run_us=100.0)
    taken = {lease.slot for lease in left}
    asking = [s._replace(free=s.slot not in taken) for s in _all_slots(site, node)]
    return left + site.flush_and_claim([], type(want)(node_id=node.id, slots=asking, lanes=want.lanes)).leases


def _all_slots(site: Site, node: Node) -> list[Any]:
    everything = Node(node.id, node.name, node.slots)
    return list(site.want(everything, jobs=4, run_us=100.0).slots)


# --- who serves -------------------------------------------------------------------------------


def test_a_pinned_queue_is_served_by_those_nodes_alone(queued: Site) -> None:
    oak, elm = queued.node("oak"), queued.node("elm")
    queued.submit(n=4, queue="q")
    change(queued, pin=("oak",))

    assert queued.claim(elm) == []
    assert len(queued.claim(oak, 2)) == 2
    change(queued, unpin=("oak",))
    assert len(queued.claim(elm)) == 2


def test_a_barred_node_serves_everything_else(queued: Site) -> None:
    oak, elm = queued.node("oak"), queued.node("elm")
    barred, other = queued.submit_one(queue="q"), queued.submit_one()
    change(queued, bar=("elm",))

    assert [lease.job_id for lease in queued.claim(elm)] == [other]
    assert [lease.job_id for lease in queued.claim(oak)] == [barred]


def test_where_both_name_a_node_the_pin_wins(queued: Site) -> None:
    oak, elm = queued.node("oak"), queued.node("elm")
    queued.submit(n=2, queue="q")
    change(queued, bar=("oak", "ash"))
    change(queued, pin=("oak",))

    assert queued.claim(elm) == []
    assert len(queued.claim(oak)) == 2


def test_applications_may_pin_and_bar_too(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q", pinned=("oak",)), QueueSpec(name="r", barred=("oak",))])
    oak, elm = site.node("oak"), site.node("elm")
    q, r = site.submit_one(queue="q"), site.submit_one(queue="r")

    assert [lease.job_id for lease in site.claim(oak)] == [q]
    assert [lease.job_id for lease in site.claim(elm)] == [r]


@pytest.mark.parametrize(
    ("serves", "gets"),
    [(QueueSelection(active=("q",)), ["q"]), (QueueSelection(ignored=("q", "r")), ["default"])],
)
def test_a_node_serves_the_queues_that_it_was_started_for(
    site: Site, serves: QueueSelection, gets: list[str]
) -> None:
    node = site.node("oak", serves=serves)
    for queue in ("q", "r", "default"):
        site.submit(queue=queue)

    assert [site.job(lease.job_id).queue for lease in site.claim(node)] == gets
    assert site.store.nodes()[0].serves == serves


def test_a_pin_does_not_override_the_nodes_own_list(queued: Site) -> None:
    oak = queued.node("oak", serves=QueueSelection(ignored=("q",)))
    queued.submit(queue="q")
    change(queued, pin=("oak",))

    assert queued.claim(oak) == []


def test_a_node_cannot_be_started_for_some_and_without_others() -> None:
    with pytest.raises(UsageError, match="not both"):
        QueueSelection(active=("q",), ignored=("r",))


@pytest.mark.parametrize("how", [{"pin": ("elm",)}, {"bar": ("oak",)}], ids=["pinned", "barred"])
def test_the_next_stage_is_not_kept_in_a_queue_that_the_node_may_serve_no_more(
    queued: Site, how: dict[str, Any]
) -> None:
    oak, elm = queued.node("oak"), queued.node("elm")
    job = queued.submit_one("three", queue="q")
    first = queued.run(job, oak)
    (second,) = queued.flush_and_claim([queued.entry(first, keep=True)], queued.want(oak, 0)).leases
    change(queued, **how)

    answer = queued.flush_and_claim([queued.entry(second, keep=True)], queued.want(oak, 0))

    assert answer.leases == []
    assert [(lease.job_id, lease.stage) for lease in queued.claim(elm)] == [(job, "third")]


def test_a_quota_counts_the_slots_that_may_serve_the_queue(site: Site) -> None:
    """Two shares: with 4 slots one may hold 2 of them, with 24 slots 11."""
    site.knows(queues=[QueueSpec(name="q", sharing="quota", pinned=("oak",))])
    oak = site.node("oak", slots=4, types=TYPES)
    site.node("elm", slots=20, types=TYPES)
    *_, last = site.submit(n=8, queue="q", share="ann")
    site.submit(n=1, queue="q", share="bob", at_us=site.now + 10**9)
    site.submit(n=1, queue="q", share="cat")

    leases = site.claim(oak)

    assert sorted(site.job(lease.job_id).share for lease in leases) == ["ann", "ann", "cat"]
    assert explain(site, last).cause == "share"


def test_the_lanes_of_a_node_are_looked_up_once_until_something_is_set(queued: Site) -> None:
    """Whatever is set, a claim asks nothing more of the database than before."""
    oak = queued.node("oak")
    change(queued, bar=("elm",))
    queued.submit(n=6, queue="q")
    queued.claim(oak, 1)
    registry = queued.store._registry  # type: ignore[attr-defined]
    before = registry.closed_to(None, oak.id)

    queued.claim(oak, 1)

    assert registry.closed_to(None, oak.id) is before


# --- looking ----------------------------------------------------------------------------------


def test_a_queue_tells_what_stands_in_it_and_who_serves_it(queued: Site) -> None:
    oak, _ = queued.node("oak", types=TYPES), queued.node("elm", types=TYPES)
    queued.submit(n=5, queue="q")
    queued.claim(oak, 2)
    change(queued, pin=("oak",))

    info = queued.store.queue_admin.get("q")

    assert (info.pending, info.running, info.nodes, info.active) == (3, 2, ("oak",), 2)
    assert (info.types, info.unknown, info.unserved) == (("one",), (), ())
    assert [i.queue for i in queued.store.queue_admin.all()] == ["default", "q"]
    assert info in queued.store.queue_admin.all()


def test_a_queue_whose_type_no_node_knows_is_shown_as_such_and_left_alone(site: Site) -> None:
    site.knows(kind("strange", "work"), queues=[QueueSpec(name="q", type="strange"), QueueSpec(name="r")])
    oak = site.node("oak", types=TYPES)
    job, other = site.submit_one("strange", queue="q"), site.submit_one("strange", queue="r")

    lanes = [key for key in site.lanes() if key[0] in TYPES]
    assert site.claim(oak, lanes=lanes) == []
    for queue in ("q", "r"):
        assert site.store.queue_admin.get(queue).unknown == ("strange",)
    assert site.states([job, other]) == ["pending", "pending"]


def test_types_that_only_nodes_know_which_may_not_serve_it(queued: Site) -> None:
    queued.node("oak", types=TYPES)
    queued.node("elm", types=("other",))
    queued.submit(queue="q")
    change(queued, pin=("elm",))

    info = queued.store.queue_admin.get("q")

    assert (info.nodes, info.unknown, info.unserved) == (("elm",), (), ("one",))
    assert info.nodes_without_types == ("elm",)


# --- explaining -------------------------------------------------------------------------------


def test_pinned_to_nodes_of_which_none_is_active(queued: Site) -> None:
    queued.node("ash", types=TYPES)
    gone = queued.node("oak", types=TYPES)
    queued.store.update_node(gone.id, state="left", now_us=queued.now)
    change(queued, pin=("oak", "elm"))

    explanation = explain(queued, queued.submit_one(queue="q"))

    assert explanation.cause == "pinned"
    assert explanation.sentence == "queue 'q' is pinned to nodes oak and elm, none of which is active"
    assert explanation.command == "spinney queue q --unpin oak --unpin elm"


def test_pinned_to_one_that_drains_where_nobody_else_could_help(queued: Site) -> None:
    oak = queued.node("oak", types=TYPES)
    queued.store.update_node(oak.id, state="draining", now_us=queued.now)
    change(queued, pin=("oak",))

    explanation = explain(queued, queued.submit_one(queue="q"))

    assert explanation.sentence == "queue 'q' is pinned to node oak, which is not active (oak drains)"
    assert explanation.command == "spinney node --name oak"


def test_pinned_to_one_that_does_not_know_the_type(queued: Site) -> None:
    queued.node("oak", types=("other",))
    queued.node("elm", types=TYPES)
    change(queued, pin=("oak",))

    explanation = explain(queued, queued.submit_one(queue="q"))

    assert (explanation.cause, explanation.command) == ("pinned", "spinney queue q --pin elm")
    assert "no active node of these knows job type 'one', as node elm would" in explanation.sentence


def test_barred_from_every_node_that_knows_the_type(queued: Site) -> None:
    queued.node("oak", types=TYPES)
    queued.node("elm", types=TYPES, serves=QueueSelection(active=("default",)))
    queued.node("ash", types=("other",))
    change(queued, bar=("oak",))

    explanation = explain(queued, queued.submit_one(queue="q"))

    assert (explanation.cause, explanation.command) == ("barred", "spinney queue q --unbar oak")
    assert explanation.sentence == (
        "queue 'q' is barred from node oak and node elm was started without queue 'q'; "
        "no other active node knows job type 'one'"
    )


def test_not_served_by_the_only_node_that_knows_the_type(queued: Site) -> None:
    queued.node("oak", types=TYPES, serves=QueueSelection(ignored=("q",)))

    explanation = explain(queued, queued.submit_one(queue="q"))

    assert (explanation.cause, explanation.command) == ("not served", "spinney node --active q")
    assert explanation.sentence.startswith("node oak was started without queue 'q'")


def test_a_limit_is_told_with_the_command_that_raises_it(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="q", limit=1), QueueSpec(name="shut", limit=0)])
    node = site.node("oak", types=TYPES)
    site.submit(queue="q")
    site.claim(node)
    job, other = site.submit_one(queue="q"), site.submit_one(queue="shut")

    assert explain(site, job).command == "spinney queue q --limit 2"
    assert explain(site, other).command == "spinney queue shut --limit 1"
    change(site, set={"limit": 0})
    assert explain(site, job).command == "spinney queue q --limit declared"


def test_jobs_that_others_alone_may_run_do_not_stand_before_it(queued: Site) -> None:
    queued.node("oak", slots=1, types=TYPES)
    queued.node("elm", slots=1, types=TYPES)
    queued.submit(n=3, queue="q", priority=1)
    change(queued, pin=("elm",))
    job = queued.submit_one()
    change(queued, "default", pin=("oak",))

    explanation = explain(queued, job)

    assert (explanation.cause, explanation.facts) == ("next", {"nodes": ["oak"]})


def test_what_others_must_take_is_not_said_to_come_before_it(queued: Site) -> None:
    """More urgent jobs, as many as slots are free; but one of the nodes may not serve them."""
    oak = queued.node("oak", slots=1, types=TYPES)
    queued.node("elm", slots=1, types=TYPES)
    queued.submit(n=2, queue="q", priority=1)
    change(queued, pin=("elm",))
    job = queued.submit_one()

    assert explain(queued, job).cause == "turn"
    assert [lease.job_id for lease in queued.claim(oak)] == [job]


def test_the_doctor_finds_nothing_wrong_with_what_nobody_may_serve(queued: Site) -> None:
    queued.node("oak", types=TYPES)
    queued.submit(n=3, queue="q")
    change(queued, pin=("elm",))
    queued.submit(n=3, queue="q")

    assert list(queued.store.doctor.examine(now_us=queued.now)) == []


# --- made and deleted -------------------------------------------------------------------------


def create(site: Site, **spec: Any) -> QueueInfo:
    return site.store.queue_admin.create(QueueSpec(**{"name": "new"} | spec), ANN, now_us=site.now)


def delete(site: Site, name: str = "new") -> None:
    site.store.queue_admin.delete(name, ANN, now_us=site.now)


def test_a_queue_is_made_and_obeyed_and_deleted(site: Site, open_another: Callable[[], Store]) -> None:
    other = open_another()
    spec = QueueSpec(name="new", limit=1, order="fifo", type="one")

    info = create(site, limit=1, order="fifo", type="one")

    assert (info.in_force, info.declared, dict(info.settings)) == (spec, spec, {})
    assert other.queue_admin.get("new") == info
    first, second = site.submit(n=2, queue="new")
    (lease,) = site.claim()
    assert lease.job_id == first
    site.pass_(lease)
    site.cancel(second)

    delete(site)

    for store in (site.store, other):
        assert "new" not in [queue.queue for queue in store.queue_admin.all()]
        with pytest.raises(UsageError, match="no queue 'new' is known"):
            store.queue_admin.get("new")
    assert [(entry.verb, entry.by) for entry, _ in site.store.audit.entries() if "queue" in entry.verb] == [
        ("queue create", "ann"),
        ("queue delete", "ann"),
    ]


def test_a_deleted_queue_leaves_nothing_that_is_set(site: Site) -> None:
    create(site, limit=3)
    change(site, "new", set={"limit": 0}, pin=("oak",))
    job = site.submit_one(queue="new")
    assert site.claim() == []
    site.cancel(job)

    delete(site)
    site.retry(job)

    assert site.store.queue_admin.in_force("new") == QueueSpec(name="new")
    assert site.drain() == [(job, "work")]
    assert site.store.statistics.stats(window_s=60.0, now_us=site.now).rate > 0
    delete(site)
    assert site.store.statistics.stats(window_s=60.0, now_us=site.now).rate == 0
    assert list(site.store.doctor.examine(now_us=site.now)) == []


def test_one_that_is_there_is_not_made_again(queued: Site) -> None:
    with pytest.raises(Refused, match="there is a queue 'q' already"):
        create(queued, name="q")
    with pytest.raises(UnknownType, match="no job type 'on' is known"):
        create(queued, type="on")
    queued.submit(queue="named")
    with pytest.raises(Refused, match="has jobs in it, so its order and sharing cannot change"):
        create(queued, name="named", order="lifo")
    assert create(queued, name="named", limit=0).in_force.limit == 0
    assert queued.claim() == []


def test_one_that_would_be_missed_is_not_deleted(site: Site) -> None:
    site.knows(kind("there", "work", queue="typed"))
    oak = site.node("oak", types=("there",))
    for name in ("new", "typed"):
        create(site, name=name)
    job = site.submit_one(queue="new")
    with pytest.raises(Refused, match="queue 'new' still has jobs; move or cancel them first"):
        delete(site)
    site.cancel(job)
    site.store.schedules.put(
        Schedule(name="often", type="one", every_s=60, options={"queue": "new"}), ANN, now_us=site.now
    )
    with pytest.raises(Refused, match="schedule 'often' submits jobs to queue 'new'"):
        delete(site)
    site.store.schedules.drop("often", ANN, now_us=site.now)
    inbox = Inbox(name="uploads", folder="/srv/uploads", type="one", options={"queue": "new"}, paused=True)
    site.store.inboxes.put(inbox, ANN, now_us=site.now)
    with pytest.raises(Refused, match="inbox 'uploads' submits jobs to queue 'new'"):
        delete(site)
    site.store.inboxes.remove("uploads", ANN, now_us=site.now)
    delete(site)

    with pytest.raises(
        Refused, match="node 'oak' runs an application whose type 'there' names queue 'typed'"
    ):
        delete(site, "typed")
    site.store.update_node(oak.id, state="left", now_us=site.now)
    delete(site, "typed")
    assert site.store.queue_admin.get("typed").declared is None
    with pytest.raises(Refused, match="the queue 'default' always exists"):
        delete(site, "default")
    with pytest.raises(UsageError, match="no queue 'new' is known"):
        delete(site)


@pytest.mark.parametrize("after", ["one more stage", "its children", "a failure"])
def test_one_into_which_a_running_job_was_moved_is_not_deleted(site: Site, after: str) -> None:
    create(site, limit=1)
    of = {"one more stage": "three", "its children": "parent", "a failure": "tenacious"}
    job = site.submit_one(of[after])
    lease = site.claim_one()
    site.start(lease)
    site.store.bulk.apply(Order(verb=Verb.MOVE, queue="new"), [job], ANN, now_us=site.now)
    with pytest.raises(Refused, match="queue 'new' still has jobs"):
        delete(site)

    if after == "its children":
        site.spawn(lease)
    if after == "a failure":
        site.fail(lease, retryable=True)
        assert site.state(job) is State.SCHEDULED
    else:
        site.pass_(lease)
    with pytest.raises(Refused, match="queue 'new' still has jobs"):
        delete(site)
    site.later(3600)
    site.drain()
    delete(site)


def test_what_an_application_declares_wins_over_what_was_made(site: Site) -> None:
    create(site, limit=1)
    site.knows(queues=[QueueSpec(name="new", limit=5)])
    assert site.store.queue_admin.in_force("new").limit == 5
