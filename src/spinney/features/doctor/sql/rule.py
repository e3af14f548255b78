"""What a rule of the doctor is: an invariant, the query that finds its violations, a message, and perhaps a repair.

Most rules walk one table by its key, a page at a time, and are one SQL condition over the page and what is joined to
it. So every violation is judged within one snapshot, no snapshot is held for longer than a page takes, and a store of
any size is examined in the memory of a page. The same statement, asked for one key, checks again in the transaction
that repairs: what has come right in the meantime is left alone.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from spinney.features.doctor.checks import Violation
from spinney.model.states import LEASED, OPEN, SETTLED, State
from spinney.model.values import durations
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.connection.sqlite import SqliteDatabase
from spinney.store.sql.registry import job_rows
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.session import Session
from spinney.store.sql.submit import staging
from spinney.store.sql.transitions.cascades import Cascade

PAGE = 5_000
"""Rows that one snapshot looks at: some 10 to 50 ms."""
GRACE_US = 60_000_000
"""What maintenance does by itself is a violation only when it is this late."""

Facts = Mapping[str, Any]
"""The values of one violation: the key of its row, and the others that the message names."""


class CheckContext(NamedTuple):
    """The snapshot in which a rule is examined, or the transaction in which one violation is checked
    again."""

    tx: Tx
    registry: Registry
    now_us: int
    """The present, in microseconds since 1970 UTC. It is the same for a whole examination."""


class RepairContext(NamedTuple):
    """The transaction of one repair. The cascade is worked off before it commits: parents that may go on,
    jobs that get a lock or whose need has settled."""

    tx: Tx
    registry: Registry
    now_us: int
    cascade: Cascade

    def place(self, job_id: int) -> None:
        """Put an open job that has no lease where its row says that it belongs now: into ``ready``, under a
        hold, or among the jobs that wait."""
        row = job_rows.find(self.tx, job_id)
        if row.state == "pending" and row.stage is not None:
            self.cascade.leave_ready(row)
        self.cascade.place(row)

    def take_lease(self, job_id: int, fence: int) -> None:
        """Delete the lease, the locks of its attempt, and the jobs that the attempt has spawned but not
        published.

        The fence is not given out again, so whatever the attempt still reports is refused.
        """
        self.tx.run("delete from leases where job_id = ?", (job_id,))
        self.cascade.free_locks(job_id, fence)
        staging.disown(self.tx, fence)


class Repair(NamedTuple):
    """What ``--repair`` does about a violation."""

    offer: str
    """What it does, for people, as the end of "--repair …"; facts may stand in it in braces."""
    run: Callable[[RepairContext, Facts], None]
    """Makes the change in the transaction of the context, from the facts of the violation as they are now."""
    stepwise: bool = False
    """Whether ``run`` does one bounded step, each in a transaction of its own, and is repeated until the
    violation is gone."""


RowFilter = Callable[[CheckContext, list[dict[str, Any]]], list[dict[str, Any]]]
"""A function that returns those of a page's rows that are violations, and may add facts to them. It decides
what SQL cannot, such as what the registry says of a job type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One invariant: the query that finds its violations, the message about them, and the repair."""

    name: str
    """The name of the rule, for programs and for ``--only``."""
    about: str
    """What must hold, as a sentence."""
    subject: str = ""
    """The template of what a violation is about, with facts in braces."""
    sentence: str
    """The template of what is wrong and, where there is no repair, what a person should do, with facts in
    braces."""
    repair: Repair | None = None
    """What ``--repair`` does; None: no repair is safe."""
    deep: bool = False
    """Whether it takes long, and is checked only on request."""

    def examine(self, session: Session, now_us: int) -> Iterator[Violation]:
        """Yield each violation, as it is found."""
        raise NotImplementedError

    def again(self, check: CheckContext, facts: Facts) -> Facts | None:
        """Return the facts of a violation as they are now; None: it is gone, or the rule has no repair."""
        return None

    def violation(self, facts: Facts) -> Violation:
        """Return the violation with these facts, its templates filled in. In its sentence, facts that end in ``_s`` are
        durations with their units."""
        lengths = {name: durations.rounded(value) for name, value in facts.items() if name.endswith("_s")}
        return Violation(
            rule=self.name,
            subject=self.subject_of(facts),
            sentence=self.sentence.format(**{**facts, **lengths}),
            repair=None if self.repair is None else self.repair.offer.format(**facts),
            facts=dict(facts),
        )

    def subject_of(self, facts: Facts) -> str:
        """Return what the violation with these facts is about: ``job 17``."""
        return self.subject.format(**facts)


# --- rules over the pages of a table -----------------------------------------------------------


class Join(NamedTuple):
    """Tables that are joined to ``page``: by ``left join``, or by ``cross join`` and a condition.

    SQLite never reorders a ``cross join``. In a plain join it would choose an order of its own, and walk all
    jobs to find a few leases; for PostgreSQL the condition makes it an ordinary inner join.
    """

    tables: str = ""
    on: str = "1 = 1"


NOTHING = Join()
IN_JOBS = Join("cross join jobs", "jobs.id = page.job_id")
"""The job of each row; rows without a job are left to the rules about leftovers."""
MAYBE_JOB = Join("left join jobs on jobs.id = page.job_id")
"""The job of each row, or nulls: for rules that look for rows without a job."""
IN_SAME_STATE = Join("cross join jobs", "jobs.id = page.job_id and jobs.state = page.state")
"""The job of each row of ``inactive_jobs``. Where the two states differ, that has to be repaired first."""


class Walk(NamedTuple):
    """A table, and the key by which it is read in pages."""

    table: str
    keys: tuple[str, ...]
    """The columns of the key, in the order of the index by which the table is read."""
    only: str = "1 = 1"
    """A condition on its rows, which an index together with the key must serve."""
    rows: int = PAGE
    """How many rows a page has."""
    subject: str = "job {job_id}"
    """The template of what a violation is about, unless the rule has its own."""
    join: Join = NOTHING
    """What is joined to each row, unless the rule joins something else."""

    def page(
        self, check: CheckContext, after: Sequence[Any] | None
    ) -> tuple[str, list[Any], Sequence[Any] | None]:
        """Return the next page as a select, its binds, and the key of its last row (None: it is the last
        page).

        The last key is looked up first, so that the page itself is a plain range of keys, without an order or
        a limit that would have to be kept beneath the joins of a rule. Rows that are inserted behind the last
        key are part of a later page.
        """
        names = ", ".join(self.keys)
        marks = ", ".join("?" for _ in self.keys)
        behind, binds = ("", []) if after is None else (f"and ({names}) > ({marks})", list(after))
        last = check.tx.one(
            f"select {names} from {self.table} where {self.only} {behind} order by {names} limit 1 offset ?",
            (*binds, self.rows - 1),
        )
        until = "" if last is None else f"and ({names}) <= ({marks})"
        return f"select * from {self.table} where {self.only} {behind} {until}", [*binds, *(last or ())], last

    def one(self, facts: Facts) -> tuple[str, list[Any]]:
        """Return, as ``page`` does, the page that holds the one row with the key among these facts, or
        nothing if it has gone."""
        same = " and ".join(f"{key} = ?" for key in self.keys)
        return f"select * from {self.table} where {self.only} and {same}", [facts[key] for key in self.keys]


JOBS = Walk("jobs", ("id",), subject="job {id}")
"""The walk over all jobs. The next ones walk tables that have rows of some jobs only, each joined to its job."""
READY = Walk("ready", ("lane", "priority", "share", "position"), join=IN_JOBS)
LEASES = Walk("leases", ("job_id",), join=IN_JOBS)
INACTIVE = Walk("inactive_jobs", ("job_id",), join=IN_JOBS)
WAITING = Walk("inactive_jobs", ("job_id",), "state = 'waiting'", join=IN_SAME_STATE)
SCHEDULED = Walk("inactive_jobs", ("job_id",), "state = 'scheduled'", join=IN_SAME_STATE)
HELD = Walk("inactive_jobs", ("job_id",), "state = 'held'", join=IN_SAME_STATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Paged(Rule):
    """A rule that walks a table: every row of a page, with what is joined to it, for which ``where`` holds is
    a violation, unless ``row_filter`` lets it pass."""

    walk: Walk
    join: Join | None = None
    """What is joined to each row; None: what the walk joins."""
    where: str
    """The condition of a violation, in SQL over ``page`` and the joined tables."""
    columns: Sequence[str] = ()
    """Expressions that become facts beside the key: ``jobs.state``, ``l.fence as fence``."""
    binds: Callable[[CheckContext], Sequence[Any]] = field(default=lambda check: ())
    """The values for the question marks in ``columns``, ``join`` and ``where``, in the order in which these
    stand in the statement."""
    row_filter: RowFilter | None = None
    """Decides about the rows of a page what SQL cannot."""
    row_filter_again: RowFilter | None = None
    """Takes the place of ``row_filter`` in the transaction of a repair, where that one would hold up the
    writers."""

    def examine(self, session: Session, now_us: int) -> Iterator[Violation]:
        """Yield the violations page by page, each page judged within one snapshot."""
        after: Sequence[Any] | None = None
        while True:
            # Nothing is yielded while the snapshot is open: the caller may take as long as it likes.
            with session.look() as tx:
                check = CheckContext(tx, session.registry, now_us)
                page, binds, after = self.walk.page(check, after)
                wrong = self._wrong(check, page, binds, self.row_filter)
            yield from (self.violation(facts) for facts in wrong)
            if after is None:
                return

    def again(self, check: CheckContext, facts: Facts) -> Facts | None:
        """Run the same statement for the row of the violation alone."""
        wrong = self._wrong(check, *self.walk.one(facts), self.row_filter_again or self.row_filter)
        return wrong[0] if wrong else None

    def subject_of(self, facts: Facts) -> str:
        return (self.subject or self.walk.subject).format(**facts)

    def _wrong(
        self, check: CheckContext, page: str, binds: Sequence[Any], row_filter: RowFilter | None
    ) -> list[dict[str, Any]]:
        """Return the facts of the violations of a page, by the names of the selected expressions: what stands
        behind ``as``, or the column without its table."""
        names = [expression.split(" as ")[-1].split(".")[-1] for expression in self._selected()]
        wrong = check.tx.all(self.statement(page), (*binds, *self.binds(check)))
        facts = [dict(zip(names, row, strict=True)) for row in wrong]
        return facts if row_filter is None or not facts else row_filter(check, facts)

    def statement(self, page: str) -> str:
        """Return the statement that selects all violations of a page."""
        selected, (tables, on) = ", ".join(self._selected()), self.join or self.walk.join
        return f"with page as ({page}) select {selected} from page {tables} where {on} and ({self.where})"

    def _selected(self) -> list[str]:
        return [*(f"page.{key}" for key in self.walk.keys), *self.columns]


def deletion(walk: Walk, offer: str) -> Repair:
    """Return a repair that deletes the one row of the violation by its key."""
    where = " and ".join(f"{key} = ?" for key in walk.keys)
    statement = f"delete from {walk.table} where {where}"
    return Repair(offer, lambda repair, facts: repair.tx.run(statement, [facts[key] for key in walk.keys]))


# --- other rules --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole(Rule):
    """A rule about few rows: a function finds all violations at once, in one snapshot."""

    find: Callable[[CheckContext], Sequence[Facts]]
    """Returns the facts of all violations. A repair calls it again, and looks for the violation with the same
    subject."""

    def examine(self, session: Session, now_us: int) -> Iterator[Violation]:
        """Yield all violations, found in one snapshot."""
        with session.look() as tx:
            wrong = self.find(CheckContext(tx, session.registry, now_us))
        yield from (self.violation(facts) for facts in wrong)

    def again(self, check: CheckContext, facts: Facts) -> Facts | None:
        """Find all violations again, and return the one with the same subject."""
        subject = self.subject_of(facts)
        return next((now for now in self.find(check) if self.subject_of(now) == subject), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRule(Rule):
    """A rule that opens snapshots of its own, and must not need the registry. It offers no repair."""

    find: Callable[[Session], Iterator[Facts]]
    """Yields the facts of each violation, from snapshots that it opens itself."""
    on: Literal["SQLite", "PostgreSQL", "any"] = "any"
    """The kind of database on which the rule can be broken; on others it finds nothing."""

    def examine(self, session: Session, now_us: int) -> Iterator[Violation]:
        """Yield what the function finds, where the kind of database is the rule's."""
        kind = "SQLite" if isinstance(session.database, SqliteDatabase) else "PostgreSQL"
        if self.on in ("any", kind):
            yield from (self.violation(facts) for facts in self.find(session))


