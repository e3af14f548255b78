"""The circuit breaker: a stage that fails in job after job with one cause holds its type."""

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from spinney.model.jobs import Lease
from spinney.model.outcomes import Outcome
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Hold, Scope
from spinney.model.states import State
from spinney.store.parts import Store

from .behind import BREAKER, IDLE_US, sql_store
from .conftest import sqlite_alone
from .words import Site, kind, stage

K = 3
CAREFUL = kind("careful", "work", breaker=K)
LONG = kind("long", "fetch", "store", breaker=K)
TIMID = kind("timid", stage("work", max_attempts=5), breaker=K)


@pytest.fixture
def broken(site: Site) -> Site:
    """A site that knows types with a breaker of 3."""
    site.knows(CAREFUL, LONG, TIMID)
    return site


def refused(message: str = "connection refused by 10.0.0.1") -> dict[str, object]:
    return {"error": {"type": "ConnectionError", "message": message, "traceback": "…"}, "message": message}


def failing(
    site: Site, n: int, of: str = "careful", message: str = "connection refused by 10.0.0.1"
) -> list[Lease]:
    """``n`` jobs one after the other that fail at the stage at which they stand."""
    leases = []
    for _ in range(n):
        leases.append(site.run(site.submit_one(of)))
        site.fail(leases[-1], **refused(message))
    return leases


def passing(site: Site, of: str = "careful") -> None:
    site.pass_(site.run(site.submit_one(of)))


def flush(site: Site, of: str, ends: str) -> None:
    """Jobs at their first stage whose attempts end in this order, and are recorded together: p passes, f fails."""
    first = (of, site.store.types()[of].stages[0].name)
    leases = [site.claim_one(lanes=[first]) for _ in site.submit(of, n=len(ends))]
    how = {"outcome": Outcome.ERROR, "retryable": False} | refused()
    site.flush_and_claim(
        [site.entry(lease, **(how if end == "f" else {})) for lease, end in zip(leases, ends, strict=True)]
    )


def holds(site: Site) -> list[Hold]:
    return list(site.store.holds.all())


def lift(site: Site) -> None:
    (hold,) = holds(site)
    site.store.holds.lift(hold.id, Actor(by="ann", call="c"), now_us=site.now)
    while site.store.holds.sweep(now_us=site.now):
        pass


def test_so_many_failures_in_a_row_with_one_cause_hold_the_type(broken: Site) -> None:
    failing(broken, K - 1)
    assert holds(broken) == []

    failing(broken, 1, message="connection refused by 10.9.9.9")

    (hold,) = holds(broken)
    assert (hold.scope, hold.name, hold.automatic, hold.by) == (Scope.TYPE, "careful", True, BREAKER)
    for part in ("'work'", "3 jobs in a row", "ConnectionError: connection refused by #"):
        assert part in hold.reason
    waiting = broken.submit("careful", n=5)
    assert broken.claim() == []
    assert broken.states(waiting) != [State.COMPLETED] * 5


def test_what_fails_does_not_stop_others(broken: Site) -> None:
    failing(broken, K)
    other = broken.submit_one("one")

    assert [le.job_id for le in broken.claim()] == [other]


def test_the_reason_names_the_failure_to_filter_by(broken: Site) -> None:
    failing(broken, K)

    (group,) = broken.store.failures.groups().items
    assert group.fingerprint in holds(broken)[0].reason


def test_a_reason_is_no_longer_than_reasons_are_and_ends_with_the_failure(broken: Site) -> None:
    for lease in [broken.run(j) for j in broken.submit("careful", n=K)]:
        broken.fail(lease, error={"type": "app." + "x" * 500}, message="too\x1b[31m long" * 100)

    (group,) = broken.store.failures.groups().items
    reason = holds(broken)[0].reason
    assert len(reason) == 500
    assert reason.endswith(f"(failure {group.fingerprint})")
    assert reason.isprintable()


def test_the_hold_is_in_the_audit_with_its_reason(broken: Site) -> None:
    failing(broken, K)

    (entry, _), *_ = broken.store.audit.entries(newest=True, limit=1)
    assert (entry.by, entry.verb, entry.reason) == (BREAKER, "hold", holds(broken)[0].reason)


def test_a_type_without_a_breaker_goes_on(broken: Site) -> None:
    failing(broken, 3 * K, of="one")

    assert holds(broken) == []


@pytest.mark.parametrize("of", ["careful", "long"])
def test_an_attempt_that_passes_ends_the_row(broken: Site, of: str) -> None:
    failing(broken, K - 1, of)
    passing(broken, of)
    failing(broken, K - 1, of)
    assert holds(broken) == []

    failing(broken, 1, of)

    assert len(holds(broken)) == 1


