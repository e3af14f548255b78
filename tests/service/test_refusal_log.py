"""Refusals in the audit: nothing is lost, and nobody can fill it."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import orjson
import pytest

from contract.words import Clock
from new_store import new_store
from spinney.model.operators.audits import AuditEntry
from spinney.service.refusal_log import ADDRESSES, AT_ONCE, NOBODY, RefusalLog
from spinney.store.parts import Store
from spinney.store.sql import open_store

MINUTE, HOUR, DAY = 60, 3_600, 86_400


class Book:
    """A server that refuses, with its clock."""

    def __init__(self, store: Store) -> None:
        self.store, self.clock, self.refusals = store, Clock(), RefusalLog()

    def refuse(self, by: str = NOBODY, **what: str) -> None:
        self.refusals.enter(self.store.audit, by, "access refused", what, now_us=self.clock.now_us)

    def entries(self) -> list[AuditEntry]:
        """At the end of the server."""
        self.refusals.flush(self.store.audit, now_us=self.clock.now_us, all_=True)
        return [entry for entry, _ in self.store.audit.entries(limit=10_000)]


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    with closing(open_store(new_store(tmp_path / "x.db"))) as store:
        yield Book(store)


def test_strangers_are_counted_whatever_they_send_and_a_day_of_it_is_some_thirty_entries(book: Book) -> None:
    for second in range(0, DAY, 10):
        book.refuse(
            why="wrong token", token=f"{second:016x}", address=f"10.0.{second // 256 % 256}.{second % 256}"
        )
        book.clock.forward(10)

    entries = book.entries()
    first, *others = [orjson.loads(entry.what) for entry in entries]
    assert sum(entry.count for entry in entries) == DAY // 10
    assert len(entries) < 35
    assert first == {"why": "wrong token", "token": "0" * 16, "address": "10.0.0.0"}
    assert {tuple(other) for other in others} == {("addresses", "why")}
    assert all(len(other["addresses"]) == ADDRESSES for other in others)


@pytest.mark.parametrize("every_s", [61, 91, 301])
def test_nobody_makes_more_entries_by_waiting_until_what_he_did_was_counted(book: Book, every_s: int) -> None:
    for _ in range(DAY // every_s):
        book.refuse(why="wrong token")
        for _ in range(every_s // 30):  # as a server does
            book.clock.forward(30)
            book.refusals.flush(book.store.audit, now_us=book.clock.now_us)
        book.clock.forward(every_s % 30)

    entries = book.entries()
    assert sum(entry.count for entry in entries) == DAY // every_s
    assert len(entries) < 35


def test_after_a_quiet_time_the_next_is_entered_at_once(book: Book) -> None:
    for _ in range(3):
        book.refuse(why="wrong token")
        book.clock.forward(MINUTE)
    book.clock.forward(HOUR)
    book.refuse(why="nothing")  # which looks whether time is over
    book.clock.forward(HOUR)
    book.refuse(why="nothing")
    before = len(book.store.audit.entries())

    book.refuse(why="wrong token")

    assert len(book.store.audit.entries()) == before + 1


def test_somebody_known_who_varies_what_he_asks_for_fills_no_audit_either(book: Book) -> None:
    for number in range(HOUR):
        book.refuse("ann", why=f"there is no job {number}")
        book.clock.forward(1)

    entries = book.entries()
    assert sum(entry.count for entry in entries) == HOUR
    assert AT_ONCE < len(entries) < AT_ONCE + 10
    assert [entry.by for entry in entries] == ["ann"] * len(entries)
