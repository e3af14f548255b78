"""What a rule is: something that must hold, how one finds where it does not, and what mends it.

Most rules walk one table by its key, a page a time, and are one condition in SQL over the page and what is
joined to it. So what is wrong is judged within one snapshot, none is held for longer than a page takes, and a
store of any size is examined in the memory of a page. The same statement, asked for one key, looks again in the
transaction that mends: what has come right by itself is left alone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import orjson

from spinney.model.rights.operators import Violation
from spinney.store.sql.connection import rows
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.session import Session
from spinney.store.sql.submit import staging
from spinney.store.sql.transitions import placement
from spinney.store.sql.transitions.cascades import Cascade

PAGE = 5_000
"""Rows that one snapshot looks at: some 10 to 50 ms."""
GRACE_US = 60_000_000
"""What housekeeping does by itself is wrong only when it is so late."""

Facts = Mapping[str, Any]
"""Of one violation: the key of its row, and what else the sentence tells."""


class CheckContext(NamedTuple):
    """One snapshot, or one transaction."""

    tx: Tx
    registry: Registry
    now_us: int


class RepairContext(NamedTuple):
    """What a repair has in hand."""

    tx: Tx
    registry: Registry
    now_us: int
    cascade: Cascade

    def place(self, job_id: int) -> None:
        """Put an open job that nobody works at where it belongs now."""
        row = rows.find(self.tx, job_id)
        if row.state == "pending" and row.stage is not None:
            placement.leave_ready(self.tx, self.registry, row)
        self.cascade.place(row)

    def take_lease(self, job_id: int, fence: int) -> None:
        """Take the lease away, with the locks of its attempt and the jobs that it has not born yet."""
        self.tx.run("delete from leases where job_id = ?", (job_id,))
        self.cascade.free_locks(job_id, fence)
        staging.disown(self.tx, fence)


Sentence = str | Callable[[Facts], str]
Repair = Callable[[RepairContext, Facts], None]
RowFilter = Callable[[CheckContext, list[dict[str, Any]]], list[dict[str, Any]]]
"""Of what the statement found in one page: those that are wrong indeed. May add facts."""


class Rule(Protocol):
    """One invariant."""

    @property
    def name(self) -> str:
        """A word for programs."""

    @property
    def about(self) -> str:
        """What must hold, in a sentence."""

    def examine(self, session: Session, now_us: int) -> Iterator[Violation]:
        """Where it does not."""

    def again(self, look: CheckContext, facts: Facts) -> Facts | None:
        """Look once more at one violation; None: it is gone."""

    @property
    def mend(self) -> Repair | None:
        """None: no repair is safe."""

    @property
    def stepwise(self) -> bool:
        """Whether a repair does one bounded step, and is to be repeated until nothing is wrong."""


class Walk(NamedTuple):
    """A table, and the key by which it is read in pages."""

    table: str
    keys: tuple[str, ...]
    only: str = "1 = 1"
    """Which of its rows; a condition that an index with the key serves."""
    rows: int = PAGE

    def page(
        self, look: CheckContext, after: Sequence[Any] | None
    ) -> tuple[str, list[Any], Sequence[Any] | None]:
        """The next page as a select, its binds, and the key of its last row (None: nothing is behind it)."""
        names = ", ".join(self.keys)
        marks = ", ".join("?" for _ in self.keys)
        behind, binds = ("", []) if after is None else (f"and ({names}) > ({marks})", list(after))
        last = look.tx.one(
            f"select {names} from {self.table} where {self.only} {behind} order by {names} limit 1 offset ?",
            (*binds, self.rows - 1),
        )
        until = "" if last is None else f"and ({names}) <= ({marks})"
        return f"select * from {self.table} where {self.only} {behind} {until}", [*binds, *(last or ())], last

    def one(self, facts: Facts) -> tuple[str, list[Any]]:
        """The page that holds one row alone, if it is still there."""
        same = " and ".join(f"{key} = ?" for key in self.keys)
        return f"select * from {self.table} where {self.only} and {same}", [facts[key] for key in self.keys]


JOBS = Walk("jobs", ("id",))
READY = Walk("ready", ("lane", "priority", "share", "position"))
LEASES = Walk("leases", ("job_id",))
INACTIVE = Walk("inactive_jobs", ("job_id",))
WAITING = Walk("inactive_jobs", ("job_id",), "state = 'waiting'")
SCHEDULED = Walk("inactive_jobs", ("job_id",), "state = 'scheduled'")
HELD = Walk("inactive_jobs", ("job_id",), "state = 'held'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Paged:
    """A rule that walks a table."""

    name: str
    about: str
    walk: Walk
    join: str = ""
    """What is joined to ``page``: ``left join``, or ``cross join`` with ``on``. (In a plain join SQLite would take
    the tables in an order of its own, and walk all jobs to find a few leases.)"""
    on: str = "1 = 1"
    where: str
    """What must not be."""
    columns: Sequence[str] = ()
    """Expressions to be told beside the key: ``jobs.state``, ``l.fence as fence``."""
    binds: Callable[[CheckContext], Sequence[Any]] = field(default=lambda look: ())
    """For the marks in what is told, in the join and in the condition."""
    row_filter: RowFilter | None = None
    row_filter_again: RowFilter | None = None
    """Instead of ``row_filter`` in the transaction that mends, where that asks more than can be asked of a writer."""
    subject: str = "job {job_id}"
    sentence: Sentence
    offer: str | None = None
    """What the repair does."""
    mend: Repair | None = None
    stepwise: bool = False

    def examine(self, session: Session, now_us: int) -> Iterator[Violation]:
        after: Sequence[Any] | None = None
        while True:
            # Nothing is handed out while the snapshot is open: who takes it may take his time.
            with session.look() as tx:
                look = CheckContext(tx, session.registry, now_us)
                page, binds, after = self.walk.page(look, after)
                found = self._found(look, page, binds, self.row_filter)
            yield from (self.violation(facts) for facts in found)
            if after is None:
                return

    def again(self, look: CheckContext, facts: Facts) -> Facts | None:
        found = self._found(look, *self.walk.one(facts), self.row_filter_again or self.row_filter)
        return found[0] if found else None

    def _found(
        self, look: CheckContext, page: str, binds: Sequence[Any], row_filter: RowFilter | None
    ) -> list[dict[str, Any]]:
        names = [expression.split(" as ")[-1].split(".")[-1] for expression in self._told()]
        rows_ = look.tx.all(self.statement(page), (*binds, *self.binds(look)))
        found = [dict(zip(names, row, strict=True)) for row in rows_]
        return found if row_filter is None or not found else row_filter(look, found)

    def statement(self, page: str) -> str:
        """What asks one page for all that is wrong in it."""
        told = ", ".join(self._told())
        return f"with page as ({page}) select {told} from page {self.join} where {self.on} and ({self.where})"

    def _told(self) -> list[str]:
        return [*(f"page.{key}" for key in self.walk.keys), *self.columns]

    def violation(self, facts: Facts) -> Violation:
        return violation_of(self, self.subject, self.sentence, self.offer, facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A rule about few rows, or none: found by a function, at once."""

    name: str
    about: str
    find: Callable[[CheckContext], Sequence[Facts]]
    subject: str
    sentence: Sentence
    offer: str | None = None
    mend: Repair | None = None
    stepwise: bool = False

    def examine(self, session: Session, now_us: int) -> Iterator[Violation]:
        with session.look() as tx:
            found = self.find(CheckContext(tx, session.registry, now_us))
        yield from (violation_of(self, self.subject, self.sentence, self.offer, facts) for facts in found)

    def again(self, look: CheckContext, facts: Facts) -> Facts | None:
        wanted = self.subject.format(**facts)
        return next((f for f in self.find(look) if self.subject.format(**f) == wanted), None)


