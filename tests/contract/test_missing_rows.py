"""A row that is missing from a damaged database keeps nobody but those it belongs to from their work."""

import logging

import pytest

from spinney.model.lineage import lineage
from spinney.model.outcomes import Outcome
from spinney.model.settings.holds import Scope
from spinney.model.states import State

from .test_doctor import NOBODY, Patient
from .test_holds import lay, lift, swept
from .words import Site, kind


@pytest.fixture
def patient(site: Site) -> Patient:
    return Patient(site.store, site.clock)


def lose(patient: Patient, job_id: int) -> None:
    patient.damage("delete from jobs where id = ?", job_id)


@pytest.mark.parametrize("end", ["completes", "fails", "is cancelled", "is deleted"])
def test_a_child_without_parent_settles_and_keeps_nobody_from_it(
    patient: Patient, end: str, caplog: pytest.LogCaptureFixture
) -> None:
    parent, (child, _) = patient.family(n=2)
    other = patient.submit_one()
    leases = patient.claim_by_job()
    lose(patient, parent)

    caplog.set_level(logging.WARNING)
    entries = [patient.entry(leases[other])]
    match end:
        case "completes":
            entries.append(patient.entry(leases[child]))
        case "fails":
            entries.append(patient.entry(leases[child], Outcome.ERROR, retryable=False))
        case "is cancelled":
            patient.cancel(child)
            entries.append(patient.entry(leases[child], Outcome.CANCELLED))
        case "is deleted":
            entries.append(patient.entry(leases[child], Outcome.HOLD))
    answer = patient.flush_and_claim(entries)
    if end == "is deleted":
        patient.delete(child)

    assert not answer.refused
    settled = {
        "completes": "completed",
        "fails": "failed",
        "is cancelled": "cancelled",
        "is deleted": "deleted",
    }
    assert patient.states([other, child]) == [State.COMPLETED, settled[end]]
    assert f"job {parent}" in caplog.text
    assert "spinney doctor" in caplog.text
    assert ("child-without-parent", f"job {child}") in {(v.rule, v.subject) for v in patient.examine()}


def test_a_child_without_parent_is_opened_again(patient: Patient) -> None:
    parent, (child,) = patient.family(n=1)
    lease = patient.run(child)
    lose(patient, parent)
    patient.fail(lease)

    patient.retry(child)

    assert patient.drain() == [(child, "work")]


def test_a_needer_that_is_not_there_keeps_nobody_from_settling(patient: Patient) -> None:
    need = patient.submit_one()
    needer = patient.submit_one(needs=(need,))
    patient.damage("insert into needs values (?, ?)", NOBODY, need)

    patient.fail(patient.run(need))
    patient.retry(need)

    assert [job for job, _ in patient.drain()] == [need, needer]


def test_one_that_waits_for_a_lock_and_is_not_there_is_passed_over(patient: Patient) -> None:
    first, lost, last = (patient.submit_one("locked", {"serno": "1"}) for _ in range(3))
    lease = patient.run(first)
    assert patient.claim() == []
    lose(patient, lost)

    patient.pass_(lease)
    patient.sweep()

    assert patient.drain() == [(last, "work")]


def test_one_in_a_serial_line_that_is_not_there_keeps_nobody_else_from_settling(patient: Patient) -> None:
    patient.knows(kind("serial", "expand", "merge", serial=True))
    _, (first, lost) = patient.family("serial", n=2)
    other = patient.submit_one()
    leases = patient.claim_by_job()
    lose(patient, lost)

    answer = patient.pass_(leases[first], leases[other])

    assert not answer.refused
    assert patient.states([first, other]) == [State.COMPLETED] * 2


