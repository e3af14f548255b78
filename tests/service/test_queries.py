"""What is read in somebody's name: within the limits, without secrets, and without others in its sentences."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
from pydantic import SecretStr

from contract.everything import Everything, filled
from contract.words import USUAL, Clock, Site, kind, stage
from new_store import new_store
from spinney.commands.control import Control
from spinney.define.jobtype.parameters import Parameters
from spinney.define.jobtype.signature import DeclaredParameter
from spinney.define.params.redaction import REDACTED
from spinney.features.audit.commands import ListAuditCalls, ListAuditEntries, ShowAuditHead, VerifyAudit
from spinney.features.explain.explanation import Cause
from spinney.features.explain.service import Explainer
from spinney.features.external.service import External
from spinney.features.locks.commands import ListCapacities, ListLocks, ShowLock
from spinney.features.schedules.commands import PutSchedule, RunSchedule
from spinney.features.submission.batches import Batches
from spinney.model.access import AccessScope, Rights, Role
from spinney.model.errors import Forbidden, NoSuchJob, Refused, UsageError
from spinney.model.jobs import Filter
from spinney.model.operators.bulk_orders import ALLOWED_STATES, Verb
from spinney.model.outcomes import Outcome
from spinney.model.rights.actor import Actor
from spinney.model.rights.allowed_verbs import allowed
from spinney.model.settings.holds import Scope
from spinney.model.settings.schedules import Schedule
from spinney.model.states import State
from spinney.model.types import Isolation
from spinney.service.queries import Queries
from spinney.store.parts import Store
from spinney.store.sql import open_store

ALPHA, BETA = AccessScope(collections=("alpha",)), AccessScope(collections=("beta",))
CHIEF = Actor(by="chief", call="c")
OF_ITS_OWN = "no such receiver 17"
"""A message of a stage, with a number that is no job."""
SECRET = "open sesame"


@pytest.fixture
def store(tmp_path: Any) -> Iterator[Store]:
    store = open_store(new_store(tmp_path / "jobs.db"))
    yield store
    store.close()


@pytest.fixture
def site(store: Store) -> Site:
    site = Site(store, Clock())
    site.knows(*USUAL, kind("fetch", "work", schema=_schema()))
    return site


def _schema() -> Any:
    fields = {"password": SecretStr, "url": str}
    return Parameters(
        "fetch", {n: DeclaredParameter(annotation=a, required=True) for n, a in fields.items()}
    ).schema


def of(site: Site, within: AccessScope = ALPHA, role: Role = Role.VIEWER, **more: Any) -> Control:
    rights = Rights(role=role, within=within, **more)
    return Control(store=site.store, clock=lambda: site.now, wake_nodes=lambda: None, by="ann", rights=rights)


def full(site: Site) -> Control:
    return Control(store=site.store, clock=lambda: site.now, wake_nodes=lambda: None, by="chief")


def pair(site: Site, of: str = "one", **fields: Any) -> tuple[int, int]:
    """A job of alpha and one of beta."""
    return site.submit_one(of, collection="alpha", **fields), site.submit_one(of, collection="beta", **fields)


# --- jobs -------------------------------------------------------------------------------------


def test_a_job_out_of_sight_is_not_there_whatever_is_asked_of_it(site: Site) -> None:
    mine, other = pair(site)
    look = of(site).queries
    methods = ("job", "tree", "children", "attempts", "data", "results", "holds_on", "redactor")

    for verb in methods:
        getattr(look, verb)(mine)
        with pytest.raises(NoSuchJob) as out_of_sight:
            getattr(look, verb)(other)
        with pytest.raises(NoSuchJob) as not_there:
            getattr(look, verb)(10**6)
        assert str(out_of_sight.value) == str(not_there.value).replace("1000000", str(other)), verb
        with pytest.raises(NoSuchJob):
            getattr(look, verb)(2**64)  # no database has a number of so many bits


def test_a_job_out_of_sight_is_not_explained(site: Site) -> None:
    mine, other = pair(site)
    explainer = of(site).part(Explainer)

    assert explainer.explain(mine).job_id == mine
    for job_id in (other, 1_000_000):
        with pytest.raises(NoSuchJob):
            explainer.explain(job_id)


def test_lists_and_counts_are_of_what_is_in_sight_and_of_all_where_nothing_limits(site: Site) -> None:
    mine, other = pair(site)

    assert [job.id for job in of(site).queries.jobs(Filter())] == [mine]
    assert dict(of(site).queries.counts(Filter())) == {State.PENDING: 1}
    assert dict(of(site).queries.counts(Filter(collection="beta"))) == {}
    assert of(site).queries.within(Filter(within=BETA)).within == AccessScope(collections=())
    assert [job.id for job in full(site).queries.jobs(Filter())] == [mine, other]
    assert full(site).queries.within(Filter(type="one")) == Filter(type="one")


def test_of_a_tree_across_collections_what_is_in_sight_is_shown(site: Site) -> None:
    top = site.submit_one("batch", collection="alpha")
    lease = site.run(top)
    others = site.spawn(lease, "one", n=5, collection="beta")
    mine = site.spawn(lease, "one", n=3)
    site.pass_(lease)
    look = of(site).queries

    assert [job.id for job in look.tree(top)] == [top, *mine]
    with mock.patch.object(site.store, "tree", wraps=site.store.tree) as read:
        assert [job.id for job in look.tree(top, limit=3)] == [top, *mine[:2]]
    assert read.call_count == 1, "what is out of sight is not read"
    assert [job.id for job in look.children(top)] == mine
    assert [job.id for job in look.children(top, limit=2)] == mine[:2]
    assert [job.id for job in look.children(top, after=mine[1])] == mine[2:]
    assert [job.id for job in full(site).queries.children(top)] == [*others, *mine]


def test_a_batch_that_was_opened_again_tells_its_throughput_since_then(site: Site) -> None:
    top, children = site.family("batch", n=4)
    site.drain(failing=children[:1])
    site.clock.forward(3_600)

    site.retry(children[0])
    site.clock.forward(100)
    site.drain()

    batch = full(site).part(Batches).find(top)
    assert (batch.job.started_us, batch.job.settled_us) == (site.now - 100_000_000, site.now)
    assert (batch.settled, batch.per_s) == (4, 0.01)


def test_a_batch_that_is_removed_while_the_list_is_read_is_left_out(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = site.family("batch", n=1)
    second, _ = site.family("batch", n=1)
    site.drain()
    counts = Queries.counts

    def remove_and_count(queries: Queries, job_filter: Filter) -> Any:
        site.delete(second)
        with site.store.database.write() as tx:
            tx.run("delete from jobs where id = ?", (second,))
        monkeypatch.undo()
        return counts(queries, job_filter)

    monkeypatch.setattr(Queries, "counts", remove_and_count)

    batches = full(site).part(Batches).page(Filter()).items

    assert [batch.job.id for batch in batches] == [first]


# --- explaining -------------------------------------------------------------------------------


def explanation_text(site: Site, job: int, within: AccessScope = ALPHA) -> str:
    """Return everything that an explanation says as one text."""
    explanation = of(site, within).part(Explainer).explain(job)
    return f"{explanation.cause}: {explanation.sentence} | {explanation.command} | {dict(explanation.facts)}"


def test_what_troubles_a_node_is_for_callers_without_limits(site: Site) -> None:
    mine, _ = pair(site)
    node = site.node("oak", types=("one",))
    site.store.beat(node.id, trouble="the folder root /srv is read-only", now_us=site.now)

    assert "degraded: node oak, which may run it, is degraded |" in explanation_text(site, mine)
    assert "/srv" not in explanation_text(site, mine)
    assert "/srv is read-only" in full(site).part(Explainer).explain(mine).sentence


def test_a_need_out_of_sight_is_not_named(site: Site) -> None:
    mine, other = pair(site)
    both = site.submit_one(collection="alpha", needs=(mine, other))
    own = site.submit_one(collection="alpha", needs=(mine,))

    assert f"job {mine} and others" in explanation_text(site, both)
    assert f"{mine} (pending)" in explanation_text(site, own)
    site.fail(site.run(mine))
    site.fail(site.run(other))
    for look in (full(site).queries, of(site).queries):
        assert look.job(own).message == f"job {mine}, which it needs, failed"
    blind = site.submit_one(collection="alpha", needs=(other,))
    assert of(site).queries.job(blind).message == "a job, which it needs, failed"
    assert [job.id for job in full(site).queries.jobs(Filter(message=f"job {other},"))] == [blind]
    assert not of(site).queries.jobs(Filter(message=f"job {other},"))
    assert blind in {job.id for job in of(site).queries.jobs(Filter(message="which it needs"))}
    assert f" {other}" not in explanation_text(site, blind)
    assert f"job {other}, which" in explanation_text(site, blind, AccessScope())


@pytest.mark.parametrize("text", ["its subjob {} failed", "job {}, which it needs, failed"])
def test_what_a_jobs_own_code_says_is_shown_and_searched_whatever_its_words(site: Site, text: str) -> None:
    mine, other = pair(site)
    site.fail(site.run(mine), message=text.format(other))

    assert of(site).queries.job(mine).message == text.format(other)
    assert text.format(other) in explanation_text(site, mine)
    assert [job.id for job in of(site).queries.jobs(Filter(message=f"job {other}"))] == [mine]


def test_a_job_out_of_sight_that_runs_again_is_not_named(site: Site) -> None:
    top = site.submit_one("batch", collection="beta")
    lease = site.run(top)
    (mine,) = site.spawn(lease, "one", collection="alpha")
    site.pass_(lease)
    site.drain()
    site.rerun(top)

    assert "since a job above it was set to run again without it; " in explanation_text(site, mine)
    assert f"since job {top} was set to run again without it; " in explanation_text(site, mine, AccessScope())


def test_an_owner_of_a_lock_out_of_sight_is_not_named(site: Site) -> None:
    other = site.submit_one("locked", {"serno": "A"}, collection="beta")
    site.run(other)
    mine = site.submit_one("locked", {"serno": "A"}, collection="alpha")
    site.claim(slots=2)

    assert "another job has the lock 'receiver:A'" in explanation_text(site, mine)
    assert f"job {other} has" in explanation_text(site, mine, AccessScope())
    (line,) = of(site).do(ListLocks()).items
    assert (line.owner_id, line.node, line.until, line.waiting) == (None, None, "attempt", 1)
    assert [info.owner_id for info in of(site, BETA).do(ShowLock(name="receiver:A")).items] == [other]


def test_jobs_out_of_sight_in_a_ring_are_not_named(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = pair(site)
    ring = Cause(job_id=mine, cause="deadlock", facts={"ring": [mine, other], "chain": f"job {other} waits"})
    monkeypatch.setattr(site.store.explainer, "explain", lambda job_id, now_us: ring)

    assert (
        explanation_text(site, mine)
        == "deadlock: jobs wait for each other, and none of them can go on | None | {}"
    )
    assert f"job {other} waits | spinney cancel {other}" in explanation_text(site, mine, AccessScope())


def test_what_others_have_pending_is_not_counted(site: Site) -> None:
    site.node("here", slots=1)
    node = site.node("there", slots=1, types=("one",))
    site.submit(n=7, collection="beta", priority=0)
    site.claim(node, 1)
    mine = site.submit_one(collection="alpha")

    assert "6 jobs" in explanation_text(site, mine, AccessScope())
    sentences = explanation_text(site, mine)
    assert "slots" in sentences
    assert "6" not in sentences.replace(f"priority {mine}", "")


def test_a_hold_that_names_others_is_told_without_their_name(site: Site) -> None:
    top = site.submit_one("batch", collection="beta")
    lease = site.run(top)
    (mine,) = site.spawn(lease, "one", collection="alpha")
    site.pass_(lease)
    site.store.holds.lay(Scope.TREE, str(top), "beta is on fire", CHIEF, now_us=site.now)
    site.store.holds.lay(Scope.COLLECTION, "beta", "beta must wait", CHIEF, now_us=site.now)
    while site.store.holds.sweep(now_us=site.now):
        pass
    look = of(site).queries

    assert "beta" not in explanation_text(site, mine)
    assert look.job(mine).state is State.HELD
    assert "beta" not in str(look.job(mine).message)
    for named in (Filter(message="on fire"), Filter(message="on fire", states=(State.HELD,))):
        assert [job.id for job in full(site).queries.jobs(named) if job.id == mine] == [mine]
        for within in (ALPHA, AccessScope(collections=("alpha", "gamma"))):
            assert not of(site, within).queries.jobs(named)
            assert not of(site, within).queries.counts(named)
    assert [hold.name for hold in look.holds_on(mine)] == [""]
    assert list(look.holds()) == []
    assert len(full(site).queries.holds()) == 2
    everything = site.store.holds.lay(Scope.EVERYTHING, "", "power cut", CHIEF, now_us=site.now)
    assert list(look.holds()) == [everything]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Control, Everything]]:
    url = f"sqlite:///{tmp_path_factory.mktemp('world')}/jobs.db"
    made = filled(url)
    store = open_store(url)
    now_us = max(job.created_us for job in store.jobs(Filter(), limit=1000)) + 60_000_000
    yield Control(store=store, clock=lambda: now_us, wake_nodes=lambda: None, by="chief"), made
    store.close()


@pytest.mark.parametrize(
    "within",
    [
        ALPHA,
        BETA,
        AccessScope(queues=("narrow",)),
        AccessScope(queues=("urgent", "default"), collections=("beta",)),
    ],
)
def test_nothing_that_is_told_names_a_job_out_of_sight(
    world: tuple[Control, Everything], within: AccessScope
) -> None:
    control, made = world
    limited = replace(control, rights=Rights(role=Role.VIEWER, within=within))
    seen = {job.id for job in limited.queries.jobs(Filter(), limit=1000)}
    hidden = set(made.jobs.values()) - seen
    assert hidden

    for job_id in seen:
        explanation = limited.part(Explainer).explain(job_id)
        named = {
            value
            for name, value in explanation.facts.items()
            if name in ("owner", "before", "first", "probe")
        } | set(explanation.facts.get("needs", ()))
        assert not named & hidden, explanation
        text = f"{explanation.sentence} {explanation.command or ''} {limited.queries.job(job_id).message}"
        words = {word.strip("(),;:") for word in text.replace(OF_ITS_OWN, "").split()}
        # Slots and attempts are numbers, too, but of one digit.
        assert not {int(word) for word in words if word.isdigit() and len(word) > 1} & hidden, explanation


def test_where_nothing_limits_everything_is_told_as_the_store_tells_it(
    world: tuple[Control, Everything],
) -> None:
    control, made = world
    store, now_us = control.store, control.clock()

    for job_id in made.jobs.values():
        assert replace(control.queries.job(job_id), subject="") == store.job(job_id), "but for its subject"
        assert (
            control.part(Explainer).explain(job_id).facts
            == store.explainer.explain(job_id, now_us=now_us).facts
        )
        assert control.queries.attempts(job_id) == store.attempts(job_id)
    assert control.queries.stats() == store.statistics.stats(window_s=60.0, now_us=now_us)
    assert control.queries.failures() == store.failures.groups()
    assert control.queries.queues() == store.queue_admin.all()


# --- queues, nodes, schedules, names ----------------------------------------------------------


def test_a_queue_out_of_sight_is_not_known(site: Site) -> None:
    site.submit_one(queue="mine")
    site.submit_one(queue="theirs")
    look = of(site, AccessScope(queues=("mine",))).queries

    assert [q.queue for q in look.queues()] == ["mine"]
    assert look.queue("mine").pending == 1
    with pytest.raises(UsageError, match="no queue 'theirs' is known to this store; use one of: mine"):
        look.queue("theirs")


def test_nodes_are_shown_without_what_they_do_for_others(site: Site) -> None:
    node = site.node("oak", 8)
    site.submit(n=3, collection="beta")
    site.submit(n=2, collection="alpha")
    site.claim(node)

    def used(control: Control) -> tuple[int, int]:
        (node,) = (n for n in control.queries.nodes() if n.node == "oak")
        return node.leases, node.used

    assert used(full(site)) == (5, 5)
    assert used(of(site)) == (2, 2)


def test_of_a_party_it_is_not_told_whose_it_is(site: Site) -> None:
    site.knows(kind("talk", stage("listen", isolation=Isolation.EXTERNAL)))
    Control(store=site.store, clock=lambda: site.now, wake_nodes=lambda: None, by="carol").part(
        External
    ).join("ear", [("talk", "listen")])

    assert [node.host for node in full(site).queries.nodes()] == ["carol"]
    assert "carol" not in str(of(site).queries.nodes())


def test_schedules_are_those_whose_jobs_would_be_in_sight(site: Site) -> None:
    for name in ("alpha", "beta"):
        made = Schedule(name=f"daily-{name}", type="one", every_s=60, options={"collection": name})
        site.store.schedules.put(made, CHIEF, now_us=site.now)
    look = of(site).queries

    assert [s.name for s in look.schedules()] == ["daily-alpha"]
    assert look.schedule("daily-alpha").options == {"collection": "alpha"}
    assert len(look.coming("daily-alpha", 3)) == 3
    for verb in (look.schedule, look.runs):
        with pytest.raises(Refused, match="there is no schedule 'daily-beta'"):
            verb("daily-beta")


def test_the_audit_is_for_operators_without_limits(site: Site) -> None:
    site.store.holds.lay(Scope.EVERYTHING, "", "power cut", CHIEF, now_us=site.now)

    assert len(of(site, AccessScope(), Role.OPERATOR).do(ListAuditCalls()).items) == 1
    assert len(full(site).do(ListAuditEntries()).items) == 1
    for control in (of(site, ALPHA, Role.ADMIN), of(site, AccessScope(), Role.SUBMITTER), of(site)):
        for command in (ListAuditCalls(), ListAuditEntries(), ShowAuditHead(), VerifyAudit()):
            with pytest.raises(Forbidden):
                control.do(command)


def test_capacities_are_those_declared_and_those_that_may_be_named(site: Site) -> None:
    for name in ("receiver:A", "private:B"):
        site.store.locks.set_capacity(name, 3, CHIEF, now_us=site.now)

    assert [c.name for c in of(site).do(ListCapacities()).items] == []
    assert [c.name for c in of(site, locks=("receiver:*",)).do(ListCapacities()).items] == ["receiver:A"]
    assert len(full(site).do(ListCapacities()).items) == 2


# --- what is allowed --------------------------------------------------------------------------


def test_what_is_allowed_goes_by_the_state(world: tuple[Control, Everything]) -> None:
    control, made = world

    def of_(name: str) -> set[str]:
        return set(control.queries.allowed(control.queries.job(made[name])))

    assert of_("pending") == {"cancel", "hold", "move", "priority"}
    assert of_("failed") == {"retry", "rerun", "delete"}
    assert of_("completed") == {"rerun", "delete"}
    assert of_("held") == {"cancel", "release", "delete", "move", "priority"}
    assert of_("cancelling") == set()
    for name in made:
        job = control.queries.job(made[name])
        assert all(job.state in ALLOWED_STATES[Verb(verb)] for verb in control.queries.allowed(job)), name


def test_submitters_may_handle_their_own_jobs_and_viewers_none(site: Site) -> None:
    own = site.job(site.submit_one(collection="alpha", submitter="ann"))
    other = site.job(site.submit_one(collection="alpha", submitter="ben"))

    assert of(site, role=Role.SUBMITTER).queries.allowed(own) == ["cancel", "hold"]
    assert of(site, role=Role.SUBMITTER).queries.allowed(other) == []
    assert of(site).queries.allowed(own) == []
    assert of(site, role=Role.OPERATOR).queries.allowed(other) == allowed(other)
    assert of(site, BETA, Role.OPERATOR).queries.allowed(other) == []


# --- secrets ----------------------------------------------------------------------------------


def test_a_secret_is_masked_in_all_that_is_shown_of_its_job(site: Site) -> None:
    params = {"password": SECRET, "url": "https://example.org"}
    job_id = site.submit_one("fetch", params, data={"password": '"other"', "note": f'"with {SECRET}"'})
    other = site.submit_one("one", {"password": SECRET})
    lease = site.run(job_id)
    message = f"login with {SECRET!r} refused"
    site.record(
        lease, Outcome.ERROR, message=message, error={"type": "E", "message": message, "traceback": message}
    )
    look = full(site).queries
    shown = {"password": REDACTED, "url": "https://example.org"}

    assert site.job(job_id).params == params, "the stage gets it as it is"
    for job in (look.job(job_id), look.jobs(Filter(type="fetch"))[0], look.tree(job_id)[0]):
        assert job.params == shown
        assert job.message == f"login with '{REDACTED}' refused"
    assert dict(look.data(job_id)) == {"password": REDACTED, "note": f"with {REDACTED}"}
    (attempt,) = look.attempts(job_id)
    assert SECRET not in f"{attempt.message} {attempt.error}"
    assert SECRET not in full(site).part(Explainer).explain(job_id).sentence
    assert look.redactor(job_id).text(SECRET) == REDACTED
    assert look.job(other).params == {"password": SECRET}, "a type that declares no secret has none"


def test_a_failure_takes_no_secret_to_where_nobody_asks_whose_it_was(site: Site) -> None:
    site.knows(replace(kind("fetch", "work", schema=_schema()), breaker=2))
    ids = [site.submit_one("fetch", {"password": SECRET, "url": "u"}) for _ in range(3)]
    for lease in (site.run(ids[0]), site.run(ids[1])):
        error = {"type": "E", "message": f"with {SECRET}", "traceback": SECRET}
        site.record(lease, Outcome.ERROR, message=f"login with {SECRET} refused", error=error)
    control = full(site)
    look = control.queries

    assert [hold.automatic for hold in look.holds()] == [True]
    answer = [
        look.failures(),
        look.holds(),
        control.part(Explainer).explain(ids[2]),
        look.job(ids[2]),
        control.do(ListAuditEntries()),
    ]
    assert "login with" in str(answer)
    assert SECRET not in str(answer)
    for guess in (SECRET, SECRET[:4]):
        assert look.jobs(Filter(message=guess)) == []
    assert len(look.jobs(Filter(message="login with"))) >= 2


def test_a_result_that_repeats_a_secret_is_masked(site: Site) -> None:
    job_id = site.submit_one("fetch", {"password": SECRET, "url": "u"})
    site.pass_(site.run(job_id), result={"password": "new", "said": SECRET, "n": 1})
    look = full(site).queries

    assert dict(look.results(job_id)) == {"work": {"password": REDACTED, "said": REDACTED, "n": 1}}
    assert look.attempts(job_id)[0].result == {"password": REDACTED, "said": REDACTED, "n": 1}


def test_a_schedule_shows_no_secret_and_neither_does_the_audit(site: Site) -> None:
    control = full(site)
    params = {"password": SECRET, "url": "u"}
    control.do(PutSchedule(name="nightly", type="fetch", every_s=60, params=params))

    assert control.queries.schedule("nightly").params == {"password": REDACTED, "url": "u"}
    assert control.queries.schedules()[0].params == {"password": REDACTED, "url": "u"}
    assert SECRET not in str(control.do(ListAuditEntries()))
    job_id = control.do(RunSchedule(name="nightly")).id
    assert site.job(job_id).params == params


def test_what_is_read_masked_cannot_be_put_back(site: Site) -> None:
    control = full(site)
    job_id = site.submit_one("fetch", {"password": SECRET, "url": "u"})

    with pytest.raises(UsageError, match="as secrets are shown"):
        control.submit("fetch", [control.queries.job(job_id).params])


def test_types_are_for_everybody(site: Site) -> None:
    look = of(site).queries

    assert look.types().keys() == {spec.name for spec in USUAL} | {"fetch"}
    assert look.type("fetch").schema["properties"]["password"]["writeOnly"] is True
    with pytest.raises(UsageError, match="did you mean 'fetch'"):
        look.type("fetsh")