@pytest.mark.parametrize("of", ["careful", "long"])
def test_in_one_flush_attempts_count_in_their_order(broken: Site, of: str) -> None:
    flush(broken, of, "fpfpffpff")
    assert holds(broken) == []

    flush(broken, of, "fp")

    assert len(holds(broken)) == 1


@pytest.mark.parametrize("of", ["careful", "long"])
def test_the_last_attempt_of_a_flush_that_passes_ends_the_row(broken: Site, of: str) -> None:
    flush(broken, of, "ffp")
    flush(broken, of, "ff")
    assert holds(broken) == []

    flush(broken, of, "p" * 12)
    flush(broken, of, "ff" + "p" * 12)
    flush(broken, of, "ff")

    assert holds(broken) == []


@pytest.mark.parametrize("how", [Outcome.WARNING, Outcome.NOT_APPLICABLE, Outcome.FINISH])
def test_so_does_every_way_to_pass(broken: Site, how: Outcome) -> None:
    failing(broken, K - 1)
    broken.record(broken.run(broken.submit_one("careful")), how)

    failing(broken, K - 1)

    assert holds(broken) == []


def test_another_cause_begins_another_row(broken: Site) -> None:
    failing(broken, K - 1)
    failing(broken, K - 1, message="name not known")
    failing(broken, K - 1)
    assert holds(broken) == []

    failing(broken, 1)

    assert "connection refused" in holds(broken)[0].reason


def test_each_stage_has_its_own_row(broken: Site) -> None:
    for _ in range(K - 1):
        failing(broken, 1, "long")
        passing(broken, "one")
    for _ in range(K - 1):
        job = broken.submit_one("long")
        broken.pass_(broken.run(job))
        broken.fail(broken.run(job), **refused())
    assert holds(broken) == [], "the first stage passed in between, the second failed twice"

    job = broken.submit_one("long")
    broken.pass_(broken.run(job))
    broken.fail(broken.run(job), **refused())

    assert "'store'" in holds(broken)[0].reason


def test_a_job_that_is_tried_again_counts_once(broken: Site) -> None:
    job = broken.submit_one("timid")
    for _ in range(5):
        broken.later(10)
        broken.record(broken.run(job), Outcome.ERROR, **refused())

    assert broken.state(job) is State.FAILED
    assert holds(broken) == []


def test_attempts_that_are_tried_again_count_for_their_jobs(broken: Site) -> None:
    for lease in [broken.run(j) for j in broken.submit("timid", n=K)]:
        broken.record(lease, Outcome.ERROR, **refused())

    assert len(holds(broken)) == 1
    broken.later(60)
    assert broken.claim() == [], "what was to be tried again is held too"


def test_two_jobs_that_are_tried_in_turns_are_two(broken: Site) -> None:
    broken.knows(kind("timid", stage("work", max_attempts=50), breaker=K))
    ids = broken.submit("timid", n=2)
    for _ in range(2 * K):
        for lease in broken.claim():
            broken.record(lease, Outcome.ERROR, **refused())
        broken.later(10)

    assert {broken.job(j).attempts for j in ids} == {2 * K}
    assert holds(broken) == []


@pytest.mark.parametrize("outcome", [Outcome.DEFER, Outcome.HOLD, Outcome.RETURNED, Outcome.LOST])
def test_what_neither_passed_nor_failed_counts_for_nothing(broken: Site, outcome: Outcome) -> None:
    failing(broken, K - 1)
    for _ in range(K):
        broken.record(broken.run(broken.submit_one("careful")), outcome, **refused())
        for open_ in broken.ids(states=(State.PENDING, State.HELD, State.SCHEDULED)):
            broken.cancel(open_)
    assert holds(broken) == [], "it is no failure"

    failing(broken, 1)

    assert len(holds(broken)) == 1, "and it ends no row"


@pytest.mark.parametrize(
    ("policy", "state"),
    [({}, State.PENDING), ({"on_lost": "orphan"}, State.ORPHANED), ({"poison_after": 1}, State.FAILED)],
)
def test_a_node_that_dies_is_no_failure_of_a_stage(
    broken: Site, policy: dict[str, Any], state: State
) -> None:
    broken.knows(kind("careful", "work", breaker=K, **policy))
    node = broken.node("n", slots=2 * K)
    ids = broken.submit("careful", n=2 * K)
    broken.start(*broken.claim(node))

    broken.recover(node)

    assert broken.states(ids) == [state] * (2 * K)
    assert holds(broken) == []


