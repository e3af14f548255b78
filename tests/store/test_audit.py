"""What becomes of the audit when somebody writes into the database past Spinney, and when many write at once."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import orjson
import pytest

import job_verbs
from new_store import new_store
from spinney.model.errors import AuditBroken
from spinney.model.jobs import Submission
from spinney.model.operators.audits import BEGINNING, AuditEntry, digest
from spinney.model.types import StageSpec, TypeSpec
from spinney.store.parts import Store
from spinney.store.sql import SqlStore, open_store
from spinney.store.sql.schema.statements import GUARDS

ENTRIES = 6
COLUMNS = "seq, at_us, by, verb, what, count, reason, call"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    """A store with some entries."""
    made = open_store(new_store(tmp_path / "x.db", _enter_some))
    assert made.audit.verify() == ENTRIES
    yield made
    made.close()


def _enter_some(store: Store) -> None:
    store.register([TypeSpec(name="one", stages=(StageSpec(name="work"),))], [])
    ids = store.submit([Submission(type="one", params=["{}"] * ENTRIES)], now_us=1).ids
    for job_id in ids:
        job_verbs.cancel(store, job_id, tree=False, by="ann", reason=f"reason {job_id}", now_us=10 + job_id)


@pytest.fixture
def tamper(store: SqlStore) -> Callable[..., None]:
    """Statements of somebody who has the file: the guards are no hindrance to them."""

    def run(*statements: str) -> None:
        with closing(sqlite3.connect(store.database.path)) as connection:
            for name in GUARDS["sqlite"]:
                connection.execute(f"drop trigger if exists {name}")
            for sql in statements:
                connection.execute(sql)
            connection.commit()

    return run


def rewrite(path: Path, change: Callable[[list[AuditEntry]], list[AuditEntry]]) -> None:
    """Write the whole chain anew, with links that fit."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(f"select {COLUMNS} from audit order by seq").fetchall()
        entries = [AuditEntry(**dict(zip(COLUMNS.split(", "), row, strict=True))) for row in rows]
        connection.execute("delete from audit")
        link = BEGINNING
        for entry in change(entries):
            link = digest(link, entry)
            row = (*(getattr(entry, name) for name in COLUMNS.split(", ")), link)
            connection.execute(f"insert into audit ({COLUMNS}, link) values (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        connection.commit()


# --- tampering ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        "at_us = 1",
        "by = 'bob'",
        "verb = 'retry'",
        "what = '{}'",
        "count = 7",
        "reason = null",
        "reason = 'reason 3'",
        "call = 'x'",
        "link = upper(link)",
        f"link = '{BEGINNING}'",
        "by = x'ff'",
        "count = 'many'",
        "by = cast(x'ff' as text)",
    ],
)
def test_a_changed_field_is_found_without_a_head(
    store: SqlStore, tamper: Callable[..., None], change: str
) -> None:
    tamper(f"update audit set {change} where seq = 4")

    with pytest.raises(AuditBroken, match=r"entry 4 .* changed"):
        store.audit.verify()


def test_an_entry_cut_out_is_found_without_a_head(store: SqlStore, tamper: Callable[..., None]) -> None:
    tamper("delete from audit where seq = 3")

    with pytest.raises(AuditBroken, match="entry 3 of the audit is missing"):
        store.audit.verify()


def test_so_is_one_whose_gap_was_closed(store: SqlStore, tamper: Callable[..., None]) -> None:
    tamper(
        "delete from audit where seq = 3",
        *(f"update audit set seq = {n} where seq = {n + 1}" for n in (3, 4, 5)),
    )

    with pytest.raises(
        AuditBroken, match="entry 3 of the audit has been changed, or one before it was cut out"
    ):
        store.audit.verify()


def test_an_entry_put_in_is_found(store: SqlStore, tamper: Callable[..., None]) -> None:
    tamper(
        *(f"update audit set seq = {n + 1} where seq = {n}" for n in (6, 5, 4)),
        f"insert into audit ({COLUMNS}, link) select 4, at_us, by, verb, what, count, reason, call, link "
        "from audit where seq = 3",
    )

    with pytest.raises(AuditBroken, match="entry 4 of the audit has been changed"):
        store.audit.verify()


@pytest.mark.parametrize("seq", [0, -3])
def test_one_put_in_before_the_first_is_found(store: SqlStore, tamper: Callable[..., None], seq: int) -> None:
    """It would be listed among the others."""
    tamper(
        f"insert into audit ({COLUMNS}, link) select {seq}, at_us, by, verb, what, count, reason, call, link "
        "from audit where seq = 3",
    )

    with pytest.raises(AuditBroken, match=f"entry {seq} of the audit was put in: the first is entry 1"):
        store.audit.verify(store.audit.head())


def test_entries_in_another_order_are_found(store: SqlStore, tamper: Callable[..., None]) -> None:
    tamper(*(f"update audit set seq = {b} where seq = {a}" for a, b in ((3, 99), (4, 3), (99, 4))))

    with pytest.raises(AuditBroken, match="entry 3"):
        store.audit.verify()


