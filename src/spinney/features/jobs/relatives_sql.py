"""The relatives of a job: its subjobs, the jobs that it needs, and those that need it, counted by type and
state.

A job may have a million subjobs or be needed by as many. Everything here looks at ``RELATIVES_MAX`` at most,
found by an index from the job itself, so a page of any job is quick and says when its counts are not
complete.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from spinney.model.access import AccessScope
from spinney.model.jobs import Filter
from spinney.model.states import State
from spinney.store.sql.connection.database import list_text
from spinney.store.sql.read import filter_queries
from spinney.store.sql.registry.job_rows import VISIBLE
from spinney.store.sql.session import SqlPart

RELATIVES_MAX = 10_000
"""How many relatives of one kind are looked at. That there are more is reported, but not how many."""
_SHOWN = (
    "case when l.job_id is null then few.state when l.running_us is null then 'claimed' else 'running' end"
)
"""The state that people see. A leased job is ``pending`` or so in its own row until its attempt is recorded,
because claiming does not write that row: the lease says whether it is claimed or running."""


class Relation(StrEnum):
    """How the jobs of a group are related to a job: they are below it, it needs them, or they need it."""

    SUBJOBS = "subjobs"
    NEEDS = "needs"
    NEEDED_BY = "needed_by"


_SOURCES = {
    Relation.SUBJOBS: "jobs where jobs.parent_id is not null and jobs.parent_id = ?",
    Relation.NEEDS: "needs n cross join jobs where jobs.id = n.need_id and n.job_id = ?",
    Relation.NEEDED_BY: "needs n cross join jobs where jobs.id = n.job_id and n.need_id = ?",
}
"""The relatives, as SQL with the job's id as its only value. ``cross join`` keeps SQLite from beginning with
all jobs; ``is not null`` lets it use the partial index of subjobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Relatives of one type in one state, as one line of the picture."""

    type: str
    state: State
    jobs: int
    """How many jobs it has."""


class SqlRelatives(SqlPart):
    """Read the relatives of a job: its subjobs, those that it needs, and those that need it."""

    def ids(self, job_id: int, relation: Relation) -> list[int]:
        """Return the jobs that this one needs, or that need it, by number, at most ``RELATIVES_MAX``, visible to
        the caller or not."""
        own, other = ("job_id", "need_id") if relation is Relation.NEEDS else ("need_id", "job_id")
        sql = f"select {other} from needs where {own} = ? order by {other} limit ?"
        with self._session.read() as tx:
            return tx.column(sql, (job_id, RELATIVES_MAX))

    def has_needs(self, job_id: int) -> bool:
        """Return whether a job needs others, or others need it. The page of the job shows a link to
        these only then."""
        sql = "select exists (select 1 from needs where job_id = ?) or exists (select 1 from needs where need_id = ?)"
        with self._session.read() as tx:
            return bool(tx.value(sql, (job_id, job_id)))

    def groups(self, job_id: int, relation: Relation, within: AccessScope | None) -> tuple[list[Group], bool]:
        """Return the visible relatives of a job by type and state, and whether only the first
        ``RELATIVES_MAX`` were counted.

        Groups are sorted by type, the largest of a type first. Deleted jobs are left out, and
        superseded subjobs; a need that is superseded is still a need. The inner select is limited
        before it is grouped, which bounds the work.
        """
        superseded = False if relation is Relation.SUBJOBS else None
        where, values = filter_queries.conditions(Filter(superseded=superseded, within=within))
        few = (
            f"select jobs.id, jobs.type, jobs.state from {_SOURCES[relation]} and jobs.state <> 'deleted' "
            f"and {' and '.join([VISIBLE, *where])} limit ?"
        )
        sql = (
            f"select few.type, {_SHOWN} as shown, count(*) from ({few}) few "
            "left join leases l on l.job_id = few.id group by few.type, shown"
        )
        with self._session.read() as tx:
            rows = tx.all(sql, (job_id, *values, RELATIVES_MAX + 1))
        groups = [Group(type=type_, state=State(state), jobs=jobs) for type_, state, jobs in rows]
        partial = sum(group.jobs for group in groups) > RELATIVES_MAX
        return sorted(groups, key=lambda group: (group.type, -group.jobs, group.state)), partial

    def parents(self, job_ids: Sequence[int]) -> set[int]:
        """Return which of these jobs have subjobs, superseded ones included, by one seek each."""
        sql = (
            "select j.value from json_each(?) j where exists "
            "(select 1 from jobs where jobs.parent_id = j.value and jobs.parent_id is not null)"
        )
        with self._session.read() as tx:
            return set(tx.column(sql, (list_text(job_ids),)))
