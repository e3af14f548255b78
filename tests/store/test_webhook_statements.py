"""What webhooks cost where a job settles: nothing without one that fits, two statements for all jobs of a flush."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from contract.words import USUAL, Clock, Site
from new_store import new_store
from spinney.model.access import AccessScope
from spinney.model.rights.actor import Actor
from spinney.model.settings.webhooks import Webhook
from spinney.store.sql import open_store

ANN = Actor(by="ann", call="c", reason=None)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with closing(open_store(new_store(tmp_path / "jobs.db"))) as store:
        made = Site(store, Clock())
        made.knows(*USUAL)
        yield made


def watch(site: Site, **more: Any) -> None:
    site.store.webhooks.add(
        Webhook(name="w", url="http://example.org/", **more), "secret", ANN, now_us=site.now
    )


def statements(site: Site, n: int, failing: int = 0) -> list[str]:
    """What a flush of so many jobs asks of the database; the last of them fail."""
    jobs = site.submit(n=n + failing)
    leases = site.claim_by_job()
    records = [site.entry(leases[job]) for job in jobs[:n]]
    seen: list[str] = []
    writer = site.store.database._writer  # type: ignore[attr-defined]
    writer.set_trace_callback(seen.append)
    site.flush_and_claim(records)
    site.fail(*(leases[job] for job in jobs[n:]))
    writer.set_trace_callback(None)
    return [" ".join(sql.split()[:4]) for sql in seen]


@pytest.mark.parametrize(
    "options",
    [
        {"type": "three"},
        {"queue": "other"},
        {"events": ("cancelled",)},
        {"within": AccessScope(queues=("other",))},
        {"within": AccessScope(queues=())},
    ],
)
def test_one_that_cannot_fit_costs_no_statement(site: Site, options: dict[str, Any]) -> None:
    statements(site, 20, 2)
    before = statements(site, 20, 2)
    watch(site, **options)
    statements(site, 20, 2)

    assert statements(site, 20, 2) == before
    assert not any("webhook" in sql for sql in before), json.dumps(before)


def test_plain_jobs_are_written_down_together(site: Site) -> None:
    statements(site, 20)
    before = statements(site, 20)
    watch(site)
    statements(site, 20)

    after = statements(site, 20)

    more = list(after)
    for sql in before:
        more.remove(sql)
    assert more == [
        "update counters set value",
        "select value from counters",
        "insert into webhook_events (seq,",
    ]
