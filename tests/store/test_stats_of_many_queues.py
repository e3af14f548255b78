"""Figures beside many queues: each lane is looked at a few times, however many queues there are."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from contract.words import USUAL, Clock, Site, submission
from new_store import new_store
from spinney.features.stats import sql
from spinney.store.sql import open_store


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with closing(open_store(new_store(tmp_path / "jobs.db"))) as store:
        made = Site(store, Clock())
        made.knows(*USUAL)
        yield made


def test_lanes_are_grouped_in_one_pass(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given 60 queues, one job of each in a slot and one that waits, of which one has ended
    site.submit_all(*[submission(n=2, queue=f"q{n:02d}") for n in range(60)])
    node = site.node("wide", slots=60)
    lease, *_ = site.claim(node)
    site.pass_(lease)
    looks: list[object] = []
    totals = sql._Look._totals

    def counting(self, key):  # type: ignore[no-untyped-def]
        def counted(lane: object) -> object:
            looks.append(lane)
            return key(lane)

        return totals(self, counted)

    monkeypatch.setattr(sql._Look, "_totals", counting)
    # When the figures are read
    stats = site.store.statistics.stats(window_s=60, now_us=site.now)
    # Then each lane was looked at once for its pending jobs, for its slots and for its ends, by queue and by stage
    assert len(looks) == 2 * (60 + 59 + 1)
    queues = {queue.queue: (queue.pending, queue.running) for queue in stats.queues}
    assert queues == {"default": (0, 0), "q00": (1, 0)} | {f"q{n:02d}": (1, 1) for n in range(1, 60)}
    (stage,) = (stage for stage in stats.stages if stage.type == "one")
    assert (stage.pending, stage.running, stage.ended) == (60, 59, 1)
