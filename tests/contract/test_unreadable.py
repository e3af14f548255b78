"""A declared type or queue whose row cannot be read: everybody is told which it is, and what to do."""

import pytest

from spinney.model.errors import StoreUnusable
from spinney.model.types import QueueSpec

from .test_doctoring import Patient
from .words import ONE, Site


@pytest.fixture
def patient(site: Site) -> Patient:
    return Patient(site.store, site.clock)


@pytest.mark.parametrize(
    "spec", ["{", "[]", "null", '{"limit": "many"}', '{"order": "lifo"}', '{"later": 1}', '{"pinned": "oak"}']
)
def test_so_is_what_operators_set_of_a_queue(patient: Patient, spec: str) -> None:
    patient.knows(queues=[QueueSpec(name="q")])
    patient.damage("insert into queue_settings (name, settings, by, at_us) values ('q', ?, 'ann', 1)", spec)
    patient.forget()

    with pytest.raises(StoreUnusable, match=r"'q' in the table queue_settings cannot be read .*, or delete"):
        patient.submit_one(queue="q")
    (found,) = [v for v in patient.examine() if "cannot be read" in v.sentence]
    assert (found.rule, found.subject, found.repair) == ("declaration-unreadable", "queue setting q", None)
    assert "set it again with 'spinney queue NAME'" in found.sentence


@pytest.mark.parametrize("table", ["types", "queues"])
@pytest.mark.parametrize("spec", ["{", "[]", "null", '{"name": "one", "later": 1}', '{"name": 7, "stages": 8}'])
def test_it_is_named_with_what_to_do_and_the_doctor_says_it_once(patient: Patient, table: str, spec: str) -> None:
    patient.knows(queues=[QueueSpec(name="one", limit=1)])
    job = patient.submit_one()
    sound = patient.store.types()
    patient.damage(f"update {table} set spec = ? where name = 'one'", spec)
    patient.forget()

    for call in (
        lambda: patient.submit_one(), patient.store.types, patient.store.queues, patient.sweep,
        lambda: patient.knows(ONE),
    ):  # fmt: skip
        with pytest.raises(StoreUnusable, match=f"'one' in the table {table} cannot be read .*; restore .*, or delete"):
            call()
    found = [v for v in patient.examine() if "cannot be read" in v.sentence]
    assert [(v.rule, v.subject, v.repair) for v in found] == [
        ("declaration-unreadable", f"{table.removesuffix('s')} one", None)
    ]
    assert f"delete from {table} where name = 'one'" in found[0].sentence
    assert len(patient.examine("pending-nowhere")) == 1, "asked for alone, a rule says why it cannot look"

    patient.damage(f"delete from {table} where name = 'one'")
    patient.forget()
    patient.knows(ONE)
    assert patient.store.types() == sound
    assert patient.drain() == [(job, "work")]
    assert patient.examine() == []