# --- queries shared by rules --------------------------------------------------------------------


def states(of: Collection[State]) -> str:
    """Return the states as the inside of ``state in (…)``. The states of jobs with a lease are left out,
    since such a job is ``pending`` in its row."""
    return ", ".join(f"'{state}'" for state in sorted(set(of) - LEASED))


SETTLED_STATES = states(SETTLED)
OPEN_STATES = states(OPEN)


def in_place(check: CheckContext, facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows without those of jobs whose submission is still being written or put in place: they
    rightly stand nowhere yet."""
    return _outside(
        check, facts, "select case when published = 1 then next_id else first_id end, last_id from staging"
    )


def only_accepted(check: CheckContext, facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows without those of jobs whose submission is not accepted yet, or never will be."""
    return _outside(check, facts, "select first_id, last_id from staging where published <> 1")


def _outside(check: CheckContext, facts: list[dict[str, Any]], ranges: str) -> list[dict[str, Any]]:
    """Return the rows whose job is in none of the ranges of ids that a query returns. There are only a few
    large submissions at a time, so all ranges are read."""
    hidden = check.tx.all(ranges)
    if not hidden:
        return facts

    def shown(job_id: int) -> bool:
        return not any(first <= job_id <= last for first, last in hidden)

    return [row for row in facts if shown(row["job_id"] if "job_id" in row else row["id"])]