def violation_of(rule: Rule, subject: str, sentence: Sentence, offer: str | None, facts: Facts) -> Violation:
    """The violation that people are told."""
    said = sentence.format(**facts) if isinstance(sentence, str) else sentence(facts)
    return Violation(
        rule=rule.name,
        subject=subject.format(**facts),
        sentence=said,
        repair=None if rule.mend is None or offer is None else offer.format(**facts),
        facts=dict(facts),
    )


# --- what several rules ask -------------------------------------------------------------------


def in_place(look: CheckContext, found: list[dict[str, Any]], key: str = "id") -> list[dict[str, Any]]:
    """Without jobs of calls that are still written or put in place: those stand nowhere yet, and rightly so."""
    staged = look.tx.all(
        "select case when published = 1 then next_id else first_id end, last_id from staging"
    )
    if not staged:
        return found
    return [facts for facts in found if not any(first <= facts[key] <= last for first, last in staged)]


def only_accepted(look: CheckContext, found: list[dict[str, Any]], key: str = "id") -> list[dict[str, Any]]:
    """Without jobs that are not accepted yet, or never will be."""
    hidden = look.tx.all("select first_id, last_id from staging where published <> 1")
    if not hidden:
        return found
    return [facts for facts in found if not any(first <= facts[key] <= last for first, last in hidden)]


def listed(values: Sequence[Any]) -> str:
    """For json_each."""
    return orjson.dumps(list(values)).decode()


def standing_in_ready(look: CheckContext, ids: Sequence[int]) -> set[int]:
    """Those of these jobs that stand anywhere in ``ready``: no index says so, so all of it is read."""
    if not ids:
        return set()
    sql = "select job_id from ready where job_id in (select j.value from json_each(?) j)"
    return {job_id for (job_id,) in look.tx.all(sql, (listed(ids),))}
