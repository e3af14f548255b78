"""A tree is cancelled by sets of jobs where possible: the rows are those of a cancellation one by one."""

from collections.abc import Mapping
from typing import Any

import pytest

from spinney.features.bulk.step_run import STEP, StepRun
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.outcomes import Outcome
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Scope
from spinney.model.settings.webhooks import Webhook
from spinney.model.states import State

from .behind import cancel_moves, rows, sql_store
from .words import Site, submission

ANN = Actor(by="ann", call="c", reason="wrong list")
TABLES = (
    "jobs",
    "inactive_jobs",
    "ready",
    "leases",
    "children_left",
    "keys",
    "needs",
    "met_needs",
    "locks",
    "serial_order",
    "cancel_requests",
    "staging",
)


def _tree(site: Site) -> int:
    """A tree with jobs in every state, and pending ones that concern others."""
    need = site.submit_one("three", at_us=site.now + 10**9)
    root = site.submit_one("batch")
    lease = site.run(root)
    plain = site.spawn(lease, n=20)
    site.spawn_all(lease, *(submission(keys=(f"k{n}",), priority=60 + n) for n in range(3)))
    (branch,) = site.spawn(lease, "parent", priority=0)
    (needed, scheduled, needy, locked, other) = site.spawn_all(
        lease,
        submission(),
        submission(at_us=site.now + 10**9),
        submission(needs=(need,)),
        submission("locked", {"serno": 1}, priority=1),
        submission("locked", {"serno": 1}, priority=1),
    )
    site.pass_(lease)
    site.submit_one(needs=(needed,))
    under = site.run(branch)
    site.spawn(under, n=5)
    site.pass_(under)
    assert locked in site.claim_by_job(lanes={("locked", "work")})
    assert site.claim(lanes={("locked", "work")}) == [], "the other waits for the lock"
    leases = site.claim_by_job(slots=4, lanes={("one", "work")})
    first, second, third, *_ = leases.values()
    site.pass_(first)
    site.fail(second)
    site.record(third, Outcome.HOLD)
    site.store.holds.lay(Scope.JOB, str(plain[15]), "look", ANN, now_us=site.now)
    site.cancel(plain[16])
    assert {site.state(job) for job in (scheduled, needy, other)} == {State.SCHEDULED, State.WAITING}
    return root


def _cancelled(site: Site, root: int) -> Mapping[str, Any]:
    """Cancel the tree in a trial, and return the rows of all tables, and the jobs that the steps have named."""
    with site.store.bulk.trial():
        run = StepRun(
            site.store,
            Order(verb=Verb.CANCEL, tree=True, reason="wrong list"),
            ANN,
            lambda: site.now,
            lambda: STEP,
        )
        named = sorted(job for step in run.to([root]) for job in step.touched)
        with sql_store(site.store).session.look() as tx:
            tables = {name: sorted(map(repr, tx.all(f"select * from {name}"))) for name in TABLES}
            events = tx.all("select job_id, event, batch, outcome from webhook_events order by job_id, event")
    return {**tables, "events": events, "named": named}


@pytest.mark.parametrize("limit", [100, 3], ids=["one step", "many steps"])
def test_sets_leave_the_rows_that_single_jobs_leave(
    site: Site, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr("spinney.features.bulk.verb_step.BELOW", limit)
    hook = Webhook(name="hook", url="https://example.org/", events=("cancelled",), roots_only=False)
    site.store.webhooks.add(hook, "secret", ANN, now_us=site.now)
    root = _tree(site)

    cancelled: list[int] = []
    by_set = cancel_moves.cancel
    monkeypatch.setattr(
        cancel_moves,
        "cancel",
        lambda cascade, rows, reason: (cancelled.extend(r.id for r in rows), by_set(cascade, rows, reason)),
    )

    by_sets = _cancelled(site, root)
    monkeypatch.setattr(cancel_moves, "plain", lambda tx, rows: [])
    one_by_one = _cancelled(site, root)

    assert by_sets == one_by_one
    assert len(cancelled) > 15
    assert len(by_sets["events"]) > 20


def test_jobs_of_a_long_submission_that_are_not_placed_yet_are_cancelled_as_well(site: Site) -> None:
    root, _ = site.family("batch", n=1_500)
    assert rows(site.store, "select first_id from staging where published = 1"), "some are not placed yet"

    site.cancel(root, tree=True)
    site.sweep()

    assert site.count() == {"cancelled": 1_501}
    assert rows(site.store, "select job_id from ready") == []
