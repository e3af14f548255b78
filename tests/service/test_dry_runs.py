"""What a dry run counts is what the verb then does: for every verb, over jobs in every state."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from contract.everything import fill
from contract.words import Clock, Site
from new_store import new_store
from spinney.commands.control import Control
from spinney.features.bulk.service import Bulk
from spinney.features.bulk.step_run import STEP
from spinney.features.holds.commands import LayHold, PlanHold, PlanRelease, lift_holds, sweep_holds
from spinney.model.access import ALL_RIGHTS, Rights, Role
from spinney.model.errors import Forbidden
from spinney.model.jobs import Filter
from spinney.model.operators.bulk_orders import ALLOWED_STATES, Order, Verb
from spinney.model.rights.allowed_verbs import OWN_JOB_VERBS
from spinney.model.settings.holds import Scope
from spinney.model.states import State
from spinney.store.sql import open_store

ORDERS = [
    Order(verb=Verb.RETRY),
    Order(verb=Verb.RETRY, stage="work"),
    Order(verb=Verb.RETRY, and_after=True),
    Order(verb=Verb.RETRY, queue="narrow"),
    Order(verb=Verb.RERUN),
    Order(verb=Verb.RERUN, stage="second"),
    Order(verb=Verb.RERUN, and_after=True),
    Order(verb=Verb.RUN_NOW),
    Order(verb=Verb.CANCEL),
    Order(verb=Verb.CANCEL, tree=True),
    Order(verb=Verb.HOLD, reason="look"),
    Order(verb=Verb.RELEASE),
    Order(verb=Verb.DELETE),
    Order(verb=Verb.MOVE, queue="narrow"),
    Order(verb=Verb.PRIORITY, priority=50),
]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    store = open_store(new_store(tmp_path / "x.db"))
    store.bulk._clock = lambda: 0.0  # a slow machine makes no shorter steps
    made = Site(store, Clock())
    fill(made)
    yield made
    store.close()


def service(site: Site, rights: Rights = ALL_RIGHTS, by: str = "ann") -> Bulk:
    return Bulk(store=site.store, clock=lambda: site.now, wake_nodes=lambda: None, by=by, rights=rights)


def order_name(order: Order) -> str:
    return " ".join(str(value) for value in (order.verb, order.stage, order.queue) if value) + (
        " and-after" * order.and_after + " tree" * order.tree
    )


@pytest.mark.parametrize("of", ["usual", "possible", "numbers"])
@pytest.mark.parametrize("order", ORDERS, ids=order_name)
@pytest.mark.parametrize("rights", [ALL_RIGHTS, Rights(role=Role.SUBMITTER)], ids=["operator", "submitter"])
def test_the_count_of_a_dry_run_is_what_the_verb_then_does(
    site: Site, order: Order, of: str, rights: Rights
) -> None:
    if rights is not ALL_RIGHTS and (order.verb not in OWN_JOB_VERBS or order.and_after or order.queue):
        pytest.skip("no verb of a submitter")
    bulk, ids = service(site, rights), tuple(site.ids())
    which = {
        "usual": Filter(),
        "possible": Filter(states=tuple(ALLOWED_STATES[order.verb])),
        "numbers": None,
    }[of]
    before = site.store.audit.entries(), {job: site.job(job) for job in ids}

    plan = bulk.plan(order, which, () if which else ids, exact=True)

    assert before == (site.store.audit.entries(), {job: site.job(job) for job in ids}), (
        "it was only looked at"
    )
    report = bulk.run(plan)
    assert plan.jobs == report.touched, report


@pytest.mark.parametrize("order", [Order(verb=Verb.RETRY), Order(verb=Verb.CANCEL)], ids=order_name)
def test_a_dry_run_lets_others_write_however_many_jobs_it_would_refuse(
    site: Site, monkeypatch: pytest.MonkeyPatch, order: Order
) -> None:
    # Given a store in which each step of a dry run takes long
    step_ends = 0

    def end_step() -> None:
        nonlocal step_ends
        step_ends += 1

    let_in: list[int] = []
    site.store.bulk._clock = lambda: float(step_ends)
    trial = site.store.bulk.trial

    @contextmanager
    def observed() -> Iterator[Callable[[], bool]]:
        with trial() as let_others:

            def observed_let_others() -> bool:
                if is_undone := let_others():
                    let_in.append(step_ends)
                return is_undone

            yield observed_let_others

    monkeypatch.setattr(site.store.bulk, "trial", observed)
    # When the verb would be refused for all jobs
    missing = range(10**6, 10**6 + 5 * STEP)
    plan = replace(service(site), go_on=end_step).plan(order, None, missing, exact=True)
    # Then others may write after each step, as during the run
    assert (plan.jobs, step_ends) == (0, 5)
    assert let_in == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(("n", "steps"), [(STEP, 0), (STEP + 1, STEP)])
def test_only_a_dry_run_of_few_jobs_keeps_others_out_to_its_end(
    site: Site, monkeypatch: pytest.MonkeyPatch, n: int, steps: int
) -> None:
    # Given a store in which each job takes longer than others are to wait
    ticks = count()
    site.store.bulk._clock = lambda: float(next(ticks))
    let_in, trial = [], site.store.bulk.trial

    @contextmanager
    def observed() -> Iterator[Callable[[], bool]]:
        with trial() as let_others:
            yield lambda: let_in.append(let_others()) or let_in[-1]

    monkeypatch.setattr(site.store.bulk, "trial", observed)
    jobs = site.submit("one", n=n)
    assert service(site).plan(Order(verb=Verb.CANCEL), None, jobs, exact=True).jobs == n
    assert sum(let_in[:-1]) == steps


def test_a_dry_run_ends_when_its_caller_has_lost_the_rights(site: Site) -> None:
    def stop() -> None:
        raise Forbidden("the account is disabled")

    before = site.store.audit.entries()
    with pytest.raises(Forbidden, match="disabled"):
        replace(service(site), go_on=stop).plan(Order(verb=Verb.HOLD, reason="look"), Filter(), exact=True)
    assert site.store.audit.entries() == before
    assert site.claim() != [], "and it keeps nobody out"


SCOPES = [
    (Scope.QUEUE, "default"),
    (Scope.TYPE, "one"),
    (Scope.COLLECTION, "alpha"),
    (Scope.SUBMITTER, "ann"),
    (Scope.EVERYTHING, ""),
    (Scope.TREE, ""),
]


@pytest.mark.parametrize(("scope", "name"), SCOPES)
def test_so_it_is_for_wide_holds_and_their_release(site: Site, scope: Scope, name: str) -> None:
    control = Control(store=site.store, clock=lambda: site.now, wake_nodes=lambda: None, by="ann")
    if scope is Scope.TREE:
        waiting = site.store.jobs(Filter(states=(State.WAITING,)))
        name = str(next(job.root_id for job in waiting if job.waits_for == "children"))
    control.do(LayHold(scope=Scope.QUEUE, name="urgent", reason="another hold covers some of them"))
    sweep_holds(control)

    before = site.count()
    preview = control.do(PlanHold(scope=scope, name=name, reason="look"))
    assert site.count() == before
    hold = control.do(LayHold(scope=scope, name=name, reason="look"))
    sweep_holds(control)
    assert preview.jobs == site.store.holds.held(hold.id)

    held = site.count()["held"]
    preview = control.do(PlanRelease(hold=hold.id))
    lift_holds(control, scope, name)
    sweep_holds(control)
    assert preview.jobs == held - site.count().get("held", 0)


def test_what_a_hold_covers_beyond_that_is_held_later(site: Site) -> None:
    control = Control(store=site.store, clock=lambda: site.now, wake_nodes=lambda: None, by="ann")
    open_jobs = site.store.job_lists.count(Filter(states=tuple(ALLOWED_STATES[Verb.CANCEL])), most=1_000)

    preview = control.do(PlanHold(scope=Scope.EVERYTHING, reason="look"))

    assert preview.jobs + preview.later == open_jobs
