"""What the doctor asks of a page stays with the page: no statement of a rule walks a table that grows."""

import re
from pathlib import Path

import pytest

from contract.everything import fill
from contract.words import USUAL, Clock, Site
from new_store import new_store
from spinney.features.doctor.sql import RULES
from spinney.features.doctor.sql.rule import CheckContext, Paged
from spinney.model.rights.actor import Actor
from spinney.store.sql import SqlStore, open_store

PAGED = [rule for rule in RULES if isinstance(rule, Paged)]
SMALL = {"l", "s", "nodes", "working", "node_settings", "counters", "staging"}
"""What holds what runs (``l``: leases) or is written now (``s``: staging), or little at all."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> SqlStore:
    place: Path = tmp_path_factory.mktemp("plans")
    made = open_store(new_store(place / "x.db"))
    fill(Site(made, Clock()))
    return made


@pytest.mark.parametrize("rule", PAGED, ids=lambda rule: rule.name)
def test_a_rule_stays_with_its_page(store: SqlStore, rule: Paged) -> None:
    session = store.doctor._session
    with session.look() as tx:
        look = CheckContext(tx, session.registry, 1)
        keys = rule.walk.keys
        page, binds, _ = rule.walk.page(look, [0] * len(keys))
        # As in the middle of a large table, with a last row.
        page += f" and ({', '.join(keys)}) <= ({', '.join('?' for _ in keys)})"
        args = [*binds, *([10**6] * len(keys)), *rule.binds(look)]
        steps = [step for *_, step in tx.all(f"explain query plan {rule.statement(page)}", args)]

    walked = [
        step for step in steps if (match := re.match(r"SCAN (\w+)", step)) and match.group(1) not in SMALL
    ]
    assert walked == []
    assert not any("TEMP B-TREE" in step or "AUTOMATIC" in step for step in steps), steps


def test_to_mend_a_pending_job_costs_the_same_however_many_are_ready(tmp_path: Path) -> None:
    def steps(others: int) -> int:
        """Of SQLite's machine, in the transaction that mends."""
        store = open_store(new_store(tmp_path / f"{others}.db"))
        site = Site(store, Clock())
        site.knows(*USUAL)
        (lost, *_) = site.submit(n=others + 1)
        site.sweep()
        with store.database.write() as tx:
            tx.run("delete from ready where job_id = ?", (lost,))
        (violation,) = store.doctor.examine(["pending-nowhere"], now_us=site.now)
        assert violation.subject == f"job {lost}"
        taken = 0

        def count() -> int:
            nonlocal taken
            taken += 1
            return 0

        store.database._open_writer()[0].set_progress_handler(count, 1)
        assert store.doctor.repair(violation, Actor(by="ann", call="c"), now_us=site.now)
        store.database._open_writer()[0].set_progress_handler(None, 1)
        assert (lost, "work") in [(lease.job_id, lease.stage) for lease in site.claim()]
        store.close()
        return taken

    assert steps(1_000) < 1.2 * steps(10)
