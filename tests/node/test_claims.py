"""What slots are given, and how far ahead."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from spinney.model.jobs import FlushResult, Lease, Record
from spinney.model.outcomes import Outcome
from spinney.model.types import Isolation, LockSpec, StageSpec, TypeSpec
from spinney.node.dispatch.crash_suspects import CrashSuspects
from spinney.node.dispatch.dispatcher import Dispatcher
from spinney.node.dispatch.lanes import MIN_RUN_US, Lane, Lanes
from spinney.node.dispatch.lookahead import Lookahead, backlogged
from spinney.node.dispatch.slots import PoolWorker, Slot
from spinney.node.dispatch.ticker import trim
from spinney.node.services.orders import resize
from spinney.node.signals import NodeSignals, NodeStatus
from spinney.node.workers.shared_page import Running
from spinney.node.workers.worker_reports import Exit

AHEAD = Lookahead(run_us=100_000.0, jobs=600, list_size=200)


def spec(name: str = "t", *, on_lost: str = "requeue", **stage: Any) -> TypeSpec:
    return TypeSpec(name=name, on_lost=on_lost, stages=(StageSpec(name="s", **stage),))


def lane(**stage: Any) -> Lane:
    made = spec(**stage)
    return Lane(made, made.stages[0])


def add_run_times(a_lane: Lane, run_us: float, n: int = 1) -> Lane:
    a_lane.attempts, a_lane.total_us = n, int(run_us * n)
    a_lane.learn()
    return a_lane


# --- lanes -------------------------------------------------------------------------------------


def test_a_lane_is_looked_ahead_once_its_run_time_is_known() -> None:
    plain = lane()
    assert plain.claim_request.run_us is None
    assert add_run_times(plain, 5_000).claim_request.run_us == 5_000


@pytest.mark.parametrize(
    "stage",
    [
        {"isolation": Isolation.COLD},
        {"isolation": Isolation.THREAD},
        {"isolation": Isolation.PROGRAM, "program": ("true",)},
        {"locks": (LockSpec(template="a"),)},
    ],
)
def test_other_lanes_are_never_looked_ahead(stage: dict[str, Any]) -> None:
    assert add_run_times(lane(**stage), 5_000).claim_request.run_us is None


def test_what_may_not_run_twice_is_never_looked_ahead() -> None:
    made = spec(on_lost="orphan")
    assert add_run_times(Lane(made, made.stages[0]), 5_000).claim_request.run_us is None


def test_run_times_follow_what_is_measured_and_small_changes_are_not_told() -> None:
    plain = add_run_times(lane(), 1_000)
    request = add_run_times(plain, 1_010).claim_request
    assert add_run_times(plain, 1_020).claim_request is request
    assert add_run_times(plain, 100_000, n=100).claim_request.run_us == pytest.approx(100_000, rel=0.1)


def test_no_run_time_is_below_what_handing_out_costs() -> None:
    assert add_run_times(lane(), 0).run_us == MIN_RUN_US


# --- slots -------------------------------------------------------------------------------------


def filled(held: int, expected_us: float, *, a_lane: Lane | None = None) -> Slot:
    slot = Slot(0)
    slot.put(a_lane or lane(), 10.0)
    slot.held, slot.expected_us = held, expected_us
    return slot


def test_a_free_slot_asks_for_all_that_it_may_be_given() -> None:
    claim_request = AHEAD.claim_request(Slot(3), 0.0)
    assert claim_request is not None
    assert (claim_request.slot, claim_request.jobs, claim_request.budget_us, claim_request.free) == (
        3,
        600,
        100_000,
        True,
    )


def test_a_slot_asks_again_when_half_its_time_is_used_up() -> None:
    assert AHEAD.claim_request(filled(15, 75_000), 10.0) is None
    claim_request = AHEAD.claim_request(filled(8, 40_000), 10.0)
    assert claim_request is not None
    assert (claim_request.jobs, claim_request.budget_us, claim_request.free) == (592, 60_000, False)


def test_a_slot_of_tiny_jobs_asks_again_when_a_list_is_used_up() -> None:
    assert AHEAD.claim_request(filled(401, 4_010), 10.0) is None
    claim_request = AHEAD.claim_request(filled(400, 4_000), 10.0)
    assert claim_request is not None
    assert claim_request.jobs == 200


def test_nothing_is_put_behind_what_takes_long() -> None:
    assert AHEAD.claim_request(filled(1, 5_000), 10.05) is not None
    assert AHEAD.claim_request(filled(1, 5_000), 10.2) is None


def test_what_is_put_behind_it_makes_what_runs_no_younger() -> None:
    slot = filled(1, 5_000)
    slot.put(lane(), 10.09)
    assert AHEAD.claim_request(slot, 10.11) is None


def test_what_has_not_been_measured_counts_as_all_that_a_slot_may_be_given() -> None:
    unknown = lane()
    assert AHEAD.claim_request(filled(1, AHEAD.expected_us(unknown)), 10.0) is None
    assert AHEAD.expected_us(add_run_times(unknown, 300)) == 300


def test_nothing_is_put_behind_what_is_not_looked_ahead() -> None:
    slot = filled(1, 0.0, a_lane=lane(isolation=Isolation.ASYNC))
    assert AHEAD.claim_request(slot, 10.0) is None
    slot.emptied()
    assert AHEAD.claim_request(slot, 10.0) is not None


def test_only_a_backlog_worth_it_is_recalled_and_not_again_at_once() -> None:
    short, single, long, just_now = (
        filled(600, 6_000),
        filled(1, 90_000),
        filled(10, 50_000),
        filled(10, 50_000),
    )
    just_now.recalled_at = 9.99
    recalled = backlogged([short, single, long, just_now], least_us=10_000, now=10.0, pause_s=0.05)
    assert recalled == [long]


# --- the desk ----------------------------------------------------------------------------------


class FakeChild:
    concurrent = False
    ready = True

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.recalls = 0
        self.behind = 0
        self.taken: list[int] = []

    def send_run(self, groups: Any) -> None:
        self.sent.append([(t, s, [tuple(r) for r in rows]) for t, s, rows in groups])

    def recall(self) -> None:
        self.recalls += 1

    def blocking_fence(self) -> int:
        return self.behind

    def take_back(self, fences: Any) -> None:
        self.taken += fences


class FakeCrew:
    """A warm worker for each slot; one more for threads."""

    may_start, shared_loads_long = True, False

    def __init__(self, slots: list[Slot]) -> None:
        self.written: list[Record] = []
        self.crash_suspects = CrashSuspects()
        self.concurrent = PoolWorker("many", None)
        self.concurrent.child = FakeChild()  # type: ignore[assignment]
        for slot in slots:
            slot.worker = PoolWorker(f"w{slot.number}", slot)
            slot.worker.child = FakeChild()  # type: ignore[assignment]
        self.workers = [*(s.worker for s in slots), self.concurrent]

    def offers(self) -> int:
        return 0

    def serves(self, a_lane: Lane) -> bool:
        return self.may_start or a_lane.warm or a_lane.concurrent

    def worker_for(self, slot: Slot, a_lane: Lane, job_id: int) -> PoolWorker | None:
        return self.concurrent if a_lane.concurrent else slot.worker

    def attach(self, dispatcher: Dispatcher) -> None:
        """It reports nothing by itself."""

    def after_output(self, worker: PoolWorker, record: Record) -> None:
        self.written.append(record)


class Scene:
    def __init__(self, *types: TypeSpec, slots: int = 2) -> None:
        self.slots = [Slot(n) for n in range(slots)]
        self.pool = FakeCrew(self.slots)
        self.recorded: list[Record] = []
        self.claim_count = 0
        self.marked: list[int] = []
        self.status = NodeStatus()
        context: Any = SimpleNamespace(
            signals=NodeSignals(), status=self.status, measurements=None, spans=None, now_us=lambda: 1
        )
        self.dispatcher = Dispatcher(
            context,
            slots=self.slots,
            pool=self.pool,  # type: ignore[arg-type]
            lookahead=AHEAD,
            mark_started=self._mark,
            queue=self,  # type: ignore[arg-type]
            monotonic=lambda: 10.0,
        )
        self.dispatcher.join_cluster(1, Lanes(types))

    async def _mark(self, fences: Any) -> bool:
        assert not self.sent(0), "user code may not start before"
        self.marked += fences
        return True

    def add(self, records: Any) -> None:
        self.recorded += records

    def request_claim(self) -> None:
        self.claim_count += 1

    def sent(self, slot: int) -> list[Any]:
        worker = self.slots[slot].worker
        assert worker is not None
        child: Any = worker.child
        return list(child.sent)

    def worker(self, slot: int) -> PoolWorker:
        worker = self.slots[slot].worker
        assert worker is not None
        return worker


def lease(n: int, slot: int = 0, type_: str = "t") -> Lease:
    return Lease(n, n + 100, slot, type_, "s", 1, "{}", None, n)


async def test_what_large_parameters_cost_on_their_way_counts_as_run_time() -> None:
    """So that of them a slot is given some megabytes ahead, however quickly they are run."""
    scene = Scene(spec("t"))
    megabyte = lease(1)._replace(params="x" * 2**20)

    scene.dispatcher.take([megabyte])
    scene.dispatcher.done(scene.worker(0), [[101, 1000, 1010]])

    claim_request = scene.dispatcher.claim_request()
    assert claim_request is not None
    run_us = claim_request.lanes[("t", "s")].run_us
    assert run_us is not None
    assert 2 <= AHEAD.run_us / run_us <= 20


async def test_leases_reach_the_workers_of_their_slots_in_order() -> None:
    scene = Scene(spec("t"), spec("u"))
    scene.dispatcher.take([lease(1, 0), lease(2, 1), lease(3, 0, "u"), lease(4, 0)])
    rows = {n: (n, n + 100, 1, "{}", None, n) for n in range(1, 5)}
    assert scene.sent(0) == [[("t", "s", [rows[1]]), ("u", "s", [rows[3]]), ("t", "s", [rows[4]])]]
    assert scene.sent(1) == [[("t", "s", [rows[2]])]]
    assert [s.held for s in scene.slots] == [3, 1]


async def test_plain_success_becomes_a_record_and_frees_the_slot() -> None:
    scene = Scene(spec())
    scene.dispatcher.take([lease(1)])
    scene.dispatcher.done(scene.worker(0), [[101, 1000, 3000]])
    (record,) = scene.recorded
    assert record == Record(1, 101, Outcome.OK, 1000, 3000, keep=True)
    claim_request = scene.dispatcher.claim_request()
    assert claim_request is not None
    assert claim_request.lanes[("t", "s")].run_us == 2000
    assert [s.free for s in claim_request.slots] == [True, True]


async def test_a_row_with_more_to_say_is_recorded_with_it() -> None:
    scene = Scene(spec())
    scene.dispatcher.take([lease(1), lease(2)])
    detail = {"outcome": "error", "message": "no", "error": "{}", "retryable": False, "code": 3}
    loud = {"outcome": "ok", "result": "5", "output": True}
    scene.dispatcher.done(scene.worker(0), [[101, 1, 2, detail], [102, 3, 4, loud]])
    assert scene.recorded == [
        Record(1, 101, Outcome.ERROR, 1, 2, message="no", error="{}", retryable=False, code=3, keep=True)
    ]
    # What has printed is recorded when its output is in its files.
    assert scene.pool.written == [Record(2, 102, Outcome.OK, 3, 4, result="5", keep=True)]
    assert set(scene.worker(0).output_pending) == {102}


async def test_one_that_did_not_get_some_of_a_lock_is_recorded_with_how_much_it_wanted() -> None:
    scene = Scene(spec())
    scene.dispatcher.take([lease(1), lease(2)])

    detail = {"outcome": "locked", "lock": "disk", "message": "waits"}
    scene.dispatcher.done(
        scene.worker(0), [[101, 1, 2, detail | {"wanted": [60, None]}], [102, 3, 4, detail]]
    )

    assert [(r.lock, r.lock_request) for r in scene.recorded] == [("disk", (60, None)), ("disk", None)]


async def test_a_dead_worker_hits_what_ran_and_hands_back_the_rest() -> None:
    scene = Scene(spec())
    scene.dispatcher.take([lease(1), lease(2), lease(3)])
    how = Exit(
        code=None,
        signal="SIGSEGV",
        forced=False,
        running=(Running(fence=101, started_us=7, started_boot_ns=0),),
    )
    scene.dispatcher.exited(scene.worker(0), how, {})
    assert [(r.job_id, r.outcome, r.started_us) for r in scene.recorded] == [
        (1, Outcome.DIED, 7),
        (2, Outcome.RETURNED, 0),
        (3, Outcome.RETURNED, 0),
    ]
    assert "SIGSEGV" in (scene.recorded[0].message or "")
    assert scene.slots[0].held == 0


async def test_what_may_not_stand_behind_something_goes_back() -> None:
    scene = Scene(spec("t"), spec("a", isolation=Isolation.ASYNC))
    scene.dispatcher.take([lease(1, 0, "a"), lease(2, 0, "t"), lease(3, 1, "t"), lease(4, 1, "a")])
    assert sorted(r.job_id for r in scene.recorded if r.outcome is Outcome.RETURNED) == [2, 4]
    assert [s.held for s in scene.slots] == [1, 1]


async def test_running_is_marked_first_where_a_second_run_is_forbidden() -> None:
    scene = Scene(spec("t", on_lost="orphan"))
    await scene.dispatcher.take_marked(scene.dispatcher.take([lease(1)]))
    assert scene.marked == [101]
    assert scene.sent(0)


@pytest.mark.parametrize(
    ("on_lost", "unreported", "outcome"),
    [("orphan", 1, Outcome.LOST), ("orphan", 0, Outcome.RETURNED), ("requeue", 1, Outcome.RETURNED)],
)
async def test_what_may_not_run_twice_is_lost_when_its_worker_may_have_ended_it_unsaid(
    on_lost: str, unreported: int, outcome: Outcome
) -> None:
    scene = Scene(spec("t", on_lost=on_lost))
    if careful := scene.dispatcher.take([lease(1)]):
        await scene.dispatcher.take_marked(careful)
    how = Exit(code=None, signal="SIGKILL", running=(), forced=False, unreported=unreported)
    scene.dispatcher.exited(scene.worker(0), how, {})
    assert [(r.outcome, r.started_us > 0) for r in scene.recorded] == [(outcome, outcome is Outcome.LOST)]


async def test_newcomers_call_backlogs_back_only_when_no_slot_is_free() -> None:
    scene = Scene(spec())
    scene.dispatcher.take([lease(n) for n in range(10)])
    scene.slots[0].expected_us = 50_000
    scene.dispatcher.new_work_arrived()
    child: Any = scene.worker(0).child
    assert child.recalls == 0
    scene.dispatcher.take([lease(50, 1)])
    scene.dispatcher.new_work_arrived()
    assert child.recalls == 1
    scene.dispatcher.back(scene.worker(0), list(range(101, 110)))
    assert {r.outcome for r in scene.recorded} == {Outcome.RETURNED}
    assert scene.slots[0].held == 1


async def test_where_the_store_says_so_a_claim_without_leases_is_followed_by_another_and_recalls_nothing() -> (
    None
):
    scene = Scene(spec())
    scene.dispatcher.take([lease(n) for n in range(10)])
    scene.slots[0].expected_us = 50_000
    claim_request = scene.dispatcher.claim_request()
    claim_count, child = scene.claim_count, cast("Any", scene.worker(0).child)

    scene.dispatcher.after_claim(claim_request, FlushResult(leases=[], refused=[], claim_again=True))
    assert (scene.claim_count, child.recalls, scene.dispatcher.nothing_claimable) == (
        claim_count + 1,
        0,
        False,
    )

    scene.dispatcher.after_claim(claim_request, FlushResult(leases=[], refused=[]))
    assert (scene.claim_count, child.recalls, scene.dispatcher.nothing_claimable) == (
        claim_count + 1,
        1,
        True,
    )


async def test_nothing_is_wanted_behind_the_first_of_a_type() -> None:
    scene = Scene(spec("t"), spec("u"))
    add_run_times(scene.dispatcher.lanes.get("u", "s"), 1_000)
    scene.dispatcher.take([lease(1, 0, "t"), lease(2, 1, "u")])
    claim_request = scene.dispatcher.claim_request()
    assert claim_request is not None
    assert [(s.slot, s.free) for s in claim_request.slots] == [(1, False)]


async def test_what_stands_behind_a_long_attempt_is_recalled_however_short_it_is() -> None:
    scene = Scene(spec())
    add_run_times(scene.dispatcher.lanes.get("t", "s"), 10)
    scene.dispatcher.take([lease(1), lease(2)])
    child: Any = scene.worker(0).child
    scene.dispatcher.recall()
    assert child.recalls == 0
    scene.dispatcher.recall([scene.slots[0]])
    assert child.recalls == 1


async def test_what_is_behind_the_attempt_that_runs_is_taken_back_and_what_is_before_it_is_not() -> None:
    """Given attempts of which one has ended and is not told yet, one runs and two have not begun."""
    scene = Scene(spec())
    scene.dispatcher.take([lease(n) for n in range(1, 5)])
    child: Any = scene.worker(0).child
    scene.dispatcher.take_back(scene.worker(0))
    assert scene.recorded == []

    child.behind = 102
    scene.dispatcher.take_back(scene.worker(0))

    assert child.taken == [103, 104]
    assert scene.recorded == [Record(n, n + 100, Outcome.RETURNED, 0, 0) for n in (3, 4)]
    assert (scene.slots[0].held, set(scene.worker(0).held)) == (2, {101, 102})


async def test_nothing_is_taken_from_behind_an_attempt_that_is_told_already() -> None:
    scene = Scene(spec())
    scene.dispatcher.take([lease(1), lease(2), lease(3)])
    child: Any = scene.worker(0).child
    scene.dispatcher.done(scene.worker(0), [[101, 1000, 3000]])
    child.behind = 101
    scene.dispatcher.take_back(scene.worker(0))
    assert child.taken == []
    assert scene.slots[0].held == 2


async def test_a_draining_desk_wants_nothing_and_hands_back_what_it_gets() -> None:
    scene = Scene(spec())
    scene.status.draining = True
    assert scene.dispatcher.claim_request() is None
    scene.dispatcher.take([lease(1)])
    assert [r.outcome for r in scene.recorded] == [Outcome.RETURNED]


async def test_a_slot_without_a_warm_worker_serves_threads_all_the_same() -> None:
    scene = Scene(spec("t"), spec("a", isolation=Isolation.THREAD))
    scene.slots[1].worker = None
    claim_request = scene.dispatcher.claim_request()
    assert claim_request is not None
    assert [(s.slot, s.warm) for s in claim_request.slots] == [(0, True), (1, False)]
    assert {key: lane.warm for key, lane in claim_request.lanes.items()} == {
        ("t", "s"): True,
        ("a", "s"): False,
    }


# --- slots that come and go --------------------------------------------------------------------


async def test_a_slot_too_many_is_given_nothing_and_is_gone_when_it_is_empty() -> None:
    scene = Scene(spec("t"), slots=3)
    scene.dispatcher.take([lease(1, 0), lease(2, 2)])

    resize(scene.slots, 1)
    trim(scene.slots)

    claim_request = scene.dispatcher.claim_request()
    assert claim_request is not None
    assert {s.slot for s in claim_request.slots} <= {0}, "those that leave ask for nothing"
    scene.dispatcher.take([lease(3, 1)])
    assert scene.recorded == [Record(3, 103, Outcome.RETURNED, 0, 0)], "what was on its way goes back"
    scene.dispatcher.done(scene.worker(2), [[102, 1000, 3000]])
    assert scene.recorded[-1].keep is False, "and none goes on with a next stage"
    for slot in scene.slots[1:]:
        slot.worker = None  # it has ended
    trim(scene.slots)
    assert [slot.number for slot in scene.slots] == [0]
    scene.dispatcher.take([lease(4, 2)])
    assert scene.recorded[-1] == Record(4, 104, Outcome.RETURNED, 0, 0)


async def test_slots_that_were_leaving_stay_when_they_are_wanted_again() -> None:
    scene = Scene(spec("t"), slots=3)
    resize(scene.slots, 1)
    resize(scene.slots, 4)
    trim(scene.slots)
    claim_request = scene.dispatcher.claim_request()
    assert claim_request is not None
    assert [slot.number for slot in scene.slots] == [0, 1, 2, 3]
    assert {s.slot for s in claim_request.slots} >= {0, 1, 2}


async def test_a_drained_node_wants_nothing_and_hands_back_what_comes() -> None:
    scene = Scene(spec("t"))
    scene.status.drained_by_operator = True
    assert scene.dispatcher.claim_request() is None
    scene.dispatcher.take([lease(1)])
    assert scene.recorded == [Record(1, 101, Outcome.RETURNED, 0, 0)]
    scene.status.drained_by_operator = False
    assert scene.dispatcher.claim_request() is not None


def test_while_no_worker_can_start_nothing_is_claimed_that_needs_one() -> None:
    # Else it would be handed back at once, and claimed again, as fast as the store can
    scene = Scene(spec(), spec("cold", isolation=Isolation.COLD), spec("many", isolation=Isolation.THREAD))

    def claimed_types() -> list[str]:
        claim_request = scene.dispatcher.claim_request()
        assert claim_request is not None
        return sorted(type_ for type_, _ in claim_request.lanes)

    scene.pool.may_start = False
    assert claimed_types() == ["many", "t"], "the one for threads is there"
    scene.pool.may_start = True
    assert claimed_types() == ["cold", "many", "t"]
