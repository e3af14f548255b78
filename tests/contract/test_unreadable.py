"""A row that cannot be read. A declared type or queue: everybody is told which it is, and what to do. Anything else
spoils nothing but itself: lists show it, what must go by it fails, and the doctor names table, column and key."""

import json

import pytest

from spinney.model.access import Rights, Role
from spinney.model.errors import Refused, StoreUnusable
from spinney.model.external import ExternalWorker
from spinney.model.jobs import Filter
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.outcomes import Outcome
from spinney.model.queue_selection import ALL
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Scope
from spinney.model.settings.queues import QueueSpec
from spinney.model.settings.webhooks import Webhook
from spinney.model.states import State
from spinney.model.types import Isolation
from spinney.model.values.unreadable import Unreadable, json_object
from spinney.store.external_timeouts import take_overdue

from .test_doctor import Patient
from .words import ONE, Site, kind, locked, stage

ANN = Actor(by="ann", call="c")
BROKEN = ["{broken", "", "[1]", "7"]


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
    (violation,) = [v for v in patient.examine() if "cannot be read" in v.sentence]
    assert (violation.rule, violation.subject, violation.repair) == (
        "declaration-unreadable",
        "queue setting q",
        None,
    )
    assert "set it again with 'spinney queue NAME'" in violation.sentence


@pytest.mark.parametrize("table", ["types", "queues"])
@pytest.mark.parametrize(
    "spec", ["{", "[]", "null", '{"name": "one", "later": 1}', '{"name": 7, "stages": 8}']
)
def test_it_is_named_with_what_to_do_and_the_doctor_says_it_once(
    patient: Patient, table: str, spec: str
) -> None:
    patient.knows(queues=[QueueSpec(name="one", limit=1)])
    job = patient.submit_one()
    sound = patient.store.types()
    patient.damage(f"update {table} set spec = ? where name = 'one'", spec)
    patient.forget()

    for call in (
        lambda: patient.submit_one(),
        patient.store.types,
        patient.store.queues,
        patient.sweep,
        lambda: patient.knows(ONE),
    ):
        with pytest.raises(
            StoreUnusable, match=f"'one' in the table {table} cannot be read .*; restore .*, or delete"
        ):
            call()
    violations = [v for v in patient.examine() if "cannot be read" in v.sentence]
    assert [(v.rule, v.subject, v.repair) for v in violations] == [
        ("declaration-unreadable", f"{table.removesuffix('s')} one", None)
    ]
    assert f"delete from {table} where name = 'one'" in violations[0].sentence
    assert len(patient.examine("pending-nowhere")) == 1, "asked for alone, a rule says why it cannot look"

    patient.damage(f"delete from {table} where name = 'one'")
    patient.forget()
    patient.knows(ONE)
    assert patient.store.types() == sound
    assert patient.drain() == [(job, "work")]
    assert patient.examine() == []


# --- jobs -------------------------------------------------------------------------------------


def named(patient: Patient) -> list[str]:
    return [v.subject for v in patient.examine() if v.rule == "json-unreadable"]


@pytest.mark.parametrize("params", ["cast(x'7b226e223a2022ff227d' as text)", "x'7b22ff'", "x'7b7d'"])
def test_a_text_with_bytes_that_are_none_spoils_nobody_else(patient: Patient, params: str) -> None:
    if patient.store.facts()["database"] != "SQLite":
        pytest.skip("a server takes no such text")
    first, damaged, last = patient.submit("one", *({"n": n} for n in range(3)))
    patient.damage(f"update jobs set params = {params} where id = ?", damaged)

    for _ in range(2):  # a connection that has met it reads otherwise from then on
        params_of = {job.id: job.params for job in patient.store.jobs(Filter())}
        assert (params_of[first], params_of[last]) == ({"n": 0}, {"n": 2})
    leases = patient.claim_by_job()
    assert [json.loads(leases[job].params) for job in (first, last)] == [{"n": 0}, {"n": 2}]
    assert isinstance(json_object(leases[damaged].params, ""), Unreadable)
    patient.pass_(*leases.values())
    late = patient.submit_one(params={"n": 3})
    assert json.loads(patient.claim_by_job()[late].params) == {"n": 3}
    if "text" in params:
        assert named(patient) == [f"jobs.params, id {damaged}"]


@pytest.mark.parametrize("params", BROKEN)
def test_lists_show_a_job_whose_parameters_cannot_be_read_and_all_others(
    patient: Patient, params: str
) -> None:
    first, damaged, last = patient.submit("one", *({"n": n} for n in range(3)))
    patient.damage("update jobs set params = ? where id = ?", params, damaged)

    params_of = {job.id: job.params for job in patient.store.jobs(Filter())}

    assert (params_of[first], params_of[last]) == ({"n": 0}, {"n": 2})
    assert f"the parameters of job {damaged} cannot be read" in params_of[damaged]["unreadable"]
    assert patient.job(damaged).params == params_of[damaged]
    assert json.loads(json.dumps(params_of[damaged])) == params_of[damaged]
    assert named(patient) == [f"jobs.params, id {damaged}"]