def test_a_tail_cut_off_is_found_with_a_head_alone(store: SqlStore, tamper: Callable[..., None]) -> None:
    head = store.audit.head()
    tamper("delete from audit where seq > 4")

    assert store.audit.verify() == 4, (
        "what is left is whole: only a head that was kept tells that there was more"
    )
    with pytest.raises(AuditBroken, match="of entry 6, but the audit ends with entry 4: it was cut off"):
        store.audit.verify(head)


def test_an_audit_that_was_emptied_is_found_with_a_head(store: SqlStore, tamper: Callable[..., None]) -> None:
    head = store.audit.head()
    tamper("delete from audit")

    with pytest.raises(AuditBroken, match="the audit ends with entry 0"):
        store.audit.verify(head)


def test_a_chain_written_anew_is_found_with_a_head_alone(
    store: SqlStore, tamper: Callable[..., None]
) -> None:
    head = store.audit.head()
    tamper()
    rewrite(store.database.path, lambda entries: [*entries[:-1], _forged(entries[-1])])

    assert store.audit.verify() == ENTRIES, "it is whole in itself"
    with pytest.raises(AuditBroken, match="up to entry 6 is not the one whose head was kept"):
        store.audit.verify(head)


def test_a_head_proves_the_entries_up_to_it_and_no_others(
    store: SqlStore, tamper: Callable[..., None]
) -> None:
    head = f"3:{store.audit.entries(after=2, limit=1)[0][1]}"
    tamper()
    rewrite(store.database.path, lambda entries: [*entries[:-1], _forged(entries[-1])])

    assert store.audit.verify(head) == ENTRIES


def test_a_chain_that_is_written_on_after_tampering_stays_broken(
    store: SqlStore, tamper: Callable[..., None]
) -> None:
    tamper("update audit set reason = 'another' where seq = 2")
    (job_id,) = store.submit([Submission(type="one")], now_us=1).ids
    job_verbs.cancel(store, job_id, tree=False, by="ann", reason=None, now_us=50)

    with pytest.raises(AuditBroken, match="entry 2"):
        store.audit.verify()


def _forged(entry: AuditEntry) -> AuditEntry:
    return AuditEntry(**{name: getattr(entry, name) for name in COLUMNS.split(", ")} | {"by": "bob"})


# --- accidents ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "update audit set reason = 'another' where seq = 2",
        "update audit set seq = 99 where seq = 6",
        "delete from audit where seq = 6",
        "delete from audit",
        f"insert or replace into audit ({COLUMNS}, link) values (2, 1, 'a', 'b', 'c', 1, null, 'd', 'e')",
        f"insert into audit ({COLUMNS}, link) values (9, 1, 'a', 'b', 'c', 1, null, 'd', 'e')",
        f"insert into audit ({COLUMNS}, link) values (0, 1, 'a', 'b', 'c', 1, null, 'd', 'e')",
    ],
)
def test_a_statement_that_would_change_the_audit_is_refused(store: SqlStore, sql: str) -> None:
    with closing(sqlite3.connect(store.database.path)) as connection:
        with pytest.raises(sqlite3.IntegrityError, match="the audit is append-only"):
            connection.execute(sql)
        connection.commit()

    assert store.audit.verify(store.audit.head()) == ENTRIES


def test_the_guards_in_force_are_those_of_the_schema(store: SqlStore) -> None:
    with closing(sqlite3.connect(store.database.path)) as connection:
        triggers = dict(connection.execute("select name, sql from sqlite_master where type = 'trigger'"))

    assert {name: sql.lower() for name, sql in triggers.items()} == GUARDS["sqlite"]


# --- many at once -------------------------------------------------------------------------------

_CANCEL = """
import sys, time
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.rights.actor import Actor
from spinney.store.sql import open_store
store = open_store(sys.argv[1])
store.nodes()
print("ready", flush=True)
sys.stdin.readline()
for job_id in map(int, sys.argv[3:]):
    store.bulk.apply(Order(verb=Verb.CANCEL), [job_id], Actor(by=sys.argv[2]), now_us=time.time_ns() // 1000)
store.close()
"""


def test_processes_that_write_at_once_keep_the_chain_whole(store: SqlStore) -> None:
    each = 60
    ids = list(store.submit([Submission(type="one", params=["{}"] * 3 * each)], now_us=1).ids)
    url = f"sqlite:///{store.database.path}"
    head = store.audit.head()

    people = [
        subprocess.Popen(
            [sys.executable, "-c", _CANCEL, url, by, *map(str, ids[n::3])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n, by in enumerate(("ann", "bob", "eve"))
    ]
    assert [p.stdout and p.stdout.readline() for p in people] == ["ready\n"] * 3
    for process in people:
        assert process.stdin is not None
        process.stdin.close()
    assert [p.wait(60) for p in people] == [0, 0, 0]
    for process in people:
        assert process.stdout is not None
        process.stdout.close()

    assert store.audit.verify(head) == ENTRIES + 3 * each
    made = store.audit.entries(after=ENTRIES)
    assert {by: sum(e.by == by for e, _ in made) for by in ("ann", "bob", "eve")} == dict.fromkeys(
        ("ann", "bob", "eve"), each
    )
    assert [e.by for e, _ in made] != sorted(e.by for e, _ in made), "they did take turns"
    assert sorted(job for e, _ in made for job in orjson.loads(e.what)["jobs"]) == ids
