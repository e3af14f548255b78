"""What holds cost: no statement of a sweep walks a growing table, and a claim does not notice most of them."""

import re
import sqlite3
from pathlib import Path

import pytest

from spinney.model.jobs import ClaimRequest, LaneRequest, SlotRequest, Submission
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Scope
from store.test_plans import House, ok

ANN = Actor(by="ann", call="c")
SCOPES = {
    Scope.EVERYTHING: "",
    Scope.QUEUE: "narrow",
    Scope.TYPE: "plain",
    Scope.COLLECTION: "c",
    Scope.SUBMITTER: "eve",
    Scope.TREE: "1",
    Scope.JOB: "3",
}


@pytest.fixture
def house(tmp_path: Path) -> House:
    made = House(tmp_path / "x.db")
    made.store.submit(
        [Submission(type="plain", params=["{}"] * 20, collection="c", submitter="eve")], now_us=2
    )
    made.store.signature()
    reader = made.store.database._reader
    assert reader is not None
    reader.set_trace_callback(made.seen.append)  # sweeps are planned by reading
    made.seen.clear()
    return made


def lay(house: House, scope: Scope, name: str, until_us: int | None = None) -> int:
    return house.store.holds.lay(scope, name, "why", ANN, until_us=until_us, now_us=5).id


def swept(house: House, now_us: int = 6) -> None:
    while house.store.holds.sweep(now_us=now_us, limit=5):
        pass


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_no_statement_of_a_sweep_walks_a_growing_table(house: House, scope: Scope) -> None:
    hold = lay(house, scope, SCOPES[scope])
    house.flush_and_claim([])
    swept(house)
    house.store.holds.lift(hold, ANN, now_us=7)
    swept(house, 8)
    lay(house, scope, SCOPES[scope], until_us=10)
    swept(house, 11)

    assert len(house.seen) > 20
    assert walks(house) == []


def test_nor_do_those_of_a_tree_that_grew(house: House) -> None:
    parent = next(lease for lease in house.flush_and_claim([]) if lease.type == "tree")
    house.store.spawn(parent.job_id, parent.fence, [Submission(type="plain", params=["{}"] * 30)], now_us=5)
    hold = lay(house, Scope.TREE, str(parent.job_id))
    house.store.flush_and_claim([ok(parent)], None, now_us=6)
    swept(house)
    house.store.holds.lift(hold, ANN, now_us=7)
    swept(house)

    assert walks(house) == []


def test_nor_do_those_of_work_under_holds(house: House) -> None:
    for scope in (Scope.COLLECTION, Scope.TREE, Scope.JOB):
        lay(house, scope, SCOPES[scope])
    house.seen.clear()

    house.drain(ok)
    house.store.submit([Submission(type="plain", params=["{}"] * 5, collection="c")], now_us=12)
    (lease, *_) = house.store.flush_and_claim([], _want(house), now_us=13).leases or [None]
    assert lease is None, "what is left is covered"

    assert walks(house) == []


def test_ten_thousand_holds_on_single_jobs_cost_a_claim_nothing(house: House) -> None:
    before = _statements(house)

    with house.store.database.write() as tx:
        tx.many(
            "insert into holds (id, scope, name, reason, by, since_us, automatic) values (?, 'job', ?, 'w', 'a', 1, 0)",
            [(1_000 + n, str(1_000_000 + n)) for n in range(10_000)],
        )
    lay(house, Scope.JOB, "9")
    after = _statements(house)

    assert after == before
    assert len(before) > 5


def test_a_hold_that_is_swept_costs_a_claim_nothing(house: House) -> None:
    before = _statements(house)
    lay(house, Scope.COLLECTION, "c")
    unswept = _statements(house)
    swept(house)
    after = _statements(house)

    assert after == before
    assert unswept != before, "until then each candidate is asked"


def test_the_registry_reads_no_list_of_single_holds(house: House) -> None:
    lay(house, Scope.JOB, "9")
    assert house.store._registry.holds.jobs
    assert house.store._registry.holds.wide == ()


def _statements(house: House) -> list[str]:
    """Those of two exchanges with a claim and with what became of it, numbers apart."""
    for _ in range(2):  # the first claim of all finds nobody who was served before
        house.store.submit([Submission(type="plain", priority=1)], now_us=9)
        house.seen.clear()
        leases = house.store.flush_and_claim([], _want(house), now_us=9).leases
        house.store.flush_and_claim([ok(lease) for lease in leases], None, now_us=10)
        assert len(leases) == 1
    return [re.sub(r"\d+", "1", sql) for sql in house.seen]


def _want(house: House) -> ClaimRequest:
    return ClaimRequest(
        node_id=house.node, slots=[SlotRequest(0, 1, 1e5, True)], lanes={("plain", "run"): LaneRequest()}
    )


def walks(house: House) -> list[str]:
    """Steps that read a table whole which grows with the work, or with the jobs that are held one by one."""
    grow = {
        "jobs",
        "ready",
        "inactive_jobs",
        "attempts",
        "holds",
        "children_left",
        "needs",
        "audit",
        "keys",
        "h",
        "r",
        "p",
    }
    connection = sqlite3.connect(house.store.database.path)
    plans = []
    for sql in dict.fromkeys(re.sub(r"(?<![\w'])\d+(?![\w'])", "1", sql) for sql in house.seen):
        if re.match(r"(select|insert|update|delete|with)", sql) and not sql.startswith("select exists("):
            begun: set[int] = set()  # loops that a table has the lead in
            for _, above, _, step in connection.execute(f"explain query plan {sql}"):
                scan = re.match(r"SCAN (\w+)", step)
                walked = scan is not None and scan.group(1) in grow and "CONSTANT" not in step
                # That asks whether a lane has anything: one row of it is looked at.
                first_of_a_lane = "(select 1 from ready where ready.lane = j.value limit 1)" in sql
                whole_lane = (
                    "json_each" in sql and re.search(r"PRIMARY KEY \(lane=\?\)", step) and not first_of_a_lane
                )
                list_is_inside = "VIRTUAL TABLE" in step and above in begun
                if re.match(r"(SCAN|SEARCH) (?!.*VIRTUAL)", step):
                    begun.add(above)
                if walked or whole_lane or list_is_inside:
                    plans.append(f"{step}: {sql}")
    connection.close()
    return plans