def test_results_errors_and_data_that_cannot_be_read_are_shown_so(patient: Patient) -> None:
    job = patient.submit_one("three")
    patient.store.put_data(job, (lease := patient.run(job)).fence, "sound", "1", job)
    patient.store.put_data(job, lease.fence, "broken", "2", job)
    patient.pass_(lease, result=1)
    patient.fail(patient.claim_one(), error={"type": "ValueError"})
    patient.damage("update data set value = '{' where name = 'broken'")
    patient.damage("update attempts set result = '{' where result is not null")
    patient.damage("update attempts set error = '{' where error is not null")

    assert patient.store.get_data(job)["sound"] == 1
    assert "data entry 'broken'" in patient.store.get_data(job)["broken"]["unreadable"]
    assert "result of stage 'first'" in patient.store.results(job)["first"]["unreadable"]
    passed, failed = patient.store.attempts(job)
    assert ("unreadable" in passed.result, "unreadable" in (failed.error or {})) == (True, True)
    fences = passed.fence, failed.fence
    assert named(patient) == [
        f"attempts.error, job_id {job}, fence {fences[1]}",
        f"attempts.result, job_id {job}, fence {fences[0]}",
        f"data.value, job_id {job}, name broken",
    ]


def test_what_is_appended_to_data_that_cannot_be_read_is_refused(patient: Patient) -> None:
    job = patient.submit_one()
    lease = patient.run(job)
    patient.store.append_data(job, lease.fence, "list", "1", job)
    patient.damage("update data set value = '{'")

    with pytest.raises(Refused, match="data entry 'list' of job 1 cannot be read"):
        patient.store.append_data(job, lease.fence, "list", "2", job)


def test_a_claim_fails_the_job_whose_lock_cannot_be_named_and_gives_the_others(patient: Patient) -> None:
    damaged, missing, sound = patient.submit("locked", {"serno": "1"}, {"serno": "2"}, {"serno": "3"})
    patient.damage("update jobs set params = '{' where id = ?", damaged)
    patient.damage("update jobs set params = '{}' where id = ?", missing)

    assert [lease.job_id for lease in patient.claim()] == [sound]

    assert patient.states([damaged, missing]) == [State.FAILED] * 2
    assert "parameters of job 1 cannot be read" in (patient.job(damaged).message or "")
    assert "parameter 'serno' is missing" in (patient.job(missing).message or "")
    assert patient.claim() == []


def test_a_flush_keeps_a_job_whose_next_lock_cannot_be_named_from_going_on(patient: Patient) -> None:
    patient.knows(kind("later", "first", stage("second", locks=locked("l:{n}"))))
    damaged, sound = patient.submit("later", {"n": 1}, {"n": 2})
    leases = patient.claim_by_job()
    patient.damage("update jobs set params = '{' where id = ?", damaged)
    records = [patient.entry(lease, keep=True) for lease in leases.values()]

    answer = patient.flush_and_claim(records, patient.want(patient.here, slots=0))

    assert [(lease.job_id, lease.stage) for lease in answer.leases] == [(sound, "second")]
    patient.claim()
    assert patient.state(damaged) is State.FAILED


def test_a_message_of_a_job_whose_secrets_cannot_be_read_is_hidden(patient: Patient) -> None:
    schema = {"properties": {"password": {"type": "string", "writeOnly": True}}}
    patient.knows(kind("secretive", "work", schema=schema))
    job = patient.submit_one("secretive", {"password": "hunter-two"})
    lease = patient.run(job)
    patient.damage("update jobs set params = '{' where id = ?", job)

    patient.record(lease, Outcome.ERROR, message="no login with hunter-two", error={"message": "hunter-two"})

    (attempt,) = patient.store.attempts(job)
    assert (attempt.outcome, "hunter" in repr(attempt)) == (Outcome.ERROR, False)


def test_every_verb_works_on_a_job_whose_parameters_cannot_be_read(patient: Patient) -> None:
    ids = patient.submit("one", n=3)
    patient.damage("update jobs set params = '{'")
    patient.store.bulk._clock = lambda: 0.0  # however slow, all three in one step

    for verb, more in (
        (Verb.HOLD, {"reason": "look"}),
        (Verb.RELEASE, {}),
        (Verb.MOVE, {"queue": "default"}),
        (Verb.PRIORITY, {"priority": 3}),
        (Verb.CANCEL, {}),
        (Verb.RETRY, {}),
        (Verb.CANCEL, {}),
        (Verb.DELETE, {}),
    ):
        step = patient.store.bulk.apply(Order(verb=verb, **more), ids, ANN, now_us=patient.now)
        assert step.refused == {}, verb
    assert [patient.store.explainer.explain(job, now_us=patient.now).cause for job in ids] == ["settled"] * 3


