"""What each question costs: an index leads to its answer, in tables that are full."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, text

from servers import postgres_schema
from spinney.apps.ingest.inventory import open_inventory
from spinney.apps.ingest.inventory.inventory import Inventory
from spinney.apps.ingest.inventory.schema import (
    EPOCH,
    audits,
    files,
    local_ids,
    metadata,
    numbers,
    objects,
    versions,
)

from .conftest import KINDS
from .words import ARK, NOON, entry, file

MANY = 3000

DIGESTS = {"adler32": 4, "crc32": 4, "md5": 16, "sha1": 20, "sha256": 32, "sha384": 48, "sha512": 64}


@pytest.fixture(scope="module", params=KINDS)
def full(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inventory]:
    """Thousands of objects, of which all have a file of the same name and content. One for all tests here: each adds
    a row or two."""
    with ExitStack() as opened:
        if request.param == "sqlite":
            url = f"sqlite:///{tmp_path_factory.mktemp('plans')}/inventory.db"
        else:
            url = opened.enter_context(postgres_schema())
        inventory = opened.enter_context(open_inventory(url))
        inventory.init()
        with inventory._database.write() as connection:
            fill(connection)
        with inventory._database.write() as connection:
            for (
                table
            ) in metadata.sorted_tables:  # and no other: those are being made and dropped by other tests
                connection.execute(text(f"analyze {table.name}"))
        yield inventory


def fill(connection: Connection) -> None:
    ids = range(1, MANY + 1)
    day = timedelta(days=1)
    rows: dict[Any, list[dict[str, Any]]] = {
        objects: [
            {
                "ark": f"ark:/9/{n}",
                "collection": f"c{n % 20}",
                "owner": "o",
                "head_version": 1,
                "audited_us": EPOCH + n * day,
                "damaged_since_us": EPOCH + n * day if n % 500 == 0 else None,
            }
            for n in ids
        ],
        versions: [
            {
                "object_id": n,
                "version": 1,
                "batch_id": f"bid-{n // 3}",
                "job_id": "jid-1",
                "submitter": "s",
                "storage": "main",
                "created_us": EPOCH,
                "files": 2,
                "size_bytes": 1,
                "verified": 0,
            }
            for n in ids
        ],
        files: [
            {
                "object_id": n,
                "first_version": 1,
                "last_version": 2**31 - 1,
                "size_bytes": 1,
                "name": "same" if same else f"own-{n}",
                "path": "same" if same else f"own-{n}",
                **{a: (0 if same else n).to_bytes(length, "big") for a, length in DIGESTS.items()},
            }
            for n in ids
            for same in (0, 1)
        ],
        local_ids: [{"local_id": f"l-{n}", "collection": f"c{n % 20}", "ark": f"ark:/9/{n}"} for n in ids],
        numbers: [{"minter": "m", "key": str(n), "number": n} for n in ids],
        audits: [
            {"object_id": n, "at_us": EPOCH + n * day, "files": 1, "size_bytes": 1, "faults": "[]"}
            for n in ids
        ],
    }
    for table, many in rows.items():
        connection.execute(table.insert(), many)


WALK = re.compile(r"Seq Scan|^SCAN (?!inv_objects USING INDEX inv_objects_damaged)")
"""That index holds the damaged objects alone, and all of them are asked for."""

VERBS: dict[str, Callable[[Inventory], object]] = {
    "ark": lambda i: i.find(ark="ark:/9/77"),
    "local id": lambda i: i.find(local_id="l-77"),
    "local id in collection": lambda i: i.find(local_id="l-77", collection="c17"),
    "collection": lambda i: i.find(collection="c17", limit=10),
    "collection, later page": lambda i: i.find(collection="c17", limit=10, after="2000"),
    "all": lambda i: i.find(limit=10, after="2000"),
    "rare file name": lambda i: i.find(file_name="own-77"),
    "common file name": lambda i: i.find(file_name="same", limit=10),
    "common file name, later page": lambda i: i.find(file_name="same", limit=10, after="2000.4001"),
    "end of a path": lambda i: i.find(file_name="x/own-77"),
    **{
        f"{a}": lambda i, a=a, b=length: i.find(digest=f"{a}:{(77).to_bytes(b, 'big').hex()}")
        for a, length in DIGESTS.items()
    },
    "digest of unknown algorithm": lambda i: i.find(digest=(77).to_bytes(4, "big").hex()),
    "common digest, later page": lambda i: i.find(digest="00" * 32, limit=10, after="2000.4001"),
    "object": lambda i: i.object("ark:/9/77"),
    "files": lambda i: list(i.files("ark:/9/77", 1)),
    "batch": lambda i: list(i.batch_entries("bid-7", apart="system")),
    "local id's ark": lambda i: i.ark_of("c17", "l-77"),
    "number": lambda i: i.number("m", "77"),
    "new number": lambda i: i.number("m2", "new"),
    "bind": lambda i: i.bind("c17", ["l-77", "new"], "ark:/9/77"),
    "unbind": lambda i: i.unbind("c17", ["l-77", "new"], "ark:/9/77"),
    "record": lambda i: i.record(entry(ARK, files=[file("a")])),
    "next version": lambda i: i.record(
        entry("ark:/9/77", 2, [file("a")], collection="c17", owner="o", local_ids=["l-77"])
    ),
    "due": lambda i: i.due_for_fixity(NOON, limit=10),
    "due outside a storage": lambda i: i.due_for_fixity(NOON, limit=10, outside=["second"]),
    "audited": lambda i: i.audited("ark:/9/77", NOON + timedelta(days=9999), 1, 1, []),
    "damaged and due": lambda i: i.damaged_for_fixity(10),
    "damaged": lambda i: i.damaged(limit=10),
}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS.keys())
def test_no_question_walks_a_table(full: Inventory, verb: Callable[[Inventory], object]) -> None:
    engine = full._database._engine
    statements = Statements(engine)
    with statements:
        verb(full)

    assert statements.seen
    with engine.connect() as connection:
        plans = {
            statement: plan(connection, statement, parameters) for statement, parameters in statements.seen
        }
    assert {s: p for s, p in plans.items() if any(WALK.search(line) for line in p)} == {}


@pytest.mark.parametrize(
    "verb",
    [v for name, v in VERBS.items() if "later page" in name],
    ids=[n for n in VERBS if "later page" in n],
)
def test_a_later_page_is_not_sorted_out_of_all(full: Inventory, verb: Callable[[Inventory], object]) -> None:
    engine = full._database._engine
    with Statements(engine) as statements:
        verb(full)

    with engine.connect() as connection:
        page = next((s, parameters) for s, parameters in statements.seen if "ORDER BY" in s.upper())
        lines = plan(connection, *page)
    # PostgreSQL may put those of one object in order; it has them object by object.
    assert [
        line for line in lines if re.search(r"(?<!Incremental )Sort  |USE TEMP B-TREE FOR ORDER BY", line)
    ] == []


class Statements:
    """Those that ask or change, as they go to the driver while in the block."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.seen: list[tuple[str, Any]] = []

    def __enter__(self) -> "Statements":
        event.listen(self._engine, "before_cursor_execute", self._note)
        return self

    def __exit__(self, *_: object) -> None:
        event.remove(self._engine, "before_cursor_execute", self._note)

    def _note(
        self, _c: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, many: bool
    ) -> None:
        if re.match(r"\s*(SELECT|UPDATE|DELETE|INSERT)", statement) and "pg_catalog" not in statement:
            self.seen.append((statement, parameters[0] if many else parameters))


def plan(connection: Connection, statement: str, parameters: Any) -> list[str]:
    explain = "EXPLAIN" if connection.dialect.name == "postgresql" else "EXPLAIN QUERY PLAN"
    try:
        return [
            str(row[-1]).strip() for row in connection.exec_driver_sql(f"{explain} {statement}", parameters)
        ]
    finally:
        connection.rollback()


def test_a_walk_would_be_seen(full: Inventory) -> None:
    engine = full._database._engine

    with engine.connect() as connection:
        lines = plan(connection, "SELECT * FROM inv_objects WHERE owner = 'x'", ())

    assert any(WALK.search(line) for line in lines)
