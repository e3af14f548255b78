"""``serial=True``: under one root one job runs at a time, in lineage order."""

import pytest

from spinney.model.outcomes import Outcome
from spinney.model.settings.queues import QueueSpec
from spinney.model.states import State

from .words import Site, kind, stage


@pytest.fixture
def serial(site: Site) -> Site:
    site.knows(
        kind("line", "expand", "merge", serial=True, children="settled"),
        kind("retrying", stage("work", max_attempts=2)),
    )
    return site


def test_under_one_root_one_job_runs_at_a_time(serial: Site) -> None:
    _, born = serial.family("line", n=3)

    assert [lease.job_id for lease in serial.claim()] == [born[0]]
    assert serial.claim() == []


def test_jobs_run_in_lineage_order(serial: Site) -> None:
    root, born = serial.family("line", n=4)

    ran = serial.drain()

    assert ran == [(job, "work") for job in born] + [(root, "merge")]


def test_children_that_are_retried_after_their_type_became_serial_run_one_after_the_other(
    serial: Site,
) -> None:
    serial.knows(kind("line", "expand", "merge", children="settled"))
    root, born = serial.family("line", n=3)
    for lease in serial.claim():
        serial.fail(lease)
    serial.drain()

    serial.knows(kind("line", "expand", "merge", serial=True, children="settled"))
    for job in born:
        serial.retry(job)

    assert serial.drain() == [(job, "work") for job in born]
    assert serial.state(root) is State.COMPLETED


def test_lineage_order_holds_in_a_queue_of_any_order(serial: Site) -> None:
    serial.knows(queues=[QueueSpec(name="q", order="lifo")])
    root, born = serial.family("line", n=3, queue="q")

    assert [job for job, _ in serial.drain()] == [*born, root]


def test_a_barred_job_says_what_it_waits_for(serial: Site) -> None:
    _, born = serial.family("line", n=2)
    serial.run(born[0])
    serial.claim()

    barred = serial.job(born[1])
    assert (barred.state, barred.waits_for) == (State.WAITING, "serial")


def test_an_open_earlier_job_bars_the_later_between_its_stages(serial: Site) -> None:
    _, born = serial.family("line", n=2, child="three")

    ran = [(job, name) for job, name in serial.drain() if job in born]

    assert ran == [(job, name) for job in born for name in ("first", "second", "third")]


@pytest.mark.parametrize("outcome", [Outcome.DEFER, Outcome.HOLD, Outcome.ERROR])
def test_an_earlier_job_that_rests_or_is_held_bars_the_later(serial: Site, outcome: Outcome) -> None:
    _, born = serial.family("line", n=2, child="retrying")

    serial.record(serial.run(born[0]), outcome, delay_s=5.0)

    assert serial.state(born[0]) in (State.SCHEDULED, State.HELD)
    assert serial.claim() == []


@pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
def test_a_settled_earlier_job_bars_nobody_whatever_became_of_it(serial: Site, end: str) -> None:
    _, born = serial.family("line", n=2)
    lease = serial.run(born[0])
    match end:
        case "complete":
            serial.pass_(lease)
        case "fail":
            serial.fail(lease)
        case "cancel":
            serial.cancel(born[0])
            serial.record(lease, Outcome.CANCELLED)

    assert serial.claim_one().job_id == born[1]


def test_the_next_in_line_goes_in_the_same_transaction(serial: Site) -> None:
    _, born = serial.family("line", n=2)
    lease = serial.run(born[0])

    answer = serial.flush_and_claim([serial.entry(lease)], serial.want(serial.here))

    assert [le.job_id for le in answer.leases] == [born[1]]


def test_a_whole_subtree_runs_before_the_next_sibling(serial: Site) -> None:
    root, born = serial.family("line", n=2, child="parent")
    lease = serial.run(born[0])
    grand = serial.spawn(lease, n=2)
    serial.pass_(lease)

    ran = serial.drain()

    assert ran == [
        (grand[0], "work"),
        (grand[1], "work"),
        (born[0], "merge"),
        (born[1], "expand"),
        (born[1], "merge"),
        (root, "merge"),
    ]


def test_trees_do_not_bar_each_other(serial: Site) -> None:
    _, ours = serial.family("line", n=2)
    serial.run(ours[0])
    _, theirs = serial.family("line", n=2)

    assert [lease.job_id for lease in serial.claim()] == [theirs[0]]


def test_a_tree_whose_root_is_not_serial_runs_at_once(serial: Site) -> None:
    serial.family("batch", n=3)

    assert len(serial.claim()) == 3


def test_a_deleted_held_job_bars_nobody(serial: Site) -> None:
    _, born = serial.family("line", n=2)
    serial.record(serial.run(born[0]), Outcome.HOLD)
    assert serial.claim() == []

    serial.delete(born[0])

    assert serial.claim_one().job_id == born[1]


def test_a_line_goes_on_after_its_node_died(serial: Site) -> None:
    root, born = serial.family("line", n=3)
    node = serial.node("n")
    serial.run(born[0], node)

    serial.recover(node)

    assert [job for job, _ in serial.drain()] == [*born, root]


def test_an_earlier_job_opened_again_does_not_run_beside_a_later_one(serial: Site) -> None:
    _, born = serial.family("line", n=2)
    serial.fail(serial.run(born[0]))
    later = serial.run(born[1])

    serial.retry(born[0])

    assert serial.claim() == []
    serial.pass_(later)
    assert serial.claim_one().job_id == born[0]