def test_workers_that_die_are(broken: Site) -> None:
    for _ in range(K):
        broken.record(broken.run(broken.submit_one("careful")), Outcome.DIED, message="killed by SIGSEGV")

    assert "died: killed by SIGSEGV" in holds(broken)[0].reason


def test_what_still_runs_when_the_breaker_trips_lays_no_second_hold(broken: Site) -> None:
    broken.submit("careful", n=4 * K)
    leases = broken.claim()
    for lease in leases[:K]:
        broken.fail(lease, **refused("connection refused"))
    for lease in leases[K:]:
        broken.fail(lease, **refused("name not known"))

    assert ["connection refused" in hold.reason for hold in holds(broken)] == [True]


def test_all_in_one_flush_trip_it_once(broken: Site) -> None:
    broken.submit("careful", n=4 * K)

    broken.fail(*broken.claim(), **refused())

    assert len(holds(broken)) == 1
    assert broken.store.failures.groups().jobs == 4 * K


def test_after_a_release_the_count_begins_anew(broken: Site) -> None:
    broken.submit("careful", n=4 * K)
    broken.fail(*broken.claim(), **refused())
    lift(broken)

    failing(broken, K - 1)
    assert holds(broken) == []
    failing(broken, 1)
    assert len(holds(broken)) == 1


def test_after_a_release_what_was_held_goes_on(broken: Site) -> None:
    failing(broken, K)
    held = broken.submit("careful", n=2)
    assert broken.claim() == []

    lift(broken)

    assert sorted(le.job_id for le in broken.claim()) == held


def test_an_operators_own_hold_stops_no_counting(broken: Site) -> None:
    leases = [broken.run(j) for j in broken.submit("careful", n=K)]
    broken.store.holds.lay(Scope.TYPE, "careful", "looking", Actor(by="ann", call="c"), now_us=broken.now)

    broken.fail(*leases, **refused())

    assert [h.automatic for h in holds(broken)] == [False, True]


def test_a_breaker_of_one_trips_at_the_first(broken: Site) -> None:
    broken.knows(kind("touchy", "work", breaker=1))

    failing(broken, 1, "touchy")

    assert "failed in a job: ConnectionError" in holds(broken)[0].reason


def test_a_breaker_that_is_taken_away_lets_go(broken: Site) -> None:
    failing(broken, K - 1)
    broken.knows(kind("careful", "work"))

    failing(broken, 2 * K)
    broken.sweep()

    assert holds(broken) == []


def test_stores_of_several_processes_count_together(broken: Site, open_another: Callable[[], Store]) -> None:
    other = Site(open_another(), broken.clock)
    other._here, other._nodes, other._owner = broken.here, broken._nodes, broken._owner
    failing(broken, 1)
    failing(other, 1)
    passing(broken)
    failing(other, K - 1)
    assert holds(broken) == []

    failing(broken, 1)

    assert len(holds(other)) == 1


# --- what it costs ------------------------------------------------------------------------------


def statements(site: Site) -> list[str]:
    """What the store says to its database from now on."""
    writer = sql_store(site.store).database._writer  # type: ignore[attr-defined]
    assert isinstance(writer, sqlite3.Connection)
    seen: list[str] = []
    writer.set_trace_callback(seen.append)
    return seen


def about_streaks(seen: list[str]) -> list[str]:
    """Besides what the registry reads whenever it has moved (here: because of a new lane)."""
    return [s for s in seen if "streaks" in s and s != "select type, stage from streaks"]


@sqlite_alone
def test_passing_costs_nothing_where_nothing_has_failed(broken: Site) -> None:
    passing(broken)
    seen = statements(broken)

    passing(broken)
    passing(broken, "long")

    assert about_streaks(seen) == []


@sqlite_alone
def test_failing_costs_nothing_where_there_is_no_breaker(broken: Site) -> None:
    seen = statements(broken)

    failing(broken, 3, "one")

    assert about_streaks(seen) == []


@sqlite_alone
def test_a_stage_that_fails_now_and_then_does_not_move_the_registry_each_time(broken: Site) -> None:
    failing(broken, 1)
    passing(broken)
    seen = statements(broken)

    for _ in range(5):
        failing(broken, 1)
        passing(broken)

    assert [s for s in seen if "name = 'registry' returning" in s] == []
    assert holds(broken) == []


@sqlite_alone
def test_a_stage_that_has_not_failed_for_a_day_costs_nothing_again(broken: Site) -> None:
    failing(broken, 1)
    passing(broken)
    broken.later(IDLE_US / 1e6 + 1)
    passing(broken)
    seen = statements(broken)

    passing(broken)

    assert about_streaks(seen) == []