def test_one_whose_time_has_come_and_is_not_there_keeps_nobody_asleep(
    patient: Patient, caplog: pytest.LogCaptureFixture
) -> None:
    lost, other = (patient.submit_one(at_us=patient.now + 1_000_000) for _ in range(2))
    lose(patient, lost)
    patient.clock.forward(2)

    patient.sweep()

    assert f"job {lost}" in caplog.text
    assert patient.state(other) is State.PENDING
    assert patient.store.sweep(now_us=patient.now).wake_us is None, "nothing is due any more"
    assert ("inactive-without-job", f"job {lost}") in {(v.rule, v.subject) for v in patient.examine()}


def test_a_tree_that_is_to_be_cancelled_and_lost_its_top_keeps_nobody_from_the_sweep(
    patient: Patient,
) -> None:
    lost, (below,) = patient.family(n=1)
    other, (child,) = patient.family(n=1)
    patient.store.sweep(now_us=patient.now)
    for top in (lost, other):
        sql = "insert into cancel_requests values (?, ?, 1, 'ann', null, ?)"
        patient.damage(sql, top, lineage(top), patient.now)
    lose(patient, lost)

    patient.sweep()

    assert patient.states([other, child]) == [State.CANCELLED] * 2
    patient.fail(patient.claim_by_job()[below])
    assert patient.state(below) is State.CANCELLED, "the wish is still heard"
    assert ("cancel-request-of-no-job", f"job {lost}") in {(v.rule, v.subject) for v in patient.examine()}


@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.ERROR, Outcome.RETURNED])
def test_what_an_attempt_at_a_job_that_is_not_there_reports_is_refused_alone(
    patient: Patient, outcome: Outcome, caplog: pytest.LogCaptureFixture
) -> None:
    lost = patient.submit_one("locked", {"serno": "1"})
    other = patient.submit_one()
    leases = patient.claim_by_job()
    lose(patient, lost)

    late = patient.entry(leases[lost], outcome)
    answer = patient.flush_and_claim([late, patient.entry(leases[other])])

    assert answer.refused == [late]
    assert f"job {lost}" in caplog.text
    assert patient.state(other) is State.COMPLETED
    assert patient.examine("lease-without-job", "lock-of-nobody") == []
    again = patient.submit_one("locked", {"serno": "1"})
    assert patient.drain() == [(again, "work")], "its lock is free"


def test_the_work_of_a_node_that_died_is_taken_back_though_a_job_is_not_there(patient: Patient) -> None:
    lost, other = patient.submit(n=2)
    node = patient.node("oak")
    patient.start(*patient.claim(node))
    lose(patient, lost)

    patient.recover(node)

    assert patient.drain() == [(other, "work")]


def test_one_that_would_take_a_lock_and_is_not_there_keeps_nobody_from_claiming(
    patient: Patient, caplog: pytest.LogCaptureFixture
) -> None:
    lost, other = (patient.submit_one("locked", {"serno": "1"}) for _ in range(2))
    lose(patient, lost)

    assert patient.drain() == [(other, "work")]
    assert f"job {lost}" in caplog.text
    assert patient.claim() == []
    assert caplog.text.count(f"job {lost}") == 1, "it does not stand in ready any more"


def test_a_held_job_that_is_not_there_keeps_no_other_from_its_release(
    patient: Patient, caplog: pytest.LogCaptureFixture
) -> None:
    lost, other = patient.submit(n=2)
    hold = lay(patient, Scope.TYPE, "one")
    swept(patient)
    assert patient.states([lost, other]) == [State.HELD] * 2
    lose(patient, lost)

    lift(patient, hold)
    swept(patient)

    assert patient.drain() == [(other, "work")]
    assert f"job {lost}" in caplog.text


def test_one_whose_stage_has_vanished_and_is_not_there_keeps_nobody_from_the_sweep(
    patient: Patient, caplog: pytest.LogCaptureFixture
) -> None:
    patient.knows(kind("t", "first", "second"))
    lost, other = patient.submit("t", n=2)
    lose(patient, lost)
    patient.knows(kind("t", "second"))

    patient.sweep()

    assert patient.state(other) is State.HELD
    assert f"job {lost}" in caplog.text
    caplog.clear()
    patient.sweep()
    assert caplog.text == "", "it does not stand in ready any more"
