"""A clock that is ahead, which a server observes every second, keeps no other writer waiting."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contract.words import USUAL, Clock, Site
from new_store import new_store
from spinney.model.outcomes import Outcome
from spinney.model.rights.actor import Actor
from spinney.model.settings.webhooks import Webhook
from spinney.store.sql import open_store

ANN = Actor(by="ann", call="c")
MONTH = 31 * 86_400


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    store = open_store(new_store(tmp_path / "x.db"))
    made = Site(store, Clock())
    made.knows(*USUAL)
    yield made
    store.close()


def written(site: Site, call: Callable[[], object]) -> list[str]:
    """The statements of this call on the connection that writes, where each transaction keeps others waiting."""
    statements: list[str] = []
    writer = site.store.database._writer  # type: ignore[attr-defined]
    writer.set_trace_callback(statements.append)
    call()
    writer.set_trace_callback(None)
    return statements


def test_given_a_jump_that_has_been_seen_then_the_next_looks_begin_no_transaction(site: Site) -> None:
    retention = site.store.retention
    retention.observe_clock(now_us=site.now)
    site.clock.forward(MONTH)
    assert written(site, lambda: retention.observe_clock(now_us=site.now))

    site.clock.forward(1)

    assert written(site, lambda: retention.observe_clock(now_us=site.now)) == []


def test_given_deliveries_that_are_old_only_by_a_clock_ahead_then_no_transaction_begins(site: Site) -> None:
    webhooks = site.store.webhooks
    webhook = Webhook(name="hook", url="https://example.org/", events=("failed",))
    webhooks.add(webhook, "secret", ANN, now_us=site.now)
    site.record(site.run(site.submit_one()), Outcome.ERROR)
    site.store.retention.observe_clock(now_us=site.now)

    site.clock.forward(MONTH)

    assert written(site, lambda: webhooks.remove_expired(now_us=site.now)) == []
    site.store.retention.confirm_clock(now_us=site.now)
    assert written(site, lambda: webhooks.remove_expired(now_us=site.now))