# --- everything else --------------------------------------------------------------------------


def test_rights_that_cannot_be_read_allow_nothing_and_keep_nobody_else_out(patient: Patient) -> None:
    accounts = patient.store.accounts
    for name in ("ann", "bob"):
        accounts.add(name, Rights(role=Role.ADMIN), None, ANN, now_us=patient.now)
    patient.damage("update users set rights = '{' where name = 'bob'")

    rights = {user.name: user.rights for user in accounts.users()}

    assert rights["ann"] == Rights(role=Role.ADMIN)
    assert (rights["bob"].role, rights["bob"].within.collections, rights["bob"].within.queues) == (
        Role.VIEWER,
        (),
        (),
    )
    assert named(patient) == ["users.rights, name bob"]
    accounts.change("bob", Rights(role=Role.OPERATOR), ANN, now_us=patient.now)
    assert named(patient) == []


@pytest.mark.parametrize("lanes", [*BROKEN, '["ab"]', '[["ext"]]'])
def test_a_party_whose_lanes_cannot_be_read_is_given_nothing_and_disturbs_nobody(
    patient: Patient, lanes: str
) -> None:
    patient.knows(kind("ext", stage("go", isolation=Isolation.EXTERNAL)))
    external_worker = ExternalWorker(
        id=0,
        name="owl",
        owner="ann",
        join_count=0,
        slots=1,
        lease_s=60.0,
        lanes=(("ext", "go"),),
        serves=ALL,
        state="active",
    )
    patient.store.external_workers.join(external_worker, ANN, version="1", now_us=patient.now)
    patient.damage("update external_workers set lanes = ?", lanes)

    assert [(worker.name, worker.lanes) for worker in patient.store.external_workers.all()] == [("owl", ())]
    assert take_overdue(patient.store, now_us=patient.now) == 0


def test_a_webhook_that_cannot_be_read_is_paused_and_the_others_are_told(patient: Patient) -> None:
    webhooks = patient.store.webhooks
    for name in ("bad", "good"):
        webhooks.add(Webhook(name=name, url="https://example.org/"), "s" * 32, ANN, now_us=patient.now)
    patient.damage("update webhooks set spec = '{' where name = 'bad'")
    patient.forget()

    patient.submit_one()
    patient.drain()

    paused = {hook.name: hook.paused for hook in webhooks.all(now_us=patient.now)}
    assert paused["good"] is None
    assert "cannot be read" in (paused["bad"] or "")
    assert {d.webhook for d in webhooks.deliveries("good")} == {"good"}
    assert named(patient) == ["webhooks.spec, name bad"]


def test_what_a_node_serves_that_cannot_be_read_gives_that_node_nothing(patient: Patient) -> None:
    damaged, sound = patient.node("damaged"), patient.node("sound")
    patient.submit(n=2)
    patient.damage("update nodes set serves = '{', types = '{' where id = ?", damaged.id)
    patient.forget()

    assert patient.claim(damaged) == []
    assert len(patient.claim(sound)) == 2
    assert {node.name for node in patient.store.nodes()} == {"damaged", "sound"}
    assert named(patient) == [f"nodes.types, id {damaged.id}", f"nodes.serves, id {damaged.id}"]


def test_an_entry_of_the_audit_that_cannot_be_read_hinders_no_release(patient: Patient) -> None:
    hold = patient.store.holds.lay(Scope.QUEUE, "default", "look", ANN, now_us=patient.now)
    patient.submit_one()
    patient.store.holds.lift(hold.id, ANN, now_us=patient.now)
    patient.unguard_audit()
    patient.damage("update audit set what = '{'")

    assert list(patient.store.holds.lifted()) == []
    assert len(patient.store.audit.entries()) == 2
    assert [n for n in named(patient) if n.startswith("audit")] == ["audit.what, seq 1", "audit.what, seq 2"]


@pytest.mark.parametrize(
    ("lose", "restore"),
    [
        ("alter table progress rename to lost", "alter table lost rename to progress"),
        (
            "alter table progress rename column message to lost",
            "alter table progress rename column lost to message",
        ),
    ],
    ids=["table", "column"],
)
def test_a_missing_table_or_column_is_no_fault_of_spinney(patient: Patient, lose: str, restore: str) -> None:
    job = patient.submit_one("one")
    patient.damage(lose)
    with pytest.raises(
        StoreUnusable, match=r"does not match this version of Spinney \(.*if it is being restored, wait"
    ):
        patient.job(job)
    patient.damage(restore)
    assert patient.job(job).state is State.PENDING
